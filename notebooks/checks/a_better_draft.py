"""The exercises of notebook 13."""

import functools
from pathlib import Path

import numpy as np

import gpt2np
from checks import drawing, exercise, refuse_library
from speculative import AutoregressiveSampler, Sampling
from speculative.theory import overlap


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@exercise
def exercise_1(fn):
    refuse_library(fn, "overlap", "acceptance_of")
    rng = drawing(1)
    cases = [rng.dirichlet(np.ones(5), size=(2, 7)), np.array([[[0.5, 0.5], [1, 0]], [[0.5, 0.5], [0, 1]]]),
             np.array([[[0.5, 0.5, 0]], [[0.25, 0.75, 0]]])]  # fmt: skip
    for P, Q in cases:
        with np.errstate(all="ignore"):
            got = fn(P.copy(), Q.copy())
        right = np.mean([sum(min(a, b) for a, b in zip(*rows)) for rows in zip(P, Q)])
        assert got is not None, "nothing came back: is a return missing?"
        assert np.ndim(got) == 0, f"expected one number, the mean over the positions, got shape {np.shape(got)}"
        assert np.isfinite(got), "NaN: some p and q are 0, and 0 / 0 is NaN; the smaller of p and q needs no division"
        if not np.isclose(got, right):
            story = f"expected {right:.4f}, got {got:.4f}"
            means = np.minimum(P.mean(axis=0), Q.mean(axis=0)).sum()
            averages = np.minimum(P, Q).mean(), np.minimum(P, Q).mean(axis=1).sum()
            twice = 1 - abs(P - Q).sum(axis=1).mean()
            hints = [
                ("this is the sum over the positions, divide by their number", right * len(P)),
                ("these are the mean rows: a draft token meets the p of its own position", means),
                ("this is how often independent draws agree", (P * Q).sum(axis=1).mean()),
                ("add up over the vocabulary, average over positions", averages),
                ("|p - q| counts each rejected draft token twice, as surplus and as missing", twice),
                ("this is the rejected share", 1 - right),
                ("this is the larger of p and q: the overlap is the smaller", np.maximum(P, Q).sum(axis=1).mean()),
                ("draft tokens are drawn from q, not from p: weigh min(1, p / q) with q",
                 (P * np.minimum(1, P / np.maximum(Q, 1e-300))).sum(axis=1).mean()),
                ("this is how often the most likely tokens agree: compare whole distributions",
                 (P.argmax(axis=1) == Q.argmax(axis=1)).mean()),
                ("this is the p of the draft's most likely token: the draft token is drawn from q",
                 P[np.arange(len(P)), Q.argmax(axis=1)].mean()),
            ]  # fmt: skip
            for hint, value in hints:
                assert not np.isclose(got, value).any(), f"{hint}: {story}"
            raise AssertionError(story)
    return "right: the mean overlap"


@functools.cache
def rows_of_the_pair():
    """(last tokens, the target's p after them) in the passages that notebook 13 trains on, and in its new texts."""
    target, tokenizer = gpt2np.load("tiny-target")
    tales = Path(gpt2np.__file__).parent / "tiny" / "held_out.txt"
    tokens = np.array(tokenizer.encode(tales.read_text(encoding="utf-8")))
    first, rest = tokens[: len(tokens) // 10], tokens[len(tokens) // 10 :]
    passages = [rest[start:][:256] for start in np.linspace(0, len(rest) - 257, 24).astype(int)]
    texts = []
    for i in range(6):
        prompt = first[i * len(first) // 6 :][:32].tolist()
        texts.append([*prompt, *AutoregressiveSampler(target).generate(prompt, 64, rng=i).tokens[:-1].tolist()])
    trained = [text[1:] for text in passages], [Sampling()(target(text, n_last=255)) for text in passages]
    new = [text[31:] for text in texts], [Sampling()(target(text, n_last=64)) for text in texts]
    return tuple(tuple(map(np.concatenate, rows)) for rows in (trained, new))


@exercise
def exercise_2(fn):
    rng = drawing(2)
    last, P = np.array([3, 0, 3, 1, 3, 0]), rng.dirichlet(np.ones(5), size=6)
    with np.errstate(all="ignore"):
        table = fn(last.copy(), P.copy(), 5)
    assert table is not None, "nothing came back: is a return missing?"
    table = np.array(table)
    assert table.shape == (5, 5), f"expected a table [5, 5], got {table.shape}"
    assert np.isfinite(table).all(), "a token that ends no context: 0 / 0. Give it the mean of all rows"
    assert not np.allclose(table[3], P[4] / 3) and not np.allclose(table[3], P[4]), (
        "token 3 ends three contexts, and only the last of them was counted: `table[last] += p` adds once for each "
        "different token. Use np.add.at, or a loop"
    )
    assert not np.allclose(table[3], P[0]), "token 3 ends three contexts, and only the first of them was counted"
    assert not np.allclose(table[0], P[[1, 5]].sum(axis=0)), "these are sums: divide by the number of contexts"
    assert not np.allclose(table[0], P[[1, 5]].sum(axis=0) / len(P)), (
        "divide each row by the number of its own contexts, not of all"
    )
    assert not np.allclose(table[:, 3], P[[0, 2, 4]].mean(axis=0)), "rows and columns are exchanged: table[last token]"
    assert table[2].any(), (
        "a token that ends no context: its row is all 0, not a distribution. Give it the mean of all rows"
    )
    assert not np.allclose(table[2], 1 / 5), (
        "a token that ends no context: not the uniform row, but the mean of all rows"
    )
    seen = [P[last == a].mean(axis=0) for a in (0, 1, 3)]
    assert not np.allclose(table[2], np.mean(seen, axis=0)), (
        "a token that ends no context: the mean of all rows of p, each context counted once, not of the table's rows"
    )
    expected = np.array([P[last == a].mean(axis=0) if (last == a).any() else P.mean(axis=0) for a in range(5)])
    wrong = [a for a in range(5) if not np.allclose(table[a], expected[a])]
    assert not wrong, f"row {wrong[0]}: expected {expected[wrong[0]].round(3)}, got {table[wrong[0]].round(3)}"

    (last, P), (last_new, P_new) = rows_of_the_pair()
    table = np.array(fn(last, P, P.shape[1]))
    alpha = overlap(P_new, table[last_new]).mean()
    return f"right: {table.size:,} parameters without a gradient step, α = {alpha:.2f}"


@exercise
def exercise_3(fn):
    rng = drawing(3)
    z, P = rng.standard_normal((3, 5)), rng.dirichlet(np.ones(5), size=3)
    got, q = fn(z.copy(), P.copy()), softmax(z)
    assert got is not None, "nothing came back: is a return missing?"
    try:
        got = np.array(got)
    except RuntimeError as error:  # of a tensor that requires grad
        raise AssertionError(f"expected an array of NumPy, such as gradient.detach().numpy(): {error}") from None
    assert got.shape == z.shape, f"expected shape {z.shape}, one gradient for each row, got {got.shape}"
    steps = 1e-6 * np.eye(5)
    right = np.stack([(P * (softmax(z - s) - softmax(z + s))).sum(axis=1) / 2e-6 for s in steps], axis=1)
    if not np.allclose(got, right, atol=1e-7):
        story = f"for one row expected {right[0].round(4)}, got {got[0].round(4)}"
        missing = (q < P).astype(float)
        down = np.exp(z) / np.exp(z).sum(axis=0)
        hints = [
            ("the sign: this step would lower the acceptance", -right),
            ("each row is a loss of its own: do not divide by n", right / 3),
            ("this is the gradient with respect to q: the softmax is missing", -P),
            ("raising one logit lowers all other q: the term with the sum is missing", -q * P),
            ("raising one logit lowers all other q: the term with the sum is missing", -q * (1 - q) * P),
            ("this is the gradient of the cross-entropy -sum p log q", q - P),
            ("this is the gradient of 1 - sum min(p, q)", q * ((q * missing).sum(axis=1, keepdims=True) - missing)),
            ("the sum is of one row, over its tokens: sum(axis=1, keepdims=True)", q * ((P * q).sum() - P)),
            *(
                ("the softmax is of one row, over its tokens: axis=1", down * ((P * down).sum(axis, keepdims=True) - P))
                for axis in (0, 1)
            ),
            ("the factor q is missing: a derivative g with respect to q becomes q (g - sum q g)",
             (P * q).sum(axis=1, keepdims=True) - P),
        ]  # fmt: skip
        for hint, value in hints:
            assert not np.allclose(got, value, atol=1e-7), f"{hint}; {story}"
        raise AssertionError(story)
    row, z = np.array([[0.4, 0.3, 0.2, 0.1]]), np.zeros((1, 4))
    for _ in range(3000):
        z = z - np.array(fn(z.copy(), row))
    return f"right: for p = {row[0]} gradient steps lead to q = {softmax(z)[0].round(2)}: a greedy draft"
