"""From the bytes of a file to JSON objects and arrays; malformed data raise a CheckpointError that names the file."""

import json
from pathlib import Path

import numpy as np

from .errors import CheckpointError


def read_json(path):
    """The dict of a JSON object in a file."""
    return json_object(Path(path).read_bytes(), path)


def text_of(data):
    """The text of a file's bytes: UTF-8, or what the byte order mark says that Windows puts before it."""
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def check_is_file(data, source):
    """Raise CheckpointError if a file is what git has in the place of a large file."""
    if data.startswith(b"version https://git-lfs"):
        raise CheckpointError(f"{source} is a Git LFS pointer, not the file itself: run git lfs pull, or download it")


def json_object(data, source):
    """The dict of a JSON object given as bytes; `source` names them in messages."""
    check_is_file(data, source)
    try:
        value = json.loads(text_of(data))
    except (ValueError, RecursionError) as error:  # RecursionError if it is nested too deeply
        raise CheckpointError(f"{source} is not JSON in UTF-8 ({error}); get the file again") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{source} is not a JSON object; get the file again")
    return value


def map_file(path):
    """The bytes of a file [n_bytes] uint8, mapped into memory and read-only."""
    if not Path(path).stat().st_size:  # an empty file cannot be mapped
        return np.empty(0, np.uint8)
    return np.asarray(np.memmap(path, mode="r"))  # a plain array: np.memmap is slow in small operations


def as_array(data, dtype, shape, name, is_bfloat16=False):
    """These bytes [n_bytes] uint8 as an array: a view, or a copy if they are bfloat16 or not aligned."""
    try:
        array = data.view(dtype).reshape(shape)
    except (ValueError, OverflowError):  # too many dimensions, or immense dimensions of an empty array
        raise CheckpointError(f"{name} has the impossible shape {shape!s:.100}; get the file again") from None
    if is_bfloat16:  # bfloat16 is the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array if array.flags.aligned else array.copy()
