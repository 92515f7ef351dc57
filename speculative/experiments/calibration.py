"""A prediction beside the clock: what costs and acceptance promise, and what other prompts then take.

Next: drafters.py
"""

from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..costs import Costs, measure_costs
from ..sampler import SpeculativeSampler
from ..theory import acceptance_of, expected_time, overlap, speedup
from .clock import at_once, gain_of, race, total


@dataclass(frozen=True)
class Forecast:
    """What costs and texts promise, before any speculative text was timed."""

    costs: Costs
    alpha: float  # mean overlap of p and q over the target's own texts ...
    alpha_low: float  # ... and its 95 % interval, from the spread between texts
    alpha_high: float
    tokens_per_call: tuple  # [K - 1]: expected for these texts, K = 1 .. most
    expected_speedup: tuple  # [K - 1]: for these texts
    speedup_from_alpha: tuple  # [K - 1]: by the formula for one alpha
    best_K: int  # by `expected_speedup`; 0 where speculation does not pay


def forecast(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, progress=iter, keep=at_once):
    """A `Forecast` for speculative sampling by the rule of rejection.

    The target continues each prompt alone. Along its texts p and q say how likely each token would have been accepted
    as a guess, and `theory.expected_time` how many rounds of which cost that makes: no guess is drawn, and nothing is
    assumed about the texts. The costs are measured in the middle of the first text.

    Parameters
    ----------
    target : LanguageModel
    drafter : ModelDrafter
        Or another with `model` and `sampling`, whose guesses depend on the text before them alone.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The target's.
    most : int
        The largest K.
    """
    texts = []
    for i, prompt in enumerate(progress(prompts)):
        measure = partial(acceptance_along, target, drafter, prompt, n_tokens, sampling, seed + i)
        texts.append(keep(f"text {i + 1}", measure))
    middle = texts[0]["tokens"][: len(prompts[0]) + n_tokens // 2]
    measure = partial(measure_costs, target, drafter, middle, sampling=sampling, most=most, repeats=25)
    costs = Costs(**keep("costs", lambda: asdict(measure())))
    acceptances, overlaps = ([text[name] for text in texts] for name in ("acceptance", "overlap"))
    alpha, spread = np.mean(overlaps), 1.96 * np.std(overlaps, ddof=1) / np.sqrt(len(overlaps))
    calls = [sum(expected_time(a, K) for a in acceptances) for K in range(1, most + 1)]
    times = [sum(expected_time(a, K, costs.c, costs.v) for a in acceptances) for K in range(1, most + 1)]
    n, gains = n_tokens * len(texts), [n_tokens * len(texts) / time for time in times]
    return Forecast(
        costs, float(alpha), float(alpha - spread), float(min(1, alpha + spread)),
        tokens_per_call=tuple(n / number for number in calls),
        expected_speedup=tuple(gains),
        speedup_from_alpha=tuple(speedup(alpha, K, costs.c, costs.v) for K in range(1, most + 1)),
        best_K=int(np.argmax([1.0, *gains])),
    )  # fmt: skip


def acceptance_along(target, drafter, prompt, n_tokens, sampling, seed):
    """The target's own text, prompt and all, and along it what a guess is worth, in plain numbers."""
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
    """(Forecast, rows): what two thirds of the prompts promise, and what the clock says of the others.

    A row is a dict for K = 1 .. most: the expected and measured tokens per target call and speedup, and the interval of
    the measured one. The prediction knows neither the prompts nor the clock of the texts that it is held against.
    Parameters as in `forecast`.
    """
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
