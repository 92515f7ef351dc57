"""The table of methods: drafters and verifiers on texts of several kinds, tokens per call and speedup side by side.

The two disagree, and that is the point: what counts for the clock is tokens per call against what a call and its
guesses cost.
Source, in form: Spec-Bench (Xia et al., arXiv:2401.07851).
Next: ../../main.py
"""

from ..autoregressive import AutoregressiveSampler
from ..interfaces import exactness_of
from ..sampler import SpeculativeSampler
from .clock import SharedNoise, at_once, gain_of, race, total, under


def method_table(
    target, drafters, verifiers, prompts, n_tokens, *, K, sampling, shared_noise=(), seed=0, progress=iter, keep=at_once
):
    """One row for each drafter and verifier.

    Each drafter runs a race of its own against the target alone, with all verifiers.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> (target, drafter)
        Each with the target it works with, which has the same logits as `target`.
    verifiers : dict name -> Verifier
    prompts : dict kind -> list of sequences of int
    n_tokens, seed, progress, keep
        As in `race`.
    K, sampling
        As in `SpeculativeSampler`.
    shared_noise : collection of str
        The verifiers that are given shared noise, with exact_match for a rule.

    Returns
    -------
    list of dict
        drafter; verifier; exactness, of the verifier; kinds, for each kind and for "all" of them: tokens_per_call,
        speedup, low, high, and same_texts of n_texts, how many are the target's own text.
    """
    rows = []
    for name, (own_target, drafter) in drafters.items():
        samplers = {"alone": AutoregressiveSampler(target, sampling=sampling)}
        for rule_name, rule in verifiers.items():
            sampler = SpeculativeSampler(own_target, drafter, verifier=rule, K=K, sampling=sampling)
            samplers[rule_name] = SharedNoise(sampler) if rule_name in shared_noise else sampler
        runs = {}
        for kind, some in prompts.items():
            part = under(f"{name}, {kind}", keep)
            runs[kind] = race(samplers, some, n_tokens, seed=seed, progress=progress, keep=part)
        runs["all"] = {rule: [run for kind in prompts for run in runs[kind][rule]] for rule in samplers}
        for rule_name, rule in verifiers.items():
            kinds = {kind: figures(found["alone"], found[rule_name]) for kind, found in runs.items()}
            rows.append({"drafter": name, "verifier": rule_name, "exactness": exactness_of(rule), "kinds": kinds})
    return rows


def figures(alone, runs):
    """What two lists of Run say of a method, see `method_table`."""
    same = sum(a.tokens == b.tokens for a, b in zip(alone, runs))
    calls = total(runs).tokens_per_call
    return {"tokens_per_call": calls, **gain_of(alone, runs), "same_texts": same, "n_texts": len(runs)}
