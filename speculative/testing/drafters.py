"""The grader of drafters: each draft token must be drawn from exactly the row that comes with it."""

import itertools

import numpy as np

from ..exact.enumeration import hashable
from ..tree import is_chain
from .cases import enumerated, shortened, show
from .drafter_hints import of_draft, of_rows
from .tree_drafters import of_siblings, tree_of
from .watch import ONE_SEED, Progress, asked, fail, note

PROMPTS = ([0], [1, 0], [0, 1, 1, 0], [1, 0, 1, 0, 1])


def check_drafter(drafter, *, n_vocab=None, seed=0):
    """Raise AssertionError unless the drafter keeps the contract of `Draft`.

    At most K tokens, none for K = 0; for each a row of probabilities that sums to 1; and given that there is an i-th
    token, and the tokens before it, its distribution is row i. This fails also if a token was drawn and then dropped:
    the kept tokens then no longer have the distribution of their row. A draft may be a tree: then no path has more than
    K tokens, and the tokens before include the elder siblings.

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
            distribution = check_question(drafter, prompt, K, n_vocab)
            progress.step()
    check_array(drafter, distribution, n_vocab)


def check_question(drafter, prompt, K, n_vocab):
    """The distribution of the drafts of up to K tokens; AssertionError if a token is not drawn from its row."""

    def proposed(rng):
        return propose(drafter, list(prompt), K, rng, n_vocab)

    distribution = enumerated(
        proposed,
        "your drafter",
        lambda distribution: all(is_right(distribution, i) for i in range(longest(distribution))),
    )
    if not all(is_right(distribution, i) for i in range(longest(distribution))) and remembers(
        drafter, prompt, K, n_vocab
    ):
        fail(
            f"your drafter keeps something between calls, such as random numbers: the same text and the same rng gave "
            f"another draft after a draft for another text; {ONE_SEED}",
            f"  for tokens = {prompt}, K = {K}",
        )
    for i in range(longest(distribution)):
        check_guess(distribution, i, f"  after the tokens {prompt}, K = {K}")
    return distribution


def remembers(drafter, prompt, K, n_vocab):
    """Whether the draft for this text depends on the call before, for another text."""
    drafts = []
    for seed, before in itertools.product(range(8), range(2)):
        propose(drafter, list(PROMPTS[0]), K, np.random.default_rng([before, seed]), n_vocab)
        drafts.append(hashable(propose(drafter, list(prompt), K, np.random.default_rng(seed), n_vocab)))
    return any(a != b for a, b in zip(drafts[::2], drafts[1::2]))


def longest(distribution):
    return max(len(guesses) for guesses, *_ in distribution)


def check_form(drafter):
    if not callable(getattr(drafter, "propose", None)):
        fail(f"a drafter has a method propose(tokens, K, rng); yours is {shortened(drafter)}")
    if isinstance(drafter, type):
        fail(f"pass a drafter, not its class: check_drafter({drafter.__name__}(...))")


def check_array(drafter, distribution, n_vocab):
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
    """The draft as (tokens, rows, parents); AssertionError unless it has the right form. Of a chain, -1, 0, 1, ..."""

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
    parents = getattr(draft, "parents", None)
    parents = None if np.array_equal(parents, np.arange(-1, len(guesses) - 1)) else parents  # a chain
    check_shapes(guesses, rows, None if parents is not None else K, n_vocab, where)
    check_values(guesses, rows, where)
    return guesses, rows, list(range(-1, len(guesses) - 1)) if parents is None else tree_of(parents, guesses, K, where)


ARRAYS = "Draft(np.array(tokens, dtype=np.int64), np.reshape(rows, (len(tokens), n_vocab)))"


def check_shapes(guesses, rows, K, n_vocab, where):
    n = len(guesses) if guesses.ndim else 0
    if guesses.ndim != 1 or (K is not None and n > K):  # None: a tree, whose depth is checked later
        many = f"you have {n}" if guesses.ndim == 1 else f"yours has the shape {guesses.shape}"
        fail(f"a draft has at most {'' if K is None else f'K = {K} '}tokens, in one dimension; {many}", f"  {where()}")
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


def drawn(distribution, i):
    """The draws of token i: a dict (tokens before, rows before, row i, parents so far) -> weights [n_vocab] of the
    tokens; and a dict (tokens before, rows before) -> the probability of drafts that start so."""
    weights, reached = {}, {}
    for (guesses, rows, parents), probability in distribution.items():
        if len(guesses) >= i:
            before = guesses[:i], rows[:i]
            reached[before] = reached.get(before, 0) + probability
        if len(guesses) > i:
            of_row = weights.setdefault((*before, rows[i], parents[: i + 1]), np.zeros(len(rows[i])))
            of_row[guesses[i]] += probability
    return weights, reached


def is_right(distribution, i):
    return all(
        np.allclose(weights / weights.sum(), row, rtol=0, atol=1e-12)
        for (*_, row, _), weights in drawn(distribution, i)[0].items()
    )


def check_guess(distribution, i, where):
    """The distribution of the i-th token, given the tokens before it and that there is one, against row i."""
    weights, reached = drawn(distribution, i)
    for key, some in weights.items():
        guesses, rows, row, _ = key
        if not np.allclose(some / some.sum(), row, rtol=0, atol=1e-12):
            after = f"{where}, draft tokens {list(guesses)} before" if guesses else where
            fail(explanation(distribution, i, key, weights, reached[guesses, rows]), "", after,
                 f"  token {i + 1} comes with the row        {show(row)}",
                 f"  but is drawn from the distribution {show(some / some.sum())}")  # fmt: skip


def explanation(distribution, i, key, weights, reached):
    """The mistake in a sentence; `key` and `weights` are of `drawn`."""
    if not all(is_chain(parents) for _, _, parents in distribution):
        return of_siblings(distribution, i, key, weights[key] / weights[key].sum())
    siblings = {other[2]: some for other, some in weights.items() if other[:2] == key[:2]}
    return of_draft({key[:2]: share for key, share in distribution.items()}, i, key[:3], siblings, reached)
