"""What a loop that passes check_sampler has been compared for."""

import itertools

import numpy as np

from speculative import ModelDrafter, residual, sample_token
from speculative.interfaces import Verdict
from speculative.testing import samplers
from speculative.testing.mistakes.samplers import loop
from speculative.testing.windows import SHAPES, role, windows

SINGLE = [window for window in windows() if len(window.opened) == 1]


def before(window):
    return "none" if not window.before else "full" if window.before[-1] < 0 else "rejected"


def test_each_pair_occurs():
    of = {"place": lambda w: (w.K, w.opened[0]), "left": lambda w: w.ends, "before": before,
          "sampling": lambda w: str(w.sampling), "stops": lambda w: len(w.stops), "near": lambda w: w.near}  # fmt: skip
    n_values = {"place": 27, "left": 4, "before": 3, "sampling": 10, "stops": 3, "near": 3}
    impossible = {("place", "left"): 21, ("place", "sampling"): None, ("left", "sampling"): 1}
    for a, b in [*itertools.combinations(("place", "left", "before"), 2),
                 *itertools.product(("place", "left", "before"), ("stops", "near", "sampling"))]:  # fmt: skip
        n = len({(of[a](w), of[b](w)) for w in SINGLE})
        if impossible.get((a, b), 0) is not None:
            assert n >= n_values[a] * n_values[b] - impossible.get((a, b), 0), (a, b, n)


def mistaken(part):
    """The right rule, with a mistake where the target is not certain."""

    def rule(draft, rows, rng):
        for i, (x, p, q) in enumerate(zip(draft.tokens.tolist(), rows, draft.probs)):
            if not (part == "accept" and p.max() < 1) and not rng.random() * q[x] < p[x]:
                return Verdict(i, sample_token(p if part == "residual" and p.max() < 1 else residual(p, q), rng))
        best = np.eye(3)[rows[-1].argmax()]
        return Verdict(len(draft.tokens), sample_token(best if part == "bonus" else rows[-1], rng))

    return loop(verifier=staticmethod(rule))


def test_each_window_can_tell():
    """A window at a draft token refuses a wrong test or a wrong residual there, and one at the bonus a wrong bonus."""
    told = set()
    for window in SINGLE:
        if window.sampling.temperature == 0:
            continue
        room = len(window.prompt) + window.n_tokens + window.near
        table, other = (window.model(name, 0, room) for name in ("target", "draft"))
        sampling = samplers.replace(window.sampling, temperature=0) if window.greedy else window.sampling
        place = role((window.K, window.opened))
        seen = set()
        for part in ("bonus",) if place == "bonus" else ("accept", "residual"):
            made = samplers.Made(mistaken(part), samplers.Target(table, [0]), ModelDrafter(other, sampling=sampling),
                                 window.K, window.sampling, "", window.prompt, stops=window.stops)  # fmt: skip
            if not samplers.is_right(made, window.n_tokens, np.inf):
                seen.add((window.K, window.opened, part))
        assert seen, str(window)
        told |= seen
    assert len(told) == sum(1 if i == K else 2 for K, (i,) in SHAPES)
