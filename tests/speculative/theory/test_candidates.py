"""The acceptance of several candidates: each closed form against the enumeration of the rule that it is about."""

import itertools

import numpy as np
import pytest

from speculative import exact_distribution
from speculative.logits.probs import Sampling, residual, sample_token
from speculative.theory import overlap
from speculative.theory.candidates import (
    RULES,
    P,
    Q,
    drawn_then_most_likely,
    k_seq,
    k_seq_divisor,
    matched,
    most_likely,
    optimum,
    ranked,
    with_replacement,
    without,
    without_replacement,
)

rng = np.random.default_rng(17)
PAIRS = {f"{n} tokens": rng.dirichlet(np.ones(n), 2) for n in (3, 4)}
PAIRS |= {
    "golden": (P, Q),
    "equal": (P, P),
    "disjoint": np.array([[0.3, 0.7, 0, 0], [0, 0, 0.4, 0.6]]),
    "zeros": np.array([[0, 0.5, 0.2, 0.3], [0.6, 0, 0.4, 0]]),
    "one-hot q": np.array([[0.2, 0.3, 0.5], [0, 1, 0]]),
    "one-hot p": np.array([[1, 0, 0], [0.2, 0.3, 0.5]]),
}


def drawn(q, k, rng):
    """k draws from q, each with its row."""
    return [(sample_token(q, rng), q) for _ in range(k)]


def drawn_without_replacement(q, k, rng):
    found = []
    while len(found) < k and q.any():
        found.append((sample_token(q, rng), q))
        q = without(q, found[-1][0])
    return found


def one_and_the_most_likely(q, k, rng):
    top = ranked(q)[: k - 1]
    rest = without(q, top)
    found = [(sample_token(rest, rng), rest)] if rest.any() else []
    return found + [(x, np.eye(len(q))[x]) for x in top]


def the_most_likely(q, k, rng):
    return [(x, np.eye(len(q))[x]) for x in ranked(q)[:k]]


def in_turn(p, candidates, rng):
    """(whether one of the candidates is accepted, the token)."""
    for x, q in candidates:
        if rng.random() * q[x] < p[x]:
            return True, int(x)
        p = residual(p, q)
    return False, sample_token(p, rng)


def by_match(p, candidates, rng):
    own = sample_token(p, rng)
    return own in [x for x, _ in candidates], own


def by_k_seq(p, candidates, rng):
    q, k = candidates[0][1], len(candidates)
    rho = k_seq_divisor(p, q, k)
    for x, _ in candidates:
        if rng.random() * rho * q[x] < p[x]:
            return True, int(x)
    kept = np.minimum(p / rho, q)
    share = (1 - (1 - kept.sum()) ** k) / kept.sum() if kept.any() else 0.0
    return False, sample_token(np.maximum(p - kept * share, 0), rng)


WAYS = {  # the closed form: how candidates are drawn, and the rule
    with_replacement: (drawn, in_turn),
    without_replacement: (drawn_without_replacement, in_turn),
    drawn_then_most_likely: (one_and_the_most_likely, in_turn),
    most_likely: (the_most_likely, in_turn),
    matched: (drawn, by_match),
    k_seq: (drawn, by_k_seq),
}


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("closed_form", WAYS, ids=lambda fn: fn.__name__)
def test_each_closed_form_is_the_acceptance_of_its_rule_which_is_exact(closed_form, pair, k):
    (p, q), (candidates, rule) = PAIRS[pair], WAYS[closed_form]
    distribution = exact_distribution(lambda rng: rule(p, candidates(q, k, rng), rng))
    tokens = [distribution.get((True, x), 0) + distribution.get((False, x), 0) for x in range(len(p))]
    np.testing.assert_allclose(tokens, p, rtol=0, atol=1e-12)
    accepted = sum(share for (is_accepted, _), share in distribution.items() if is_accepted)
    np.testing.assert_allclose(closed_form(p, q, k), accepted, rtol=0, atol=1e-12)


def probability_of_all_in(inside, candidates):
    return sum(share for drawn, share in candidates.items() if set(drawn) <= set(inside))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_optimum_is_the_smallest_cut_over_all_sets_of_tokens(pair, k):
    p, q = PAIRS[pair]
    sets = [list(h) for n in range(len(p) + 1) for h in itertools.combinations(range(len(p)), n)]
    cuts = [p[h].sum() + 1 - q[h].sum() ** k for h in sets]
    np.testing.assert_allclose(optimum(p, q, k), min(cuts), rtol=0, atol=1e-12)


def test_the_optimum_for_a_draft_that_gives_a_token_almost_nothing():
    q = Sampling(0.055)(np.array([[0.0, 40.0, 39.0]]))[0]
    assert q[0] < 1e-308 and optimum(np.array([0.5, 0.25, 0.25]), q, 2) == pytest.approx(0.25, abs=1e-6)


def test_which_rule_accepts_more():
    """Orders without an exception, for random pairs, and those with one candidate: all alike but the two of a match."""
    rng = np.random.default_rng(0)
    for n, k in itertools.product((2, 3, 5), (2, 3)):
        for p, q in rng.dirichlet(np.ones(n), (15, 2)):
            chain = [rule(p, q, k) for rule in (matched, with_replacement, k_seq, optimum)]
            assert (np.diff(chain) > -1e-12).all()
    for rule in RULES.values():
        if rule not in (matched, most_likely):
            assert abs(rule(P, Q, 1) - overlap(P, Q)) < 1e-12


def test_the_rules_of_the_golden_pair():
    """p = (.2, .2, .4, .2), q = (.1, .1, .1, .7), by three independent prototypes."""
    wanted = {
        2: [0.334, 0.65, 0.6719, 0.71, 0.8667, 0.9333, 0.4],
        3: [0.4114, 0.755, 0.7865, 0.857, 0.9333, 1, 0.6],
    }
    for k, column in wanted.items():
        np.testing.assert_allclose([rule(P, Q, k) for rule in RULES.values()], column, atol=5e-5)
