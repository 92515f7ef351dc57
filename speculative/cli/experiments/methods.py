"""Methods compared: with the target alone, drafter by drafter, and with every rule on texts of several kinds.

Tokens per call and time rank methods differently: the time also depends on the costs of a call and of its
draft.
Sources, in form: the table of native and assisted seconds in TinyLlama's speculative_decoding/README.md (2023) for
`native_and_assisted`; Spec-Bench (Xia et al., arXiv:2401.07851) for `method_table`.
"""

import numpy as np

from speculative.autoregressive import AutoregressiveSampler
from speculative.interfaces import exactness_of, takes_trees
from speculative.measuring.intervals import share
from speculative.measuring.runs import SharedNoise, against_alone, at_once, compared, gain_of, race, total, under
from speculative.sampler import SpeculativeSampler
from speculative.verifiers.rejection import rejection


def native_and_assisted(
    target, drafters, prompts, n_tokens, *, sampling, K, verifier=rejection, shared_noise=False, seed=0, keep=at_once,
    caches=(),
):  # fmt: skip
    """Time the target alone and with each drafter; they take turns on each prompt.

    With shared_noise=True they use common random numbers (Gumbel), so that one seed gives one text with and without a
    draft; this needs the verifier exact_match. With `caches`, see `race`, prefill is timed as well.
    Parameters not named here are those of every experiment, see __init__.py.

    Returns
    -------
    runs : dict name -> list of Run
        One for each prompt; "native" is the target alone.
    rows : dict name -> dict
        For each drafter, over all prompts: native_seconds, seconds; native_tokens_per_second, tokens_per_second;
        speedup, tokens_per_call, same_texts.
    """
    if "native" in drafters:
        raise ValueError("expected other names for the drafters than 'native', which is the target alone")
    samplers = {"native": AutoregressiveSampler(target, sampling=sampling)}
    for name, (own_target, drafter) in drafters.items():
        samplers[name] = SpeculativeSampler(own_target, drafter, verifier=verifier, K=K, sampling=sampling)
    if shared_noise:
        samplers = {name: SharedNoise(sampler) for name, sampler in samplers.items()}
    runs, rows = race(samplers, prompts, n_tokens, seed=seed, keep=keep, caches=caches), {}
    before = total(runs["native"])
    for name in drafters:
        after = total(runs[name])
        rows[name] = {
            "native_seconds": before.seconds,
            "seconds": after.seconds,
            **gain_of(runs["native"], runs[name]),
            "native_tokens_per_second": len(before.tokens) / before.seconds,
            "tokens_per_second": len(after.tokens) / after.seconds,
            "tokens_per_call": after.tokens_per_call,
            "same_texts": sum(a.tokens == b.tokens for a, b in zip(runs["native"], runs[name])),
        }
    return runs, rows


def compare_drafters(target, drafters, prompts, n_tokens, *, sampling, lengths=(1, 2, 4, 8), seed=0, keep=at_once):
    """A row for each drafter, at the fastest K of `lengths`; as the best of several it looks a little too good.

    A drafter with a limited depth (`most_levels`) is tried with no larger K.

    Parameters not named here are those of every experiment, see __init__.py.

    Returns
    -------
    list of dict
        drafter; alpha: accepted / (accepted + rejected) draft tokens, over all lengths, see `alpha_interval`; K; c:
        seconds to draft a token over seconds of an autoregressive step; tokens_per_call; speedup; exactness of the
        rule. alpha and c are None where nothing was drafted.
    """
    tried = {
        name: sorted({min(K, getattr(drafter, "most_levels", K)) for K in lengths})
        for name, (_, drafter) in drafters.items()
    }
    samplers = {
        (name, K): SpeculativeSampler(own_target, drafter, K=K, sampling=sampling)
        for name, (own_target, drafter) in drafters.items()
        for K in tried[name]
    }
    alone, runs = against_alone(target, samplers, prompts, n_tokens, sampling=sampling, seed=seed, keep=keep)
    step, rows = total(alone).seconds / (n_tokens * len(prompts)), []
    for name in drafters:
        gains = {K: gain_of(alone, runs[name, K]) for K in tried[name]}
        K = max(gains, key=lambda K: gains[K]["speedup"])
        best = total(runs[name, K])
        rows.append({
            "drafter": name,
            **alpha_interval([total(some) for some in zip(*(runs[name, K] for K in gains))], len(gains)),
            "c": best.draft_seconds / best.drafted / step if best.drafted else None,
            "K": K,
            "tokens_per_call": best.tokens_per_call,
            **gains[K],
            "exactness": rejection.exactness,
        })  # fmt: skip
    return rows


def alpha_interval(runs, n_lengths=1):
    """alpha, alpha_low and alpha_high of a Run for each prompt, each the total over that many draft lengths.

    The lengths continue the same prompts with the same seeds, at temperature 0 by the same tokens: a test that is made
    again with each length counts once, not as several independent ones.
    """
    accepted, rejected = np.array([(run.accepted, run.rejected) for run in runs]).T / n_lengths
    return dict(zip(("alpha", "alpha_low", "alpha_high"), share(accepted, accepted + rejected, counted=True)))


def method_table(
    target, drafters, verifiers, prompts, n_tokens, *, K, sampling, shared_noise=(), trees=(), seed=0, keep=at_once
):
    """A row for each drafter and verifier. Each drafter has its own race: the target alone, and with each verifier.

    Parameters not named here are those of every experiment, see __init__.py.

    Parameters
    ----------
    verifiers : dict name -> Verifier
    prompts : dict kind -> list of sequences of int
    shared_noise : collection of str
        The verifiers that run on common random numbers (Gumbel); their rule is exact_match.
    trees : collection of str
        The drafters that draft trees; they are combined only with verifiers that take trees.

    Returns
    -------
    list of dict
        drafter; verifier; exactness of the verifier; kinds, for each kind of prompts and for "all" of them:
        tokens_per_call, speedup and same_texts, see `compared`.
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
