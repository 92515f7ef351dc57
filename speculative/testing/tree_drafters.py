"""The grader of drafters, on drafts that are trees: their form, and the mistake in a sentence."""

import numpy as np

from ..tree import children, depths
from .drafter_hints import of_distributions
from .small_errors import same
from .watch import fail


def tree_of(parents, tokens, K, where):
    """The parents as a list; AssertionError unless they are those of a tree of these tokens with at most K levels."""
    parents = np.asarray(parents)
    if parents.shape != tokens.shape or (len(tokens) and parents.dtype.kind not in "iu"):
        fail(
            f"a tree has one parent for each draft token, a whole number; you have {len(tokens)} tokens and parents of "
            f"shape {parents.shape} and dtype {parents.dtype}",
            f"  {where()}",
        )
    for node, parent in enumerate(parents.tolist()):
        if not -1 <= parent < node:
            fail(
                "a node of a tree comes after its parent: parents[i] < i, and -1 for those that follow the text; yours "
                f"has parents[{node}] = {parent}",
                "  a node that is kept needs its parent, too; where both are equally probable, take the parent first",
                f"  {where()}, parents = {parents.tolist()}",
            )
    depth = max(depths(parents), default=-1) + 1
    if depth > K:
        fail(f"a tree has at most K = {K} levels, however many nodes; yours has {depth}", f"  {where()}")
    return parents.tolist()


def of_siblings(distribution, i, key, got):
    """The mistake in a sentence, in a tree.

    Parameters
    ----------
    distribution : dict
        (tokens, rows, parents) -> probability.
    i : int
        The node whose row is wrong.
    key : tuple
        (tokens before it, rows before it, its row, parents up to its own).
    got : array [n_vocab]
        The distribution that it is drawn from.
    """
    tokens, _, row, parents = key
    row, elder = np.array(row), [tokens[node] for node in children(parents, parents[i]) if node < i]
    others = np.where(np.isin(np.arange(len(row)), elder), 0, row)
    if elder and others.any() and same(got, others / others.sum()):
        return (
            "siblings are drawn without replacement, but the row of a later one is that of the first: return its "
            "distribution given its elder siblings, the row without them, renormalised"
        )
    if elder and row[elder].max() == 0 and got[elder].max() > 0:
        return (
            "the row of a later sibling leaves out the tokens before it, but it may be drawn as one of them: draw "
            "without replacement, or return the whole row"
        )
    if (got > 0).sum() == 1 and row[got.argmax()] < others.max():
        return (
            "the token is certain, but neither its row is one-hot nor is it the most probable: does the drafter keep "
            "random numbers of an earlier call? Draw new ones from rng in each call"
        )
    return (None if elder else of_order(distribution, i, key)) or of_distributions(got, row)


def of_order(distribution, i, key):
    """The hint if the siblings, of which node i is the first, always come by falling probability; else None."""
    row, drafts = key[2], []
    for (drawn, rows, above), share in distribution.items():
        siblings = [drawn[node] for node in children(above, above[i])] if len(drawn) > i else []
        if len(siblings) > 1 and (drawn[:i], rows[:i], rows[i], above[: i + 1]) == key:
            drafts.append((frozenset(siblings), share))
            if row[siblings[0]] < row[siblings[1]]:
                return None
    if len(drafts) < 2:
        return None
    total = sum(share for _, share in drafts)
    shares = {some: sum(share for other, share in drafts if other == some) / total for some, _ in drafts}
    if all(len(some) == 2 and abs(share - as_a_set(row, *some)) < 1e-9 for some, share in shares.items()):
        return (
            "siblings are sorted after they are drawn: their order is part of the distribution, the first one must be "
            "a draw from the first row; leave them in the order in which they were drawn"
        )
    return (
        "more siblings are drawn than returned, and the most probable are kept: a token that is drawn and dropped "
        "makes the others no draws from their rows; draw as many as you return, or take the most probable with "
        "one-hot rows"
    )


def as_a_set(row, a, b):
    """The probability that two draws without replacement are a and b, in any order."""
    return row[a] * row[b] * (1 / (1 - row[a]) + 1 / (1 - row[b]))
