"""Reading and checking the two files of a byte-level BPE.

vocab.json (encoder.json)   {"Ġthe": 262, ...}: symbols, written as in `byte_symbols`, with ids 0 .. n_vocab - 1
merges.txt (vocab.bpe)      a version line, then two symbols per line: the pairs in the order they were learned
"""

from contextlib import contextmanager
from pathlib import Path

from ..tokenizer import parse_merges, symbols_made
from .errors import CheckpointError
from .raw import read_json, text_of


class Unsupported(ValueError):
    """A tokenizer that is not GPT-2's; the message says what to do."""


def read_vocabulary(path):
    """The dict str -> int of a vocab.json (encoder.json)."""
    vocabulary = read_json(path)
    if not vocabulary.keys() >= symbols_made([]):
        raise CheckpointError(
            f"{path} has no token for some of the 256 bytes: not a byte-level vocabulary, or a program has changed its "
            "characters to Unicode's NFD; get it again"
        )
    return vocabulary


def read_merges(path):
    """The pairs of a merges.txt (vocab.bpe)."""
    with naming(path):
        merges = parse_merges(text_of(Path(path).read_bytes(), path))
        symbols_made(merges)
    return merges


@contextmanager
def naming(files):
    """Turn an error in the content of files into a CheckpointError that begins with their names."""
    try:
        yield
    except CheckpointError:
        raise
    except Unsupported as error:
        raise CheckpointError(f"{files}: {error}") from None
    except ValueError as error:
        raise CheckpointError(f"{files}: {error}; use the files of one model") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{files}: not as transformers writes them ({error!r:.80}); get them again") from None
