"""Files that are malformed, another model's or missing: refusals.txt has calls of what is here, and their sentences."""

import json
import struct
from pathlib import Path

import numpy as np
from helpers import random_tensors
from refusals import answered
from write_tf import block, entry, field, with_block

import gpt2np
from gpt2np import HParams
from gpt2np.files.model_files import files_of
from gpt2np.files.params import build_params, read_config
from gpt2np.files.safetensors import read_safetensors
from gpt2np.files.tf_checkpoint import read_tf_checkpoint
from gpt2np.files.tokenizer_files import load_tokenizer
from gpt2np.tokenizer import byte_symbols

NAMES = ("config.json", "vocab.json", "merges.txt", "model.safetensors")


def read(name, content):
    """A config or a vocabulary, one file of which has this content."""
    symbols = {symbol: i for i, symbol in enumerate([*byte_symbols().values(), "ab"])}
    files = {"vocab.json": json.dumps(symbols).encode(), "merges.txt": b"#version: 0.2\na b\n", name: content}
    for path, whole in files.items():
        Path(path).write_bytes(whole)
    if name in ("config.json", "hparams.json"):
        return read_config(name)
    return load_tokenizer(Path("vocab.json"), Path("merges.txt"))


def config(**changes):
    good = {"model_type": "gpt2", "vocab_size": 31, "n_positions": 29, "n_embd": 21, "n_head": 3, "n_layer": 2}
    return read("config.json", json.dumps(good | changes).encode())


def tokenizer(changes, config=None):
    """The tokenizer of a tokenizer.json with these changes, with this tokenizer_config.json."""
    symbols = {symbol: i for i, symbol in enumerate([*byte_symbols().values(), "ab"])}
    good = {"model": {"type": "BPE", "vocab": symbols, "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel"}}
    Path("tokenizer.json").write_text(json.dumps(good | changes), encoding="utf-8")
    Path("tokenizer_config.json").write_text(json.dumps(config or {}), encoding="utf-8")
    try:
        return load_tokenizer(Path("tokenizer.json"))
    finally:
        Path("tokenizer_config.json").unlink()


def tensor(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors(header, n_bytes=8, n_header=None):
    """A file with this header (bytes, or tensors), of n_header bytes as its start says, and n_bytes of data."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = struct.pack("<Q", len(raw) if n_header is None else n_header) + raw + bytes(n_bytes)
    Path("x.safetensors").write_bytes(content)
    return read_safetensors(Path("x.safetensors"))


HEADER = (b"", field(1, 1))


def index(*entries):
    """An index with these entries, of which the first is the header; the data file has 8 bytes."""
    return table(with_block(block(entries)))


def variable(value):
    return index(HEADER, (b"x", value))


def table(content):
    Path("c.index").write_bytes(content)
    Path("c.data-00000-of-00001").write_bytes(bytes(8))
    return read_tf_checkpoint("c")


def flipped(at):
    """A block with a wrong bit in its trailer: the type of compression is part of what is checked."""
    data = bytearray(block([HEADER, (b"x", entry())]))
    data[at] ^= 1
    return table(with_block(bytes(data)))


def tensors(change):
    """The tensors of a model, some of which change(tensors) replaces, or leaves out where it is None."""
    good, shape = random_tensors(HParams(31, 29, 21, 3, 2)), HParams(31, 29, 21, 3, 2)
    return build_params({k: v for k, v in (good | change(good)).items() if v is not None}, shape, "a file")


def folder(*names):
    path = Path("folder")
    path.mkdir(exist_ok=True)
    for old in path.iterdir():
        old.rmdir() if old.is_dir() else old.unlink()
    for name in names:
        (path / name).mkdir() if name.endswith("/") else (path / name).touch()
    return files_of(path)


def without(name, *more):
    return folder(*(other for other in NAMES if other != name), *more)


def test_each_mistake_gets_one_sentence(golden, tmp_path, monkeypatch):
    path = Path(__file__).with_name("refusals.txt")
    monkeypatch.chdir(tmp_path)
    golden(path, answered(path, {**globals(), "load": gpt2np.load, "zeros": np.zeros}))
    assert not Path("models").exists()
