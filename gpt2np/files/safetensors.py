"""Reading and writing a .safetensors file: a JSON header, then the raw data.

    8 bytes         N, the length of the header: unsigned, little-endian
    N bytes         the header: {"name": {"dtype": "F32", "shape": [2048, 256], "data_offsets": [begin, end]}, ...}
                    in JSON; the entry "__metadata__" contains notes instead of a tensor
    the rest        the data: each tensor row by row, little-endian, at its offsets, which count from here;
                    the tensors lie end to end and fill this part

Nothing is executed, and every offset is checked before it is used. The file is mapped into memory, not read: an array
is a read-only view of the file, and the operating system loads a page when it is first touched.
Source: https://github.com/huggingface/safetensors, section "Format".
"""

import json
import math

import numpy as np

from .errors import CheckpointError
from .raw import as_array, check_is_file, json_object, map_file, read_json

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "b1",
}  # fmt: skip


def read_safetensors(path):
    """The tensors of a file: dict name -> array, memory-mapped and read-only. BF16, which NumPy lacks, becomes float32.

    Raises
    ------
    CheckpointError
        If the file is not a well-formed safetensors file; the message names the file and the tensor.
    """
    file = map_file(path)
    check_is_file(file[:100].tobytes(), path)
    n_header = int.from_bytes(file[:8].tobytes(), "little")
    if n_header > len(file) - 8:
        raise CheckpointError(
            f"{path}: the first 8 bytes say that the header has {n_header} bytes, but the file has {len(file)}: "
            "not a safetensors file, or cut off; get it again"
        )
    header = json_object(file[8 : 8 + n_header].tobytes(), f"{path}: the header")
    header.pop("__metadata__", None)
    data = file[8 + n_header :]
    check_entries(path, header)
    check_layout(path, header, len(data))
    tensors = {}
    for name, entry in header.items():
        (begin, end), kind = entry["data_offsets"], entry["dtype"]
        where = f"{path}: tensor {name!r}"
        tensors[name] = as_array(data[begin:end], DTYPES[kind], entry["shape"], where, is_bfloat16=kind == "BF16")
    return tensors


def read_shards(index):
    """The tensors of the files that a model.safetensors.index.json names, as `read_safetensors` returns them."""
    tensors = {}
    for name in shards_in(index):
        tensors |= read_safetensors(index.parent / name)
    return tensors


def shards_in(index):
    """The names of the files that a model.safetensors.index.json names."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise CheckpointError(f"{index} has no weight_map from names of tensors to names of files; get it again")
    for name in weight_map.values():
        if index.parent != (index.parent / name).parent or not name.endswith(".safetensors"):
            raise CheckpointError(f"{index} names {name!r:.100}, which is not a file in the same folder; get it again")
    return sorted({*weight_map.values()})


def write_safetensors(path, tensors):
    """Write a file with these tensors, a dict name -> array of one of the types above (BF16 excepted)."""
    names = {kind: name for name, kind in DTYPES.items()}
    header = {"__metadata__": {"format": "pt"}}
    end = 0
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    for name, array in arrays.items():
        kind = array.dtype.newbyteorder("<").str.replace("|", "")
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": names[kind], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data begins at a multiple of 8
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(array.astype(array.dtype.newbyteorder("<")).tobytes())


def check_entries(path, entries):
    """Raise CheckpointError unless each entry of the header has a dtype, a shape and offsets of the right form."""
    for name, entry in entries.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise CheckpointError(
                f"{path}: in the header, {name!r:.100} must have exactly dtype, shape and data_offsets, got "
                f"{entry!r:.200}"
            )
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise CheckpointError(
                f"{path}: tensor {name!r} is of type {dtype!r:.40}, expected one of {', '.join(DTYPES)}: "
                "use the original weights, in float32, float16 or bfloat16"
            )
        is_lists = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
        if not is_lists or not all(type(n) is int and n >= 0 for n in shape + offsets):
            raise CheckpointError(
                f"{path}: shape and offsets of {name!r} must be whole numbers of 0 or more, got {entry!r:.200}"
            )


def check_layout(path, entries, n_bytes):
    """Raise CheckpointError unless each tensor has as many bytes as its shape needs and they all lie end to end."""
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        n_needed = math.prod(entry["shape"]) * np.dtype(DTYPES[entry["dtype"]]).itemsize
        if end - begin != n_needed:
            raise CheckpointError(
                f"{path}: tensor {name!r} of shape {entry['shape']} and type {entry['dtype']} needs "
                f"{n_needed} bytes, its offsets give {end - begin}"
            )
        if begin != position:
            raise CheckpointError(
                f"{path}: tensor {name!r} begins at byte {begin} of the data, expected {position}: "
                "the tensors must lie end to end"
            )
        position = end
    if position != n_bytes:
        raise CheckpointError(
            f"{path}: the tensors need {position} bytes of data, but the file has {n_bytes}: damaged; get it again"
        )
