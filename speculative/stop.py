"""Stopping early: at a stop token or a stop text, which may be in the middle of a round.

A round may add several tokens. The text ends with the first of them that completes a stop. Later tokens are not
emitted, even if they were accepted.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass


def until_stop(generated, new, stop_tokens, stop):
    """(n, stops): how many of the new tokens stay in the text, and whether the text ends there.

    Parameters
    ----------
    generated, new : list of int
        The tokens generated so far, without the prompt, and the tokens that a round adds.
    stop_tokens : collection of int
    stop : callable or None
        Takes the generated tokens up to one of the new ones, and returns whether the text ends there.

    Examples
    --------
    >>> until_stop([5], [6, 7, 8], stop_tokens={7}, stop=None)
    (2, True)
    >>> until_stop([5], [6, 7, 8], stop_tokens=(), stop=lambda generated: len(generated) == 2)
    (1, True)
    """
    for n, token in enumerate(new, 1):
        if token in stop_tokens or (stop is not None and stop([*generated, *new[:n]])):
            return n, True
    return len(new), False


@dataclass(frozen=True)
class StopText:
    """Ends a text as soon as it contains `text`; to be passed as `stop`.

    The token that completes `text` is part of the output, and may continue past its end: `cut` removes the rest.

    Parameters
    ----------
    text
        At least one character.
    decode
        From a list of token ids to their text, such as `tokenizer.decode`.

    Raises
    ------
    ValueError
        If the text is empty, or contains U+FFFD, which stands for an incomplete character, or a lone surrogate, which
        decoded text never contains.
    """

    text: str
    decode: Callable[[list[int]], str]

    def __post_init__(self):
        if not self.text:
            raise ValueError("expected a stop text of at least one character, got an empty one")
        if re.search("[\ufffd\ud800-\udfff]", self.text):
            raise ValueError(
                f"expected a stop text without U+FFFD, which stands for an incomplete character, and without lone "
                f"surrogates, which no text has, got {self.text!r:.100}"
            )

    def __call__(self, generated: list[int]) -> bool:
        n_bytes = len(self.text.encode())  # a token has at least one byte, so this many tokens suffice
        return self.text in self.decode(generated[-n_bytes:])

    def cut(self, text: str) -> str:
        """`text` up to the end of the first occurrence of the stop text."""
        before, stop, _ = text.partition(self.text)
        return before + stop
