"""Hints for drafters: the mistake in a sentence, found from the rows and the tokens drawn with them."""

import numpy as np

from .small_errors import same


def of_rows(rows):
    """What rows that are not distributions may be, for the end of the sentence."""
    if not np.isfinite(rows).all():
        return "; yours has NaN or infinity in it: 0 / 0, or log(0)?"
    if np.allclose(np.exp(rows).sum(axis=1), 1, atol=1e-6):
        return "; these are logarithms of probabilities: np.exp(row)"
    if (rows < 0).any():
        return "; these look like logits: put them through `sampling`, or a softmax"
    return f"; yours adds up to {rows.sum(axis=1)[0]:.6g}"


def of_draft(distribution, i, key, siblings, reached):
    """The mistake in a sentence.

    Parameters
    ----------
    distribution : dict
        (tokens, rows) -> probability.
    i : int
        The token whose row is wrong.
    key : tuple
        (tokens before it, rows before it, its row).
    siblings : dict
        row i -> the weights of the tokens drawn with it, for all rows i that come after the same tokens and rows.
    reached : float
        The probability of the drafts that get as far as token i.
    """
    row, weights = np.array(key[2]), sum(siblings.values())
    got, of_all = siblings[key[2]] / siblings[key[2]].sum(), weights / weights.sum()
    several = [rows for _, rows in distribution if len(rows) > 1]
    if several and all(rows[0] == rows[1] for rows in several):
        return (
            "your rows are one off, or all the same (one array, overwritten by each?): row i is the distribution of "
            "draft token i, after the draft tokens before it"
        )
    if len(siblings) > 1 and all((w > 0).sum() == 1 for w in siblings.values()):
        return (
            "your rows are one off: row i depends on draft token i itself; it is the distribution that token i was "
            "drawn from, before it was known"
        )
    if hint := of_another_row(distribution, i, key, got):
        return hint
    if weights.sum() < reached * (1 - 1e-9):
        return (
            "a draft token that was drawn is dropped, and the kept ones are not draws from the row: keep a token "
            "once it is drawn, or decide to stop before drawing"
        )
    return of_distributions(got if len(siblings) == 1 else of_all, row)


def of_another_row(distribution, i, key, got):
    """The hint if token i was drawn from another row of the draft."""
    others = [rows for guesses, rows in distribution if guesses[:i] == key[0] and rows[: i + 1] == (*key[1], key[2])]
    if i and same(got, key[1][0]):
        return (
            "draft token i is drawn from the row of the token before it: append each draft token to the text "
            "before the next is drawn"
        )
    if i == 0 and others and any(len(rows) > 1 for rows in others):
        later = [rows[1] for rows in others if len(rows) > 1]
        if all(same(got, row) for row in later):
            return "your rows are one off: what token i was drawn from is your row i + 1"
    return None


def of_distributions(got, row):
    kept = got > 0
    if kept.sum() == 1:
        return "your drafter takes one token for certain, but its row is not one-hot: return what it was drawn from"
    if row.max() == 1:
        return "the row is one-hot, but the token is drawn at random: return the distribution that it was drawn from"
    if same(np.sort(got), np.sort(row)):
        return "the row has the right probabilities for the wrong tokens: column j is token j (was the row sorted?)"
    if np.allclose(got[kept], row[kept] / row[kept].sum(), rtol=0, atol=1e-9) and not kept[row > 0].all():
        return "some tokens of your row are never drafted: draw from the truncated row, and return that one"
    if np.allclose(got, row, rtol=0, atol=1e-2):
        return "the row is not exactly what the draft token was drawn from: return it as it was, in float64"
    if power := of_temperature(got, row):
        return (
            f"the draft token is drawn at another temperature than its row says (the row to the power {power:.4g}): "
            "return the row after temperature and truncation, the one that was drawn from"
        )
    if np.ptp(got[kept]) < 1e-9:
        return "the draft token is drawn uniformly from all tokens, not from the row that comes with it"
    return (
        "the draft token is not drawn from the row that comes with it, its distribution after temperature and "
        "truncation"
    )


def of_temperature(got, row):
    """gamma, where got is row ** gamma, normalised; else None."""
    both = (got > 0) & (row > 0)
    if both.sum() < 3 or (got > 0).sum() != (row > 0).sum():
        return None
    x, y = np.log(row[both]), np.log(got[both])
    x, y = x - x.mean(), y - y.mean()
    if x @ x < 1e-12:
        return None
    power = (x @ y) / (x @ x)
    return float(power) if np.allclose(power * x, y, rtol=0, atol=1e-6) else None
