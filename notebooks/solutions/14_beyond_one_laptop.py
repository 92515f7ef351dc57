"""The exercises of notebook 14."""

import numpy as np

from checks.beyond_one_laptop import serve, small_target
from speculative import exact_distribution


def most_texts(F, B, bytes_per_weight, K):
    """The largest number of sequences (texts, int) for which a forward pass that verifies
    K draft tokens of each is still free.

    F : operations a second; a token takes 2 operations for each weight.
    B : bytes a second.
    bytes_per_weight : 4, 2, 1 or 0.5.
    K : draft tokens per round for each sequence.

    Free: computing takes no longer than reading the weights. (Leave out the KV caches.)
    For F = 312e12, B = 2.039e12, 2 bytes and K = 4 it is 30.
    """
    # m* tokens are free, and each text has K + 1 of them.
    return int(bytes_per_weight * F / (2 * B) // (K + 1))


def audit(verify):
    """The largest error (float) of the probability of an outcome of serve(verify, ...).

    verify : a function like verify_batch.

    Below 1e-12 for a correct one, above 1e-6 for one with any mistake.
    """
    # Two texts, so that one can take the other's rows; three tokens, so that a round has two draft tokens.
    found = exact_distribution(lambda rng: serve(verify, [[0], [1]], [3, 2], rng))
    first, second = small_target.distribution([0], 3), small_target.distribution([1], 2)
    right = {(a, b): first[a] * second[b] for a in first for b in second}
    return max(abs(found.get(texts, 0) - right.get(texts, 0)) for texts in {*found, *right})


def match_batch(tokens, lengths, q, p, rng):
    """A text's rows start after those of the texts before it, k + 1 for each; its draft tokens start at `first`."""
    new, first = [], 0
    for text, length in enumerate(lengths):
        rows, own_draft = p[first + text : first + text + length + 1], tokens[first : first + length]
        kept = []
        for i in range(length + 1):
            kept.append(int(np.argmin(rng.exponential(size=rows.shape[1]) / rows[i])))
            if i == length or kept[-1] != own_draft[i]:
                break
        new.append(kept)
        first += length
    return new


def stays(columns, is_visible, first, n, n_kept):
    """Which of the new columns of one sequence stay visible [width], bool.

    columns : [width] int, the numbers of the new columns, 0, 1, 2, ...
    is_visible : [width] bool, the columns that the pass could see: those with tokens of
        this sequence.
    first : the column of its first new token.
    n : how many new tokens it had.
    n_kept : how many of them are in the sequence after the round.
    """
    # What was rejected lies behind the tokens that are kept.
    return is_visible & (columns < first + n_kept)
