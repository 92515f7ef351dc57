"""The table of methods: drafters and verifiers on texts of several kinds, tokens per call and speedup side by side.

The two rank methods differently: the time depends on the tokens per call and also on what a call and its draft cost.
Source, in form: Spec-Bench (Xia et al., arXiv:2401.07851).
"""

from ..autoregressive import AutoregressiveSampler
from ..interfaces import exactness_of, takes_trees
from ..sampler import SpeculativeSampler
from .intervals import calls_of, gain_of
from .runs import SharedNoise, at_once, race, under


def method_table(
    target, drafters, verifiers, prompts, n_tokens, *, K, sampling, shared_noise=(), trees=(), seed=0, progress=iter,
    keep=at_once,
):  # fmt: skip
    """A row for each drafter and verifier.

    Each drafter has its own race: the target alone, and the drafter with each verifier.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> (target, drafter)
        Each drafter with the target that it runs on, whose logits equal those of `target`.
    verifiers : dict name -> Verifier
    prompts : dict kind -> list of sequences of int
    n_tokens, seed, progress, keep
        As in `race`.
    K, sampling
        As in `SpeculativeSampler`.
    shared_noise : collection of str
        The verifiers that run on common random numbers (Gumbel); their rule is exact_match.
    trees : collection of str
        The drafters that draft trees; they are combined only with verifiers that take trees.

    Returns
    -------
    list of dict
        drafter; verifier; exactness of the verifier; kinds, for each kind and for "all" of them: tokens_per_call with
        calls_low and calls_high, speedup with low and high, both t intervals over the prompts; same_texts of n_texts,
        the number of texts equal to the target's own.
    """
    if "alone" in verifiers:
        raise ValueError("expected other names for the verifiers than 'alone', which is the target alone")
    rows = []
    for name, (own_target, drafter) in drafters.items():
        samplers = {"alone": AutoregressiveSampler(target, sampling=sampling)}
        rules = {rule: verifiers[rule] for rule in verifiers if name not in trees or takes_trees(verifiers[rule])}
        for rule_name, rule in rules.items():
            sampler = SpeculativeSampler(own_target, drafter, verifier=rule, K=K, sampling=sampling)
            samplers[rule_name] = SharedNoise(sampler) if rule_name in shared_noise else sampler
        runs = {}
        for kind, some in prompts.items():
            part = under(f"{name}, {kind}", keep)
            runs[kind] = race(samplers, some, n_tokens, seed=seed, progress=progress, keep=part)
        runs["all"] = {rule: [run for kind in prompts for run in runs[kind][rule]] for rule in samplers}
        for rule_name, rule in rules.items():
            kinds = {kind: compared(found["alone"], found[rule_name]) for kind, found in runs.items()}
            rows.append({"drafter": name, "verifier": rule_name, "exactness": exactness_of(rule), "kinds": kinds})
    return rows


def compared(alone, runs):
    """A method against the target alone, from two lists of Run, see `method_table`."""
    same = sum(a.tokens == b.tokens for a, b in zip(alone, runs))
    return {**calls_of(runs), **gain_of(alone, runs), "same_texts": same, "n_texts": len(runs)}
