"""What drafters, their trees and their tables refuse: each call of refusals.txt with its sentence."""

import math
from pathlib import Path

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2, random_heads
from refusals import answered

import gpt2np
import speculative
from speculative import NGramModel
from speculative.drafters.deterministic import one_hot
from speculative.testing import TableModel

GPT2 = random_gpt2(gpt2np.HParams(n_vocab=17, n_ctx=40, n_embd=15, n_head=3, n_layer=2))
TABLE, HEADS, BLOCK = TableModel.random(3), random_heads(GPT2.hparams), random_eagle(GPT2.hparams)
NAMES = vars(gpt2np) | vars(speculative) | {"one_hot": one_hot, "nan": math.nan}


def test_each_mistake_gets_one_sentence(golden):
    path = Path(__file__).with_name("refusals.txt")
    golden(path, answered(path, NAMES | globals()))


FILES = [
    *(("n_vocab", array) for array in (np.array(0), np.array(10**12), np.array(7.0), np.array([7, 7]))),
    *(("codes1", np.array(codes)) for codes in ([0, 1, 7], [-1, 1, 2], [1, 0, 2], [[0, 1, 2]], [0, 1])),
    *(("counts1", np.array(counts)) for counts in ([1, 0, 1], [2**62] * 3, [1.0, 1.0, 1.0], [None, 1, 1])),
    ("codes2", np.zeros(10_000_000, np.int8)),  # compressed to nothing
    *(("", content) for content in (b"", b"no table", b"PK\x03\x04 broken")),
]


@pytest.mark.parametrize(("name", "array"), FILES)
def test_a_file_that_is_no_table_of_n_grams(tmp_path, name, array):
    codes, counts = NGramModel.from_tokens([0, 1, 2, 0], n_vocab=7, n=1).counts[0]
    path, arrays = tmp_path / "table", {"n_vocab": np.array(7), "codes1": codes, "counts1": counts}
    with open(path, "wb") as file:
        if name:
            (np.savez_compressed if name == "codes2" else np.savez)(file, **arrays | {name: array})
        else:
            file.write(array)
    with pytest.raises(ValueError) as error:
        NGramModel.load(path)
    assert str(error.value) == (
        f"{path} is not a table of n-grams: expected a file written by NGramModel.save; count again, and save under a "
        "new name"
    )
