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
    that length it copies the nearest with K tokens after it. If none has that many, it copies the one with the most
    tokens after it, which in the text is the first. Draft tokens are deterministic, so their rows are one-hot.

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
    corpus
        More token ids to copy from, as if they preceded the text. They are indexed once.
    """

    def __init__(self, n_vocab: int, n_max: int = 3, n_min: int = 2, *, n_copies: int = 1, corpus: Tokens = ()):
        if min(n_min, n_max) < 1:
            raise ValueError(f"expected matches of 1 token or more, got n_max {n_max} and n_min {n_min}")
        if n_copies < 1:
            raise ValueError(f"expected n_copies of 1 or more, got {n_copies}")
        self.n_vocab = n_vocab
        self.n_max, self.n_min = n_max, min(n_min, n_max)
        self.n_copies = n_copies
        self.corpus = [int(token) for token in corpus]
        self.ends = {}  # n_min tokens -> the positions in the corpus at which they end, the last first
        for end in range(len(self.corpus) - 1, self.n_min - 2, -1):
            self.ends.setdefault(tuple(self.corpus[end + 1 - self.n_min : end + 1]), []).append(end)

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        tokens = [int(token) for token in tokens]
        last = tokens[-self.n_min :]
        ends = [end for end in range(len(tokens) - 2, self.n_min - 2, -1) if tokens[end] == last[-1]]
        matches = [(tokens, end) for end in ends if tokens[end + 1 - self.n_min : end + 1] == last]  # the nearest first
        matches += [(self.corpus, end) for end in self.ends.get(tuple(last), ())]
        by_length = [matches]  # of n_min tokens, of n_min + 1, ...
        for n in range(self.n_min + 1, min(self.n_max, len(tokens)) + 1):
            matches = [(text, end) for text, end in matches if end + 1 >= n and text[end + 1 - n] == tokens[-n]]
            by_length.append(matches)
        copies = {}  # different ones, the best first
        for matches in reversed(by_length):
            whole = [(text, end) for text, end in matches if len(text) > end + K]
            longest = max(matches, key=lambda match: len(match[0]) - match[1], default=None)
            for text, end in whole or filter(None, [longest]):
                copies[tuple(text[end + 1 : end + 1 + K])] = None
            if len(copies) >= self.n_copies:
                break
        drafted, parents, _ = merged(list(copies)[: self.n_copies])
        return one_hot(drafted, self.n_vocab, parents)
