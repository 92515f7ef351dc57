"""What holds for all drafters: with the exact rules, the text has the target's distribution."""

import numpy as np
import pytest
from exactness import error_of
from helpers import random_eagle, random_gpt2, random_heads
from toy_tokenizers import OF_DRAFT, OF_TARGET

import speculative
from gpt2np import Eagle, EarlyExit, Heads, HParams
from speculative import (
    ByPaths,
    EagleDrafter,
    EarlyExitDrafter,
    ForcedDrafter,
    Grammar,
    HeadsDrafter,
    ModelDrafter,
    NGramDrafter,
    NGramModel,
    NoisyDrafter,
    OracleDrafter,
    PromptLookupDrafter,
    Recycling,
    RecyclingDrafter,
    Sampling,
    SharedTokensModel,
    SpeculativeSampler,
    SuffixDrafter,
    TextDrafter,
    TreeDrafter,
    best_tree,
    block,
    exact_match,
    rejection,
    traversal,
    widths,
)
from speculative.drafters.jacobi import JacobiDrafter, LastRows
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.model_tree import RULES
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
GPT2 = random_gpt2(HParams(n_vocab=3, n_ctx=16, n_embd=6, n_head=2, n_layer=2), scale=0.6)
EARLY, HEADS = EarlyExit(GPT2, 1), Heads(GPT2, random_heads(GPT2.hparams, n_heads=2))
EAGLE, OF_TWO = Eagle(GPT2, random_eagle(GPT2.hparams)), Eagle(GPT2, random_eagle(GPT2.hparams), 2)
SHARED = SharedTokensModel(DRAFT, OF_TARGET, OF_DRAFT)
COUNTS = NGramModel.from_tokens([0, 1, 2, 0, 1, 0, 2, 2], n_vocab=3, n=2)
CORPUS = [0, 1, 0, 2, 1]


def around(wrapper, drafter, *arguments, **options):
    """A target that keeps something of its last call, and its drafter."""

    def make():
        target = wrapper(ByPaths(TARGET))
        return target, drafter(target, *arguments, **options)

    return make


def of(drafter, target=TARGET):
    return lambda: (ByPaths(target), drafter)


AB = Grammar("01(01)*", [b"0", b"1", b""], end=2, n_prompt=0)
CHAINS = {
    "ModelDrafter": of(ModelDrafter(DRAFT, threshold=0.3)),
    "ModelDrafter, shared tokens": of(ModelDrafter(SHARED)),
    "TextDrafter": of(TextDrafter(ModelDrafter(DRAFT), OF_TARGET, OF_DRAFT)),
    "NGramDrafter": of(NGramDrafter(COUNTS)),
    "PromptLookupDrafter": of(PromptLookupDrafter(3)),
    "SuffixDrafter": of(SuffixDrafter(3, CORPUS, floor=0.1)),
    "ForcedDrafter": of(ForcedDrafter(lambda text: [*map(int, text)], 3, grammar=AB)),
    "EarlyExitDrafter": lambda: (EARLY, EarlyExitDrafter(EARLY)),
    "EagleDrafter": lambda: (EAGLE, EagleDrafter(EAGLE)),
    "EagleDrafter, frequent": lambda: (OF_TWO, EagleDrafter(OF_TWO)),
    "NoisyDrafter": of(NoisyDrafter(TARGET, 0.5)),
    "OracleDrafter": of(OracleDrafter(TARGET)),
    "JacobiDrafter": around(LastRows, JacobiDrafter),
}
TREES = {
    **{f"TreeDrafter {rule}": of(TreeDrafter(ByPaths(DRAFT), widths(2), siblings=rule)) for rule in RULES},
    "TreeDrafter that grows": of(TreeDrafter(ByPaths(DRAFT), 4, siblings="top")),
    "TreeDrafter, shared tokens": of(TreeDrafter(SHARED, widths(3))),
    "TextDrafter, trees": of(TextDrafter(TreeDrafter(ByPaths(DRAFT), 4, siblings="top"), OF_TARGET, OF_DRAFT)),
    "PromptLookupDrafter, copies": of(PromptLookupDrafter(3, n_copies=2)),
    "SuffixDrafter, nodes": of(SuffixDrafter(3, CORPUS, n_nodes=3, floor=0.1)),
    "HeadsDrafter": lambda: (HEADS, HeadsDrafter(HEADS, 3)),
    "EagleDrafter that grows": lambda: (EAGLE, EagleDrafter(EAGLE, 3, siblings="top")),
    "EagleDrafter, drawn": lambda: (OF_TWO, EagleDrafter(OF_TWO, widths(2, 1), siblings="drawn")),
    "EagleDrafter, without": lambda: (EAGLE, EagleDrafter(EAGLE, widths(2, 1))),
    "RecyclingDrafter": around(lambda target: Recycling(target, n_followers=2), RecyclingDrafter, widths(2, 1)),
    "LookaheadDrafter": around(LastRows, LookaheadDrafter, W=2, N=2, G=2),
}


def error(make, verifier, n_tokens=3, K=2):
    """Drafter and target are built again for each text."""

    def sampler():
        target, drafter = make()
        return SpeculativeSampler(target, drafter, verifier=verifier, K=K)

    return error_of(sampler(), n_tokens, make=sampler)


@pytest.mark.parametrize("verifier", [rejection, block])
@pytest.mark.parametrize("drafter", CHAINS)
def test_a_text_drafted_in_chains_has_the_distribution_of_the_target(drafter, verifier):
    assert error(CHAINS[drafter], verifier) < 1e-12


@pytest.mark.parametrize("verifier", [rejection, traversal])
@pytest.mark.parametrize("drafter", TREES)
def test_a_text_drafted_in_trees_has_the_distribution_of_the_target(drafter, verifier):
    assert error(TREES[drafter], verifier) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("verifier", [rejection, exact_match, traversal])
@pytest.mark.parametrize("drafter", [*CHAINS, *TREES])
def test_with_every_rule_in_longer_drafts(drafter, verifier):
    make = {**CHAINS, **TREES}[drafter]
    assert error(make, verifier, 2, 1) < 1e-12
    assert error(make, verifier, 3, 3) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("siblings", RULES)
@pytest.mark.parametrize("tree", [widths(2, 1), widths(3), best_tree(4, [0.6, 0.3], 2)], ids=["2,1", "3", "best"])
def test_a_models_tree_of_every_shape(siblings, tree):
    for sampling in (Sampling(), Sampling(0.6, top_k=2), Sampling(0)):
        assert error(of(TreeDrafter(ByPaths(DRAFT), tree, siblings=siblings, sampling=sampling)), rejection, 2) < 1e-12


def test_every_exported_drafter_is_among_them():
    exported = {name for name in speculative.__all__ if name.endswith("Drafter")} - {"Drafter"}
    assert exported <= {name.partition(" ")[0].rstrip(",") for name in (*CHAINS, *TREES)}


@pytest.mark.parametrize("drafter", ["JacobiDrafter", "RecyclingDrafter", "LookaheadDrafter", "SuffixDrafter"])
def test_a_text_does_not_depend_on_one_that_ended_after_a_round(drafter):
    """Of the drafters that keep something."""

    def texts(used):
        for seed in range(10):
            target, drafter_ = {**CHAINS, **TREES}[drafter]()
            sampler = SpeculativeSampler(target, drafter_, K=4)
            if used:
                next(sampler.rounds([0, 1, 2], 8, 0))
            yield sampler.generate([0, 1, 2], 8, seed).tokens.tolist()

    assert [*texts(used=True)] == [*texts(used=False)]


@pytest.mark.parametrize("drafter", [PromptLookupDrafter(2048), SuffixDrafter(2048)], ids=["lookup", "suffix"])
def test_copying_pays_where_the_text_repeats(drafter):
    """A target whose text repeats every 20 tokens: after the first period nearly all draft tokens are right."""

    class Circle:
        n_vocab, n_ctx = 2048, 512

        def __call__(self, tokens, n_last=1):
            rows = np.full((n_last, 2048), -np.inf, np.float32)
            rows[np.arange(n_last), [(token + 1) % 20 for token in tokens[-n_last:]]] = 0
            return rows

    stats = SpeculativeSampler(Circle(), drafter, K=4, sampling=Sampling(0)).generate([0], 200).stats
    assert stats.target_calls <= 20 + 180 / 5 + 4 and stats.rejected == 0
