import numpy as np

from speculative import Draft


# Exercise 1. The latest earlier occurrence of the last token; a copied token is deterministic, so the rows are one-hot.
def copy_after_last(tokens, K, n_vocab):
    """Copy what followed the latest earlier occurrence of the last token.

    tokens : list of int, at least one; K : int, 0 or more.

    Returns a speculative.Draft with at most K tokens: fewer if the copied text ends, and
    0 if the last token has not occurred before:
        tokens : [k] int64
        probs  : [k, n_vocab] float64, row i is the distribution that token i was drawn
            from, also for k = 0.

    copy_after_last([3, 1, 2, 3, 1], K=2, n_vocab=5).tokens is [2, 3].
    """
    earlier = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
    copied = tokens[earlier[-1] + 1 :][:K] if earlier else []
    copied = np.array(copied, dtype=np.int64)
    return Draft(copied, np.eye(n_vocab)[copied])


# Exercise 2. A context that was seen often, with few different tokens after it, needs little of the shorter one.
def mixed(counts, shorter):
    """The distribution after a context, mixed with that of the shorter context.

    counts : [n_vocab] int, how often each token followed the context; all 0 where it was
        never seen.
    shorter : [n_vocab] float64, the distribution after the shorter context; it must not
        be written to.

    Returns [n_vocab] float64 with sum 1. mixed([1, 2], [4/7, 3/7]) is [3/7, 4/7].
    """
    n_different = np.count_nonzero(counts)
    if n_different == 0:
        return shorter.copy()
    return (counts + n_different * shorter) / (np.sum(counts) + n_different)


# Exercise 3. (a) the overlap; (b) p of the draft token; (c) p of each token, weighted with how often it is drawn.
def acceptances(p, q):
    """How often min(1, p / row) accepts a draft token, in the ways (a), (b) and (c).

    p, q : [n_vocab] float64, distributions of the target and of the draft.

    Returns three numbers. For p = (0.5, 0.5) and q = (0.75, 0.25) they are
    (0.75, 0.5, 0.5).
    """
    return np.minimum(p, q).sum(), p[np.argmax(q)], p @ q
