"""A table of all drafters, each at its fastest draft length."""

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..verifiers.rejection import rejection
from .intervals import counted_share, gain_of
from .runs import at_once, race, total


def compare_drafters(
    target, drafters, prompts, n_tokens, *, sampling, lengths=(1, 2, 4, 8), seed=0, progress=iter, keep=at_once
):
    """A row for each drafter, at its fastest draft length.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> (target, drafter)
        Each drafter with the target that it runs on, whose logits equal those of `target`.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The sampling of the target.
    lengths : sequence of int
        The draft lengths tried. The fastest is shown; as the best of several measurements it looks a little too good.

    Returns
    -------
    list of dict
        drafter; alpha: accepted / (accepted + rejected) draft tokens, over all lengths; alpha_low, alpha_high, see
        `alpha_interval`; K, the fastest length; c: seconds to draft a token over seconds of a plain step;
        tokens_per_call; speedup with low and high, a t interval over the prompts (`gain`); exactness of the rule. alpha
        and c are None where nothing was drafted.
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
        best = total(results[name, K])
        rows.append({
            "drafter": name,
            **alpha_interval([total(runs) for runs in zip(*(results[name, K] for K in lengths))], len(lengths)),
            "c": best.draft_seconds / best.drafted / step if best.drafted else None,
            "K": K,
            "tokens_per_call": best.tokens_per_call,
            **gains[K],
            "exactness": rejection.exactness,
        })  # fmt: skip
    return rows


def alpha_interval(runs, n_lengths=1):
    """alpha, alpha_low and alpha_high of a Run for each prompt, each the total over so many draft lengths.

    The lengths continue the same prompts with the same seeds, at temperature 0 by the same tokens: a test that is made
    again with each length counts once, not as several independent ones.
    """
    accepted, rejected = (
        np.array([getattr(run, what) for run in runs]) / n_lengths for what in ("accepted", "rejected")
    )
    return dict(zip(("alpha", "alpha_low", "alpha_high"), counted_share(accepted, accepted + rejected)))
