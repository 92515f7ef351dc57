"""The speedup predicted from costs and acceptance, next to the speedup measured on other prompts."""

from dataclasses import asdict, dataclass

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..theory.expected import acceptance_of, expected_time, overlap, speedup
from .costs import Costs, measure_costs
from .intervals import mean_overlap
from .runs import at_once, gain_of, of_each, own_text, race, total


@dataclass(frozen=True)
class Forecast:
    """A prediction from costs and texts, before any speculative text is timed."""

    costs: Costs
    alpha: float  # mean overlap of p and q over the target's texts ...
    alpha_low: float  # ... with a 95 % interval over the texts (see intervals.mean_overlap)
    alpha_high: float
    tokens_per_call: tuple  # [K - 1]: expected for these texts, K = 1 .. most
    expected_speedup: tuple  # [K - 1]: for these texts
    speedup_from_alpha: tuple  # [K - 1]: by the formula with one alpha everywhere
    best_K: int  # the K of the largest `expected_speedup`; 0 where every K is slower than the target alone


def forecast(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, keep=at_once):
    """A `Forecast` for speculative sampling with rejection sampling as the acceptance rule.

    The target continues each prompt alone. Along its texts, p and q give the probability that each token would have
    been accepted as a draft token, and `theory.expected_time` turns these into a number of rounds and their cost. No
    draft token is drawn, and nothing is assumed about the texts. The costs are measured in the middle of the first
    text. Parameters not listed here are common to all experiments (see __init__.py).

    Parameters
    ----------
    drafter : ModelDrafter
        A different drafter will do if it has `model` and `sampling` and its proposals depend on the preceding text
        alone. It must not have a threshold, because the end of a draft would be unknown.
    most : int
        The largest K.
    """
    if getattr(drafter, "threshold", 0):
        raise ValueError(f"expected a drafter that always drafts K tokens, got one with threshold {drafter.threshold}")

    def along(i, prompt):
        """The target's text, with its prompt, and the acceptance probability of draft tokens along it."""
        text, p = own_text(target, prompt, n_tokens, sampling, seed + i)
        q = (drafter.sampling or sampling)(drafter.model(text[:-1], n_last=n_tokens), text[:-1])
        acceptance = acceptance_of(text[len(prompt) :], p, q).tolist()
        return {"tokens": text, "acceptance": acceptance, "overlap": float(overlap(p, q).mean())}

    texts = of_each(prompts, keep, "text", along)
    middle = texts[0]["tokens"][: len(prompts[0]) + n_tokens // 2]
    options = {"sampling": sampling, "most": most, "repeats": 25}
    costs = Costs(**keep("costs", lambda: asdict(measure_costs(target, drafter, middle, **options))))
    counts = np.full(len(texts), float(n_tokens))
    alpha, low, high = mean_overlap(n_tokens * np.array([text["overlap"] for text in texts]), counts, sampling)

    def yields(K, *costs):
        """Tokens per call in all the texts; with costs, the speedup."""
        return n_tokens * len(texts) / sum(expected_time(text["acceptance"], K, *costs) for text in texts)

    lengths = range(1, most + 1)
    calls, gains = ([yields(K, *some) for K in lengths] for some in ((), (costs.c, costs.v)))
    by_formula = tuple(speedup(alpha, K, costs.c, costs.v) for K in lengths)
    best_K = int(np.argmax([1.0, *gains]))
    return Forecast(costs, alpha, low, high, tuple(calls), tuple(gains), by_formula, best_K)


def calibrate(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, keep=at_once):
    """(Forecast, rows): a prediction from two thirds of the prompts, and measurements on the other third.

    The row for each K of 1 .. most lists expected_tokens_per_call, speedup_from_alpha and expected_speedup next to the
    measurements. The prediction uses neither the prompts nor the times that it is compared with. Parameters as in
    `forecast`; ValueError for fewer than 3 prompts.
    """
    if len(prompts) < 3:
        raise ValueError(f"expected 3 prompts or more, one third of them to measure on, got {len(prompts)}")
    n_timed, common = len(prompts) // 3, {"sampling": sampling, "keep": keep}
    expected = forecast(target, drafter, prompts[n_timed:], n_tokens, most=most, seed=seed, **common)
    samplers = {None: AutoregressiveSampler(target, sampling=sampling)}
    samplers |= {K: SpeculativeSampler(target, drafter, K=K, sampling=sampling) for K in range(1, most + 1)}
    runs, rows = race(samplers, prompts[:n_timed], n_tokens, seed=seed + len(prompts), keep=keep), []
    for K in range(1, most + 1):
        rows.append({
            "K": K,
            "expected_tokens_per_call": expected.tokens_per_call[K - 1],
            "tokens_per_call": total(runs[K]).tokens_per_call,
            "speedup_from_alpha": expected.speedup_from_alpha[K - 1],
            "expected_speedup": expected.expected_speedup[K - 1],
            **gain_of(runs[None], runs[K]),
        })  # fmt: skip
    return expected, rows
