"""The two files of a byte-level BPE: the vocabulary and the list of merges, and whether they belong together.

    vocab.json (encoder.json)   {"Ġthe": 262, ...}: symbols, written as in `byte_symbols`, with ids 0 .. n_vocab - 1
    merges.txt (vocab.bpe)      a version line, then two symbols per line: the pairs in the order they were learned

A truncated list of merges is still a list of merges, and would silently give other tokens. But then no merge makes the
last tokens of the vocabulary: that is checked, and such a list is refused.
"""

from collections import Counter
from functools import lru_cache

from .errors import CheckpointError
from .json_object import read_json, read_small

END_OF_TEXT = "<|endoftext|>"


@lru_cache
def byte_symbols():
    """The visible character that represents each byte value: a dict int -> str of 256 entries.

    Bytes that are printable in Latin-1 represent themselves; the other 68 get the characters from U+0100 on.

    >>> byte_symbols()[ord("a")], byte_symbols()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    symbols = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        if byte not in symbols:
            symbols[byte] = chr(256 + len(symbols) - len(printable))
    return symbols


def read_vocabulary(path):
    """The dict str -> int of a vocab.json (encoder.json)."""
    vocabulary = read_json(path)
    check_vocabulary(vocabulary, path)
    return vocabulary


def read_merges(path):
    """The pairs of a merges.txt (vocab.bpe): one per line after a version line; a final newline is optional."""
    try:
        lines = read_small(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8 text ({error}); get the file again") from None
    merges = []
    for number, line in enumerate(lines, 1):
        pair = tuple(line.split())
        if (number == 1 and line.startswith("#version")) or not pair:
            continue
        if len(pair) != 2:
            raise CheckpointError(f"{path}, line {number}: expected two symbols, got {line!r:.100}; get the file again")
        merges.append(pair)
    if not merges:
        raise CheckpointError(f"{path} has no merges, expected two symbols per line; get the file again")
    return merges


def check_vocabulary(vocabulary, what):
    """Raise CheckpointError unless every byte has a token and every token its bytes; `what` names it in messages."""
    if not all(type(token) is int for token in vocabulary.values()):
        raise CheckpointError(
            f"{what} is not a JSON object from token strings to whole numbers (GPT-2's vocabulary); get the file again"
        )
    byte_of = set(byte_symbols().values())
    missing = byte_of - vocabulary.keys()
    if missing:
        raise CheckpointError(
            f"{what} has no token for {len(missing)} of the 256 bytes, {min(missing)!r} among them; get the file again"
        )
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise CheckpointError(
            f"{what} has {len(vocabulary)} tokens, but their ids are not 0 .. {len(vocabulary) - 1}; get the file again"
        )
    odd = next((symbol for symbol in vocabulary if not symbol or not byte_of.issuperset(symbol)), None)
    if odd is not None:
        raise CheckpointError(
            f"{what}: the token {odd!r:.100} has characters that represent no byte: not a byte-level vocabulary"
        )


def check_merges(merges, vocabulary, what):
    """Raise CheckpointError unless the merges make all tokens of the vocabulary and no others, from earlier ones."""
    if len(set(merges)) < len(merges):
        [(pair, _)] = Counter(merges).most_common(1)
        raise CheckpointError(f"{what}: the merge {' '.join(pair):.100} appears twice; get the file again")
    made = set()
    for first, second in merges:
        if not (first in vocabulary and second in vocabulary and first + second in vocabulary):
            raise CheckpointError(
                f"{what}: the merge {first!r:.50} {second!r:.50} gives {first + second!r:.100}, and one of the three "
                "is not in the vocabulary; use the files of one and the same model"
            )
        if unmade := [half for half in (first, second) if len(half) > 1 and half not in made]:
            raise CheckpointError(
                f"{what}: the merge {first!r:.50} {second!r:.50} comes before any that gives {unmade[0]!r:.50}: the "
                "merges are not in their order; get the file again"
            )
        made.add(first + second)
    lost = [symbol for symbol in vocabulary if len(symbol) > 1 and symbol not in made and symbol != END_OF_TEXT]
    if lost:
        raise CheckpointError(
            f"{what} has no merge for {lost[0]!r:.100} and {len(lost) - 1} more tokens of the vocabulary: it is "
            "cut off, or of another model; get the file again"
        )
