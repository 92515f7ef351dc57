"""What holds for all drafters: with the exact rules, the text has the target's distribution."""

import numpy as np
import pytest
from exactness import error_of
from helpers import random_eagle, random_gpt2, random_heads
from toy_tokenizers import OF_DRAFT, OF_TARGET

import speculative
from gpt2np import EarlyExit, HParams
from speculative import (
    ByPaths,
    EagleDrafter,
    EarlyExitDrafter,
    ForcedDrafter,
    Grammar,
    Grown,
    HeadsDrafter,
    ModelDrafter,
    NGramDrafter,
    NGramModel,
    NoisyDrafter,
    OracleDrafter,
    PromptLookupDrafter,
    RecyclingDrafter,
    Sampling,
    Shape,
    SharedTokensModel,
    SpeculativeSampler,
    SuffixDrafter,
    TextDrafter,
    TreeDrafter,
    block,
    exact_match,
    rejection,
    traversal,
)
from speculative.drafters.jacobi import JacobiDrafter
from speculative.drafters.lookahead import LookaheadDrafter
from speculative.drafters.model_tree import RULES
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
GPT2 = random_gpt2(HParams(n_vocab=3, n_ctx=16, n_embd=6, n_head=2, n_layer=2), scale=0.6)
EARLY, HEADS, BLOCK = EarlyExit(GPT2, 1), random_heads(GPT2.hparams, n_heads=2), random_eagle(GPT2.hparams)
SHARED = SharedTokensModel(DRAFT, OF_TARGET, OF_DRAFT)
COUNTS = NGramModel.from_tokens([0, 1, 2, 0, 1, 0, 2, 2], n_vocab=3, n=2)
CORPUS = [0, 1, 0, 2, 1]


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
    "EagleDrafter": lambda: (GPT2, EagleDrafter(GPT2, BLOCK)),
    "EagleDrafter, frequent": lambda: (GPT2, EagleDrafter(GPT2, BLOCK, n_frequent=2)),
    "NoisyDrafter": of(NoisyDrafter(TARGET, 0.5)),
    "OracleDrafter": of(OracleDrafter(TARGET)),
    "JacobiDrafter": lambda: (ByPaths(TARGET), JacobiDrafter(3)),
}
TREES = {
    **{f"TreeDrafter {rule}": of(TreeDrafter(ByPaths(DRAFT), Shape.widths(2), siblings=rule)) for rule in RULES},
    "TreeDrafter that grows": of(TreeDrafter(ByPaths(DRAFT), Grown(4), siblings="top")),
    "TreeDrafter, shared tokens": of(TreeDrafter(SHARED, Shape.widths(3))),
    "TextDrafter, trees": of(TextDrafter(TreeDrafter(ByPaths(DRAFT), Grown(4), siblings="top"), OF_TARGET, OF_DRAFT)),
    "PromptLookupDrafter, copies": of(PromptLookupDrafter(3, n_copies=2)),
    "SuffixDrafter, nodes": of(SuffixDrafter(3, CORPUS, n_nodes=3, floor=0.1)),
    "HeadsDrafter": lambda: (GPT2, HeadsDrafter(GPT2, HEADS, Shape.widths(2, 1))),
    "EagleDrafter that grows": lambda: (GPT2, EagleDrafter(GPT2, BLOCK, Grown(3), siblings="top")),
    "EagleDrafter, drawn": lambda: (
        GPT2,
        EagleDrafter(GPT2, BLOCK, Shape.widths(2, 1), n_frequent=2, siblings="drawn"),
    ),
    "EagleDrafter, without": lambda: (GPT2, EagleDrafter(GPT2, BLOCK, Shape.widths(2, 1))),
    "RecyclingDrafter": lambda: (ByPaths(TARGET), RecyclingDrafter(3, Shape.widths(2, 1), n_followers=2)),
    "LookaheadDrafter": lambda: (ByPaths(TARGET), LookaheadDrafter(3, W=2, N=2, G=2)),
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
@pytest.mark.parametrize(
    "tree", [Shape.widths(2, 1), Shape.widths(3), Shape.best(4, [0.6, 0.3], 2)], ids=["2,1", "3", "best"]
)
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


@pytest.mark.parametrize("drafter", ["EagleDrafter", "EagleDrafter that grows", "HeadsDrafter"])
def test_the_target_makes_one_pass_a_round_and_one_before_the_first(drafter, monkeypatch):
    """Drafts start from the hidden states that the target kept of its last call."""
    target, drafter_ = {**CHAINS, **TREES}[drafter]()
    passes, run = [], target.run
    monkeypatch.setattr(target, "run", lambda *call: passes.append(call) or run(*call))
    target.reset()
    rounds = SpeculativeSampler(target, drafter_, K=2).generate([0, 1, 2], 10, 0).rounds
    assert len(passes) == len(rounds) + 1


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
