"""What a loop that passes check_sampler has been compared for, and that each window can tell."""

import itertools
from functools import partial

import numpy as np
import pytest

from speculative import ModelDrafter, residual, sample_token
from speculative.exact.enumeration import exact_distribution, total_variation
from speculative.interfaces import Verdict
from speculative.testing import samplers, windows
from speculative.testing.mistakes.samplers import Loop, loop
from speculative.testing.windows import BEFORE, COVERED, LEFT, NEAR, PLACES, PROMPTS, SAMPLINGS, STOPS, role

SINGLE = [window for window in windows.windows() if len(window.opened) == 1 and window.sampling.temperature > 0]
COORDINATES = {
    "place": (PLACES, lambda w: (w.K, w.opened[0])),
    "left": (LEFT, lambda w: w.left),
    "before": (
        BEFORE,
        lambda w: "none" if not w.before else "full" if w.before[-1] == windows.FULL else "rejected",
    ),
    "role": (("first", "inner", "last", "bonus"), lambda w: role((w.K, w.opened[0]))),
    "sampling": (SAMPLINGS[:-1], lambda w: w.sampling),
    "stops": (STOPS, lambda w: w.stops),
    "near": (NEAR, lambda w: w.near),
    "prompt": (PROMPTS, lambda w: w.prompt),
    "greedy": ((False, True), lambda w: w.greedy),
}


def test_each_pair_of_coordinates_occurs_where_it_can():
    """The last token of a text is never a draft token; and n draft tokens have one first, one last and one bonus."""
    assert {("place", "left"), ("place", "before"), ("left", "before"), ("role", "sampling")} <= {*COVERED}
    for a, b in COVERED:
        (of_a, value_of_a), (of_b, value_of_b) = COORDINATES[a], COORDINATES[b]
        missing = set(itertools.product(map(str, of_a), map(str, of_b)))
        missing -= {(str(value_of_a(w)), str(value_of_b(w))) for w in SINGLE}
        places = (
            [str(place) for place in PLACES if role(place) != "bonus"] if a == "place" else ["first", "inner", "last"]
        )
        impossible = {(place, "none") for place in places} if b == "left" and a in ("place", "role") else set()
        assert missing == impossible, (a, b)


def test_rounds_and_numbers_of_rounds():
    assert {len(w.before) for w in SINGLE} == {0, 1, 2, 3} and {w.K for w in SINGLE} == {1, 2, 3, 4, 5, 6}
    both = [w for w in windows.windows() if len(w.opened) == 2]
    assert any(w.opened[1] > w.K for w in both) and any(w.opened[1] < w.K for w in both)


def made(make, window, seed):
    usual = ModelDrafter(window.model("draft"))
    target = samplers.Target(window.model("target"), [0])
    return samplers.in_window(samplers.Made(make, target, usual, window.K), window, seed)


def mistaken(part):
    """The right rule, with a mistake where the target is not certain."""

    def rule(draft, rows, rng):
        for i, (x, p, q) in enumerate(zip(draft.tokens.tolist(), rows, draft.probs)):
            if not (part == "accept" and p.max() < 1) and not rng.random() * q[x] < p[x]:
                return Verdict(i, sample_token(p if part == "residual" and p.max() < 1 else residual(p, q), rng))
        best = np.eye(3)[rows[-1].argmax()]
        return Verdict(len(draft.tokens), sample_token(best if part == "bonus" else rows[-1], rng))

    return loop(verifier=staticmethod(rule))


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 50), marks=pytest.mark.slow)])
def test_each_window_can_tell(seeds):
    """A window at a draft token refuses a wrong test or a wrong residual there, and one at the bonus a wrong bonus."""
    for seed, window in itertools.product(seeds, SINGLE):
        assert made(Loop, window, seed).is_right(window.n_tokens, np.inf)
        parts = ("bonus",) if window.opened[0] == window.K else ("accept", "residual")
        wrong = (made(mistaken(part), window, seed) for part in parts)
        assert not all(one.is_right(window.n_tokens, np.inf) for one in wrong), (seed, str(window))


class BonusUnseen(Loop):
    """An exact loop whose draft never sees a bonus, so that it lags more from round to round."""

    def generate(self, *args, **options):
        self.n_unseen = 0
        return super().generate(*args, **options)

    def propose(self, text, k, rng):
        return super().propose(text[: max(1, len(text) - self.n_unseen)], k, rng)

    def added(self, draft, verdict):
        self.n_unseen += 0 < len(draft.tokens) == verdict.n_accepted
        return super().added(draft, verdict)


def test_a_draft_that_lags_more_and_more_has_few_paths():
    for window in windows.windows():
        if len(window.opened) == 2 and window.K == 5:
            sampler, n = made(BonusUnseen, window, 0), window.n_tokens
            found = exact_distribution(partial(sampler.text, n), max_leaves=1000)
            assert total_variation(found, sampler.wanted(n)) < 1e-12


def test_what_wrong_windows_share():
    wrong = [window for window in SINGLE if window.opened[0] == window.K]
    n, n_others = len(wrong), len(SINGLE) - len(wrong)
    said = f"in the bonus of a round: in {n} of {n} such cases, and in none of the other {n_others}"
    assert windows.shared(wrong, SINGLE) == said
    assert windows.shared(SINGLE[:2], SINGLE) == f"in 2 of {len(SINGLE)} cases"
