"""The grader of drafters: each guess must have been drawn from exactly the row that comes with it."""

import numpy as np

from ..exact import exact_law
from .cases import fail, frozen, guarded, show

PROMPTS = ([0], [1, 0], [0, 1, 1, 0], [1, 0, 1, 0, 1])


def check_drafter(drafter, *, n_vocab=None, seed=0):
    """Raise AssertionError unless the drafter keeps the contract of `Draft`.

    At most K guesses, none for K = 0; a row of probabilities for each, which adds up to 1; and given that there is an
    i-th guess, and the guesses before it, its law is row i. That fails too where a guess was drawn and then thrown
    away: what is left is no longer distributed as the row says.

    Parameters
    ----------
    drafter : object
        With propose(tokens, K, rng) -> Draft, and a small vocabulary: every draft of two guesses is gone through.
    n_vocab : int, optional
        The size of the vocabulary, checked where it is given.
    seed : int
        Varies the texts that are drafted for, which consist of tokens 0 and 1.
    """
    extra = np.random.default_rng(seed).integers(0, 2, (3, 4)).tolist()
    for prompt in [*PROMPTS, *extra]:
        for K in (0, 1, 2):
            law = guarded(lambda K=K, prompt=prompt: draft_law(drafter, prompt, K, n_vocab), "your drafter")
            for i in range(K):
                check_guess(law, i, f"  after the tokens {prompt}, K = {K}")


def draft_law(drafter, prompt, K, n_vocab):
    return exact_law(lambda rng: propose(drafter, prompt, K, rng, n_vocab))


def propose(drafter, prompt, K, rng, n_vocab):
    """The draft as (tokens, rows); AssertionError unless it has the right form."""
    tokens = frozen(prompt)
    draft = drafter.propose(tokens, K, rng)
    guesses, rows = np.asarray(draft.tokens), np.asarray(draft.probs)
    if guesses.ndim != 1 or len(guesses) > K:
        fail(f"a draft has at most K = {K} tokens, in one dimension; yours has the shape {guesses.shape}")
    if rows.ndim != 2 or len(rows) != len(guesses) or (n_vocab and rows.shape[1] != n_vocab):
        fail(f"a draft has a row of n_vocab probabilities for each token; you have {len(guesses)} and {rows.shape}")
    if guesses.dtype.kind != "i":
        fail(f"the drafted tokens are whole numbers; yours are {guesses.dtype}")
    if (rows < 0).any() or not np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9):
        fail("each row of a draft is a distribution: not negative, and it adds up to 1", *map(show, rows))
    if rows.dtype != np.float64:
        fail(f"the rows of a draft are float64, the very numbers that were drawn from; yours are {rows.dtype}")
    return guesses, rows


def check_guess(law, i, where):
    """The law of the i-th guess, given the guesses before it and that there is one, against row i."""
    drawn, reached = {}, {}
    for (guesses, rows), probability in law.items():
        if len(guesses) >= i:
            before = guesses[:i], rows[:i]
            reached[before] = reached.get(before, 0) + probability
        if len(guesses) > i:
            weights = drawn.setdefault((*before, rows[i]), np.zeros(len(rows[i])))
            weights[guesses[i]] += probability
    for (guesses, rows, row), weights in drawn.items():
        share = weights.sum() / reached[guesses, rows]  # of the drafts that came this far, how many go on
        got, row = weights / weights.sum(), np.array(row)
        if not np.allclose(got, row, rtol=0, atol=1e-12):
            after = f"{where}, guesses {list(guesses)} before" if guesses else where
            fail(of_guess(got, row, share), "", after, f"  guess {i + 1} comes with the row   {show(row)}",
                 f"  but it is drawn with the law {show(got)}")  # fmt: skip


def of_guess(got, row, share):
    """The mistake in a sentence."""
    kept = got > 0
    if share < 1 - 1e-9:
        return (
            "a guess that was drawn is thrown away, and what is left is no draw from the row: keep a token once it is "
            "drawn, or decide to stop before drawing"
        )
    if kept.sum() == 1:
        return "your drafter takes one token for certain, but its row is not one-hot: return what it was drawn from"
    if np.allclose(got[kept], row[kept] / row[kept].sum(), rtol=0, atol=1e-9):
        return "some tokens of your row are never drafted: draw from the truncated row, and return that one"
    if np.allclose(got, row, rtol=0, atol=1e-2):
        return "the row is not precisely what the guess was drawn from: return it as it was, in float64"
    return "the guess is not drawn from the row that comes with it, its distribution after temperature and truncation"
