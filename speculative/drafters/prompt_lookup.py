"""Drafting by copying: find the last few tokens earlier in the text, and propose the tokens that followed them there.

It needs no model and costs almost nothing; it pays if a text repeats itself or its prompt.
Source: Saxena, "Prompt Lookup Decoding" (2023), https://github.com/apoorvumang/prompt-lookup-decoding; which of several
matches is copied differs, see the class.
Next: suffix.py
"""

import numpy as np

from ..interfaces import Draft


class PromptLookupDrafter:
    """Copies the tokens that followed an earlier occurrence of the last few tokens.

    It looks for the last n_max tokens, then for fewer, down to one; the longest match wins. Among several matches of
    that length the nearest to the end is copied, as in llama.cpp's ngram-simple; Saxena, Hugging Face and vLLM take the
    first in the text. The copy stops at the end of the text, so it is short if the text repeats with a short period.
    Each draft token is certain, so its row is one-hot.

    Parameters
    ----------
    n_vocab : int
    n_max : int
        The length of the longest match to look for.
    """

    def __init__(self, n_vocab, n_max=3):
        if n_max < 1:
            raise ValueError(f"expected a longest match n_max of 1 token or more, got {n_max}")
        self.n_vocab = n_vocab
        self.n_max = n_max

    def propose(self, tokens, K, rng):
        tokens = [int(token) for token in tokens]
        # earlier places of the last token, the nearest first
        ends = [i for i in range(len(tokens) - 2, -1, -1) if tokens[i] == tokens[-1]]
        for n in range(self.n_max, 0, -1):
            for end in ends:
                if end + 1 >= n and tokens[end + 1 - n : end + 1] == tokens[-n:]:
                    return one_hot(tokens[end + 1 : end + 1 + K], self.n_vocab)
        return one_hot([], self.n_vocab)


def one_hot(tokens, n_vocab):
    """A draft of tokens that are certain: one-hot rows."""
    tokens = np.array(tokens, dtype=np.int64)
    probs = np.zeros((len(tokens), n_vocab))
    probs[np.arange(len(tokens)), tokens] = 1
    return Draft(tokens, probs)
