"""What a guess and a check cost here, measured on the parts themselves.

A cost is that of a part of the loop's round, with all that belongs to it: from logits to probabilities, drawing,
deciding. On a small model this is a good part of the time, and a prediction without it would promise too much.
Next: experiments.py
"""

from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from .interfaces import Draft
from .probs import Sampling
from .sampler import SpeculativeSampler
from .verifiers.rejection import rejection


@dataclass(frozen=True)
class Costs:
    """What `theory.speedup` and `draft_length.CostModel` take."""

    step: float  # seconds of a plain step: a round with nothing drafted
    c: float  # the time to draft one token, over `step`
    v: tuple  # v[m - 1]: the time of a round for m tokens, without the drafting, over `step`; v[0] = 1


class Scripted:
    """Guesses the tokens of a given text, for certain."""

    def __init__(self, text, n_vocab):
        self.text, self.n_vocab = list(text), n_vocab

    def propose(self, tokens, K, rng):
        guesses = np.array(self.text[len(tokens) : len(tokens) + K], dtype=np.int64)
        probs = np.zeros((len(guesses), self.n_vocab))
        probs[np.arange(len(guesses)), guesses] = 1
        return Draft(guesses, probs)


def measure_costs(target, drafter, text, *, sampling=Sampling(), verifier=rejection, most=8, repeats=9):
    """`Costs`, at the place in the text that lies `most` + 1 tokens before its end.

    For each k from 0 to `most` the drafter is asked for k guesses, and a round of the loop checks k guesses, which are
    the text's own next tokens. All that is done in turn, `repeats` times, and medians are taken: so a machine that
    slows down slows all of them, and the models push each other out of the processor's cache as they do in use.

    Parameters
    ----------
    target : LanguageModel
        With a cache: a call with a known prefix costs its new tokens.
    drafter : Drafter
    text : sequence of int
        Of at least most + 2 tokens.
    sampling, verifier
        Those to be used.
    most : int
        v is measured for 1 .. most + 1 tokens.
    """
    tokens, rng, drafting = list(text)[: -most - 1], np.random.default_rng(0), []
    script, checking = Scripted(text, target.n_vocab), {k: [] for k in range(most + 1)}
    for _ in range(repeats + 1):
        for k in range(most + 1):
            started = perf_counter()
            drafter.propose(tokens, k, rng)
            drafting += [(perf_counter() - started) / k] if k else []
            sampler = SpeculativeSampler(target, script, verifier=verifier, K=lambda history, k=k: k, sampling=sampling)
            seconds = next(sampler.rounds(tokens, k + 1, rng)).seconds
            checking[k].append(seconds["target"] + seconds["verify"])
    step, *more = (median(times[1:]) for times in checking.values())  # the first of each is to warm up
    return Costs(step, median(drafting[most:]) / step, (1.0, *(seconds / step for seconds in more)))
