"""What the exact rules share: the text has the target's distribution, to 1e-12, whatever the draft."""

import itertools

import numpy as np
import pytest
from exactness import accepted, error_by_rounds, error_of
from helpers import SIBLINGS, TreeDrafter

import speculative as sp
from speculative import ModelDrafter, Sampling, SpeculativeSampler, block, exact_match, rejection, traversal
from speculative.testing import TableModel, check_verifier

EXACT = {"rejection": rejection, "block": block, "exact_match": exact_match, "traversal": traversal}
RULES = EXACT | {"Lenient(1)": sp.Lenient(1)}
OF_TREES = ["rejection", "exact_match", "traversal"]
TARGET, OTHER = TableModel.random(3, seed=1, n_ctx=12), TableModel.random(3, seed=2, n_ctx=12)
ZEROS = TableModel([[0.5, 0, 0.5], [0.25, 0.75, 0], [0, 0, 1]], n_ctx=12)
LOW, HIGH = TableModel([[1, 0, 0]] * 3, n_ctx=12), TableModel([[0, 0.5, 0.5]] * 3, n_ctx=12)


class Short:
    """At most so many draft tokens of a model after an odd token, none after an even one, whatever K is."""

    def __init__(self, most=1):
        self.most = most

    def propose(self, tokens, K, rng):
        return ModelDrafter(OTHER).propose(tokens, min(K, self.most, tokens[-1] % 2), rng)


CHAINS = {  # target, drafter
    "another model": (TARGET, ModelDrafter(OTHER)),
    "top-k": (TARGET, ModelDrafter(OTHER, sampling=Sampling(top_k=2))),
    "one-hot": (TARGET, ModelDrafter(OTHER, sampling=Sampling(0))),
    "shorter than K": (TARGET, Short()),
    "nothing": (TARGET, Short(0)),
    "q equals p": (TARGET, ModelDrafter(TARGET)),
    "zeros in p": (ZEROS, ModelDrafter(OTHER)),
    "zeros in q": (TARGET, ModelDrafter(ZEROS)),
    "disjoint": (HIGH, ModelDrafter(LOW)),
}
WAYS = [*SIBLINGS, "drawn", "top"]
SHAPES = {"uneven": [-1, -1, 0], "depth first": [-1, 0, 0, -1], "two by two": [-1, -1, 0, 0, 1, 1]}


def of_shape(model, parents, way):
    """A drafter of trees with these parents; in the library's, siblings are all different."""
    if way in SIBLINGS:
        return TreeDrafter(model, parents, way)
    return sp.TreeDrafter(sp.ByPaths(model), sp.Shape(parents, [0] * len(parents)), siblings=way)


TREES = {f"a tree, {way}": (sp.ByPaths(TARGET), of_shape(OTHER, SHAPES["uneven"], way)) for way in WAYS}
CASES = [(rule, case) for rule in RULES for case in (*CHAINS, *TREES) if case in CHAINS or rule in OF_TREES]
SAMPLINGS = {
    "temperature": Sampling(0.7),
    "greedy": Sampling(0),
    "truncated": Sampling(0.8, top_k=3, top_p=0.9, min_p=0.1),
    "looking back": Sampling(repetition_penalty=1.7),
    "penalties": Sampling(processors=[sp.PresencePenalty(0.7, n_prompt=2), sp.FrequencyPenalty(1, n_prompt=2)]),
    "bans": Sampling(processors=[sp.NoRepeatNGram(2), sp.MinTokens(2, end=2, n_prompt=2)]),
    "grammar": Sampling(processors=[sp.Grammar("ab(ab|b)*", [b"a", b"b", b"ab"], end=2, n_prompt=2)]),
}
DRAFTS = {
    "as the sampler": ModelDrafter(OTHER),
    "at temperature 1": ModelDrafter(OTHER, sampling=Sampling()),
    "a tree": TreeDrafter(OTHER, [-1, -1], "without"),
}


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_every_rule_with_every_draft(rule, case):
    """Three tokens in one to three rounds; those together where there are few paths, and for a model."""
    target, drafter = {**CHAINS, **TREES}[case]
    sampler = SpeculativeSampler(target, drafter, verifier=RULES[rule], K=2)
    together = case in ("another model", "one-hot", "shorter than K", "nothing", "a tree, top")
    assert (error_of if together else error_by_rounds)(sampler, 3) < 1e-12
    if case == "nothing":
        assert [r.origins for r in sampler.generate([0], 2, 0).rounds] == [["plain"]] * 2


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(
    ("rule", "draft"),
    [
        *((rule, "as the sampler") for rule in EXACT),
        *((rule, "at temperature 1") for rule in ("rejection", "block")),
        *((rule, "a tree") for rule in OF_TREES),
    ],
)
def test_every_rule_with_every_sampling(rule, sampling, draft):
    """Also those that look back, and whatever the draft is drawn with."""
    sampling = SAMPLINGS[sampling]
    sampler = SpeculativeSampler(sp.ByPaths(TARGET), DRAFTS[draft], verifier=RULES[rule], K=2, sampling=sampling)
    assert error_by_rounds(sampler, 3) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_every_chain_with_every_sampling(rule, K, chain):
    target, drafter = CHAINS[chain]
    for sampling in (Sampling(), *SAMPLINGS.values()):
        if sampling is SAMPLINGS["grammar"] and target in (ZEROS, HIGH):
            continue  # which cannot write what it says
        sampler = SpeculativeSampler(target, drafter, verifier=RULES[rule], K=K, sampling=sampling)
        assert error_of(sampler, 4 if sampling.temperature == 0 else 3) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", [(TARGET, OTHER), (ZEROS, OTHER), (TARGET, ZEROS), (ZEROS, ZEROS)], ids=["pp", "zp", "pz", "zz"]
)
@pytest.mark.parametrize("parents", SHAPES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", OF_TREES)
def test_every_tree_with_every_pair_of_models(rule, way, parents, pair):
    drafter = of_shape(pair[1], SHAPES[parents], way)
    sampler = SpeculativeSampler(sp.ByPaths(pair[0]), drafter, verifier=RULES[rule], K=2)
    assert error_by_rounds(sampler, 3) < 1e-12
    if parents == "uneven" and pair == (TARGET, OTHER):
        assert error_of(sampler, 3) < 1e-12


# ------------------------------------------------------------------------------------------------ what else holds


def test_every_exported_verifier_says_what_it_is():
    """What has an `exactness` is a verifier; one that is exact passes the grader, one that is LOSSY does not."""
    found = {name for name in sp.__all__ if hasattr(getattr(sp, name), "exactness")}
    assert found == {*EXACT, "Lenient", "Typical"}
    for verifier in RULES.values():
        assert verifier.exactness == "exact" or verifier == sp.Lenient(1)
        check_verifier(verifier)
    for kind in (sp.Lenient, sp.Typical):
        assert kind().exactness == "LOSSY" and "LOSSY" in repr(kind()) and "LOSSY" in kind.__doc__
        with pytest.raises(AssertionError):
            check_verifier(kind())


@pytest.mark.parametrize(("K", "seed"), [(1, 0), (2, 0), (2, 1), (3, 0)])
def test_block_accepts_most_of_a_chain_and_exact_match_least(K, seed):
    """Rejection accepts the overlaps of p and q, summed over prefixes. Block verification is traversal."""
    target, draft = (TableModel.random(3, seed=seed + some) for some in (10, 20))
    found = {name: accepted(rule, target, ModelDrafter(draft), K) for name, rule in RULES.items()}
    overlaps = 0.0
    for length in range(1, K + 1):
        for tokens in np.ndindex((3,) * length):
            p, q = (Sampling()(model([0, 1, *tokens], n_last=length + 1))[:-1] for model in (target, draft))
            overlaps += np.prod([min(p[i, x], q[i, x]) for i, x in enumerate(tokens)])
    assert found["rejection"] == pytest.approx(overlaps, abs=1e-12) == found["Lenient(1)"]
    assert found["block"] == pytest.approx(found["traversal"], abs=1e-12)
    assert found["exact_match"] <= found["rejection"] + 1e-12
    assert found["block"] > found["rejection"] + 1e-6 if K > 1 else abs(found["block"] - found["rejection"]) < 1e-12


def test_the_example_of_the_paper():
    """p = (1/3, 2/3), q = (2/3, 1/3), K = 2: 10/9 by rejection, 11/9 by block (arXiv:2403.10444, section 2)."""
    target, drafter = TableModel([[1 / 3, 2 / 3]] * 2), ModelDrafter(TableModel([[2 / 3, 1 / 3]] * 2))
    assert accepted(rejection, target, drafter, 2) == pytest.approx(10 / 9, abs=1e-7)  # the logits are float32
    assert accepted(block, target, drafter, 2) == pytest.approx(11 / 9, abs=1e-7)


def test_traversal_accepts_no_less_of_a_tree_than_rejection():
    gains = []
    for seed in range(3):
        target, draft_model = (TableModel.random(3, seed=seed + some) for some in (10, 20))
        for parents, how in (([-1, -1, 0, 0], "drawn"), ([-1, 0], "iid")):
            drafter = of_shape(draft_model, parents, how)
            gains.append(accepted(traversal, target, drafter, 2) - accepted(rejection, target, drafter, 2))
    assert min(gains) > -1e-12 and max(gains) > 1e-3


@pytest.mark.parametrize(("target", "draft_model"), [*itertools.product([TARGET, OTHER, ZEROS], repeat=2)])
def test_traversal_of_a_chain_is_block_verification(target, draft_model):
    """Verdict for verdict, from the same uniform numbers."""
    for seed in range(60):
        draft = ModelDrafter(draft_model).propose([0], seed % 5, np.random.default_rng(seed))
        target_probs = Sampling()(target([0, *draft.tokens], n_last=seed % 5 + 1))
        sources = [np.random.default_rng(seed) for _ in range(2)]
        assert block(draft, target_probs, sources[0]) == traversal(draft, target_probs, sources[1])
        assert sources[0].random() == sources[1].random()
