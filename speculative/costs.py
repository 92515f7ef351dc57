"""What a guess and a check cost here, measured on the parts themselves.

A cost is that of a part of the loop's round, with all that belongs to it: from logits to probabilities, drawing,
deciding. On a small model this is a good part of the time, and a prediction without it would promise too much.
Next: experiments/__init__.py
"""

from dataclasses import dataclass
from statistics import median

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
    spread: float = 0.0  # of the plain steps: the distance between their quartiles, over the median


class Padded:
    """The drafter's own guesses, and behind them token 0 up to K guesses: so that a round checks exactly K."""

    def __init__(self, drafter, n_vocab):
        self.drafter, self.n_vocab = drafter, n_vocab

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        n_missing = K - len(draft.tokens)
        probs = np.zeros((n_missing, self.n_vocab))
        probs[:, 0] = 1
        return Draft(np.append(draft.tokens, np.zeros(n_missing, np.int64)), np.concatenate([draft.probs, probs]))


def measure_costs(target, drafter, tokens, *, sampling=Sampling(), verifier=rejection, most=8, repeats=9):
    """`Costs` of what follows these tokens.

    The loop's own rounds are timed, with k = 0 to `most` guesses in turn, `repeats` times, and medians are taken: so a
    machine that slows down slows all of them, and the models push each other out of the processor's cache as they do in
    use. Each round finds what a round finds: target and drafter know all tokens but the last.

    Parameters
    ----------
    target : LanguageModel
        With a cache: a call with a known prefix costs its new tokens.
    drafter : Drafter
    tokens : sequence of int
        At least 2, and `most` + 1 less than n_ctx.
    sampling, verifier
        Those to be used.
    most : int
        v is measured for 1 .. most + 1 tokens.
    """
    tokens, rng, drafting = list(tokens), np.random.default_rng(0), []
    padded, checking = Padded(drafter, target.n_vocab), {k: [] for k in range(most + 1)}
    for repeat in range(-1, repeats):  # the first time is to warm up
        for k in range(most + 1):
            target(tokens[:-1])
            drafter.propose(tokens[:-1], 1, rng)
            sampler = SpeculativeSampler(target, padded, verifier=verifier, K=lambda history, k=k: k, sampling=sampling)
            seconds = next(sampler.rounds(tokens, k + 1, rng)).seconds
            if repeat >= 0:
                checking[k].append(seconds["target"] + seconds["verify"])
                drafting += [seconds["draft"] / k] if k else []
    step, *more = (median(times) for times in checking.values())
    low, high = np.quantile(checking[0], (0.25, 0.75))
    v = (1.0, *(seconds / step for seconds in more))
    return Costs(step, median(drafting) / step, v, float(high - low) / step)
