"""GPT-2's tokenizer: text to token ids and back, by byte pair encoding (BPE) over bytes.

Four steps, and `Tokenizer.show_work` returns each of them:
1. split     the text by one regular expression: words with the space before them, numbers, punctuation, white space;
2. bytes     each piece is UTF-8, and each of the 256 byte values is written as one visible character (a space is "Ġ");
3. merge     join the adjacent pair that stands earliest in the list of merges, until no pair stands in the list;
4. look up   each joined symbol is a token of the vocabulary.
Because step 2 knows every byte, there is no unknown text: any string survives encode, then decode, unchanged.

Leaves out: learning the merges (see tiny/train.py), and any special token but `<|endoftext|>`.
Source: Sennrich et al., arXiv:1508.07909, algorithm 1; bytes as the base: Radford et al., "Language Models are
Unsupervised Multitask Learners" (2019), section 2.2.
Next: layers.py
"""

import codecs
import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import regex

from .errors import CheckpointError

END_OF_TEXT = "<|endoftext|>"

# Contractions, then an optional space with letters, digits or other signs, then white space
# (of a run of spaces the last belongs to the word that follows).
SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


@lru_cache
def byte_symbols():
    """The visible character that stands for each byte value: a dict int -> str of 256 entries.

    Bytes that are printable in Latin-1 stand for themselves; the other 68 take the characters from U+0100 on.

    >>> byte_symbols()[ord("a")], byte_symbols()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    symbols = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        if byte not in symbols:
            symbols[byte] = chr(256 + len(symbols) - len(printable))
    return symbols


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

    `ranks` maps a pair to its place in the list of merges; the lowest goes first.

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
    """What `show_work` returns for one piece of the text: the state after each of the four steps."""

    text: str  # step 1
    utf8: bytes  # step 2: its bytes ...
    symbols: str  # ... and the visible characters that stand for them
    merges: list  # step 3: the list of symbols before the first merge, and after each
    tokens: list  # step 4: token ids


class Tokenizer:
    """Byte-level BPE over a vocabulary and a list of merges.

    Parameters
    ----------
    vocabulary : dict str -> int
        Token id of each symbol (in the visible characters of `byte_symbols`); the ids are 0 .. n_vocab - 1.
    merges : sequence of (str, str)
        Pairs in the order in which they were learned.

    Raises
    ------
    CheckpointError
        If a byte or the result of a merge is not in the vocabulary, or the ids are not 0 .. n_vocab - 1.
    """

    def __init__(self, vocabulary, merges):
        check_vocabulary(vocabulary, merges)
        self.vocabulary = dict(vocabulary)
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.n_vocab = len(vocabulary)
        self.end_of_text = vocabulary.get(END_OF_TEXT)
        byte_of = {symbol: byte for byte, symbol in byte_symbols().items()}
        self.token_bytes = [b""] * self.n_vocab
        for symbol, token in vocabulary.items():
            self.token_bytes[token] = bytes(byte_of[c] for c in symbol)
        self._tokens_of = lru_cache(maxsize=2**16)(self._encode_piece)

    @classmethod
    def from_files(cls, vocabulary_file, merges_file):
        """The tokenizer of GPT-2's two files: vocab.json and merges.txt, elsewhere named encoder.json and vocab.bpe."""
        return cls(read_vocabulary(vocabulary_file), read_merges(merges_file))

    def encode(self, text, special=False):
        """Token ids (list of int) of a str.

        With `special`, each `<|endoftext|>` in the text becomes the one token of that name; otherwise it is text like
        any other. Half of a surrogate pair, which is not text, is read as U+FFFD.
        """
        if special and self.end_of_text is not None and END_OF_TEXT in text:
            first, *rest = [self.encode(part) for part in text.split(END_OF_TEXT)]
            return first + [token for part in rest for token in (self.end_of_text, *part)]
        return [token for piece in SPLIT.findall(text) for token in self._tokens_of(piece)]

    def decode(self, tokens):
        """Text (str) of token ids. Bytes that are not UTF-8 become U+FFFD, and so does an id outside the vocabulary.

        The tokens of a character that was cut in two decode only together; see `StreamDecoder`.
        """
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", errors="replace")

    def bytes_of(self, token):
        """The bytes of one token id; those of U+FFFD for an id outside the vocabulary (models may pad theirs)."""
        return self.token_bytes[token] if 0 <= token < self.n_vocab else "\ufffd".encode()

    def show_work(self, text):
        """The intermediate steps of `encode(text)`: a list of `Piece`, one for each piece of the text."""
        pieces = []
        for piece in SPLIT.findall(text):
            utf8 = to_utf8(piece)
            symbols = "".join(byte_symbols()[byte] for byte in utf8)
            merges = list(merge_steps(symbols, self.ranks))
            pieces.append(Piece(piece, utf8, symbols, merges, [self.vocabulary[symbol] for symbol in merges[-1]]))
        return pieces

    def _encode_piece(self, piece):
        symbols = [byte_symbols()[byte] for byte in to_utf8(piece)]
        for merged in merge_steps(symbols, self.ranks):
            symbols = merged
        return tuple(self.vocabulary[symbol] for symbol in symbols)


class StreamDecoder:
    """Decodes tokens one at a time and holds back the bytes of a character that is not complete yet.

    What `push` and the final `flush` return, joined, is `tokenizer.decode` of all the tokens.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token):
        """The text (str, often of one token, at times empty) that becomes readable with this token id."""
        return self.utf8.decode(self.tokenizer.bytes_of(token))

    def flush(self):
        """What was held back, as U+FFFD: nothing more is coming."""
        return self.utf8.decode(b"", final=True)


def to_utf8(text):
    """UTF-8 of a str; half of a surrogate pair becomes U+FFFD, two halves in a row the character they stand for."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def read_vocabulary(path):
    """The dict str -> int of a vocab.json (encoder.json)."""
    try:
        vocabulary = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON in UTF-8 ({error}); get the file again") from None
    if not isinstance(vocabulary, dict) or not all(type(token) is int for token in vocabulary.values()):
        raise CheckpointError(f"{path} is not a JSON object from token strings to whole numbers; get the file again")
    return vocabulary


def read_merges(path):
    """The pairs of a merges.txt (vocab.bpe): one a line below a version line; the last line counts, newline or not."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except ValueError as error:
        raise CheckpointError(f"{path} is not UTF-8 text ({error}); get the file again") from None
    merges = []
    for number, line in enumerate(lines, 1):
        pair = tuple(line.split())
        if (number == 1 and line.startswith("#version")) or not pair:
            continue
        if len(pair) != 2:
            raise CheckpointError(f"{path}, line {number}: expected two symbols, got {line!r}; get the file again")
        merges.append(pair)
    return merges


def check_vocabulary(vocabulary, merges):
    """Raise CheckpointError unless every text can be encoded and every token decoded with these."""
    byte_of = set(byte_symbols().values())
    missing = byte_of - vocabulary.keys()
    if missing:
        raise CheckpointError(
            f"the vocabulary has no token for {len(missing)} of the 256 bytes, {min(missing)!r} among them"
        )
    for first, second in merges:
        if first + second not in vocabulary:
            raise CheckpointError(
                f"the merge {first!r} {second!r} makes {first + second!r}, which is not in the vocabulary"
            )
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise CheckpointError(
            f"the vocabulary has {len(vocabulary)} tokens, but their ids are not 0 .. {len(vocabulary) - 1}"
        )
    odd = next((symbol for symbol in vocabulary if not byte_of.issuperset(symbol)), None)
    if odd is not None:
        raise CheckpointError(f"the token {odd!r} has characters that stand for no byte: not a byte-level vocabulary")
