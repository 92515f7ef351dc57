"""The speedup predicted from costs and acceptance, next to the speedup measured on other prompts."""

from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..theory.expected import acceptance_of, expected_time, overlap, speedup
from .costs import Costs, measure_costs
from .intervals import counted_share, gain_of, share
from .runs import at_once, race, total


@dataclass(frozen=True)
class Forecast:
    """What costs and texts predict, before any speculative text is timed."""

    costs: Costs
    alpha: float  # mean overlap of p and q over the target's own texts ...
    alpha_low: float  # ... with a 95 % t interval over the texts, at temperature 0 at least Wilson's: intervals.py
    alpha_high: float
    tokens_per_call: tuple  # [K - 1]: expected for these texts, K = 1 .. most
    expected_speedup: tuple  # [K - 1]: for these texts
    speedup_from_alpha: tuple  # [K - 1]: by the formula with one alpha everywhere
    best_K: int  # the K of the largest `expected_speedup`; 0 where every K is slower than the target alone


def forecast(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, progress=iter, keep=at_once):
    """A `Forecast` for speculative sampling with rejection sampling as the acceptance rule.

    The target continues each prompt alone. Along its texts, p and q give the probability that each token would have
    been accepted as a draft token, and `theory.expected_time` turns these into a number of rounds and their cost. No
    draft token is drawn, and nothing is assumed about the texts. The costs are measured in the middle of the first.

    Parameters
    ----------
    target : LanguageModel
    drafter : ModelDrafter
        Or another drafter with `model` and `sampling` whose proposals depend on the preceding text alone. Without a
        threshold: it is not known where a draft would end.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The sampling of the target.
    most : int
        The largest K.
    """
    if getattr(drafter, "threshold", 0):
        raise ValueError(f"expected a drafter that always drafts K tokens, got one with threshold {drafter.threshold}")
    texts = []
    for i, prompt in enumerate(progress(prompts)):
        measure = partial(acceptance_along, target, drafter, prompt, n_tokens, sampling, seed + i)
        texts.append(keep(f"text {i + 1}", measure))
    middle = texts[0]["tokens"][: len(prompts[0]) + n_tokens // 2]
    measure = partial(measure_costs, target, drafter, middle, sampling=sampling, most=most, repeats=25)
    costs = Costs(**keep("costs", lambda: asdict(measure())))
    acceptances, overlaps = ([text[name] for text in texts] for name in ("acceptance", "overlap"))
    counts = n_tokens * np.array(overlaps), np.full(len(overlaps), float(n_tokens))
    alpha, low, high = (share if getattr(sampling, "temperature", 1) else counted_share)(*counts)
    calls = [sum(expected_time(a, K) for a in acceptances) for K in range(1, most + 1)]
    times = [sum(expected_time(a, K, costs.c, costs.v) for a in acceptances) for K in range(1, most + 1)]
    n, gains = n_tokens * len(texts), [n_tokens * len(texts) / time for time in times]
    return Forecast(
        costs, alpha, low, high,
        tokens_per_call=tuple(n / number for number in calls),
        expected_speedup=tuple(gains),
        speedup_from_alpha=tuple(speedup(alpha, K, costs.c, costs.v) for K in range(1, most + 1)),
        best_K=int(np.argmax([1.0, *gains])),
    )  # fmt: skip


def acceptance_along(target, drafter, prompt, n_tokens, sampling, seed):
    """The target's own text, with its prompt, and how likely draft tokens are accepted along it, in plain numbers."""
    alone = AutoregressiveSampler(target, sampling=sampling)
    generation = alone.generate(prompt, n_tokens, seed, keep_probs=True)
    text = [*generation.prompt.tolist(), *generation.tokens.tolist()]
    target_probs = np.concatenate([r.target_probs for r in generation.rounds])  # [n_tokens, n_vocab]
    draft_probs = drafter.sampling(drafter.model(text[:-1], n_last=n_tokens), text[:-1])
    return {
        "tokens": text,
        "acceptance": acceptance_of(generation.tokens, target_probs, draft_probs).tolist(),
        "overlap": float(overlap(target_probs, draft_probs).mean()),
    }


def calibrate(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, progress=iter, keep=at_once):
    """(Forecast, rows): a prediction from two thirds of the prompts, and measurements on the other third.

    A row is a dict for one K of 1 .. most: the expected and the measured tokens per target call and speedup, and a t
    interval over the prompts for the measured speedup (`gain`). The prediction uses neither the prompts nor the times
    that it is compared with. Parameters as in `forecast`; ValueError for fewer than 3 prompts.
    """
    if len(prompts) < 3:
        raise ValueError(f"expected 3 prompts or more, one third of them to measure on, got {len(prompts)}")
    n_timed = len(prompts) // 3
    common = {"progress": progress, "keep": keep}
    expected = forecast(target, drafter, prompts[n_timed:], n_tokens, sampling=sampling, most=most, seed=seed, **common)
    samplers = {K: SpeculativeSampler(target, drafter, K=K, sampling=sampling) for K in range(1, most + 1)}
    samplers[0] = AutoregressiveSampler(target, sampling=sampling)
    results, rows = race(samplers, prompts[:n_timed], n_tokens, seed=seed + len(prompts), **common), []
    for K in range(1, most + 1):
        rows.append({
            "K": K,
            "expected_tokens_per_call": expected.tokens_per_call[K - 1],
            "tokens_per_call": total(results[K]).tokens_per_call,
            "speedup_from_alpha": expected.speedup_from_alpha[K - 1],
            "expected_speedup": expected.expected_speedup[K - 1],
            **gain_of(results[0], results[K]),
        })  # fmt: skip
    return expected, rows
