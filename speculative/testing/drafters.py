"""The grader of drafters: each draft token must be drawn from exactly the row that comes with it.

Next: drafter_hints.py
"""

import itertools

import numpy as np

from .cases import enumerated, shortened, show
from .drafter_hints import of_draft, of_rows
from .watch import Progress, asked, fail, note

PROMPTS = ([0], [1, 0], [0, 1, 1, 0], [1, 0, 1, 0, 1])


def check_drafter(drafter, *, n_vocab=None, seed=0):
    """Raise AssertionError unless the drafter keeps the contract of `Draft`.

    At most K tokens, none for K = 0; for each a row of probabilities that sums to 1; and given that there is an i-th
    token, and the tokens before it, its distribution is row i. This fails also if a token was drawn and then dropped:
    the kept tokens then no longer have the distribution of their row.

    Parameters
    ----------
    drafter : object
        With propose(tokens, K, rng) -> Draft, and a small vocabulary: every draft of two tokens is enumerated. The
        tokens are a list, as samplers pass them; a note is printed if an array does not work as well.
    n_vocab : int, optional
        The size of the vocabulary, checked if it is given.
    seed : int
        Varies the texts that are drafted for, which consist of tokens 0 and 1.
    """
    check_form(drafter)
    extra = np.random.default_rng(seed).integers(0, 2, (3, 4)).tolist()
    questions = list(itertools.product([*PROMPTS, *extra], (0, 1, 2)))
    with Progress("check_drafter", len(questions)) as progress:
        for prompt, K in questions:
            law = check_question(drafter, prompt, K, n_vocab)
            progress.step()
    check_array(drafter, law, n_vocab)


def check_question(drafter, prompt, K, n_vocab):
    """The distribution of the drafts of up to K tokens; AssertionError if a token is not drawn from its row."""

    def proposed(rng):
        return propose(drafter, list(prompt), K, rng, n_vocab)

    law = enumerated(proposed, "your drafter", lambda law: all(is_right(law, i) for i in range(K)))
    for i in range(K):
        check_guess(law, i, f"  after the tokens {prompt}, K = {K}")
    return law


def check_form(drafter):
    if not callable(getattr(drafter, "propose", None)):
        fail(f"a drafter has a method propose(tokens, K, rng); yours is {shortened(drafter)}")
    if isinstance(drafter, type):
        fail(f"pass a drafter, not its class: check_drafter({drafter.__name__}(...))")


def check_array(drafter, law, n_vocab):
    """Print a note if the drafter does not work the same for an array of tokens; samplers pass lists."""
    last = PROMPTS[-1]

    def proposed(tokens):
        return lambda rng: propose(drafter, tokens, 2, rng, n_vocab)

    try:
        same = enumerated(proposed(np.array(last)), "", bool) == enumerated(proposed(list(last)), "", bool)
    except AssertionError:
        same = False
    if not same:
        note("your drafter is right for a list of tokens, which samplers pass, but not for an array: list(tokens)")


def propose(drafter, tokens, K, rng, n_vocab):
    """The draft as (tokens, rows); AssertionError unless it has the right form."""

    def where():
        return f"for tokens = {[int(token) for token in tokens]}, K = {K}"

    draft = asked(lambda: drafter.propose(tokens, K, rng), "your drafter", where, (tokens,))
    try:
        guesses, rows = draft.tokens, draft.probs
    except AttributeError:
        why = ["  is a `return` missing on one of the paths through propose?"] if draft is None else []
        fail(f"propose returns Draft(tokens, probs); yours returns {shortened(draft)}", *why, f"  {where()}")
    for name, array in (("tokens", guesses), ("probs", rows)):
        if not isinstance(array, np.ndarray):
            fail(
                f"a draft has arrays of NumPy, tokens [k] and probs [k, n_vocab]; your {name} are a "
                f"{type(array).__name__}: {ARRAYS}",
                f"  {where()}",
            )
    check_shapes(guesses, rows, K, n_vocab, where)
    check_values(guesses, rows, where)
    return guesses, rows


ARRAYS = "Draft(np.array(tokens, dtype=np.int64), np.reshape(rows, (len(tokens), n_vocab)))"


def check_shapes(guesses, rows, K, n_vocab, where):
    n = len(guesses) if guesses.ndim else 0
    if guesses.ndim != 1 or n > K:
        many = f"you have {n}" if guesses.ndim == 1 else f"yours has the shape {guesses.shape}"
        fail(f"a draft has at most K = {K} tokens, in one dimension; {many}", f"  {where()}")
    if rows.ndim != 2 or len(rows) != n or (n_vocab and rows.shape[1] != n_vocab):
        empty = ": where nothing is drafted, the rows are np.empty((0, n_vocab))" if n == 0 and rows.size == 0 else ""
        size = "n_vocab" if not n_vocab else f"n_vocab = {n_vocab}"
        fail(
            f"a draft has a row of n_vocab probabilities for each token; you have {n} tokens and probs of shape "
            f"{rows.shape}{empty}",
            f"  expected the shape ({n}, {size}) {where()}",
        )
    if n == 0:
        return
    if guesses.dtype.kind not in "iu":
        fail(f"the draft tokens are whole numbers; yours are {guesses.dtype}", f"  {where()}")
    if guesses.min() < 0 or guesses.max() >= rows.shape[1]:
        bad = int(guesses.min() if guesses.min() < 0 else guesses.max())
        fail(f"draft tokens range from 0 to n_vocab - 1 = {rows.shape[1] - 1}; yours is {bad}", f"  {where()}")


def check_values(guesses, rows, where):
    if rows.dtype.kind not in "fiu":
        fail(f"the rows of a draft are float64; yours are {rows.dtype}", f"  {where()}")
    if not np.isfinite(rows).all() or (rows < 0).any() or not np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-6):
        hint = "each row of a draft is a distribution: not negative, and it adds up to 1"
        fail(hint + of_rows(rows), *(f"  {show(row)}" for row in rows), f"  {where()}")
    if rows.dtype != np.float64:
        fail(f"the rows of a draft are float64, exactly the numbers that were drawn from; yours are {rows.dtype}")
    if not np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9):
        hint = "each row of a draft is a distribution: not negative, and it adds up to 1"
        fail(hint + ", in float64 (float32 is too coarse)", *(f"  {show(row)}" for row in rows), f"  {where()}")


def drawn(law, i):
    """The draws of token i: a dict (tokens before, rows before, row i) -> weights [n_vocab] of the tokens; and a dict
    (tokens before, rows before) -> the probability of drafts that start so."""
    weights, reached = {}, {}
    for (guesses, rows), probability in law.items():
        if len(guesses) >= i:
            before = guesses[:i], rows[:i]
            reached[before] = reached.get(before, 0) + probability
        if len(guesses) > i:
            of_row = weights.setdefault((*before, rows[i]), np.zeros(len(rows[i])))
            of_row[guesses[i]] += probability
    return weights, reached


def is_right(law, i):
    return all(
        np.allclose(weights / weights.sum(), row, rtol=0, atol=1e-12) for (*_, row), weights in drawn(law, i)[0].items()
    )


def check_guess(law, i, where):
    """The distribution of the i-th token, given the tokens before it and that there is one, against row i."""
    weights, reached = drawn(law, i)
    for (guesses, rows, row), some in weights.items():
        if not np.allclose(some / some.sum(), row, rtol=0, atol=1e-12):
            siblings = {key[2]: w for key, w in weights.items() if key[:2] == (guesses, rows)}
            after = f"{where}, draft tokens {list(guesses)} before" if guesses else where
            fail(of_draft(law, i, (guesses, rows, row), siblings, reached[guesses, rows]), "", after,
                 f"  token {i + 1} comes with the row        {show(row)}",
                 f"  but is drawn from the distribution {show(some / some.sum())}")  # fmt: skip
