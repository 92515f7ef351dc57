"""The toy cases of the exhibits of trees: how far a mistake changes the distribution, by enumeration."""

from functools import lru_cache

import numpy as np

from ..exact.enumeration import exact_distribution
from ..interfaces import Draft
from ..sampler import SpeculativeSampler
from ..testing.cases import Case
from ..theory.candidates import P
from ..verifiers.rejection import rejection
from .tree_drafters import Q
from .tree_models import TreeAttention


def toy_distributions(exhibit):
    """(the distribution of the tokens with this mistake, the right one), dicts tokens -> probability."""
    if exhibit.draft is not None:
        return of_verifier(exhibit.wrong, *exhibit.draft)
    if exhibit.grader.__name__ == "check_drafter":
        return of_drafter(exhibit.wrong)
    return of_model(exhibit.wrong)


def golden_case(way, parents):
    """Everywhere q = Q; p = P after the text, and P turned by some places after a token."""
    case = Case(len(P), parents, "random", np.random.default_rng(0), way)
    for tokens in case.p:
        case.p[tokens], case.q[tokens] = np.roll(P, len(tokens) + sum(tokens)), Q
    return case


def of_verifier(verifier, way, parents):
    """The first token; the tokens of the first round, continued by the target, if the first is right."""
    case = golden_case(way, parents)
    distributions = case.continued(exact_distribution(lambda rng: case.run(verifier, rng))), case.wanted()
    first = [marginal(distribution) for distribution in distributions]
    return distributions if is_right(*first) else first


def of_drafter(drafter):
    """The first token; the first tokens of two rounds if it is right. The target has P everywhere."""

    def generated(rng, n_rounds):
        tokens = []
        for _ in range(n_rounds):
            draft = drafter.propose([0] * (1 + len(tokens)), 1, rng)
            verdict = rejection(draft, np.tile(P, (len(draft.tokens) + 1, 1)), rng)
            new = *draft.tokens[list(verdict.nodes or ())].tolist(), verdict.next_token
            tokens.append(int(new[0]))
        return tokens

    first = marginal(exact_distribution(lambda rng: generated(rng, 1)))
    if not is_right(first, dict(enumerate(P))):
        return first, dict(enumerate(P))
    both = {(a, b): P[a] * P[b] for a in range(len(P)) for b in range(len(P))}
    return exact_distribution(lambda rng: generated(rng, 2)), both


def marginal(distribution):
    """The distribution of the first token."""
    return {x: sum(share for tokens, share in distribution.items() if tokens[0] == x) for x in range(len(P))}


def is_right(first, wanted):
    return np.allclose([first[x] for x in wanted], list(wanted.values()), rtol=0, atol=1e-12)


class Nine:
    """Nine certain tokens, a tree of three levels."""

    def propose(self, tokens, K, rng):
        nodes, parents = [0, 1, 2, 0, 1, 2, 0, 1, 2], [-1, -1, -1, 0, 0, 1, 3, 3, 4]
        kept = slice({0: 0, 1: 3, 2: 6}.get(K))
        return Draft(np.array(nodes[kept], np.int64), np.eye(3)[nodes[kept]], np.array(parents[kept], np.int64))


def of_model(make):
    """Four tokens, drafted by `Nine`; the right distribution is that of `TreeAttention`."""
    return through_trees(make), through_trees(TreeAttention)


@lru_cache
def through_trees(make):
    return exact_distribution(lambda rng: SpeculativeSampler(make(), Nine(), K=3).generate([0, 1], 4, rng).tokens)
