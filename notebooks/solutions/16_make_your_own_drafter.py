"""The exercises of notebook 16."""

import numpy as np


def kl_gradient(z, p):
    """The gradient of KL(p || softmax(z)) by the logits z, for each row: [n, n_vocab].

    z, p : arrays [n, n_vocab] float64; each row is a position of its own.

    For z = (0, 0) and p = (1, 0) it is (-0.5, 0.5): the first logit has to rise.
    """
    # KL is -sum p log q plus a constant, and the gradient of log q[x] by z is (one at x) - q. Since p sums to 1:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) - p


def drafted(rows, w1, w2, last):
    """The greedy draft of a parallel block: a list of K tokens.

    rows : [K, n_vocab], the logits of the slots, known before any token is chosen.
    w1, w2 : [n_vocab, rank] and [rank, n_vocab], the table of the previous token.
    last : int, the last token of the text.

    The first slot saw the last token of the text, so nothing is added to its row. To each
    further row the table's row for the token that was just chosen is added.
    """
    # Left to right: a token must be chosen before the next row is complete.
    tokens = [int(rows[0].argmax())]
    for row in rows[1:]:
        tokens.append(int((row + w1[tokens[-1]] @ w2).argmax()))
    return tokens
