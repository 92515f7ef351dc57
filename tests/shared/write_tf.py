"""Writes TensorFlow's checkpoint format by hand, for tests of shapes and damages that no fixture has."""

import struct

import numpy as np

from gpt2np.files.crc32c import masked_crc32c
from gpt2np.files.sstable import MAGIC


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def block(entries, compression=0):
    """A block of (key, value) pairs that share nothing, with its trailer."""
    content = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in entries)
    content += struct.pack("<II", 0, 1) + bytes([compression])
    return content + struct.pack("<I", masked_crc32c(content))


def write_index(path, entries, compression=0):
    path.write_bytes(with_block(block(entries, compression)))


def with_block(data):
    """A table with this one block of data."""
    return with_index(data, block([(b"\xff", varint(0) + varint(len(data) - 5))]))


def with_index(data, index):
    """A table with this data and this block that says where its blocks are."""
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def field(number, value):
    if isinstance(value, bytes):
        return varint(number * 8 + 2) + varint(len(value)) + value
    return varint(number * 8) + varint(value)


def entry(dtype=1, shape=(2,), shard=0, offset=0, size=8, extra=b""):
    dims = b"".join(field(2, field(1, n)) for n in shape)
    return field(1, dtype) + field(2, dims) + field(3, shard) + field(4, offset) + field(5, size) + extra


def openai_name(name):
    """model/h0/attn/c_attn/w for h.0.attn.c_attn.weight"""
    *path, leaf = name.split(".")
    if path[0] == "h":
        path[:2] = [f"h{path[1]}"]
    if path in (["wte"], ["wpe"]):
        return f"model/{path[0]}"
    return "/".join(["model", *path, "b" if leaf == "bias" else "g" if path[-1].startswith("ln_") else "w"])


def write_checkpoint(folder, tensors):
    """A model in OpenAI's layout, from float32 tensors under their Hugging Face names."""
    entries, offset = [(b"", field(1, 1))], 0
    with (folder / "model.ckpt.data-00000-of-00001").open("wb") as data:
        for name, tensor in sorted((openai_name(name), tensor) for name, tensor in tensors.items()):
            shape = (1, *tensor.shape) if name.endswith("/w") else tensor.shape
            raw = np.ascontiguousarray(tensor, "<f4").view(np.uint8).reshape(-1)
            checksum = varint(6 * 8 + 5) + struct.pack("<I", masked_crc32c(raw))
            entries.append((name.encode(), entry(shape=shape, offset=offset, size=raw.size, extra=checksum)))
            data.write(raw)
            offset += raw.size
    write_index(folder / "model.ckpt.index", entries)
