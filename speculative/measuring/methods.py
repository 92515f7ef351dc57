"""The table of methods: drafters and verifiers on texts of several kinds, tokens per call and speedup side by side.

The two rank methods differently: the time depends on the tokens per call and also on what a call and its draft cost.
Source, in form: Spec-Bench (Xia et al., arXiv:2401.07851).
"""

from ..interfaces import exactness_of, takes_trees
from ..sampler import SpeculativeSampler
from .runs import SharedNoise, against_alone, at_once, compared, under


def method_table(
    target, drafters, verifiers, prompts, n_tokens, *, K, sampling, shared_noise=(), trees=(), seed=0, keep=at_once
):
    """A row for each drafter and verifier.

    Each drafter has its own race: the target alone, and the drafter with each verifier.

    Parameters
    ----------
    target, drafters, n_tokens, sampling, seed, keep
        As in every experiment, see __init__.py.
    verifiers : dict name -> Verifier
    prompts : dict kind -> list of sequences of int
    K
        As in `SpeculativeSampler`.
    shared_noise : collection of str
        The verifiers that run on common random numbers (Gumbel); their rule is exact_match.
    trees : collection of str
        The drafters that draft trees; they are combined only with verifiers that take trees.

    Returns
    -------
    list of dict
        drafter; verifier; exactness of the verifier; kinds, for each kind and for "all" of them: tokens_per_call with
        calls_low and calls_high, speedup with low and high, same_texts of n_texts, see `compared`.
    """
    rows = []
    for name, (own_target, drafter) in drafters.items():
        rules = {rule: verifiers[rule] for rule in verifiers if name not in trees or takes_trees(verifiers[rule])}
        samplers, found = {}, []
        for rule, verifier in rules.items():
            sampler = SpeculativeSampler(own_target, drafter, verifier=verifier, K=K, sampling=sampling)
            samplers[rule] = SharedNoise(sampler) if rule in shared_noise else sampler
        for kind, some in prompts.items():
            part = under(f"{name}, {kind}", keep)
            found.append(against_alone(target, samplers, some, n_tokens, sampling=sampling, seed=seed, keep=part))
        everything = [run for alone, _ in found for run in alone]
        for rule, verifier in rules.items():
            kinds = {kind: compared(alone, runs[rule]) for kind, (alone, runs) in zip(prompts, found)}
            kinds["all"] = compared(everything, [run for _, runs in found for run in runs[rule]])
            rows.append({"drafter": name, "verifier": rule, "exactness": exactness_of(verifier), "kinds": kinds})
    return rows
