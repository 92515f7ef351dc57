"""A table of all drafters, each at its fastest draft length."""

import numpy as np

from ..sampler import SpeculativeSampler
from ..verifiers.rejection import rejection
from .intervals import share
from .runs import against_alone, at_once, gain_of, total


def compare_drafters(target, drafters, prompts, n_tokens, *, sampling, lengths=(1, 2, 4, 8), seed=0, keep=at_once):
    """A row for each drafter, at its fastest draft length.

    Parameters
    ----------
    target, drafters, prompts, n_tokens, sampling, seed, keep
        As in every experiment, see __init__.py.
    lengths : sequence of int
        The draft lengths tried. The fastest is shown; as the best of several measurements it looks a little too good.

    Returns
    -------
    list of dict
        drafter; alpha: accepted / (accepted + rejected) draft tokens, over all lengths; alpha_low, alpha_high, see
        `alpha_interval`; K, the fastest length; c: seconds to draft a token over seconds of a plain step;
        tokens_per_call; speedup with low and high; exactness of the rule. alpha and c are None where nothing was
        drafted.
    """
    samplers = {
        (name, K): SpeculativeSampler(own_target, drafter, K=K, sampling=sampling)
        for name, (own_target, drafter) in drafters.items()
        for K in lengths
    }
    alone, runs = against_alone(target, samplers, prompts, n_tokens, sampling=sampling, seed=seed, keep=keep)
    step, rows = total(alone).seconds / (n_tokens * len(prompts)), []
    for name in drafters:
        gains = {K: gain_of(alone, runs[name, K]) for K in lengths}
        K = max(lengths, key=lambda K: gains[K]["speedup"])
        best = total(runs[name, K])
        rows.append({
            "drafter": name,
            **alpha_interval([total(some) for some in zip(*(runs[name, K] for K in lengths))], len(lengths)),
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
    accepted, rejected = np.array([(run.accepted, run.rejected) for run in runs]).T / n_lengths
    return dict(zip(("alpha", "alpha_low", "alpha_high"), share(accepted, accepted + rejected, counted=True)))
