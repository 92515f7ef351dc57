"""The reader of safetensors, on what the library writes and by the bytes. What is refused: test_refusals.py."""

import json
import struct

import numpy as np
import safetensors.numpy

from gpt2np.files.safetensors import read_safetensors


def test_reads_what_the_safetensors_library_writes(tmp_path):
    rng = np.random.default_rng(0)
    dtypes = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
    tensors = {f"t.{dtype}": (rng.standard_normal((3, 5)) * 50).astype(dtype) for dtype in dtypes}
    tensors |= {"empty": np.empty((0, 7), np.float32), "scalar": np.array(2.5, np.float32), "ünï": np.arange(3)}
    safetensors.numpy.save_file(tensors, tmp_path / "file", metadata={"format": "np"})
    read = read_safetensors(tmp_path / "file")
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype and type(read[name]) is np.ndarray
        np.testing.assert_array_equal(read[name], tensor)


def read_bytes(path, data, *tensors):
    """The arrays of a file of these bytes, each from a name, a type, a shape and its first and last byte."""
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": offsets} for name, dtype, shape, *offsets in tensors
    }
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return read_safetensors(path)


def test_bfloat16_is_the_upper_half_of_float32(tmp_path):
    numbers = np.array([1.0, -2.5, 3.140625, 1e30, -0.0, np.inf], np.float32)
    upper = (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    read = read_bytes(tmp_path / "file", upper, ("x", "BF16", [2, 3], 0, 12))["x"]
    kept = (numbers.view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, kept.reshape(2, 3))


def test_tensors_are_views_of_the_file_unless_they_are_unaligned(tmp_path):
    safetensors.numpy.save_file({"a": np.zeros(4, np.float32), "b": np.zeros(4, np.float16)}, tmp_path / "file")
    read = read_safetensors(tmp_path / "file")
    with (tmp_path / "file").open("r+b") as file:  # what is written to it shows in the array: mapped, not copied
        file.seek(-24, 2)
        file.write(np.array([1.5], np.float32).tobytes())
    assert read["a"][0] == 1.5 and not any(array.flags.writeable for array in read.values())
    data = b"\7" + np.array([1, 2], "<f4").tobytes()
    x = read_bytes(tmp_path / "other", data, ("a", "I8", [1], 0, 1), ("x", "F32", [2], 1, 9))["x"]
    assert x.tolist() == [1, 2] and x.flags.aligned
