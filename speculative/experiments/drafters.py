"""Every drafter in a table, at the draft length that was fastest.

Next: repeated.py
"""

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..theory import estimate_alpha
from ..verifiers.rejection import rejection
from .clock import at_once, gain_of, race, total


def compare_drafters(
    target, drafters, prompts, n_tokens, *, sampling, lengths=(1, 2, 4, 8), seed=0, progress=iter, keep=at_once
):
    """One row for each drafter, at the draft length that was fastest.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> (target, drafter)
        Each with the target it works with, which has the same logits as `target`.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The target's.
    lengths : sequence of int
        Of these draft lengths the fastest is shown; as the best of several measurements it is a little flattered.

    Returns
    -------
    list of dict
        drafter; alpha, alpha_low, alpha_high: accepted / (accepted + rejections), over all lengths; K, the best length;
        c: seconds for a drafted token over those of a plain step; tokens_per_call; speedup, low, high; exactness, of
        the rule. alpha and c are None where nothing was drafted.
    """
    samplers = {"alone": AutoregressiveSampler(target, sampling=sampling)}
    for name, (own_target, drafter) in drafters.items():
        for K in lengths:
            samplers[name, K] = SpeculativeSampler(own_target, drafter, K=K, sampling=sampling)
    results, rows = race(samplers, prompts, n_tokens, seed=seed, progress=progress, keep=keep), []
    step = total(results["alone"]).seconds / (n_tokens * len(prompts))
    for name in drafters:
        gains = {K: gain_of(results["alone"], results[name, K]) for K in lengths}
        K = max(lengths, key=lambda K: gains[K]["speedup"])
        everything, best = total([run for K in lengths for run in results[name, K]]), total(results[name, K])
        alpha, *interval = estimate_alpha(everything.accepted, everything.rejected)
        rows.append({
            "drafter": name,
            "alpha": alpha if everything.accepted + everything.rejected else None,
            **dict(zip(("alpha_low", "alpha_high"), interval)),
            "c": best.draft_seconds / best.drafted / step if best.drafted else None,
            "K": K,
            "tokens_per_call": best.tokens_per_call,
            **gains[K],
            "exactness": rejection.exactness,
        })  # fmt: skip
    return rows
