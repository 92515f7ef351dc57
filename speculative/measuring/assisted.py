"""Seconds for the same work, native (the target alone) and assisted by a draft.

Source, in form: the table of native and assisted seconds in TinyLlama's speculative_decoding/README.md (2023).
"""

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..verifiers.rejection import rejection
from .runs import SharedNoise, at_once, gain_of, race, total


def native_and_assisted(
    target, drafters, prompts, n_tokens, *, sampling, K, verifier=rejection, shared_noise=False, seed=0, keep=at_once
):
    """Time the target alone and with each drafter; they take turns on each prompt.

    Parameters
    ----------
    target, drafters, prompts, n_tokens, sampling, seed, keep
        As in every experiment, see __init__.py.
    K, verifier
        As in `SpeculativeSampler`.
    shared_noise : bool
        Use common random numbers (Gumbel), so that one seed gives one text with and without a draft; needs the
        verifier exact_match.

    Returns
    -------
    runs : dict name -> list of Run
        One for each prompt; "native" is the target alone.
    rows : dict name -> dict
        For each drafter, over all prompts: native_seconds, seconds; speedup with low and high;
        native_tokens_per_second, tokens_per_second, tokens_per_call; same_texts, the number of prompts for which both
        texts are the same.
    """
    if "native" in drafters:
        raise ValueError("expected other names for the drafters than 'native', which is the target alone")
    samplers = {"native": AutoregressiveSampler(target, sampling=sampling)}
    for name, (own_target, drafter) in drafters.items():
        samplers[name] = SpeculativeSampler(own_target, drafter, verifier=verifier, K=K, sampling=sampling)
    if shared_noise:
        samplers = {name: SharedNoise(sampler) for name, sampler in samplers.items()}
    runs, rows = race(samplers, prompts, n_tokens, seed=seed, keep=keep), {}
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
