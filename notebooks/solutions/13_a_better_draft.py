"""The exercises of notebook 13."""

import numpy as np


def my_alpha(p, q):
    """The probability that a draft token is accepted, a mean over the positions (float).

    p, q : arrays [n, n_vocab] float64: row i is the target's and the draft's distribution
        at position i.

    For p = [(0.5, 0.5), (1, 0)] and q = [(0.5, 0.5), (0, 1)] it is 0.5: always at the
    first, never at the second.
    """
    # What both distributions have at each position, then the mean over the positions.
    return float(np.minimum(p, q).sum(axis=1).mean())


def bigram_from_rows(last, p, n_vocab):
    """The table [n_vocab, n_vocab] float64: row a is the mean of the rows p[i] of all
    contexts i with last[i] == a.

    last : [n] int, the last token of each context.
    p : [n, n_vocab], the target's distribution after each context.

    A token that ends no context gets the mean of all rows of p.
    """
    # `np.add.at` adds once for each context; `table[last] += p` would add once for each different token.
    table, n_contexts = np.zeros((n_vocab, n_vocab)), np.bincount(last, minlength=n_vocab)
    np.add.at(table, last, p)
    table /= np.maximum(n_contexts, 1)[:, None]
    table[n_contexts == 0] = np.mean(p, axis=0)
    return table


def match_gradient(z, p):
    """[n, n_vocab]: the gradient of 1 - sum(p * q) by z, for each row; q = softmax(z).

    z, p : arrays [n, n_vocab] float64; each row is a context of its own.
    """
    # The derivative with respect to q is -p; the softmax turns any such derivative g into q (g - sum q g).
    q = np.exp(z - z.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    return q * ((p * q).sum(axis=1, keepdims=True) - p)
