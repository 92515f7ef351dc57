"""Reading a TensorFlow checkpoint without TensorFlow: the "bundle" of an index file and data files.

PREFIX.index is a sorted-string table, as in LevelDB: keys in order, in blocks, with an index of the blocks at the end.

    data blocks     each: entries, restarts, then 1 byte of compression (0: none) and 4 bytes of checksum
    index block     of the same form; its values say where the data blocks are: offset and size
    footer          48 bytes: where the (unused) meta index and the index block are, zeros, the magic number

An entry of a block shares a beginning with the key before it: three varints (bytes shared, of its own, of the
value), its own part of the key, the value. The restarts, 4 bytes each and their number last, are places for a binary
search, which reading all of it does not need. A varint has 7 bits a byte, lowest first; the high bit says "more".

The values are protocol buffers: fields of a number and a kind (0: varint, 1: 8 bytes, 2: a length and bytes, 5: 4
bytes).

    key ""              BundleHeaderProto   1: number of data files   2: endianness (0: little)
    key VARIABLE        BundleEntryProto    1: type   2: shape   3: data file   4: offset   5: size   6: checksum
    in a shape          TensorShapeProto    2: a dimension, in which 1: its size

PREFIX.data-00000-of-00001 and so on hold the numbers, row by row. They are mapped into memory, not read. Every offset
is checked before it is used, nothing is executed, and no path comes from the file.
Source: https://github.com/tensorflow/tensorflow, tensor_bundle.proto and lib/io/table_format.txt.
Next: params.py
"""

import math
from pathlib import Path

import numpy as np

from .crc32c import masked_crc32c
from .errors import CheckpointError

MAGIC = 0xDB4775248B80FB57
BFLOAT16 = 14
DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", BFLOAT16: "<u2", 19: "<f2"}
MAX_INDEX = 100_000_000  # bytes; an index has some hundred for each variable


def read_tf_checkpoint(prefix, *, data_files=None, verify=False):
    """The variables of a checkpoint: dict name -> array, memory-mapped and read-only. bfloat16 becomes float32.

    Parameters
    ----------
    prefix : str or Path
        What the files' names begin with, as "models/124M/model.ckpt".
    data_files : list of Path, optional
        Where the data files are, if not beside the index under their usual names.
    verify : bool
        Compute the checksum of every tensor, too, some seconds a gigabyte; those of the index are always checked.

    Raises
    ------
    CheckpointError
        If a file is missing or malformed; the message names the file and the byte or the variable.
    """
    index = Path(f"{prefix}.index")
    if not index.is_file():
        raise CheckpointError(f"{index} is not there: a checkpoint is {index.name} with its .data-... files")
    table = read_table(index)
    header = Message(table.pop(b"", b""), index, "the header (the entry of the empty key)")
    if header.number(2) != 0:
        raise CheckpointError(f"{index}: the numbers are big-endian, which is not read here")
    n_shards = header.number(1)
    if not 1 <= n_shards <= max(1, len(table)):
        raise CheckpointError(
            f"{index}: the header says {n_shards} data files for {len(table)} variables; get it again"
        )
    data_files = data_files or [Path(f"{prefix}.data-{i:05}-of-{n_shards:05}") for i in range(n_shards)]
    shards = [map_file(path) for path in data_files]
    return dict(read_variable(key, value, shards, index, verify) for key, value in table.items())


def map_file(path):
    if not path.is_file():
        raise CheckpointError(f"{path} is not there, but the index names it: get it, too")
    return np.asarray(np.memmap(path, mode="r")) if path.stat().st_size else np.empty(0, np.uint8)


def read_variable(key, value, shards, index, verify):
    """(name, array) of one entry."""
    name = key.decode("utf-8", errors="backslashreplace")
    what = f"variable {name!r:.100}"
    entry = Message(value, index, what)
    shapes = [Message(shape, index, what) for shape in entry.messages(2)]
    shape = [Message(dim, index, what).number(1) for message in shapes for dim in message.messages(2)]
    dtype, shard, offset, size = (entry.number(field) for field in (1, 3, 4, 5))
    if entry.messages(7):
        raise CheckpointError(f"{index}: {what} is stored in slices, which are not read here")
    if dtype not in DTYPES:
        raise CheckpointError(
            f"{index}: {what} is of type {dtype}, expected one of {[*DTYPES]} (types.proto, DataType)"
        )
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != size:
        raise CheckpointError(f"{index}: {what} of type {dtype} and shape {shape!s:.100} cannot have {size} bytes")
    if shard >= len(shards) or offset + size > len(shards[shard]):
        raise CheckpointError(
            f"{index}: {what} lies at bytes {offset} to {offset + size} of data file {shard}, but the data files have "
            f"{[len(data) for data in shards]} bytes: cut off; get them again"
        )
    data = shards[shard][offset : offset + size]
    if verify and masked_crc32c(data) != entry.number(6):
        raise CheckpointError(f"{index}: {what} does not have its checksum: data file {shard} is damaged; get it again")
    array = data.view(DTYPES[dtype]).reshape(shape)
    if dtype == BFLOAT16:  # the upper half of a float32
        return name, (array.astype(np.uint32) << 16).view(np.float32)
    return name, array if array.flags.aligned else array.copy()


class Cursor:
    """A place in the bytes of a file; reading beyond their end is a CheckpointError."""

    def __init__(self, data, path, what):
        self.data, self.path, self.what, self.position = data, path, what, 0

    def more(self):
        return self.position < len(self.data)

    def take(self, n):
        """The next n bytes."""
        if n > len(self.data) - self.position:
            raise CheckpointError(f"{self.path}: {self.what} ends at byte {len(self.data)}, in the middle of {n} bytes")
        self.position += n
        return self.data[self.position - n : self.position]

    def varint(self):
        """The next number: 7 bits a byte, the lowest first, for as long as the high bit is set."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CheckpointError(f"{self.path}: {self.what} has a number that does not end before byte {self.position}")


class Message:
    """The fields of a protocol buffer."""

    def __init__(self, data, path, what):
        self.path, self.what, self.fields = path, what, {}
        cursor = Cursor(data, path, what)
        while cursor.more():
            field, kind = divmod(cursor.varint(), 8)
            if kind == 0:
                value = cursor.varint()
            elif kind in (1, 5):
                value = int.from_bytes(cursor.take(8 if kind == 1 else 4), "little")
            elif kind == 2:
                value = cursor.take(cursor.varint())
            else:
                raise CheckpointError(f"{path}: {what} has a field of the unknown kind {kind}; get the file again")
            self.fields.setdefault(field, []).append(value)

    def number(self, field):
        """A number; 0 where the field is not there, as protocol buffers leave it out."""
        value = self.fields.get(field, [0])[-1]
        if not isinstance(value, int) or value >= 2**63:
            raise CheckpointError(
                f"{self.path}: {self.what} has {value!r:.40} in field {field}, expected a number of 0 or more"
            )
        return value

    def messages(self, field):
        """The byte strings of a field, a list."""
        values = self.fields.get(field, [])
        if not all(isinstance(value, bytes) for value in values):
            raise CheckpointError(f"{self.path}: {self.what} has a number in field {field}, expected a message")
        return values


# ------------------------------------------------------------------------------------------------ the table of keys


def read_table(path):
    """All entries of a sorted-string table: dict key (bytes) -> value (bytes), in order."""
    size = path.stat().st_size
    if not 48 <= size <= MAX_INDEX:
        raise CheckpointError(
            f"{path} has {size} bytes, expected 48 to {MAX_INDEX}: not a checkpoint's index; get it again"
        )
    data = path.read_bytes()
    if int.from_bytes(data[-8:], "little") != MAGIC:
        raise CheckpointError(
            f"{path} does not end in the magic number of a checkpoint's index: another file, or cut off"
        )
    footer = Cursor(data[-48:-8], path, "the footer")
    _, _, offset, length = (footer.varint() for _ in range(4))  # of the meta index and of the index
    table = {}
    for place in read_block(data, offset, length, path).values():
        cursor = Cursor(place, path, "the index block")
        for key, value in read_block(data, cursor.varint(), cursor.varint(), path).items():
            if table and key <= next(reversed(table)):
                raise CheckpointError(f"{path}: the key {key!r:.100} is out of order; get the file again")
            table[key] = value
    return table


def read_block(data, offset, length, path):
    """The entries of one block: dict key -> value."""
    if offset + length + 5 > len(data) - 48:
        raise CheckpointError(
            f"{path}: a block at bytes {offset} to {offset + length} lies beyond the end; get it again"
        )
    content, compression = data[offset : offset + length], data[offset + length]
    checksum = int.from_bytes(data[offset + length + 1 : offset + length + 5], "little")
    if masked_crc32c(data[offset : offset + length + 1]) != checksum:
        raise CheckpointError(f"{path}: the block at byte {offset} does not have its checksum: damaged; get it again")
    if compression != 0:
        name = "with snappy" if compression == 1 else f"by method {compression}"
        raise CheckpointError(f"{path}: the block at byte {offset} is compressed {name}, which is not read here")
    n_restarts = int.from_bytes(content[-4:], "little")
    cursor = Cursor(content[: max(0, length - 4 - 4 * n_restarts)], path, f"the block at byte {offset}")
    entries, key = {}, b""
    while cursor.more():
        n_shared, n_own, n_value = cursor.varint(), cursor.varint(), cursor.varint()
        if n_shared > len(key):
            raise CheckpointError(f"{path}: a key in the block at byte {offset} shares {n_shared} bytes of {len(key)}")
        key = key[:n_shared] + cursor.take(n_own)
        entries[key] = cursor.take(n_value)
    return entries
