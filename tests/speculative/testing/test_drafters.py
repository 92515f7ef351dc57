"""The grader of drafters: right answers pass; the mistakes in wrong ones are named. The library's own: drafters/."""

import numpy as np
import pytest
from students import answers, drafters, told

from speculative import Draft, RecyclingDrafter, Sampling, sample_token
from speculative.testing import check_drafter
from speculative.tree import n_common


def check(drafter):
    check_drafter(drafter, n_vocab=3)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name == "nothing")) for name in drafters.RIGHT
])  # fmt: skip
def test_right_ones_pass_in_any_style(name, capsys):
    check(drafters.RIGHT[name])
    said = capsys.readouterr().out
    assert said.startswith(drafters.NOTES[name]) if name in drafters.NOTES else said == "", said


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", drafters))
def test_the_mistake_is_named(answer, words):
    said = told(check, answer)
    assert all(word in said for word in words), said


class Cached:
    """Processes the new tokens of a text, of which it forgets those that its cache misses."""

    def __init__(self, keeps):
        self.keeps, self.cache = keeps, []

    def propose(self, tokens, K, rng):
        n = n_common(self.cache, tokens)
        self.cache = [*self.cache[: self.keeps(n)], *tokens[n:]]
        drafted, rows = [], []
        for _ in range(K):
            weights = np.random.default_rng(self.cache).dirichlet(np.ones(3))
            drafted, rows = [*drafted, sample_token(weights, rng)], [*rows, weights]
            self.cache.append(drafted[-1])
        return Draft(np.array(drafted, np.int64), np.reshape(rows, (K, 3)))


def test_a_cache_that_is_not_what_the_text_says():
    check(Cached(lambda n: n))
    assert "is its cache what the text says" in told(check, Cached(lambda n: max(0, n - 2)))


class SoftRows:
    """Learns the target's last row, and proposes its most probable token with that row."""

    row = None

    def observe(self, tokens, logits, parents):
        self.row = Sampling()(logits[-1:])[0]

    def propose(self, tokens, K, rng):
        k = 0 if self.row is None else K
        row = np.ones(3) / 3 if self.row is None else self.row
        return Draft(np.full(k, row.argmax()), np.tile(row, (k, 1)))


def test_a_drafter_that_learns_is_shown_a_targets_answers(capsys):
    assert "your drafter picks a token deterministically" in told(check, SoftRows())
    observes_tokens = type("Observes", (SoftRows,), {"observe": lambda self, tokens: None})
    assert "takes 2 positional arguments but 4 were given" in told(check, observes_tokens())
    check(RecyclingDrafter(3))  # which proposes something then
    assert capsys.readouterr().out == ""
