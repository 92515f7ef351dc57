"""Experiments over any models handed in: a prediction beside the clock, and a table of drafters.

Times are those of texts whose prompts are in both caches already; samplers take turns on each prompt, so that a machine
that slows down slows all of them. An interval comes from drawing the prompts anew (a bootstrap of 1,000 draws, 95 %):
it covers the texts and the machine's moods, as far as they differ from prompt to prompt.
Next: ../main.py
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from .autoregressive import AutoregressiveSampler
from .costs import Costs, measure_costs
from .interfaces import collect
from .sampler import SpeculativeSampler
from .theory import acceptance_of, estimate_alpha, expected_time, overlap, speedup
from .verifiers.rejection import rejection


def race(samplers, prompts, n_tokens, *, seed=0, progress=iter):
    """Run each sampler on each prompt.

    Parameters
    ----------
    samplers : dict name -> Sampler
    prompts : list of sequences of int
    n_tokens : int
        To generate for each prompt.
    seed : int
        Of the first prompt's random numbers; the next has the next.
    progress : callable
        Put around the prompts, such as tqdm.

    Returns
    -------
    dict name -> (seconds [n_prompts], list of Generation)
    """
    seconds, generations, names = {n: [] for n in samplers}, {n: [] for n in samplers}, list(samplers)
    for i, prompt in enumerate(progress(prompts)):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            samplers[name].generate(prompt, 2, seed)  # the prompt into the caches
            rounds = samplers[name].rounds(prompt, n_tokens, seed + i)
            started = perf_counter()
            generation = collect(prompt, rounds)
            seconds[name].append(perf_counter() - started)
            generations[name].append(generation)
    return {name: (np.array(seconds[name]), generations[name]) for name in names}


def gain(plain, other, n_draws=1000):
    """(speedup, low, high) of the seconds [n_prompts] of two samplers: the ratio of their sums, and its interval.

    >>> gain(np.array([3.0, 3.0]), np.array([2.0, 2.0]))
    (1.5, 1.5, 1.5)
    """
    drawn = np.random.default_rng(0).integers(len(plain), size=(n_draws, len(plain)))
    ratios = plain[drawn].sum(axis=1) / other[drawn].sum(axis=1)
    return (float(plain.sum() / other.sum()), *np.quantile(ratios, [0.025, 0.975]).tolist())


# ------------------------------------------------------------------------------------------------ calibrate


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


def forecast(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, progress=iter):
    """A `Forecast` for speculative sampling by the rule of rejection.

    The target continues each prompt alone. Along its texts p and q say how likely each token would have been accepted
    as a guess, and `theory.expected_time` how many rounds of which cost that makes: no guess is drawn, and nothing is
    assumed about the texts. The costs are measured in the middle of the first text.

    Parameters
    ----------
    target : LanguageModel
    drafter : ModelDrafter
        Or another with `model` and `sampling`, whose guesses depend on the text before them alone.
    prompts, n_tokens, seed, progress
        As in `race`.
    sampling : Sampling
        The target's.
    most : int
        The largest K.
    """
    alone, acceptances, overlaps, texts = AutoregressiveSampler(target, sampling=sampling), [], [], []
    for i, prompt in enumerate(progress(prompts)):
        generation = alone.generate(prompt, n_tokens, seed + i, keep_probs=True)
        text = [*generation.prompt.tolist(), *generation.tokens.tolist()]
        target_probs = np.concatenate([r.target_probs for r in generation.rounds])  # [n_tokens, n_vocab]
        draft_probs = drafter.sampling(drafter.model(text[:-1], n_last=n_tokens), text[:-1])
        acceptances.append(acceptance_of(generation.tokens, target_probs, draft_probs))
        overlaps.append(overlap(target_probs, draft_probs).mean())
        texts.append(text)
    middle = texts[0][: len(prompts[0]) + n_tokens // 2]
    costs = measure_costs(target, drafter, middle, sampling=sampling, most=most, repeats=25)
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


def calibrate(target, drafter, prompts, n_tokens, *, sampling, most=8, seed=0, progress=iter):
    """(Forecast, rows): what two thirds of the prompts promise, and what the clock says of the others.

    A row is a dict for K = 1 .. most: the expected and measured tokens per target call and speedup, and the interval of
    the measured one. The prediction knows neither the prompts nor the clock of the texts that it is held against.
    Parameters as in `forecast`.
    """
    n_timed = len(prompts) // 3
    expected = forecast(
        target, drafter, prompts[n_timed:], n_tokens, sampling=sampling, most=most, seed=seed, progress=progress
    )
    samplers = {K: SpeculativeSampler(target, drafter, K=K, sampling=sampling) for K in range(1, most + 1)}
    samplers[0] = AutoregressiveSampler(target, sampling=sampling)
    results, rows = race(samplers, prompts[:n_timed], n_tokens, seed=seed + len(prompts), progress=progress), []
    for K in range(1, most + 1):
        seconds, generations = results[K]
        measured, low, high = gain(results[0][0], seconds)
        n_calls = sum(g.stats.target_calls for g in generations)
        rows.append({
            "K": K,
            "expected_tokens_per_call": expected.tokens_per_call[K - 1],
            "tokens_per_call": n_tokens * n_timed / n_calls,
            "speedup_from_alpha": expected.speedup_from_alpha[K - 1],
            "expected_speedup": expected.expected_speedup[K - 1],
            "speedup": measured, "low": low, "high": high,
        })  # fmt: skip
    return expected, rows


# ------------------------------------------------------------------------------------------------ drafters


def compare_drafters(target, drafters, prompts, n_tokens, *, sampling, lengths=(1, 2, 4, 8), seed=0, progress=iter):
    """One row for each drafter, at the draft length that was fastest.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> (target, drafter)
        Each with the target it works with, which has the same logits as `target`.
    prompts, n_tokens, seed, progress
        As in `race`.
    sampling : Sampling
        The target's.
    lengths : sequence of int
        Of these draft lengths the fastest is shown; as the best of several measurements it is a little flattered.

    Returns
    -------
    list of dict
        drafter; alpha, alpha_low, alpha_high: accepted / (accepted + rejections), over all lengths; K, the best length;
        c: seconds for a drafted token over those of a plain step; tokens_per_call; speedup, low, high; exactness, of
        the rule. alpha and c are None where nothing was drafted.
    """
    samplers = {"alone": AutoregressiveSampler(target, sampling=sampling)}
    for name, (own_target, drafter) in drafters.items():
        for K in lengths:
            samplers[name, K] = SpeculativeSampler(own_target, drafter, K=K, sampling=sampling)
    results, rows = race(samplers, prompts, n_tokens, seed=seed, progress=progress), []
    plain = results["alone"][0]
    for name in drafters:
        gains = {K: gain(plain, results[name, K][0]) for K in lengths}
        K = max(lengths, key=lambda K: gains[K][0])
        everything = [g.stats for length in lengths for g in results[name, length][1]]
        alpha, *interval = estimate_alpha(sum(s.accepted for s in everything), sum(s.rejected for s in everything))
        best = [g.stats for g in results[name, K][1]]
        n_drafted = sum(s.drafted for s in best)
        drafting, step = sum(s.seconds["draft"] for s in best), plain.sum() / (n_tokens * len(prompts))
        rows.append({
            "drafter": name,
            "alpha": alpha if n_drafted else None,
            **dict(zip(("alpha_low", "alpha_high"), interval)),
            "c": float(drafting / n_drafted / step) if n_drafted else None,
            "K": K,
            "tokens_per_call": n_tokens * len(prompts) / sum(s.target_calls for s in best),
            **dict(zip(("speedup", "low", "high"), gains[K])),
            "exactness": rejection.exactness,
        })  # fmt: skip
    return rows
