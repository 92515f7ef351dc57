"""Hints for drafters: the mistake in a sentence, found from the rows and the tokens drawn with them."""

import numpy as np

from ..tree import children, is_chain
from .cases import same


def what_these_rows_are(rows):
    """What rows may be of which some are not distributions, for the end of the sentence."""
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


def mistake_in_a_draft(distribution, i, key):
    """The mistake in a sentence.

    Parameters
    ----------
    distribution : dict
        (tokens, rows, parents) -> probability.
    i : int
        The draft token that is not drawn from its row.
    key : tuple
        (tokens before it, rows before it, its row, parents up to its own).
    """
    if all(is_chain(parents) for _, _, parents in distribution):
        return chain_draft_hint(distribution, i, key)
    return tree_draft_hint(distribution, i, key)


def chain_draft_hint(distribution, i, key):
    before, row = key[:2], np.array(key[2])
    with_row, reached = {}, 0.0  # row i -> the weights of its tokens, where the same comes before; all that get so far
    for (tokens, rows, _), share in distribution.items():
        if (tokens[:i], rows[:i]) == before:
            reached += share
            if len(tokens) > i:
                with_row.setdefault(rows[i], np.zeros(len(row)))[tokens[i]] += share
    several = [rows for _, rows, _ in distribution if len(rows) > 1]
    if several and all(rows[0] == rows[1] for rows in several):
        return (
            "your rows are one off, or all the same (one array, overwritten by each?): row i is the distribution of "
            "draft token i, after the draft tokens before it"
        )
    if len(with_row) > 1 and all((weights > 0).sum() == 1 for weights in with_row.values()):
        return (
            "your rows are one off: row i depends on draft token i itself; it is the distribution that token i was "
            "drawn from, before it was known"
        )
    got = with_row[key[2]] / with_row[key[2]].sum()
    if i and same(got, before[1][0]):
        return (
            "draft token i is drawn from the row of the token before it: append each draft token to the text "
            "before the next is drawn"
        )
    later = [rows[1] for rows in several if rows[0] == key[2]]
    if i == 0 and later and all(same(got, other) for other in later):
        return "your rows are one off: what token i was drawn from is your row i + 1"
    weights = sum(with_row.values())
    if weights.sum() < reached * (1 - 1e-9):
        return (
            "a draft token that was drawn is dropped, and the kept ones are not draws from the row: keep a token "
            "once it is drawn, or decide to stop before drawing"
        )
    return wrong_row_hint(weights / weights.sum(), row)


def wrong_row_hint(got, row):
    """For a token that is drawn from `got` and comes with `row`."""
    kept = got > 0
    if kept.sum() == 1:
        return "your drafter takes one token for certain, but its row is not one-hot: return what it was drawn from"
    if row.max() == 1:
        return "the row is one-hot, but the token is drawn at random: return the distribution that it was drawn from"
    if same(np.sort(got), np.sort(row)):
        return "the row has the right probabilities for the wrong tokens: column j is token j (was the row sorted?)"
    if same(got[kept], row[kept] / row[kept].sum(), 1e-9) and not kept[row > 0].all():
        return "some tokens of your row are never drafted: draw from the truncated row, and return that one"
    if same(got, row, 1e-2):
        return "the row is not exactly what the draft token was drawn from: return it as it was, in float64"
    if exponent := exponent_of(got, row):
        return (
            f"the draft token is drawn at another temperature than its row says (the row to the power {exponent:.4g}): "
            "return the row after temperature and truncation, the one that was drawn from"
        )
    if np.ptp(got[kept]) < 1e-9:
        return "the draft token is drawn uniformly from all tokens, not from the row that comes with it"
    return (
        "the draft token is not drawn from the row that comes with it, its distribution after temperature and "
        "truncation"
    )


def exponent_of(got, row):
    """gamma, where got is row ** gamma, normalised; else None."""
    both = (got > 0) & (row > 0)
    if both.sum() < 3 or (got > 0).sum() != (row > 0).sum():
        return None
    x, y = np.log(row[both]), np.log(got[both])
    x, y = x - x.mean(), y - y.mean()
    if x @ x < 1e-12:
        return None
    exponent = (x @ y) / (x @ x)
    return float(exponent) if same(exponent * x, y, 1e-6) else None


# ------------------------------------------------------------------------------------------------ trees


def tree_draft_hint(distribution, i, key):
    tokens, row, parents = key[0], np.array(key[2]), key[3]
    drafts = {draft: share for draft, share in distribution.items() if starts_with(draft, i, key)}
    got = np.zeros(len(row))
    for (drafted, _, _), share in drafts.items():
        got[drafted[i]] += share
    got /= got.sum()
    elder = [tokens[node] for node in children(parents, parents[i]) if node < i]
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
    return (None if elder else sorted_siblings_hint(drafts, i, row)) or wrong_row_hint(got, row)


def starts_with(draft, i, key):
    tokens, rows, parents = draft
    return len(tokens) > i and (tokens[:i], rows[:i], rows[i], parents[: i + 1]) == key


def sorted_siblings_hint(drafts, i, row):
    """Where the siblings of which node i is the first always come by falling probability; else None."""
    found = [
        ([tokens[node] for node in children(parents, parents[i])], share)
        for (tokens, _, parents), share in drafts.items()
    ]
    found = [(siblings, share) for siblings, share in found if len(siblings) > 1]
    if len(found) < 2 or any(row[siblings[0]] < row[siblings[1]] for siblings, _ in found):
        return None
    shares, total = {}, sum(share for _, share in found)
    for siblings, share in found:
        shares[frozenset(siblings)] = shares.get(frozenset(siblings), 0) + share / total
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
