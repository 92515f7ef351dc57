"""The grader of drafters: each draft token must be drawn from exactly the row that comes with it."""

import contextlib
import itertools
from copy import deepcopy
from types import SimpleNamespace

import numpy as np

from ..exact.enumeration import hashable
from ..exact.table import TableModel
from ..interfaces import Drafter
from ..logits.probs import Sampling, inheriting
from ..models.by_paths import ByPaths
from ..tree import chain, children, depth_of, is_chain
from .cases import Passed, enumerated, same, shortened, show
from .mistakes.drafters import IN_CHAINS, IN_TREES, OF_ROWS
from .watch import ONE_SEED, asked, fail, note, with_progress

FEW = 100
PROMPTS = ([0], [1, 0], [0, 1, 1, 0], [1, 0, 1, 0, 1])
SAMPLINGS = Sampling(temperature=0.5), Sampling(temperature=0), Sampling(top_p=0.7)  # the kinds that a sampler passes


def check_drafter(drafter: Drafter, *, n_vocab: int | None = None, seed: int = 0) -> str:
    """Raise AssertionError unless the drafter keeps the contract of `Draft`.

    A draft has at most K tokens, none for K = 0, and each has a row of probabilities that sums to 1. Given that there
    is an i-th token, and given the tokens before it, its distribution is row i. This also fails if a token was drawn
    and then dropped, because the kept tokens no longer have the distribution of their row. A draft may be a tree; then
    no path has more than K tokens, and the tokens before one include its elder siblings. A drafter whose attribute
    `sampling` is None is tested with several samplings. One with a method `observe` is also tested after it has been
    shown an answer of a target. Returns one line that lists the checks.

    Parameters
    ----------
    drafter
        With propose(tokens, K, rng) -> Draft, and a small vocabulary: every draft of two tokens is enumerated. The
        tokens are a list, as samplers pass them; a note is printed if an array does not work as well.
    n_vocab
        The size of the vocabulary, checked if it is given.
    seed
        Varies the texts that are drafted for, which consist of tokens 0 and 1.
    """
    if not callable(getattr(drafter, "propose", None)):
        fail(f"a drafter has a method propose(tokens, K, rng); yours is {shortened(drafter)}")
    if isinstance(drafter, type):
        fail(f"pass a drafter, not its class: check_drafter({drafter.__name__}(...))")
    samplings = SAMPLINGS if getattr(drafter, "sampling", SAMPLINGS) is None else ()
    makers = [lambda drafter: drafter, Shown] if hasattr(drafter, "observe") else [lambda drafter: drafter]
    extra = np.random.default_rng(seed).integers(0, 2, (3, 4)).tolist()
    questions = [
        *itertools.product(makers, [*PROMPTS, *extra], (0, 1, 2), [None]),
        *itertools.product(makers, PROMPTS, [2], samplings),
    ]
    if stale := stale_cache(inheriting(drafter, Sampling()), n_vocab, seed):
        fail(*stale)
    n_drafted = 0
    for make, prompt, K, sampling in with_progress("check_drafter", questions):
        asked_one = make(inheriting(drafter, sampling or Sampling()))
        n_drafted += check_question(asked_one, prompt, K, n_vocab, sampling)[0]
    check_deeper(makers, drafter, n_vocab, seed)
    if not n_drafted:
        note("your drafter is right, but proposes nothing for any of the texts: no draft token could be checked")
    if not takes_arrays(inheriting(drafter, Sampling()), n_vocab):
        note("your drafter is right for a list of tokens, which samplers pass, but not for an array: list(tokens)")
    and_samplings = f", {len(samplings)} samplings among them" if samplings else ""
    return Passed(
        f"check_drafter: each draft token is drawn from exactly its row, in {len(questions)} cases{and_samplings}"
    )


def check_deeper(makers, drafter, n_vocab, seed):
    """Texts of all tokens and of up to 12, and K up to 6, while there are about FEW drafts or fewer."""
    rng, drafter = np.random.default_rng(seed), inheriting(drafter, Sampling())
    n_vocab = n_vocab or propose(drafter, [0], 1, np.random.default_rng(0), None)[1].shape[1]
    n_ctx = getattr(getattr(drafter, "model", None), "n_ctx", 64)
    for make, length in itertools.product(makers, (1, 2, 3, 5, 8, 12)):
        text, n_drafts = rng.integers(0, min(n_vocab, 6), length).tolist(), [1]
        for K in range(1, min(6, n_ctx - length) + 1):
            n_drafts.append(check_question(make(drafter), text, K, n_vocab, None)[1])
            if n_drafts[-1] ** 2 > FEW * n_drafts[-2]:  # as many as expected for K + 1
                break


def check_question(drafter, prompt, K, n_vocab, sampling):
    """(length of the longest draft, number of drafts) for up to K tokens.

    AssertionError if a token is not drawn from its row. `sampling` is the one that the drafter inherited, for the
    message; None for the usual one.
    """

    def first_wrong(distribution):
        longest = max(len(tokens) for tokens, *_ in distribution)
        return next((i for i in range(longest) if wrong_draws(distribution, i)), None)

    distribution = enumerated(
        lambda rng: propose(drafter, list(prompt), K, rng, n_vocab),
        "your drafter",
        lambda distribution: first_wrong(distribution) is None,
    )
    i = first_wrong(distribution)
    if i is None:
        return max(len(tokens) for tokens, *_ in distribution), len(distribution)
    if remembers(drafter, prompt, K, n_vocab):
        fail(
            "your drafter keeps something between calls, such as random numbers: the same text and the same rng gave "
            f"a different draft after a draft for a different text; {ONE_SEED}",
            f"  for tokens = {prompt}, K = {K}",
        )
    key, got = wrong_draws(distribution, i)[0]
    before, _, row, _ = key
    about_sampling = "" if sampling is None else "with the `sampling` that samplers fill in, "
    fail(
        about_sampling + mistake_in_a_draft(distribution, i, key),
        "",
        f"  after the tokens {prompt}, K = {K}{f', {sampling}' if about_sampling else ''}"
        + (f", draft tokens {list(before)} before" if before else ""),
        f"  token {i + 1} comes with the row        {show(row)}",
        f"  but is drawn from the distribution {show(got)}",
    )


def stale_cache(drafter, n_vocab, seed):
    """The lines of a failure if the first row for a text is not that of a copy that has not seen its beginning.

    The text grows by drafts of 0 to 3 tokens, of which some are replaced, as in a sampler. A deterministic drafter may
    learn what it likes: its rows are one-hot, and say what it drafts.
    """
    rng = np.random.default_rng(seed)
    with contextlib.suppress(Exception):  # told by the questions that follow; or the drafter cannot be copied
        for start in (0, 1) * 12:
            text, used = [start], deepcopy(drafter)
            while len(text) < 7:
                K = int(rng.integers(4))

                def draft_of(drafter, text=text, K=K):
                    return propose(drafter, list(text), K, np.random.default_rng(0), n_vocab)

                (drafted, rows, parents), (_, fresh, _) = draft_of(used), draft_of(deepcopy(drafter))
                if len(rows) and len(fresh) and not same(rows[0], fresh[0]) and fresh[0].max() < 1:
                    _, again, _ = draft_of(deepcopy(drafter))
                    if len(fresh) != len(again) or not same(fresh, again):
                        return None  # it changes in each call
                    return STALE, f"  after the tokens {text} the row was {show(rows[0])}; anew, {show(fresh[0])}"
                kept = drafted[: int(rng.integers(len(drafted) + 1))].tolist() if is_chain(parents) else []
                text = [*text, *kept, int(rng.integers(min(rows.shape[1], 4)))]
    return None


STALE = (
    "your drafter's rows depend on what it was asked before: is its cache what the text says? It must forget the "
    "tokens that are no longer in the text, and process all that are new, also after a call with K = 0"
)


class Shown:
    """A drafter in the second round of a text: it drafted after all tokens but the last, and has seen the answer."""

    def __init__(self, drafter):
        _, rows, _ = propose(drafter, [0], 0, np.random.default_rng(0), None)
        self.drafter, self.target = drafter, ByPaths(TableModel.random(rows.shape[1], seed=5))

    def random(self):
        """The numbers of the first round."""
        return 0.5

    def propose(self, tokens, K, rng):
        if len(tokens) > 1:
            text = [int(token) for token in tokens[:-1]]
            self.drafter.propose([1 - text[0]], 0, self)  # a different text, so that nothing remains of earlier calls
            draft = self.drafter.propose(list(text), 2, self)
            called = [*text, *draft.tokens.tolist()]
            logits = self.target(called, len(draft.tokens) + 1, draft.parents.tolist())
            self.drafter.observe(called, logits, draft.parents)
        return self.drafter.propose(tokens, K, rng)


def wrong_draws(distribution, i):
    """[(key of `draws`, the distribution it is drawn from)] of token i, wherever these differ from its row."""
    shares = {key: weights / weights.sum() for key, weights in draws(distribution, i).items()}
    return [(key, got) for key, got in shares.items() if not same(got, key[2])]


def draws(distribution, i):
    """The draws of token i: (tokens before, rows before, row i, parents so far) -> weights [n_vocab] of the tokens."""
    weights = {}
    for (tokens, rows, parents), share in distribution.items():
        if len(tokens) > i:
            key = tokens[:i], rows[:i], rows[i], parents[: i + 1]
            weights.setdefault(key, np.zeros(len(rows[i])))[tokens[i]] += share
    return weights


def mistake_in_a_draft(distribution, i, key):
    """The mistake in a sentence: the first entry of the catalogue whose `tell` recognises it.

    `distribution` is {(tokens, rows, parents): probability}; token i is not drawn from its row; `key` is (tokens before
    it, rows before it, its row, parents up to its own).
    """
    in_a_chain = all(is_chain(parents) for _, _, parents in distribution)
    tokens, rows, row, parents = key[0], key[1], np.array(key[2]), key[3]
    by_row, same_drafts, reached = {}, {}, 0.0
    for draft, share in distribution.items():
        if draft[0][:i] == tokens and draft[1][:i] == rows:
            reached += share
            if len(draft[0]) > i and (in_a_chain or draft[2][: i + 1] == parents):
                by_row.setdefault(draft[1][i], np.zeros(len(row)))[draft[0][i]] += share
                if draft[1][i] == key[2]:
                    same_drafts[draft] = share
    weights = sum(by_row.values()) if in_a_chain else by_row[key[2]]
    elder = [tokens[node] for node in children(parents, parents[i]) if node < i]
    rest = np.where(np.isin(np.arange(len(row)), elder), 0, row)
    seen = SimpleNamespace(
        got=by_row[key[2]] / by_row[key[2]].sum(), mean=weights / weights.sum(), row=row, i=i, by_row=by_row,
        first=rows[0] if i else None, drafts=distribution, same=same_drafts,
        dropped=in_a_chain and weights.sum() < reached * (1 - 1e-9),
        elder=elder, rest=rest, others=rest / rest.sum() if rest.any() else rest,
    )  # fmt: skip
    known = [*(IN_CHAINS if in_a_chain else IN_TREES), *OF_ROWS]
    return next(mistake.hint.format(details) for mistake in known if (details := mistake.tell(seen)))


def what_these_rows_are(rows):
    """A guess at what the rows are, if they are not distributions; for the end of the sentence."""
    with np.errstate(invalid="ignore"):
        wrong = [not (row >= 0).all() or not abs(row.sum() - 1) < 1e-6 for row in rows]
    which = "" if all(wrong) else f" in row {wrong.index(True)}"
    rows = rows[wrong]
    if not np.isfinite(rows).all():
        return f"; yours has NaN or infinity in it{which}: 0 / 0, or log(0)?"
    if np.allclose(np.exp(rows).sum(axis=1), 1, atol=1e-6):
        return "; these are logarithms of probabilities: np.exp(row)"
    if (rows < 0).any():
        return "; these look like logits: put them through `sampling`, or a softmax"
    return f"; yours adds up to {rows.sum(axis=1)[0]:.6g}{which}"


def remembers(drafter, prompt, K, n_vocab):
    """Whether the draft for this text depends on an earlier call for a different text."""
    drafts = []
    for seed, before in itertools.product(range(8), range(2)):
        propose(drafter, list(PROMPTS[0]), K, np.random.default_rng([before, seed]), n_vocab)
        drafts.append(hashable(propose(drafter, list(prompt), K, np.random.default_rng(seed), n_vocab)))
    return any(a != b for a, b in zip(drafts[::2], drafts[1::2]))


def takes_arrays(drafter, n_vocab):
    """Whether the drafter does the same for an array of tokens as for a list."""

    def distribution(tokens):
        return enumerated(lambda rng: propose(drafter, tokens, 2, rng, n_vocab), "", bool)

    try:
        return distribution(np.array(PROMPTS[-1])) == distribution(list(PROMPTS[-1]))
    except AssertionError:
        return False


def propose(drafter, tokens, K, rng, n_vocab):
    """The draft as (tokens, rows, parents); AssertionError unless it has the right form."""

    def where():
        return f"for tokens = {[int(token) for token in tokens]}, K = {K}"

    draft = asked(lambda: drafter.propose(tokens, K, rng), "your drafter", where, (tokens,))
    try:
        drafted, rows = draft.tokens, draft.probs
    except AttributeError:
        why = ["  is a `return` missing on one of the paths through propose?"] if draft is None else []
        fail(f"propose returns Draft(tokens, probs); yours returns {shortened(draft)}", *why, f"  {where()}")
    for name, array in (("tokens", drafted), ("probs", rows)):
        if not isinstance(array, np.ndarray):
            fail(
                f"a draft has arrays of NumPy, tokens [k] and probs [k, n_vocab]; your {name} are a "
                f"{type(array).__name__}: Draft(np.array(tokens, dtype=np.int64), np.reshape(rows, (len(tokens), "
                "n_vocab)))",
                f"  {where()}",
            )
    parents = getattr(draft, "parents", None)
    parents = chain(np.size(drafted)) if parents is None else np.asarray(parents)
    check_shapes(drafted, rows, K if is_chain(parents.ravel()) else None, n_vocab, where)
    check_rows(rows, where)
    check_tree(parents, drafted, K, where)
    return drafted, rows, parents.tolist()


def check_shapes(drafted, rows, K, n_vocab, where):
    """Check the shapes of a draft. K is None for a tree, whose depth is checked later."""
    n = len(drafted) if drafted.ndim else 0
    if drafted.ndim != 1 or (K is not None and n > K):
        many = f"you have {n}" if drafted.ndim == 1 else f"yours has the shape {drafted.shape}"
        fail(f"a draft has at most {'' if K is None else f'K = {K} '}tokens, in one dimension; {many}", f"  {where()}")
    if rows.ndim != 2 or len(rows) != n or (n_vocab and rows.shape[1] != n_vocab):
        empty = ": where nothing is drafted, the rows are np.empty((0, n_vocab))" if n == 0 and rows.size == 0 else ""
        size = "n_vocab" if not n_vocab else f"n_vocab = {n_vocab}"
        fail(
            f"a draft has a row of n_vocab probabilities for each token; you have {n} tokens and probs of shape "
            f"{rows.shape}{empty}",
            f"  expected the shape ({n}, {size}) {where()}",
        )
    if n and drafted.dtype.kind not in "iu":
        fail(f"the draft tokens are whole numbers; yours are {drafted.dtype}", f"  {where()}")
    if n and (drafted.min() < 0 or drafted.max() >= rows.shape[1]):
        bad = int(drafted.min() if drafted.min() < 0 else drafted.max())
        fail(f"draft tokens range from 0 to n_vocab - 1 = {rows.shape[1] - 1}; yours is {bad}", f"  {where()}")


def check_rows(rows, where):
    def check_sums(tolerance, why):
        if not np.isfinite(rows).all() or (rows < 0).any() or not same(rows.sum(axis=1), 1, tolerance):
            hint = f"each row of a draft is a distribution: not negative, and it adds up to 1{why(rows)}"
            fail(hint, *(f"  {show(row)}" for row in rows), f"  {where()}")

    if rows.dtype.kind not in "fiu":
        fail(f"the rows of a draft are float64; yours are {rows.dtype}", f"  {where()}")
    check_sums(1e-6, what_these_rows_are)
    if rows.dtype != np.float64:
        fail(f"the rows of a draft are float64, exactly the numbers that were drawn from; yours are {rows.dtype}")
    check_sums(1e-9, lambda rows: ", in float64 (float32 is too coarse)")


def check_tree(parents, drafted, K, where):
    """AssertionError unless the parents are those of a tree of these tokens, of depth at most K."""
    if parents.shape != drafted.shape or (len(drafted) and parents.dtype.kind not in "iu"):
        fail(
            f"a tree has one parent for each draft token, a whole number; you have {len(drafted)} tokens and parents "
            f"of shape {parents.shape} and dtype {parents.dtype}",
            f"  {where()}",
        )
    for node, parent in enumerate(parents.tolist()):
        if not -1 <= parent < node:
            fail(
                "a node of a tree comes after its parent: parents[i] < i, and -1 for those that follow the text; "
                f"yours has parents[{node}] = {parent}",
                "  a node that is kept needs its parent as well; if both are equally probable, take the parent first",
                f"  {where()}, parents = {parents.tolist()}",
            )
    if (depth := depth_of(parents)) > K:
        fail(f"a tree has a depth of at most K = {K}, however many nodes; yours has {depth}", f"  {where()}")
