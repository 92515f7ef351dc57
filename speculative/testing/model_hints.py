"""Hints for language models: the mistake in a sentence, found by asking for the same tokens again among others."""

import numpy as np

BEFORE = (
    "your model's answer depends on what it was asked before: a cache must forget the tokens that are no longer there, "
    "and keep a copy of those that are, not the caller's list"
)


def same(a, b):
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3))


def explanation(ask, wrong, sources):
    """The lines of a failure.

    Parameters
    ----------
    ask : callable
        (tokens, n_last) -> logits [n_last, n_vocab].
    wrong : tuple
        (tokens, n_last, i, known, row): row i of this answer was different in an earlier call.
    sources : Sources
        Around all calls so far.
    """
    tokens, n_last, i, known_row, row = wrong
    prefix = tokens[: len(tokens) - n_last + i + 1]
    again = [ask(tokens, n_last) for _ in range(3)]
    if sources.changed and not all(same(answer, again[0]) for answer in again):
        return (
            "your model gives two answers to the same tokens: is it in training mode, with dropout (model.eval()), "
            "or does it draw random numbers?",
            "",
            f"  for tokens = {tokens}, n_last = {n_last}",
        )
    other = [1 - min(token, 1) for token in tokens]
    questions = [(tokens, n_last), (prefix, 1), (tokens[:-1] or tokens, 1), (tokens, n_last), (other, n_last),
                 (tokens, n_last), (prefix, 1)]  # fmt: skip
    answers = [(question, ask(*question)) for question in questions]
    first = {}
    for (text, n), answer in [*answers, *(((tokens, n_last), answer) for answer in again)]:
        known = first.setdefault((tuple(text), n), answer)
        if not same(known, answer):
            return of_state(text, known, answer)
    return coarse(gap(known_row, row)) if close(known_row, row) else stateless(ask, tokens, prefix)


def of_state(text, known, answer):
    row = next(i for i, (a, b) in enumerate(zip(known, answer)) if not same(a, b))
    if close(known, answer):
        return coarse(gap(known, answer))
    return (
        BEFORE,
        "",
        f"  for the tokens {text} the logits of token 0 were {known[row][0]:.6g} and then {answer[row][0]:.6g}",
    )


def gap(a, b):
    """The largest difference; infinite where one of two is -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0, abs(a - b)).max()


def close(a, b):
    return gap(a, b) < 0.03 * max(1.0, abs(a[np.isfinite(a)]).max())


def coarse(difference):
    return (
        f"your logits are imprecise: the same tokens, asked for among others, differ by {difference:.2g}; compute in "
        "float32, not in bfloat16 or float16",
    )


def stateless(ask, tokens, prefix):
    """The same tokens have the same answer, but several rows differ from one row at a time."""
    n = min(6, len(tokens))
    rows = ask(tokens, n)
    alone = np.concatenate([ask(tokens[: len(tokens) - n + i + 1], 1) for i in range(n)])
    case = [
        "",
        f"  for tokens = {tokens}, n_last = {n}: the rows differ from those for n_last = 1, one prefix at a time",
    ]
    if n > 1 and same(rows[::-1], alone):
        return "your rows are in reverse order: row i predicts the token after tokens[len(tokens) - n_last + i]", *case
    if n > 1 and all(same(row, alone[-1]) for row in rows):
        return "all your rows are the same: row i predicts the token after tokens[len(tokens) - n_last + i]", *case
    if n > 1 and all(same(row, rows[0]) for row in rows):
        return "all your rows are the same: row i predicts the token after tokens[len(tokens) - n_last + i]", *case
    if n > 1 and (same(rows[1:], alone[:-1]) or same(rows[:-1], alone[1:])):
        return "your rows are one off: row i of n_last predicts the token after tokens[len(tokens) - n_last + i]", *case
    if close(rows, alone) and not same(rows, alone):
        return coarse(gap(rows, alone))
    changed = [*tokens[:-1], 1 - min(tokens[-1], 1)]
    if n > 1 and not same(ask(changed, n)[:-1], rows[:-1]):
        return (
            "a token sees those after it: a causal mask is missing, so that the row of a prefix changes when later "
            "tokens do",
            *case,
        )
    if not same(rows, alone):
        return (
            "a row of your model depends on the number of rows asked for: with n_last = 1 the same tokens have other "
            "logits than with more",
            *case,
        )
    return (
        BEFORE,
        "",
        f"  for the tokens {prefix} the logits are not what they were before",
    )
