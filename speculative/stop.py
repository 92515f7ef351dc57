"""Where a text ends early: at a stop token or a stop text, wherever in a block of tokens it falls.

A round may add several tokens, and the text ends with the first of them that completes what was looked for; those
behind it are not emitted, whether they were accepted or not.
Next: ../main.py
"""

from collections.abc import Callable
from dataclasses import dataclass


def until_stop(generated, new, stop_tokens, stop):
    """(n, stops): how many of the new tokens stay in the text, and whether it ends with them.

    Parameters
    ----------
    generated, new : list of int
        The tokens generated so far, without the prompt, and those that a round adds.
    stop_tokens : collection of int
    stop : callable or None
        Given the generated tokens up to one of them, says whether the text ends there.

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
    """Ends a text where it contains `text`; to be used as `stop`.

    The token that completes it stays, and may reach beyond it: `cut` shows the text up to there.

    Parameters
    ----------
    text : str
    decode : callable
        From a list of token ids to str, as a tokenizer has it.
    """

    text: str
    decode: Callable

    def __post_init__(self):
        if not self.text:
            raise ValueError("expected a stop text of at least one character, got an empty one")

    def __call__(self, generated):
        n_bytes = len(self.text.encode(errors="surrogatepass"))  # a token has at least one, so this many tokens suffice
        return self.text in self.decode(generated[-n_bytes:])

    def cut(self, text):
        """`text` up to the end of the first occurrence."""
        before, found, _ = text.partition(self.text)
        return before + found
