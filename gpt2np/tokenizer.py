"""GPT-2's tokenizer: text to token ids and back, by byte pair encoding (BPE) over bytes.

Four steps, and `Tokenizer.show_work` returns each of them:
1. split     the text by one regular expression: words with the space before them, numbers, punctuation, white space;
2. bytes     each piece as UTF-8, with each of the 256 byte values written as one visible character (a space is "Ġ");
3. merge     the adjacent pair that comes first in the list of merges, again and again until no pair is in the list;
4. look up   the token id of each merged symbol in the vocabulary.
Because step 2 covers every byte, no text is unknown: encode, then decode, returns any text unchanged.

Leaves out: learning the merges (dev/train/tales.py), and special tokens other than `<|endoftext|>`.
Source: Sennrich et al., arXiv:1508.07909, algorithm 1; with bytes as the base, Radford et al., "Language Models are
Unsupervised Multitask Learners" (2019), section 2.2.
"""

import codecs
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path

import regex

END_OF_TEXT = "<|endoftext|>"
LONG_PIECE = 30  # characters; longer pieces are not cached

# Contractions; letters, digits or other signs, with an optional space before them; white space
# (the last space of a run belongs to the word that follows).
SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


@lru_cache
def byte_symbols():
    """The visible character that represents each byte value: a dict int -> str of 256 entries.

    Bytes that are printable in Latin-1 represent themselves; the other 68 get the characters from U+0100 on.

    >>> byte_symbols()[ord("a")], byte_symbols()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def merge_pair(symbols, pair):
    """`symbols` (a list of str) with every occurrence of the adjacent `pair` joined, from left to right.

    >>> merge_pair(["a", "a", "a", "b"], ("a", "a"))
    ['aa', 'a', 'b']
    """
    merged, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged


def merge_steps(symbols, ranks):
    """Byte pair encoding of one piece: yields the list of symbols before the first merge and after each.

    `ranks` maps a pair to its position in the list of merges; the pair with the lowest rank is merged first.

    >>> list(merge_steps(["l", "o", "w"], {("o", "w"): 0, ("l", "ow"): 1}))
    [['l', 'o', 'w'], ['l', 'ow'], ['low']]
    """
    symbols = list(symbols)
    yield symbols
    while len(symbols) > 1:
        pair = min(pairwise(symbols), key=lambda pair: ranks.get(pair, len(ranks)))
        if pair not in ranks:
            return
        symbols = merge_pair(symbols, pair)
        yield symbols


@dataclass(frozen=True)
class Piece:
    """The result of `show_work` for one piece of the text: the state after each of the four steps."""

    text: str  # step 1
    utf8: bytes  # step 2: the bytes ...
    symbols: str  # ... and the visible characters that represent them
    merges: list[list[str]]  # step 3: the list of symbols before the first merge, and after each
    tokens: list[int]  # step 4: token ids


class Tokenizer:
    """Byte-level BPE over a vocabulary and a list of merges.

    Parameters
    ----------
    vocabulary
        The token id of each symbol (in the visible characters of `byte_symbols`); the ids are 0 .. n_vocab - 1.
    merges
        Pairs in the order in which they were learned.

    Raises
    ------
    ValueError
        If the ids are not 0 .. n_vocab - 1, or if the vocabulary is not that of the 256 bytes and these merges.
    """

    vocabulary: dict[str, int]
    n_vocab: int
    end_of_text: int | None  # the token of that name, if there is one
    token_bytes: list[bytes]  # by token id

    def __init__(self, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]]):
        merges = [tuple(pair) for pair in merges]  # tokenizer.json contains lists
        check_vocabulary(vocabulary, symbols_made(merges))
        self.vocabulary = dict(vocabulary)
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.n_vocab = len(vocabulary)
        self.end_of_text = vocabulary.get(END_OF_TEXT)
        byte_of = {symbol: byte for byte, symbol in byte_symbols().items()}
        self.token_bytes = [b""] * self.n_vocab
        for symbol, token in vocabulary.items():
            self.token_bytes[token] = bytes(byte_of[c] for c in symbol)
        self._cached = lru_cache(maxsize=2**16)(self._encode_piece)  # at most 100 MB

    def __reduce__(self):
        return Tokenizer, (self.vocabulary, [*self.ranks])  # a copy, for example in another process, gets its own cache

    def __repr__(self):
        return f"Tokenizer({self.n_vocab} tokens, {len(self.ranks)} merges)"

    @classmethod
    def from_files(cls, vocabulary_file: str | os.PathLike[str], merges_file: str | os.PathLike[str]) -> "Tokenizer":
        """The tokenizer of GPT-2's two files: vocab.json and merges.txt, or encoder.json and vocab.bpe."""
        vocabulary, merges = (Path(file).read_text(encoding="utf-8") for file in (vocabulary_file, merges_file))
        return cls(json.loads(vocabulary), parse_merges(merges))

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The token ids of a text.

        With `special`, each `<|endoftext|>` in the text becomes the one token of that name; otherwise it is encoded as
        ordinary text. A lone surrogate, which is not text, becomes U+FFFD.
        """
        if special and self.end_of_text is not None and END_OF_TEXT in text:
            first, *rest = [self.encode(part) for part in text.split(END_OF_TEXT)]
            return first + [token for part in rest for token in (self.end_of_text, *part)]
        short, long = self._cached, self._encode_piece
        return [token for p in SPLIT.findall(text) for token in (short if len(p) <= LONG_PIECE else long)(p)]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of token ids. Bytes that are not UTF-8 become U+FFFD, and so does an id outside the vocabulary.

        If a character is split between tokens, they must be decoded together; see `StreamDecoder`.
        """
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", errors="replace")

    def bytes_of(self, token: int) -> bytes:
        """The bytes of one token id, or of U+FFFD for an id outside the vocabulary (a model may have more ids)."""
        return self.token_bytes[token] if 0 <= token < self.n_vocab else "\ufffd".encode()

    def show_work(self, text: str) -> list[Piece]:
        """The intermediate steps of `encode(text)`, one `Piece` for each piece of the text."""
        pieces = []
        for piece in SPLIT.findall(text):
            utf8 = to_utf8(piece)
            symbols = "".join(byte_symbols()[byte] for byte in utf8)
            merges = list(merge_steps(symbols, self.ranks))
            pieces.append(Piece(piece, utf8, symbols, merges, [self.vocabulary[symbol] for symbol in merges[-1]]))
        return pieces

    def _encode_piece(self, piece):
        symbols = [byte_symbols()[byte] for byte in to_utf8(piece)]
        return tuple(self.vocabulary[symbol] for symbol in fully_merged(symbols, self.ranks))


class StreamDecoder:
    """Decodes tokens one at a time and holds back the bytes of an incomplete character.

    The results of all `push` calls and of the final `flush`, joined, are `tokenizer.decode` of all the tokens.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The text (sometimes empty) that this token id completes."""
        return self.utf8.decode(self.tokenizer.bytes_of(token))

    def flush(self) -> str:
        """At the end of the text: U+FFFD for an incomplete character that was held back, otherwise an empty text."""
        return self.utf8.decode(b"", final=True)


def to_utf8(text):
    """UTF-8 of a str; a lone surrogate becomes U+FFFD, a surrogate pair the character it encodes."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


# ------------------------------------------------------------------------------------------------ the same, fast


def fully_merged(symbols, ranks):
    """The last list that `merge_steps` yields, in O(n log n) time instead of O(n²).

    Merging a pair changes only its neighbours. So the symbols are a linked list, from which a merge removes the second
    symbol. The positions of each pair are stored under its rank, and a heap finds the lowest rank.

    >>> fully_merged(["l", "o", "w"], {("o", "w"): 0, ("l", "ow"): 1})
    ['low']
    """
    symbols = [*symbols, None]  # None marks the end and is in no pair
    before, after = [*range(-1, len(symbols) - 1)], [*range(1, len(symbols) + 1)]
    starts, waiting = {}, []  # rank -> present or former starts of its pairs; a heap of the ranks in starts

    def note(i):
        """Note the pair that starts at i, if it is in the list of merges."""
        rank = ranks.get((symbols[i], symbols[after[i]])) if i >= 0 else None
        if rank is not None:
            if rank not in starts:
                heappush(waiting, rank)
            starts.setdefault(rank, []).append(i)

    for i in range(len(symbols) - 1):
        note(i)
    while waiting:
        rank = heappop(waiting)
        for i in sorted(starts.pop(rank)):
            j = after[i]
            if symbols[i] is None or ranks.get((symbols[i], symbols[j])) != rank:
                continue  # an earlier merge used one of the two symbols
            symbols[i], symbols[j] = symbols[i] + symbols[j], None
            after[i], before[after[j]] = after[j], i
            note(before[i])
            note(i)
    return [symbol for symbol in symbols if symbol is not None]


# ------------------------------------------------------------------------------------------------ vocabulary and merges


def parse_merges(text):
    """The pairs in the text of a merges.txt (vocab.bpe): one per line, after a version line.

    >>> parse_merges("#version: 0.2\\nh e\\nl l\\n")
    [('h', 'e'), ('l', 'l')]
    """
    lines = text.split("\n")[text.startswith("#version") :]
    return [tuple(line.split()) for line in lines if line.strip()]


def symbols_made(merges):
    """The set of the 256 bytes' symbols and the merged symbols. ValueError if the merges are invalid."""
    made = set(byte_symbols().values())
    if len(set(merges)) < len(merges):
        raise ValueError("a merge appears twice")
    for pair in merges:
        if len(pair) != 2 or not made.issuperset(pair):
            raise ValueError(
                f"the merge {' '.join(pair)!r:.100} is not of two symbols, each a byte or made by an earlier merge: "
                "the merges are out of order"
            )
        made.add("".join(pair))
    return made


def check_vocabulary(vocabulary, made):
    """Raise ValueError unless the symbols that the merges made are the vocabulary, with the ids 0 .. n_vocab - 1.

    A truncated list of merges would silently produce different tokens. It is detected because no merge makes the
    vocabulary's last token.
    """
    n_vocab = len(vocabulary)
    if not all(type(token) is int for token in vocabulary.values()) or {*vocabulary.values()} != {*range(n_vocab)}:
        raise ValueError(f"the vocabulary has {n_vocab} tokens, but their ids are not 0 .. {n_vocab - 1}")
    if missing := made - vocabulary.keys():
        raise ValueError(f"the vocabulary lacks {min(missing)!r:.100}, which is a byte or made by a merge")
    if lost := [symbol for symbol in vocabulary if symbol not in made and symbol != END_OF_TEXT]:
        raise ValueError(
            f"no merge makes {lost[0]!r:.100} and {len(lost) - 1} more tokens of the vocabulary: the merges are cut off"
        )
