import numpy as np

from speculative import Verdict, residual, sample_token


# Exercise 1, A. The bonus comes after the whole draft, so its row looks back at all of it.
def rows_of_a_round(sampling, logits, text, drafted):
    return np.array([sampling(logits[i : i + 1], [*text, *drafted[:i]])[0] for i in range(len(drafted) + 1)])


# Exercise 1, B. `counts` has the last token of the text already; only draft tokens are added.
def counts_of_a_round(counts, last, drafted):
    return np.array([counts + np.bincount(drafted[:i], minlength=len(counts)) for i in range(len(drafted) + 1)])


# Exercise 1, C. A forbidden token has p = 0: it is rejected like any other, and what follows comes from the residual.
def verify_masked(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if not rng.random() * draft.probs[i, x] < target_probs[i, x]:
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


# Exercise 1, D. What is cut from the text is cut from the counter.
def end_of_round(tokens, n_accepted, stop):
    if stop in tokens:
        tokens = tokens[: tokens.index(stop) + 1]
    return tokens, min(n_accepted, len(tokens))


# Exercise 2. The deciding test needs no threshold in ulps: from bfloat16 to float32, rounding shrinks 65,536-fold.
def rounding_or_bug(low, high, tokens):
    """("identical", "rounding" or "bug", D of low, D of high).

    low, high : one engine in bfloat16 and in float32. model(tokens[:n], n_last=m) is the
        logits [m, n_vocab] after the prefixes of n - m + 1, ..., n tokens; with n_last=1,
        the default, of the last alone.
    tokens : list of int.

    D is the largest absolute difference of a logit, over m = 2, 3, 4, all n from m to
    len(tokens), and all m rows, between the row among m and the row of the same prefix
    alone. "identical" means that D is 0 for low.
    """

    def largest(model):
        alone = [model(tokens[:n])[0] for n in range(1, len(tokens) + 1)]
        return max(
            float(abs(model(tokens[:n], n_last=m) - alone[n - m : n]).max())
            for m in (2, 3, 4)
            for n in range(m, len(tokens) + 1)
        )

    D_low, D_high = largest(low), largest(high)
    if D_low == 0:
        return "identical", D_low, D_high
    return "rounding" if D_high < D_low / 1000 else "bug", D_low, D_high
