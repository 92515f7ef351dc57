"""The variables of many/: names of 900 characters that share little, so that the index needs several blocks."""

import numpy as np


def tensors():
    rng = np.random.default_rng(0)
    many = {f"{rng.bytes(450).hex()}/{i}": np.array(i, np.int32) for i in range(320)}
    many |= {"empty": np.zeros((0, 3), np.float32), "half": np.arange(6, dtype=np.float16).reshape(2, 3)}
    return many | {"double": np.array([0.1, 0.2]), "flags": np.array([True, False]), "long": np.array([-(2**40)])}


BFLOAT16 = [1.0, -2.5, 3.140625]
