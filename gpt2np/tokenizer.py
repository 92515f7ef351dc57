"""GPT-2's tokenizer: text to token ids and back, by byte pair encoding (BPE) over bytes.

Four steps, and `Tokenizer.show_work` returns each of them:
1. split     the text by one regular expression: words with the space before them, numbers, punctuation, white space;
2. bytes     each piece as UTF-8, with each of the 256 byte values written as one visible character (a space is "Ġ");
3. merge     the adjacent pair that comes first in the list of merges, again and again until no pair is in the list;
4. look up   the token id of each merged symbol in the vocabulary.
Because step 2 covers every byte, no text is unknown: encode, then decode, returns any text unchanged.
Before step 1, added tokens such as `<|endoftext|>` are cut out of the text: each is one token.

Leaves out: learning the merges (dev/train/tales.py), and the files (files/tokenizer_files.py).
Source: Sennrich et al., arXiv:1508.07909, algorithm 1; with bytes as the base, Radford et al., "Language Models are
Unsupervised Multitask Learners" (2019), section 2.2.
"""

import codecs
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path

import regex

END_OF_TEXT = "<|endoftext|>"
LONG_PIECE = 30  # characters; longer pieces are not cached
LONG_NAME = 1000  # characters; no longer symbol is a special token

# Contractions; letters, digits or other signs, with an optional space before them; white space
# (the last space of a run belongs to the word that follows).
SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
SPACE, WORD = regex.compile(r"\s"), regex.compile(r"\w")


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
class AddedToken:
    """A token that is cut out of the text before it is split. The fields have the names in Hugging Face's files."""

    content: str
    special: bool = True  # not text: it has no bytes, and is cut out only on request
    normalized: bool = False  # cut out after those that are not
    single_word: bool = False  # only if no letter or digit is next to it
    lstrip: bool = False  # with the white space before it
    rstrip: bool = False  # with the white space after it


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
        The token id of each symbol (in the visible characters of `byte_symbols`) and of each added token; the ids are
        0 .. n_vocab - 1. A byte that has no symbol is left out of texts.
    merges
        Pairs in the order in which they were learned.
    added
        Added tokens; those that the vocabulary lacks are ignored. By default `<|endoftext|>`.
    prefix_space
        Whether a text, or a part of it between added tokens, gets a space before it unless it begins with one.
    start
        The token ids before every text that is encoded with `special`.
    end_of_text
        The name of the token that ends a text; the attribute of this name is its id.

    Raises
    ------
    ValueError
        If the ids are not 0 .. n_vocab - 1, or if the vocabulary is not that of bytes, these merges and special tokens.
    """

    vocabulary: dict[str, int]
    n_vocab: int
    end_of_text: int | None  # the token of that name, if there is one
    token_bytes: list[bytes]  # by token id; of a special token, its name

    def __init__(
        self, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]],
        added: Iterable[AddedToken] = (AddedToken(END_OF_TEXT),), *,
        prefix_space: bool = False, start: Sequence[int] = (), end_of_text: str = END_OF_TEXT,
    ):  # fmt: skip
        merges = [tuple(pair) for pair in merges]  # tokenizer.json contains lists
        self.added = tuple(token for token in added if token.content in vocabulary)
        check_vocabulary(vocabulary, merges, {token.content for token in self.added})
        self.vocabulary = dict(vocabulary)
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.n_vocab = len(vocabulary)
        self.prefix_space, self.start = prefix_space, tuple(start)
        self.end_name, self.end_of_text = end_of_text, vocabulary.get(end_of_text)
        self.special = {vocabulary[token.content] for token in self.added if token.special}
        self.token_bytes, byte_of = [b""] * self.n_vocab, {symbol: byte for byte, symbol in byte_symbols().items()}
        for symbol, token in vocabulary.items():  # an added token may have characters that represent no byte
            is_of_bytes = byte_of.keys() >= {*symbol}
            self.token_bytes[token] = bytes(map(byte_of.get, symbol)) if is_of_bytes else to_utf8(symbol)
        by_pass = [[token for token in self.added if token.normalized == later] for later in (False, True)]
        self.passes = [({token.content: token for token in some}, pattern_of(some)) for some in by_pass if some]
        self._cached = lru_cache(maxsize=2**16)(self._encode_piece)  # at most 100 MB

    def __reduce__(self):  # a copy, for example in another process, gets its own cache
        how = {"prefix_space": self.prefix_space, "start": self.start, "end_of_text": self.end_name}
        return partial(Tokenizer, **how), (self.vocabulary, [*self.ranks], self.added)

    def __repr__(self):
        return f"Tokenizer({self.n_vocab} tokens, {len(self.ranks)} merges)"

    @classmethod
    def from_files(cls, vocabulary_file: str | os.PathLike[str], merges_file: str | os.PathLike[str]) -> "Tokenizer":
        """The tokenizer of GPT-2's two files: vocab.json and merges.txt, or encoder.json and vocab.bpe."""
        vocabulary, merges = (Path(file).read_text(encoding="utf-8") for file in (vocabulary_file, merges_file))
        return cls(json.loads(vocabulary), parse_merges(merges))

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The token ids of a text.

        With `special`, each special token in the text, such as `<|endoftext|>`, becomes the one token of that name, and
        the tokens `start` come first; otherwise its name is encoded as ordinary text. A lone surrogate, which is not
        text, becomes U+FFFD.
        """
        short, long = self._cached, self._encode_piece
        tokens = [*self.start] if special else []
        for token, part in self.parts(text, special):
            if token is not None:
                tokens.append(token)
            else:
                tokens += [t for p in SPLIT.findall(part) for t in (short if len(p) <= LONG_PIECE else long)(p)]
        return tokens

    def parts(self, text, special=False):
        """The text in parts: (the token id of an added token, its text), or (None, text that is to be split)."""
        parts = [(None, text)]
        for added, pattern in self.passes:
            cut = [[part] if part[0] is not None else self.cut(part[1], added, pattern, special) for part in parts]
            parts = [part for some in cut for part in some]
        if self.prefix_space:
            parts = [(t, f" {part}" if t is None and part[:1] not in ("", " ") else part) for t, part in parts]
        return parts

    def cut(self, text, added, pattern, special):
        """One pass of `parts`: where the pattern matches, the added token of that name (added: name -> token)."""
        if not special and all(token.special for token in added.values()):
            return [(None, text)]
        parts, start = [], 0
        for match in pattern.finditer(text):
            token, (begin, end) = added[match[0]], match.span()
            is_word_part = WORD.match(text[begin - 1 : begin]) or WORD.match(text[end : end + 1])
            if (token.special and not special) or (token.single_word and is_word_part):
                continue
            while token.lstrip and begin > start and SPACE.match(text[begin - 1]):
                begin -= 1
            while token.rstrip and end < len(text) and SPACE.match(text[end]):
                end += 1
            if end <= start:
                continue  # white space that the token before has taken
            parts += [(None, text[start:begin]), (self.vocabulary[token.content], text[max(start, begin) : end])]
            start = end
        return [*parts, (None, text[start:])]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of token ids. Bytes that are not UTF-8 become U+FFFD, and so does an id outside the vocabulary.

        A special token is decoded to its name. If a character is split between tokens, they must be decoded together;
        see `StreamDecoder`.
        """
        return b"".join(map(self.shown, tokens)).decode("utf-8", errors="replace")

    def shown(self, token: int) -> bytes:
        """The bytes that `decode` returns for one token id."""
        return self.token_bytes[token] if 0 <= token < self.n_vocab else "\ufffd".encode()

    def bytes_of(self, token: int) -> bytes:
        """The bytes of one token id: none of a special token, and those of U+FFFD of an id outside the vocabulary."""
        return b"" if token in self.special else self.shown(token)

    def show_work(self, text: str) -> list[Piece]:
        """The intermediate steps of `encode(text)`, one `Piece` for each piece of the text."""
        pieces = []
        for token, part in self.parts(text):
            for piece in SPLIT.findall(part) if token is None else [part]:
                symbols = self.symbols(piece) if token is None else [piece]
                merges = [*merge_steps(symbols, self.ranks)]
                tokens = [self.vocabulary[symbol] for symbol in merges[-1]] if token is None else [token]
                pieces.append(Piece(piece, to_utf8(piece), "".join(symbols), merges, tokens))
        return pieces

    def symbols(self, piece):
        """The symbols (list of str) of the bytes of a piece, without bytes that the vocabulary lacks."""
        symbols = [byte_symbols()[byte] for byte in to_utf8(piece)]
        return [symbol for symbol in symbols if symbol in self.vocabulary]

    def _encode_piece(self, piece):
        return tuple(self.vocabulary[symbol] for symbol in fully_merged(self.symbols(piece), self.ranks))


class NumberTokenizer(Tokenizer):
    """The tokenizer of a GPT-2 that writes no text, such as music or molecules: a text is a list of token ids.

    >>> tokenizer = NumberTokenizer(300)
    >>> tokenizer.encode("2 100 200"), tokenizer.decode([2, 100])
    ([2, 100, 200], ' 2 100')
    """

    def __init__(self, n_vocab: int, end_of_text: int | None = None):
        self.n_vocab, self.end_of_text = n_vocab, end_of_text
        self.token_bytes = [f" {token}".encode() for token in range(n_vocab)]
        self.vocabulary, self.start, self.special = {f" {token}": token for token in range(n_vocab)}, (), set()

    def __reduce__(self):
        return NumberTokenizer, (self.n_vocab, self.end_of_text)

    def __repr__(self):
        return f"NumberTokenizer({self.n_vocab} tokens)"

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The token ids in a text, between white space. ValueError if it contains anything else."""
        for word in text.split():
            if not (word.isascii() and word.isdecimal() and len(word) < 8 and int(word) < self.n_vocab):
                raise ValueError(
                    f"this model has no tokenizer, so a text is a list of token ids from 0 to {self.n_vocab - 1}, such "
                    f'as "2 100 200": got {word!r:.40}'
                )
        return [int(word) for word in text.split()]


class StreamDecoder:
    """Decodes tokens one at a time and holds back the bytes of an incomplete character.

    The results of all `push` calls and of the final `flush`, joined, are `tokenizer.decode` of all the tokens.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The text (sometimes empty) that this token id completes."""
        return self.utf8.decode(self.tokenizer.shown(token))

    def flush(self) -> str:
        """At the end of the text: U+FFFD for an incomplete character that was held back, otherwise an empty text."""
        return self.utf8.decode(b"", final=True)


def pattern_of(added):
    """The regular expression of the names of these tokens; of two that begin at the same position, the longer one."""
    names = sorted((token.content for token in added), key=len, reverse=True)
    return regex.compile("|".join(map(regex.escape, names)))


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


def check_vocabulary(vocabulary, merges, added):
    """Raise ValueError unless the vocabulary is that of bytes, merges and added tokens, with the ids 0 .. n_vocab - 1.

    A truncated list of merges would silently produce different tokens. It is detected because no merge makes the
    vocabulary's last token, although it is two of its symbols, joined; a special token such as `<s>` is not.
    """
    n_vocab, made = len(vocabulary), symbols_made(merges)
    if not all(type(token) is int for token in vocabulary.values()) or {*vocabulary.values()} != {*range(n_vocab)}:
        raise ValueError(f"the vocabulary has {n_vocab} tokens, but their ids are not 0 .. {n_vocab - 1}")
    used = {symbol for pair in merges for symbol in (*pair, "".join(pair))}
    if missing := used - vocabulary.keys():
        raise ValueError(f"the vocabulary lacks {min(missing)!r:.100}, which is a byte or made by a merge")
    others = vocabulary.keys() - made - added
    last = max((vocabulary[symbol] for symbol in made if symbol in vocabulary), default=-1)
    lost = [symbol for symbol, token in vocabulary.items() if symbol in others and token > last]
    if lost := [symbol for symbol in lost if is_merged(symbol, vocabulary)]:
        raise ValueError(
            f"no merge makes {lost[0]!r:.100} and {len(lost) - 1} more tokens of the vocabulary: the merges are cut off"
        )


def is_merged(symbol, vocabulary):
    """Whether two symbols of the vocabulary, joined, are this one, or it is too long or short for a special token."""
    if not 1 < len(symbol) < LONG_NAME:
        return True
    return any(symbol[:i] in vocabulary and symbol[i:] in vocabulary for i in range(1, len(symbol)))
