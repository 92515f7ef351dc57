"""How much a text repeats itself. Greedy text of small models repeats itself, and repetition is easy to draft."""


def repetition(tokens, n=4):
    """The share of n-grams that occurred earlier in the text: 1 - distinct / all; 0.0 for fewer than n tokens.

    Source: seq-rep-n of Welleck et al., arXiv:1908.04319, section 4.

    >>> round(repetition([1, 2, 3, 4, 5, 1, 2, 3, 4]), 3)  # of six 4-grams the last occurred before
    0.167
    """
    ngrams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0
