"""Reading and checking the two files of a byte-level BPE.

vocab.json (encoder.json)   {"Ġthe": 262, ...}: symbols, written as in `byte_symbols`, with ids 0 .. n_vocab - 1
merges.txt (vocab.bpe)      a version line, then two symbols per line: the pairs in the order they were learned
"""

from contextlib import contextmanager
from pathlib import Path

from ..tokenizer import Tokenizer, parse_merges, symbols_made
from .errors import CheckpointError
from .raw import read_json


def read_vocabulary(path):
    """The dict str -> int of a vocab.json (encoder.json)."""
    vocabulary = read_json(path)
    if not vocabulary.keys() >= symbols_made([]):
        raise CheckpointError(f"{path} has no token for some of the 256 bytes: not a byte-level vocabulary")
    return vocabulary


def read_merges(path):
    """The pairs of a merges.txt (vocab.bpe)."""
    with naming(path):
        merges = parse_merges(Path(path).read_bytes().decode("utf-8"))
        symbols_made(merges)
    return merges


def load_tokenizer(vocabulary_file, merges_file):
    """The Tokenizer of these files. If they are not from one model, a CheckpointError names them."""
    vocabulary, merges = read_vocabulary(vocabulary_file), read_merges(merges_file)
    with naming(f"{vocabulary_file} with {merges_file.name}"):
        return Tokenizer(vocabulary, merges)


@contextmanager
def naming(files):
    """Turn a ValueError into a CheckpointError that begins with the files' names."""
    try:
        yield
    except ValueError as error:
        raise CheckpointError(f"{files}: {error}; use the files of one model") from None
