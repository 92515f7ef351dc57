"""The acceptance table: alpha of every drafter at every temperature, along the target's own text.

alpha is computed from its definition, without sampling error: at each position of the target's text the drafter
proposes one token, and the overlap of p with the distribution q of that token is the probability that it is accepted.
Source: arXiv:2211.17192, corollary 3.6; in form, its table 3.
"""

import numpy as np

from speculative.logits.probs import inheriting
from speculative.measuring.intervals import mean_overlap
from speculative.measuring.runs import at_once, of_each, own_text, repetition
from speculative.theory.expected import overlap


def alpha_table(target, drafters, prompts, n_tokens, *, sampling, seed=0, keep=at_once):
    """alpha of each drafter (dict name -> Drafter, of chains) at one temperature.

    Parameters not named here are those of every experiment, see __init__.py.

    Returns
    -------
    dict
        repetition: the mean `repetition` of the target's texts; rows, for each drafter: drafted, the share of the
        positions where it proposed a token, as one that copies does not do everywhere; over these alpha, low and high,
        None without any.
    """

    def along(i, prompt):
        """Along one text, for each drafter: the sum of the overlaps, and the number of positions where it proposes."""
        text, probs = own_text(target, prompt, n_tokens, sampling, seed + i)
        rng, sums, counts = np.random.default_rng(seed + i), [], []
        for drafter in (inheriting(drafter, sampling) for drafter in drafters.values()):
            drafts = [drafter.propose(text[: len(prompt) + n], 1, rng) for n in range(n_tokens)]
            if any(len(draft.tokens) > 1 for draft in drafts):
                raise ValueError("expected drafters of chains, got a tree: use acceptance_table")
            found = [float(overlap(p, draft.probs[0])) for p, draft in zip(probs, drafts) if len(draft.tokens)]
            sums.append(sum(found))
            counts.append(len(found))
        return {"overlap": sums, "drafted": counts, "repetition": repetition(text[len(prompt) :])}

    texts, rows = of_each(prompts, keep, "text", along), []
    for j, name in enumerate(drafters):
        sums, counts = (np.array([text[what][j] for text in texts]) for what in ("overlap", "drafted"))
        alpha, low, high = mean_overlap(sums, counts, sampling)
        drafted = float(counts.sum() / (n_tokens * len(prompts)))
        rows.append({"drafter": name, "alpha": alpha, "low": low, "high": high, "drafted": drafted})
    return {"repetition": float(np.mean([text["repetition"] for text in texts])), "rows": rows}
