"""Draft models with a different tokenizer: translate token ids through their bytes, and find the shared tokens.

Two tokenizers agree only on the text. So a draft model of a different family can be used in two ways, both exact:

    shared tokens      here: the draft's distribution over the tokens that both vocabularies have, renormalised. It is a
                       language model in the target's vocabulary, which every drafter can use
    through the text   drafters/text.py: whatever was drafted is decoded, and encoded with the target's tokenizer

Sharing tokens accepts more where the target samples, because p and q can be compared. Going through the text accepts
more at temperature 0, because a word that is one token for the target may be several tokens for the draft.
Source: Timor et al., arXiv:2502.05202, section 4 (shared tokens, called TLI) and section 3 (through the text, SLEM).
"""

import re
import sys
from codecs import utf_8_decode
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

import numpy as np

from ..checks import ask_model, check_model
from ..interfaces import LanguageModel, Tokens
from .by_paths import ByPaths, Wrapper

NOT_UTF8 = re.compile("([\udc80-\udcff])")  # an invalid byte, as errors="surrogateescape" decodes it


class Tokenizer(Protocol):
    """Converts text to token ids, and each token id to its bytes, like gpt2np.Tokenizer and TransformersTokenizer."""

    n_vocab: int
    end_of_text: int | None  # the token between two texts, which is not part of either

    def encode(self, text: str, /) -> list[int]:
        """The token ids of a text, without tokens that mark its beginning or end."""

    def bytes_of(self, token: int, /) -> bytes:
        """The bytes of a token; b"" for a token that stands for no text."""


class Translation:
    """A function from token ids of `old`, a Tokenizer, to those of `new`, a different one.

    Bytes that are not UTF-8 become tokens of one byte each, where such tokens exist. `end_of_text` becomes
    `end_of_text`, if there is one. Other tokens without bytes are dropped.
    """

    def __init__(self, old, new):
        self.old, self.new = old, new
        self.ids = ids_by_bytes(new)

    def __call__(self, tokens, is_whole=True):
        """The ids (list of int) of a whole text, after the ids that its tokenizer puts before every text (`start`).

        With is_whole=False, the ids of new text, without `start` and without the bytes of an incomplete last character.
        """
        ids = list(getattr(self.new, "start", ())) if is_whole else []
        for is_end, run in groupby(map(int, tokens), lambda token: token == self.old.end_of_text):
            if is_end:
                ids += [self.new.end_of_text for _ in run if self.new.end_of_text is not None]
            else:
                ids += self.encoded(b"".join(map(self.old.bytes_of, run)), is_whole)
        return ids

    def encoded(self, utf8, is_whole):
        """The token ids (list of int) of bytes."""
        text, _ = utf_8_decode(utf8, "surrogateescape", is_whole)
        ids = []
        for i, piece in enumerate(NOT_UTF8.split(text)):  # text, byte, text, byte, ..., text
            if piece and i % 2 == 0:
                ids += self.new.encode(piece)
            elif (byte := piece.encode("utf-8", "surrogateescape")) in self.ids:
                ids.append(self.ids[byte])
        return ids


def ids_by_bytes(tokenizer):
    """dict bytes -> token id, for all tokens that stand for text; if several have the same bytes, the last one."""
    tokens = (token for token in range(tokenizer.n_vocab) if token != tokenizer.end_of_text)
    return {utf8: token for token in tokens if (utf8 := tokenizer.bytes_of(token))}


def shared_tokens(of_target, of_draft):
    """The ids, in each Tokenizer, of the tokens that both have (same bytes, or `end_of_text`): two arrays [n] int64."""
    ids, ends = ids_by_bytes(of_draft), (of_target.end_of_text, of_draft.end_of_text)
    pairs = [(token, ids[utf8]) for utf8, token in ids_by_bytes(of_target).items() if utf8 in ids]
    if None not in ends:
        pairs.append(ends)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def latest(tokens, room):
    """The last tokens: at most `room` of them, and more than half that number.

    The first of them rarely changes, so a model can use its cache as the text grows.

    >>> latest([0, 1, 2, 3], 4), latest([0, 1, 2, 3, 4], 4), latest([0, 1, 2, 3, 4, 5], 4)
    ([0, 1, 2, 3], [2, 3, 4], [2, 3, 4, 5])
    """
    too_many, step = len(tokens) - room, max(1, room // 2)
    return tokens[-(-too_many // step) * step :] if too_many > 0 else tokens


class SharedTokensModel:
    """A language model in the target's vocabulary: the draft's logits for the shared tokens, -inf for the others.

    Each call encodes the text with the draft's tokenizer. If it is too long for the draft model, its end is used.

    Parameters
    ----------
    model
        With the draft's vocabulary.
    of_target, of_draft
        The two tokenizers.
    n_vocab
        The target's n_vocab; by default as many tokens as its tokenizer has.

    Raises
    ------
    ValueError
        If the vocabularies have no token in common.
    """

    n_ctx: int = sys.maxsize

    def __init__(self, model: LanguageModel, of_target: Tokenizer, of_draft: Tokenizer, n_vocab: int | None = None):
        self.model, self.n_vocab = check_model(model, "a draft model"), n_vocab or of_target.n_vocab
        self.to_draft, self.shared = Translation(of_target, of_draft), shared_tokens(of_target, of_draft)
        if not self.shared.size:
            raise ValueError(
                f"the two tokenizers, of {of_target.n_vocab} and {of_draft.n_vocab} tokens, have no token in common: "
                "choose a draft model whose text is written in the same way"
            )

    reset = Wrapper.reset

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        """Logits [n_last, n_vocab] (see `LanguageModel`)."""
        if len(parents):
            return ByPaths(self)(tokens, n_last, parents)
        return np.array([self.row(tokens[:end]) for end in range(len(tokens) - n_last + 1, len(tokens) + 1)])

    def row(self, tokens):
        """The logits [n_vocab] of the next token."""
        text = latest(self.to_draft(tokens), self.model.n_ctx) or [self.to_draft.new.end_of_text or 0]
        of_target, of_draft = self.shared
        logits = np.full(self.n_vocab, -np.inf, np.float32)
        logits[of_target] = ask_model(self.model, text, whose="the draft model")[0, of_draft]
        return logits
