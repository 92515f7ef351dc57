"""The exercises of notebook 16."""

import numpy as np

from checks import drawing, exercise


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@exercise
def exercise_1(fn):
    rng = drawing(1)
    for n, n_vocab in (1, 2), (5, 7), (3, 11):
        z, p = rng.normal(size=(n, n_vocab)), rng.dirichlet(np.ones(n_vocab), n)
        got, q, e = fn(z.copy(), p.copy()), softmax(z), np.exp(z - z.max(axis=1, keepdims=True))
        assert got is not None, "nothing came back: is a return missing?"
        assert np.shape(got) == z.shape, f"expected shape {z.shape}, a slope for each logit, got {np.shape(got)}"
        hints = [
            ("the other way round: a step goes against the gradient, and must raise the logits where p > q", p - q),
            ("the rows are positions of their own: no mean over them here", (q - p) / n),
            ("this is the gradient of -sum p log q with respect to q: go on to the logits", -p / q),
            ("each row's softmax is by itself", np.exp(z) / np.exp(z).sum() - p),
            ("each row's softmax is by itself", e / e.sum() - p),
            ("this is the gradient of KL(q || p)", q * (np.log(q / p) - (q * np.log(q / p)).sum(1, keepdims=True))),
        ]
        if not np.allclose(got, q - p):
            for hint, value in hints:
                assert not np.allclose(got, value), hint
            raise AssertionError(f"expected {np.round((q - p)[0], 4)} in the first row, got {np.round(got[0], 4)}")
    assert np.isfinite(fn(np.array([[1000.0, 0.0]]), np.array([[0.5, 0.5]]))).all(), (
        "exp(1000) is infinite: subtract the largest logit of a row first"
    )
    return "right: q - p"


def chosen(rows, w1, w2, first=None, previous=None):
    """A draft, left to right: `first` is added to the first row, `previous` replaces the token before a row."""
    tokens = [int((rows[0] if first is None else rows[0] + first).argmax())]
    for i in range(1, len(rows)):
        before = tokens[-1] if previous is None else previous[i]
        tokens.append(int((rows[i] + w1[before] @ w2).argmax()))
    return tokens


@exercise
def exercise_2(fn):
    rng = drawing(2)
    for n_vocab, rank, K in (7, 2, 1), (7, 3, 4), (13, 2, 6), (17, 5, 8):
        rows, last = rng.normal(size=(K, n_vocab)), int(rng.integers(n_vocab))
        w1, w2 = 2 * rng.normal(size=(n_vocab, rank)), rng.normal(size=(rank, n_vocab))
        got, marginal = fn(rows.copy(), w1.copy(), w2.copy(), last), rows.argmax(axis=1).tolist()
        assert got is not None, "nothing came back: is a return missing?"
        assert len(got) == K, f"expected {K} tokens, one for each row, got {len(got)}"
        got, right = [int(token) for token in got], chosen(rows, w1, w2)
        hints = {
            "these are the marginals: add the table's row of the token before": marginal,
            "the first slot saw the last token already: nothing is added to its row": chosen(
                rows, w1, w2, w1[last] @ w2
            ),
            "the previous token is the one just chosen, not the last one of the text": chosen(
                rows, w1, w2, previous=[last] * K
            ),
            "the previous token is the one that was chosen with its own row of the table": chosen(
                rows, w1, w2, previous=[last, *marginal]
            ),
        }
        if got != right:
            for hint, tokens in hints.items():
                assert got != tokens, hint
            raise AssertionError(f"expected {right}, got {got}")
    return "right: left to right, each row with the table's row of the token just chosen"
