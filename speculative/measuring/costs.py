"""The cost of drafting and of verifying on this machine, measured on the loop itself.

A cost includes everything that a round of the loop does: the models, the step from logits to probabilities, drawing and
deciding. With a small model the last three take much of the time, so a prediction without them is too optimistic.
This is no experiment: no text is generated, but every draft length is timed after the same tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from ..interfaces import Draft, Drafter, LanguageModel, Tokens, Verifier
from ..logits.probs import Sampling, inheriting
from ..sampler import SpeculativeSampler
from ..tree import is_chain
from ..verifiers.rejection import rejection


@dataclass(frozen=True)
class Costs:
    """The costs that `theory.expected` and `draft_length.CostModel` take."""

    step: float  # seconds of an autoregressive step: a round without a draft
    c: float  # the drafting time per requested token, relative to `step`; less if the drafter stops early
    v: tuple[float, ...]  # v[m - 1]: the time of a round for m tokens, without drafting, relative to `step`; v[0] = 1


@dataclass
class Padded:
    """The drafter's own tokens, padded with token 0 to K, so that a round verifies exactly K tokens."""

    drafter: Drafter
    n_vocab: int

    def observe(self, tokens, logits, parents):
        if hasattr(self.drafter, "observe"):
            self.drafter.observe(tokens, logits, parents)

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        if not is_chain(draft.parents):
            raise ValueError("expected a drafter of chains, got a tree: costs are measured for each length of a chain")
        padding = np.zeros(K - len(draft.tokens), np.int64)
        return Draft(np.append(draft.tokens, padding), np.vstack([draft.probs, np.eye(1, self.n_vocab)[padding]]))


def measure_costs(
    target: LanguageModel,
    drafter: Drafter,
    tokens: Tokens,
    *,
    sampling: Callable[..., np.ndarray] = Sampling(),
    verifier: Verifier = rejection,
    most: int = 8,
    repeats: int = 9,
) -> Costs:
    """The `Costs` of a round after these tokens.

    Rounds of the loop are timed with k = 0 to `most` draft tokens, alternating, `repeats` times, and the medians are
    taken. So a machine that slows down slows all of them, and the models evict each other from the processor's cache as
    they do in use. As in a generation, before each round the target's and the drafter's caches contain all tokens but
    the last.

    Parameters
    ----------
    target
        It needs a cache, so that a call with a known prefix computes only the new tokens.
    drafter
        A drafter of chains.
    tokens
        Token ids, at least 2, and at most n_ctx - `most` - 1.
    most
        v is measured for 1 .. most + 1 tokens; at least 1.
    """
    drafter = inheriting(drafter, sampling)
    tokens, rng = list(tokens), np.random.default_rng(0)
    if len(tokens) < 2 or most < 1:
        raise ValueError(f"expected 2 tokens or more and most of 1 or more, got {len(tokens)} and {most}")
    padded = Padded(drafter, target.n_vocab)
    drafting, verifying = [], {k: [] for k in range(most + 1)}  # seconds for a draft token; for k draft tokens
    for repeat in range(-1, repeats):  # the first is a warm-up
        for k in range(most + 1):
            target(tokens[:-1])
            drafter.propose(tokens[:-1], 1, rng)
            sampler = SpeculativeSampler(target, padded, verifier=verifier, K=lambda history, k=k: k, sampling=sampling)
            seconds = next(sampler.rounds(tokens, k + 1, rng)).seconds
            if repeat >= 0:
                verifying[k].append(seconds["target"] + seconds["verify"])
                if k:
                    drafting.append(seconds["draft"] / k)
    step, *more = (median(times) for times in verifying.values())
    return Costs(step, median(drafting) / step, (1.0, *(seconds / step for seconds in more)))
