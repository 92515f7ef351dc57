import json
import struct

import numpy as np
import pytest
import safetensors.numpy

from gpt2np import CheckpointError
from gpt2np.files.safetensors import read_safetensors


def write(path, header, data=b"", n_header=None):
    """A file from a header (a dict, or the bytes themselves) and data."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    n_header = len(raw) if n_header is None else n_header
    path.write_bytes(struct.pack("<Q", n_header) + raw + data)
    return path


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


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


def test_bfloat16_is_the_upper_half_of_float32(tmp_path):
    numbers = np.array([1.0, -2.5, 3.140625, 1e30, -0.0, np.inf], np.float32)
    upper = (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    read = read_safetensors(write(tmp_path / "file", {"x": entry("BF16", [2, 3], 0, 12)}, upper))["x"]
    assert read.dtype == np.float32
    kept = (numbers.view(np.uint32) & 0xFFFF0000).view(np.float32)
    np.testing.assert_array_equal(read, kept.reshape(2, 3))


def test_tensors_are_views_of_the_file_unless_they_are_unaligned(tmp_path):
    path = tmp_path / "file"
    safetensors.numpy.save_file({"a": np.zeros(4, np.float32), "b": np.zeros(4, np.float16)}, path)
    read = read_safetensors(path)
    with path.open("r+b") as file:  # what is written to the file shows in the array: it was mapped, not copied
        file.seek(-24, 2)
        file.write(np.array([1.5], np.float32).tobytes())
    assert read["a"][0] == 1.5 and not any(array.flags.writeable for array in read.values())
    header = {"a": entry("I8", [1], 0, 1), "x": entry("F32", [2], 1, 9)}
    x = read_safetensors(write(tmp_path / "other", header, b"\7" + np.array([1, 2], "<f4").tobytes()))["x"]
    assert x.tolist() == [1, 2] and x.flags.aligned


GOOD = {"x": entry("F32", [2], 0, 8)}


@pytest.mark.parametrize(
    ("header", "data", "n_header", "message"),
    [
        (GOOD, bytes(8), 1000, "the first 8 bytes say that the header has 1000 bytes, but the file has"),
        (b"", b"", 2**64 - 1, "not a safetensors file, or cut off; get it again"),
        (GOOD, b"", None, "need 8 bytes of data, the file has 0"),
        (GOOD, bytes(9), None, "need 8 bytes of data, the file has 9"),
        (b"<!DOCTYPE html>", b"", None, "not JSON"),
        (b'{"x": \xff}', b"", None, "not JSON"),
        (b"[" * 100_000, b"", None, "not JSON"),
        (b"[]", b"", None, "not a JSON object"),
        (b'{"x": %s}' % (b"9" * 5000), b"", None, "the header has a whole number of 5000 digits; get the file again"),
        ({"x": 1}, b"", None, "'x' must have exactly dtype, shape and data_offsets"),
        ({"x": {"dtype": "F32", "shape": [2]}}, b"", None, "'x' must have exactly dtype, shape and data_offsets"),
        ({"x": entry("F8_E4M3", [2], 0, 2)}, bytes(2), None, "tensor 'x' is of type 'F8_E4M3', expected one of F64"),
        ({"x": entry(["F32"], [2], 0, 8)}, bytes(8), None, "tensor 'x' is of type"),
        ({"x": entry("F32", [-2], 0, 8)}, bytes(8), None, "must be whole numbers"),
        ({"x": entry("F32", [2.0], 0, 8)}, bytes(8), None, "must be whole numbers"),
        ({"x": entry("F32", 2, 0, 8)}, bytes(8), None, "must be whole numbers"),
        ({"x": {**GOOD["x"], "data_offsets": [0, 4, 8]}}, bytes(8), None, "must be whole numbers"),
        ({"x": entry("F32", [3], 0, 8)}, bytes(8), None, "needs 12 bytes, its offsets give 8"),
        ({"x": entry("F32", [2**60, 2**60], 0, 8)}, bytes(8), None, "its offsets give 8"),
        ({"x": entry("F32", [2**63], 0, 4)}, bytes(4), None, "its offsets give 4"),
        ({"x": entry("F32", [2**62, 0, 2**62], 0, 0)}, b"", None, "tensor 'x' has the impossible shape"),
        ({"x": entry("F32", [1] * 100, 0, 4)}, bytes(4), None, "tensor 'x' has the impossible shape"),
        ({"\x1b[2J" * 100: entry("F32", [3], 0, 8)}, bytes(8), None, r"tensor '\\x1b\[2J"),
        ({"\ud800": entry("F32", [3], 0, 8)}, bytes(8), None, r"tensor '\\ud800'"),
        ({"x": entry("F32", [2], 8, 0)}, bytes(8), None, "its offsets give -8"),
        ({"x": entry("F32", [2], 4, 12)}, bytes(12), None, "begins at byte 4 of the data, expected 0"),
        ({**GOOD, "y": entry("F32", [2], 4, 12)}, bytes(12), None, "'y' begins at byte 4 of the data, expected 8"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, header, data, n_header, message):
    path = write(tmp_path / "broken.safetensors", header, data, n_header)
    with pytest.raises(CheckpointError, match=message) as error:
        read_safetensors(path)
    assert "broken.safetensors" in str(error.value)
    assert str(error.value).isprintable() and len(str(error.value)) <= 500
