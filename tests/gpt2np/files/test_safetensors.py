"""The reader and the writer of safetensors, beside the library's. What is refused: test_refusals.py."""

import json
import struct

import numpy as np
import pytest
import safetensors.numpy

from gpt2np.files.safetensors import read_safetensors, write_safetensors


@pytest.mark.parametrize("is_ours", [False, True])
def test_what_is_written_is_read_by_both(tmp_path, is_ours):
    dtypes = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
    tensors = {f"t.{dtype}": (np.random.default_rng(0).standard_normal((3, 5)) * 50).astype(dtype) for dtype in dtypes}
    tensors |= {"empty": np.empty((0, 7), np.float32), "scalar": np.array(2.5, np.float32), "ünï": np.arange(3)}
    if is_ours:
        write_safetensors(tmp_path / "file", tensors | {"t.f4": np.asfortranarray(tensors["t.f4"])})
    else:
        safetensors.numpy.save_file(tensors, tmp_path / "file", metadata={"format": "np"})
    for read in (read_safetensors(tmp_path / "file"), safetensors.numpy.load_file(tmp_path / "file")):
        assert read.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert read[name].dtype == tensor.dtype and type(read[name]) is np.ndarray
            np.testing.assert_array_equal(read[name], tensor)


def test_unaligned_tensors_are_copied_and_bfloat16_is_the_upper_half_of_float32(tmp_path):
    numbers = np.array([1.0, -2.5, 3.140625, 1e30, -0.0, np.inf], np.float32)
    upper = numbers.view(np.uint32) >> 16
    header = {"a": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]},
              "x": {"dtype": "F32", "shape": [6], "data_offsets": [1, 25]},
              "y": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [25, 37]}}  # fmt: skip
    raw = json.dumps(header).encode()
    content = struct.pack("<Q", len(raw)) + raw + b"\7" + numbers.tobytes() + upper.astype("<u2").tobytes()
    (tmp_path / "file").write_bytes(content)
    read = read_safetensors(tmp_path / "file")
    assert read["x"].flags.aligned and read["y"].dtype == np.float32
    np.testing.assert_array_equal(read["x"], numbers)
    np.testing.assert_array_equal(read["y"].ravel(), (upper << 16).view(np.float32))


def test_tensors_are_views_of_the_file(tmp_path):
    safetensors.numpy.save_file({"a": np.zeros(4, np.float32), "b": np.zeros(4, np.float16)}, tmp_path / "file")
    read = read_safetensors(tmp_path / "file")
    with (tmp_path / "file").open("r+b") as file:  # what is written to it shows in the array: mapped, not copied
        file.seek(-24, 2)
        file.write(np.array([1.5], np.float32).tobytes())
    assert read["a"][0] == 1.5 and not any(array.flags.writeable for array in read.values())
