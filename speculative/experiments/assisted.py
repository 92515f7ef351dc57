"""The plain question: seconds for the same work, natively and assisted by a draft.

Source, in form: the table of native and assisted seconds in TinyLlama's speculative_decoding/README.md (2023).
Next: calibration.py
"""

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..verifiers.rejection import rejection
from .clock import SharedNoise, at_once, gain_of, race, total


def native_and_assisted(
    target,
    drafters,
    prompts,
    n_tokens,
    *,
    sampling,
    K,
    verifier=rejection,
    shared_noise=False,
    seed=0,
    progress=iter,
    keep=at_once,
):
    """The target alone and with each drafter, in turn on each prompt.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> (target, drafter)
        Each with the target it works with, which has the same logits as `target`.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The target's.
    K, verifier
        As in `SpeculativeSampler`.
    shared_noise : bool
        One seed, one text, with and without a draft; for the verifier exact_match.

    Returns
    -------
    runs : dict name -> list of Run
        One for each prompt; "native" is the target alone.
    rows : dict name -> dict
        For each drafter, over all prompts: native_seconds, seconds, speedup, low, high, native_tokens_per_second,
        tokens_per_second, tokens_per_call, and same_texts, how many texts are the same both ways.
    """
    samplers = {"native": AutoregressiveSampler(target, sampling=sampling)}
    for name, (own_target, drafter) in drafters.items():
        samplers[name] = SpeculativeSampler(own_target, drafter, verifier=verifier, K=K, sampling=sampling)
    if shared_noise:
        samplers = {name: SharedNoise(sampler) for name, sampler in samplers.items()}
    runs = race(samplers, prompts, n_tokens, seed=seed, progress=progress, keep=keep)
    return runs, {name: compared(runs["native"], runs[name]) for name in drafters}


def compared(native, assisted):
    """The sums over two lists of Run as a dict, see `native_and_assisted`."""
    before, after = total(native), total(assisted)
    return {
        "native_seconds": before.seconds,
        "seconds": after.seconds,
        **gain_of(native, assisted),
        "native_tokens_per_second": len(before.tokens) / before.seconds,
        "tokens_per_second": len(after.tokens) / after.seconds,
        "tokens_per_call": after.tokens_per_call,
        "same_texts": sum(a.tokens == b.tokens for a, b in zip(native, assisted)),
    }
