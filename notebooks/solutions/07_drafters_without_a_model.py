import numpy as np

from speculative import Draft


# Exercise 1. The latest earlier occurrence of the last token; a copied token is deterministic, so the rows are one-hot.
def copy_after_last(tokens, K, n_vocab):
    earlier = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
    copied = tokens[earlier[-1] + 1 :][:K] if earlier else []
    copied = np.array(copied, dtype=np.int64)
    return Draft(copied, np.eye(n_vocab)[copied])


# Exercise 2. A context that was seen often, with few different tokens after it, needs little of the shorter one.
def mixed(counts, shorter):
    n_different = np.count_nonzero(counts)
    if n_different == 0:
        return shorter.copy()
    return (counts + n_different * shorter) / (np.sum(counts) + n_different)


# Exercise 3. (a) the overlap; (b) p of the draft token; (c) p of each token, weighted with how often it is drawn.
def acceptances(p, q):
    return np.minimum(p, q).sum(), p[np.argmax(q)], p @ q
