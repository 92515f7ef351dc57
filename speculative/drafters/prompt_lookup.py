"""Drafting by copying: find the last few tokens earlier in the text, and propose the tokens that followed them there.

It needs no model and costs almost nothing; it pays if a text repeats itself or its prompt.
Source: Saxena, "Prompt Lookup Decoding" (2023), https://github.com/apoorvumang/prompt-lookup-decoding. It chooses
differently among several matches: see the class.
"""

from ..interfaces import Draft, RandomSource, Tokens
from .deterministic import merged, one_hot


class PromptLookupDrafter:
    """Copies the tokens that followed an earlier occurrence of the last few tokens.

    It looks for the last n_max tokens, then for fewer, down to n_min; the longest match wins. Among several matches of
    that length it copies the nearest with K tokens after it. If none has that many, it copies the first, which has the
    most tokens after it. Draft tokens are deterministic, so their rows are one-hot.

    Others choose differently among the matches: Hugging Face and vLLM take the first in the text, Saxena the first with
    K tokens after it, llama.cpp's ngram-simple the nearest. The first is often out of date. In a text that repeats
    itself with a period of less than K tokens, the copy of the nearest is cut short by the end of the text.

    Parameters
    ----------
    n_vocab
        The target's number of tokens.
    n_max, n_min
        The lengths of the longest and of the shortest match to look for. What followed a single token earlier is rarely
        what follows now, and a wrong copy makes a call of the target longer. A smaller n_max is the shortest as well.
    n_copies
        How many different continuations to copy: with 2 or more the draft is a tree. The longest matches come first,
        and among equally long ones the nearest.
    """

    def __init__(self, n_vocab: int, n_max: int = 3, n_min: int = 2, *, n_copies: int = 1):
        if min(n_min, n_max) < 1:
            raise ValueError(f"expected matches of 1 token or more, got n_max {n_max} and n_min {n_min}")
        if n_copies < 1:
            raise ValueError(f"expected n_copies of 1 or more, got {n_copies}")
        self.n_vocab = n_vocab
        self.n_max, self.n_min = n_max, min(n_min, n_max)
        self.n_copies = n_copies

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        tokens = [int(token) for token in tokens]
        # earlier positions of the last token, the nearest first
        ends = [i for i in range(len(tokens) - 2, -1, -1) if tokens[i] == tokens[-1]]
        copies = {}  # different ones, the best first
        for n in range(self.n_max, self.n_min - 1, -1):
            matches = [end for end in ends if end + 1 >= n and tokens[end + 1 - n : end + 1] == tokens[-n:]]
            whole = [end for end in matches if len(tokens) > end + K]
            for end in whole or matches[-1:]:
                copies[tuple(tokens[end + 1 : end + 1 + K])] = None
            if len(copies) >= self.n_copies:
                break
        drafted, parents, _ = merged(list(copies)[: self.n_copies])
        return one_hot(drafted, self.n_vocab, parents)
