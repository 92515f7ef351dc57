"""Reading a sorted-string table, the format of a TensorFlow checkpoint's index and of LevelDB's files.

The file contains the sorted keys in blocks, and an index of the blocks at the end:

    data blocks     each: entries, restarts, then 1 byte of compression (0: none) and 4 bytes of checksum
    index block     in the same format; its values are the offsets and sizes of the data blocks
    footer          48 bytes: offset and size of the (unused) meta index and of the index block, zeros, a magic number

A key is stored without the prefix that it shares with the key before it. An entry is three varints (bytes of the shared
prefix, of the rest of the key, of the value), the rest of the key, and the value. The restarts, 4 bytes each and then
their number, are for binary search; reading the whole table does not need them. A varint has 7 bits per byte, lowest
first; the high bit says that more bytes follow.

Source: https://github.com/tensorflow/tensorflow, lib/io/table_format.txt.
"""

from .crc32c import masked_crc32c
from .errors import CheckpointError

MAGIC = 0xDB4775248B80FB57


class Cursor:
    """A position in a part of a file; reading past the end of the part raises CheckpointError."""

    def __init__(self, data, path, part):
        self.data, self.position = data, 0
        self.path, self.part = path, part  # for messages: the file and the name of the part

    def more(self):
        return self.position < len(self.data)

    def take(self, n):
        """The next n bytes."""
        if n > len(self.data) - self.position:
            raise CheckpointError(f"{self.path}: {self.part} ends at byte {len(self.data)}, in the middle of {n} bytes")
        self.position += n
        return self.data[self.position - n : self.position]

    def varint(self):
        """The next number: 7 bits per byte, lowest first; the last byte is the one without the high bit."""
        value = shift = 0
        while (byte := self.take(1)[0]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift


def read_table(path):
    """All entries of a sorted-string table: dict key (bytes) -> value (bytes), in order."""
    data = path.read_bytes()
    if int.from_bytes(data[-8:], "little") != MAGIC:
        raise CheckpointError(
            f"{path} does not end in the magic number of a checkpoint's index: the wrong file, or cut off; get it again"
        )
    footer = Cursor(data[-48:-8], path, "the footer")
    _, _, offset, length = (footer.varint() for _ in range(4))  # the meta index, then the index
    table = {}
    for pointer in read_block(data, offset, length, path).values():
        cursor = Cursor(pointer, path, "the index block")
        table |= read_block(data, cursor.varint(), cursor.varint(), path)
    return table


def read_block(data, offset, length, path):
    """The entries of one block: dict key -> value."""
    block, checksum = data[offset : offset + length + 1], data[offset + length + 1 : offset + length + 5]
    if masked_crc32c(block).to_bytes(4, "little") != checksum:  # also if the block lies past the end
        raise CheckpointError(f"{path}: the block at byte {offset} does not have its checksum: damaged; get it again")
    content, compression = block[:-1], block[-1]
    if compression != 0:  # TensorFlow never compresses an index
        raise CheckpointError(f"{path}: the block at byte {offset} is compressed, which is not supported")
    n_restarts = int.from_bytes(content[-4:], "little")
    cursor = Cursor(content[: length - 4 - 4 * n_restarts], path, f"the block at byte {offset}")
    entries, key = {}, b""
    while cursor.more():
        n_shared, n_own, n_value = (cursor.varint() for _ in range(3))
        key = key[:n_shared] + cursor.take(n_own)
        entries[key] = cursor.take(n_value)
    return entries
