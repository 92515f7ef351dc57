"""The museum's toy cases, small enough to enumerate: how far a mistake changes the distribution of the tokens.

Chains are drafted by a model for another. The toy case of trees is one position with two candidates, drawn from
q = (.1, .1, .1, .7) where the target has p = (.2, .2, .4, .2).
"""

from functools import lru_cache

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import exact_distribution
from ..interfaces import Draft
from ..logits.probs import Sampling
from ..sampler import SpeculativeSampler
from ..testing.cases import Case, same
from ..testing.table import TableModel
from ..theory.candidates import P
from ..verifiers.rejection import rejection
from .drafters import Q
from .models import TreeAttention

TARGET, DRAFT = TableModel.random(3, seed=2, n_ctx=12), TableModel.random(3, seed=102, n_ctx=12)
SAMPLING, K, PROMPT, N_TOKENS = Sampling(temperature=0.5), 2, [0, 1], 3


def sampler_with(exhibit):
    """A sampler of the toy case of chains with this mistake in it."""
    drafter, grader = ModelDrafter(DRAFT, sampling=SAMPLING), exhibit.grader.__name__
    if grader == "check_sampler":
        return exhibit.wrong(TARGET, drafter, K=K, sampling=sampling_of(exhibit))
    if getattr(exhibit.wrong, "drafts", False):
        return SpeculativeSampler(TARGET, ModelDrafter(exhibit.wrong(DRAFT)), K=K, sampling=SAMPLING)
    target = exhibit.wrong(TARGET) if grader == "check_language_model" else TARGET
    drafter = exhibit.wrong if grader == "check_drafter" else drafter
    verifier = exhibit.wrong if grader == "check_verifier" else rejection
    return SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=sampling_of(exhibit))


def sampling_of(exhibit):
    """The target's sampling in the toy case: for mistakes in looking back one that does, `toy`."""
    return getattr(exhibit.wrong, "toy", SAMPLING)


def chain_distributions(exhibit):
    """(the distribution of the tokens with this mistake, the right one), dicts tokens -> probability."""

    def generated(rng):
        result = sampler_with(exhibit).generate(list(PROMPT), N_TOKENS, rng)
        return [int(token) for token in getattr(result, "tokens", result)][:N_TOKENS]

    return exact_distribution(generated), TARGET.distribution(PROMPT, N_TOKENS, sampling_of(exhibit))


def tree_distributions(exhibit):
    """The same for the mistakes that only trees can have."""
    if exhibit.grader.__name__ == "check_verifier":
        return with_verifier(exhibit.wrong, *exhibit.draft)
    if exhibit.grader.__name__ == "check_drafter":
        return with_drafter(exhibit.wrong)
    return with_model(exhibit.wrong), with_model(TreeAttention)


def with_verifier(verifier, way, parents=(-1, -1)):
    """The first token; the tokens of the first round, continued by the target, if the first is right.

    Everywhere q = Q; p = P after the text, and P turned by some places after a token.
    """
    case = Case(len(P), parents, "random", np.random.default_rng(0), way)
    for tokens in case.p:
        case.p[tokens], case.q[tokens] = np.roll(P, len(tokens) + sum(tokens)), Q
    found, wanted = case.continued(exact_distribution(lambda rng: case.run(verifier, rng))), case.wanted()
    first = first_token(found)
    return (found, wanted) if is_right(first) else (first, dict(enumerate(P)))


def with_drafter(drafter):
    """The first token; the first tokens of two rounds if it is right. The target has P everywhere."""

    def generated(rng, n_rounds):
        tokens = []
        for _ in range(n_rounds):
            draft = drafter.propose([0] * (1 + len(tokens)), 1, rng)
            verdict = rejection(draft, np.tile(P, (len(draft.tokens) + 1, 1)), rng)
            tokens.append(int([*draft.tokens[list(verdict.nodes)], verdict.next_token][0]))
        return tokens

    first = first_token(exact_distribution(lambda rng: generated(rng, 1)))
    if not is_right(first):
        return first, dict(enumerate(P))
    both = {(a, b): P[a] * P[b] for a in range(len(P)) for b in range(len(P))}
    return exact_distribution(lambda rng: generated(rng, 2)), both


def first_token(distribution):
    return {x: sum(share for tokens, share in distribution.items() if tokens[0] == x) for x in range(len(P))}


def is_right(first):
    return same(list(first.values()), P)


class Nine:
    """Nine certain tokens, a tree of three levels."""

    def propose(self, tokens, K, rng):
        nodes, parents = [0, 1, 2, 0, 1, 2, 0, 1, 2], [-1, -1, -1, 0, 0, 1, 3, 3, 4]
        kept = slice({0: 0, 1: 3, 2: 6}.get(K))
        return Draft(np.array(nodes[kept], np.int64), np.eye(3)[nodes[kept]], np.array(parents[kept], np.int64))


@lru_cache
def with_model(make):
    """Four tokens, drafted by `Nine`."""
    return exact_distribution(lambda rng: SpeculativeSampler(make(), Nine(), K=3).generate([0, 1], 4, rng).tokens)
