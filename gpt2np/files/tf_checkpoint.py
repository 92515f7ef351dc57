"""Reading a TensorFlow checkpoint without TensorFlow: the "bundle" of an index file and data files.

PREFIX.index is a sorted-string table (sstable.py) from the name of each variable to its description. The values are
protocol buffers: fields, each with a number and a kind (0: varint, 1: 8 bytes, 2: a length and bytes, 5: 4 bytes).

    key ""              BundleHeaderProto   1: number of data files   2: endianness (0: little)
    key VARIABLE        BundleEntryProto    1: type   2: shape   3: data file   4: offset   5: size   6: checksum
    in a shape          TensorShapeProto    2: a dimension, in which 1: its size

PREFIX.data-00000-of-00001 and so on are the data, row by row. They are mapped into memory, not read. Every offset is
checked before it is used, nothing is executed, and no path is taken from the file.
Source: https://github.com/tensorflow/tensorflow, tensor_bundle.proto.
"""

import math
from pathlib import Path

import numpy as np

from .crc32c import masked_crc32c
from .errors import CheckpointError
from .raw import as_array, map_file
from .sstable import Cursor, read_table

BFLOAT16 = 14
DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", BFLOAT16: "<u2", 19: "<f2"}


def read_tf_checkpoint(prefix, *, data_files=None, verify=False):
    """The variables of a checkpoint: dict name -> array, memory-mapped and read-only. bfloat16 becomes float32.

    Parameters
    ----------
    prefix : str or Path
        The common prefix of the files' paths, such as "models/124M/model.ckpt".
    data_files : list of Path, optional
        The data files, if they are not next to the index under their usual names.
    verify : bool
        Also verify the checksum of every tensor, which takes a few seconds per gigabyte, longer than reading. The
        checksums of the index are always checked.

    Raises
    ------
    CheckpointError
        If a file is malformed; the message names the file and the byte or the variable.
    """
    index = Path(f"{prefix}.index")
    table = read_table(index)
    header = Message(table.pop(b"", b""), index, "the header (the entry of the empty key)")
    if header.number(2) != 0:
        raise CheckpointError(f"{index}: the data are big-endian, which is not supported")
    n = header.number(1)
    shards = [map_file(path) for path in data_files or (Path(f"{prefix}.data-{i:05}-of-{n:05}") for i in range(n))]
    table = {key.decode("utf-8", errors="replace"): value for key, value in table.items()}
    return {name: read_variable(name, value, shards, index, verify) for name, value in table.items()}


def read_variable(name, value, shards, index, verify):
    """The array of a variable, from its entry in the index and the bytes of the data files."""
    variable = f"{index}: variable {name!r:.100}"
    entry = Message(value, index, f"variable {name!r:.100}")
    dims = [dim for shape in entry.messages(2) for dim in Message(shape, index, variable).messages(2)]
    shape = [Message(dim, index, variable).number(1) for dim in dims]
    dtype, shard, begin, size, checksum = (entry.number(field) for field in (1, 3, 4, 5, 6))
    if dtype not in DTYPES:
        raise CheckpointError(f"{variable} is of type {dtype}, expected one of {[*DTYPES]} (types.proto, DataType)")
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != size:
        raise CheckpointError(f"{variable} of type {dtype} and shape {shape!s:.100} cannot have {size} bytes")
    if shard >= len(shards) or begin + size > len(shards[shard]):
        raise CheckpointError(
            f"{variable} lies at bytes {begin} to {begin + size} of data file {shard}, but the data files have "
            f"{[len(shard) for shard in shards]!s:.100} bytes: cut off; get them again"
        )
    data = shards[shard][begin : begin + size]
    if verify and masked_crc32c(data) != checksum:
        raise CheckpointError(f"{variable} does not have its checksum: data file {shard} is damaged; get it again")
    return as_array(data, DTYPES[dtype], shape, variable, is_bfloat16=dtype == BFLOAT16)


class Message:
    """The fields of a protocol buffer. A field of the wrong kind counts as missing."""

    def __init__(self, data, path, part):
        self.numbers, self.strings = {}, {}
        cursor = Cursor(data, path, part)
        while cursor.more():
            field, kind = divmod(cursor.varint(), 8)
            if kind == 0:
                self.numbers[field] = cursor.varint()
            elif kind in (1, 5):
                self.numbers[field] = int.from_bytes(cursor.take(8 if kind == 1 else 4), "little")
            elif kind == 2:
                self.strings.setdefault(field, []).append(cursor.take(cursor.varint()))
            else:
                raise CheckpointError(f"{path}: {part} has a field of the unknown kind {kind}; get the file again")

    def number(self, field):
        """A number; 0 if the field is missing, since protocol buffers leave out zeros."""
        return self.numbers.get(field, 0)

    def messages(self, field):
        """The byte strings of a field, as a list."""
        return self.strings.get(field, [])
