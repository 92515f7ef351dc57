"""The acceptance of several candidates: each closed form against the enumeration of the rule that it is about."""

import itertools

import numpy as np
import pytest

from speculative import Draft, Sampling, exact_distribution, exact_match, rejection, sample_token, traversal
from speculative.theory import candidates
from speculative.theory.candidates import P, Q, without

RANDOM = np.random.default_rng(17)
PAIRS = {
    **{f"{n} tokens": RANDOM.dirichlet(np.ones(n), 2) for n in (3, 4)},
    "golden": (P, Q),
    "equal": (P, P),
    "disjoint": np.array([[0.3, 0.7, 0, 0], [0, 0, 0.4, 0.6]]),
    "zeros": np.array([[0, 0.5, 0.2, 0.3], [0.6, 0, 0.4, 0]]),
    "one-hot q": np.array([[0.2, 0.3, 0.5], [0, 1, 0]]),
    "one-hot p": np.array([[1, 0, 0], [0.2, 0.3, 0.5]]),
}
every_pair = pytest.mark.parametrize("pair", PAIRS)


def siblings(q, k, way, rng):
    """A draft of up to k siblings: drawn from q with or without replacement, the most probable, or one drawn before."""
    certain = list(candidates.ranked(q)[: {"top": k, "one drawn": k - 1}.get(way, 0)])
    row, tokens, rows = (without(q, certain) if certain else q), [], []
    while len(tokens) < k - len(certain) and row.any():
        tokens.append(sample_token(row, rng))
        rows.append(row)
        row = without(row, tokens[-1]) if way == "without" else row
    rows = np.reshape([*rows, *np.eye(len(q))[certain]], (-1, len(q)))
    return Draft(np.array([*tokens, *certain], np.int64), rows, np.full(len(rows), -1))


WAYS = [  # the closed form, how siblings are drawn, and the rules that accept as many
    (candidates.with_replacement, "iid", [rejection, traversal]),
    (candidates.without_replacement, "without", [rejection, traversal]),
    (candidates.drawn_then_most_likely, "one drawn", [rejection]),
    (candidates.most_likely, "top", [rejection, exact_match]),
]


@every_pair
@pytest.mark.parametrize(("closed_form", "way", "rules"), WAYS, ids=lambda value: getattr(value, "__name__", None))
def test_each_closed_form_is_the_acceptance_of_its_rules_which_are_exact(closed_form, way, rules, pair):
    p, q = PAIRS[pair]

    def first_token(rng, rule, k):
        draft = siblings(q, k, way, rng)
        verdict = rule(draft, np.array([p, *[np.eye(len(p))[0]] * k]), rng)
        return verdict.n_accepted, draft.tokens[verdict.nodes[0]] if verdict.nodes else verdict.next_token

    for rule, k in itertools.product(rules, (1, 2, 3)):
        distribution = exact_distribution(lambda rng, rule=rule, k=k: first_token(rng, rule, k))
        tokens = [distribution.get((0, x), 0) + distribution.get((1, x), 0) for x in range(len(p))]
        np.testing.assert_allclose(tokens, p, rtol=0, atol=1e-12)
        accepted = sum(share for (n_accepted, _), share in distribution.items() if n_accepted)
        np.testing.assert_allclose(closed_form(p, q, k), accepted, rtol=0, atol=1e-12)


@every_pair
def test_the_optimum_is_the_smallest_cut_over_all_sets_of_tokens(pair):
    p, q = PAIRS[pair]
    sets = [list(h) for n in range(len(p) + 1) for h in itertools.combinations(range(len(p)), n)]
    for k in (1, 2, 3):
        cuts = [p[h].sum() + 1 - q[h].sum() ** k for h in sets]
        np.testing.assert_allclose(candidates.optimum(p, q, k), min(cuts), rtol=0, atol=1e-12)


def test_the_optimum_for_a_draft_that_gives_a_token_almost_nothing():
    q = Sampling(0.055)(np.array([[0.0, 40.0, 39.0]]))[0]
    assert q[0] < 1e-308 and candidates.optimum(np.array([0.5, 0.25, 0.25]), q, 2) == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize(
    ("k", "wanted"),
    [
        (1, [0.5, 0.5, 0.5, 0.5, 0.2]),  # with one candidate all are alike but that of the most likely one
        (2, [0.65, 0.71, 0.8667, 0.9333, 0.4]),
        (3, [0.755, 0.857, 0.9333, 1, 0.6]),
    ],
)
def test_the_rules_of_the_golden_pair(k, wanted):
    """p = (.2, .2, .4, .2), q = (.1, .1, .1, .7), by three independent prototypes."""
    rules = candidates.with_replacement, candidates.optimum
    rules += candidates.without_replacement, candidates.drawn_then_most_likely, candidates.most_likely
    np.testing.assert_allclose([rule(P, Q, k) for rule in rules], wanted, atol=5e-5)
