"""Drafting by copying: find the last few tokens earlier in the text, and propose what came after them there.

It needs no model and costs next to nothing; it pays where a text repeats itself or its prompt.
Source: Saxena, "Prompt Lookup Decoding" (2023), https://github.com/apoorvumang/prompt-lookup-decoding.
Next: suffix.py
"""

import numpy as np

from ..interfaces import Draft


class PromptLookupDrafter:
    """Copies what followed the longest match of the end of the text.

    Of the last n_max, then fewer, down to one token, the first that occur before are taken, in the place nearest to the
    end; the copy ends where the text ends. Each guess is certain, so its row is one-hot.

    Parameters
    ----------
    n_vocab : int
    n_max : int
        The longest match to look for.
    """

    def __init__(self, n_vocab, n_max=3):
        if n_max < 1:
            raise ValueError(f"expected a longest match n_max of 1 token or more, got {n_max}")
        self.n_vocab = n_vocab
        self.n_max = n_max

    def propose(self, tokens, K, rng):
        tokens = [int(token) for token in tokens]
        # where the last token stood before, the latest place first
        ends = [i for i in range(len(tokens) - 2, -1, -1) if tokens[i] == tokens[-1]]
        for n in range(self.n_max, 0, -1):
            for end in ends:
                if end + 1 >= n and tokens[end + 1 - n : end + 1] == tokens[-n:]:
                    return one_hot(tokens[end + 1 : end + 1 + K], self.n_vocab)
        return one_hot([], self.n_vocab)


def one_hot(guesses, n_vocab):
    """The draft of guesses that are certain."""
    guesses = np.array(guesses, dtype=np.int64)
    probs = np.zeros((len(guesses), n_vocab))
    probs[np.arange(len(guesses)), guesses] = 1
    return Draft(guesses, probs)
