"""Writes TensorFlow's checkpoint format by hand, for tests of shapes and damages that no fixture has."""

import struct

import numpy as np

from gpt2np.files.crc32c import masked_crc32c
from gpt2np.files.sstable import MAGIC


def varint(number):
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + varint(number // 128)


def block(entries, compression=0):
    """A block of (key, value) pairs that share nothing, with its trailer."""
    content = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in entries)
    content += struct.pack("<II", 0, 1) + bytes([compression])
    return content + struct.pack("<I", masked_crc32c(content))


def with_block(data):
    """A table with this one block of data."""
    index = block([(b"\xff", varint(0) + varint(len(data) - 5))])
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
    *path, leaf = name.replace("h.", "h").split(".")
    leaf = {"wte": "", "wpe": "", "bias": "/b"}.get(path[-1] if leaf == "weight" else leaf, "/w")
    return f"model/{'/'.join(path)}{'/g' if leaf == '/w' and 'ln_' in name else leaf}"


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
    (folder / "model.ckpt.index").write_bytes(with_block(block(entries)))
