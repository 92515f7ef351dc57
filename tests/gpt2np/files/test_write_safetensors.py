"""What is written is what is read, by this project and by the format's own."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from gpt2np.files.safetensors import read_safetensors, write_safetensors


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i4", "i8"])
def test_written_tensors_are_read_back(dtype, tmp_path):
    tensors = {
        "a": np.arange(15).reshape(3, 5).astype(dtype),
        "b.c": np.array(3, dtype),
        "t": np.arange(6).astype(dtype),
    }
    tensors["t"] = tensors["t"].reshape(2, 3).T
    write_safetensors(tmp_path / "a.safetensors", tensors)
    for found in (read_safetensors(tmp_path / "a.safetensors"), load_file(tmp_path / "a.safetensors")):
        assert found.keys() == tensors.keys()
        for name, array in tensors.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
