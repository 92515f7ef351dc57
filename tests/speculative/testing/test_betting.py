"""Bets on texts: how often they are wrong about a right source, and how soon they find a wrong one."""

import itertools

import numpy as np
import pytest

from speculative.testing import audit_samples
from speculative.testing.betting import deviance_of

TEXTS = [*itertools.product(range(3), repeat=3)]
ALPHA = 0.05


def tree(rng):
    """Random rows of three tokens for three positions, and the probabilities of the 27 texts."""
    rows = {text[:k]: dict(enumerate(rng.dirichlet(np.ones(3)))) for text in TEXTS for k in range(3)}
    return rows, np.array([rows[()][a] * rows[a,][b] * rows[a, b][c] for a, b, c in TEXTS])


def source(rng, shares):
    return lambda n: [TEXTS[i] for i in rng.choice(27, n, p=shares)]


def other(rng, q):
    p = q * rng.choice([0.3, 1.7], 27)
    return p / p.sum()


@pytest.mark.parametrize("two", [False, True])
def test_right_sources_are_seldom_called_different(two):
    """60 runs of 512 texts: at most 60 * alpha = 3 alarms are expected, and more than 9 come with probability .002. The
    bounds hold together with probability .95."""
    rng, alarms, wrong = np.random.default_rng(int(two)), 0, 0
    for _ in range(60):
        rows, q = tree(rng)
        about = {"other": source(rng, q)} if two else {"rows": rows}
        audit = audit_samples(source(rng, q), 3, n_max=512, alpha=ALPHA, **about)
        alarms += audit.differs
        wrong += any(least > 0 for *_, least, _ in audit.bounds())
    assert alarms <= 9 and wrong <= 9


@pytest.mark.parametrize("two", [False, True])
def test_wrong_sources_are_found_and_the_bounds_hold(two):
    """Each of 4 differs by a total variation of .1 or more: the power is above .99 with 8,192 texts."""
    rng = np.random.default_rng(int(two))
    for _ in range(4):
        rows, q = tree(rng)
        p = other(rng, q)
        distance = abs(p - q).sum() / 2
        about = {"other": source(rng, q)} if two else {"rows": rows}
        audit = audit_samples(source(rng, p), 3, n_max=8192, **about)
        assert audit.differs and "differ" in audit.winner
        *_, (n_seen, _, _, least, most) = audit.bounds()
        assert n_seen >= 20 and least <= distance <= most


@pytest.mark.parametrize("two", [False, True])
def test_texts_that_come_twice_are_found_although_their_shares_are_right(two):
    rng = np.random.default_rng(0)
    rows, q = tree(rng)

    def twice(n):
        return [text for text in source(rng, q)(n // 2) for _ in range(2)]

    about = {"other": source(rng, q)} if two else {"rows": rows}
    audit = audit_samples(twice, 3, n_max=4096, **about)
    assert audit.differs and audit.winner.startswith("texts repeat")


def test_a_token_that_the_rows_do_not_have_is_evidence():
    rows = {(): {0: 0.5, 1: 0.5, "(any other)": 1e-6}}
    audit = audit_samples(lambda n: [[2 if i % 8 == 0 else i % 2] for i in range(n)], 1, rows=rows, n_max=256)
    assert audit.differs and audit.worst()[1] == "(any other)"


def test_the_deviance_by_hand():
    assert deviance_of(5, 10, 0.5) == 0
    assert deviance_of(10, 10, 0.5) == pytest.approx(2 * 10 * np.log(2))
