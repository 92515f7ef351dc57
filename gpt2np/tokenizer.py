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
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise

import regex

from .vocabulary import END_OF_TEXT, byte_symbols, check_merges, check_vocabulary, read_merges, read_vocabulary

LONG_PIECE = 30  # characters; the tokens of longer pieces are not kept in the cache

# Contractions, then an optional space with letters, digits or other signs, then white space
# (of a run of spaces the last belongs to the word that follows).
SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


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


def fully_merged(symbols, ranks):
    """The last list that `merge_steps` yields, in a time that grows with n log n where that one's grows with n².

    Merging a pair changes its neighbours alone. So the symbols are a linked list, in which a merge takes the second
    symbol out, and the places of each pair are kept under its rank; a heap has the ranks, the lowest first.

    >>> fully_merged(["l", "o", "w"], {("o", "w"): 0, ("l", "ow"): 1})
    ['low']
    """
    symbols = [*symbols, None]  # the end, which is in no pair
    before, after = [*range(-1, len(symbols) - 1)], [*range(1, len(symbols) + 1)]
    places, waiting = {}, []  # rank -> where such a pair begins, or began; the ranks that have places

    def note(i):
        """The pair that begins at i waits for its turn, if it is one of the merges."""
        rank = ranks.get((symbols[i], symbols[after[i]])) if i >= 0 else None
        if rank is not None:
            if rank not in places:
                heappush(waiting, rank)
            places.setdefault(rank, []).append(i)

    for i in range(len(symbols) - 1):
        note(i)
    while waiting:
        rank = heappop(waiting)
        for i in sorted(places.pop(rank)):
            j = after[i]
            if symbols[i] is None or ranks.get((symbols[i], symbols[j])) != rank:
                continue  # an earlier merge took one of the two
            symbols[i], symbols[j] = symbols[i] + symbols[j], None
            after[i], before[after[j]] = after[j], i
            note(before[i])
            note(i)
    return [symbol for symbol in symbols if symbol is not None]


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
        If a byte or the result of a merge is not in the vocabulary, if a token comes from no merge, or if the ids are
        not 0 .. n_vocab - 1. The message begins with one of `names`.
    """

    def __init__(self, vocabulary, merges, names=("the vocabulary", "the list of merges")):
        check_vocabulary(vocabulary, names[0])
        check_merges(merges, vocabulary, names[1])
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
        return Tokenizer, (self.vocabulary, [*self.ranks])  # a copy in another process has a cache of its own

    @classmethod
    def from_files(cls, vocabulary_file, merges_file):
        """The tokenizer of GPT-2's two files: vocab.json and merges.txt, elsewhere named encoder.json and vocab.bpe."""
        return cls(read_vocabulary(vocabulary_file), read_merges(merges_file), names=(vocabulary_file, merges_file))

    def encode(self, text, special=False):
        """Token ids (list of int) of a str.

        With `special`, each `<|endoftext|>` in the text becomes the one token of that name; otherwise it is text like
        any other. Half of a surrogate pair, which is not text, is read as U+FFFD.
        """
        if special and self.end_of_text is not None and END_OF_TEXT in text:
            first, *rest = [self.encode(part) for part in text.split(END_OF_TEXT)]
            return first + [token for part in rest for token in (self.end_of_text, *part)]
        pieces, cached, any_length = SPLIT.findall(text), self._cached, self._encode_piece
        return [t for piece in pieces for t in (cached if len(piece) <= LONG_PIECE else any_length)(piece)]

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
        return tuple(self.vocabulary[symbol] for symbol in fully_merged(symbols, self.ranks))


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
