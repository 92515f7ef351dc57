"""The grader of drafters: right answers and the library's own drafters pass; the mistakes in wrong ones are named."""

import itertools

import numpy as np
import pytest
from helpers import random_eagle, random_gpt2, random_heads, random_parallel
from students import answers, drafters, told
from toy_tokenizers import OF_DRAFT, OF_TARGET

import speculative
from gpt2np import EarlyExit, HParams
from speculative import (
    AutoregressiveSampler,
    BlockDrafter,
    Draft,
    EagleDrafter,
    EarlyExitDrafter,
    ForcedDrafter,
    Grammar,
    HeadsDrafter,
    JacobiDrafter,
    LookaheadDrafter,
    ModelDrafter,
    NGramDrafter,
    NGramModel,
    NoisyDrafter,
    OracleDrafter,
    PromptLookupDrafter,
    Sampling,
    Shape,
    SharedTokensModel,
    SpeculativeSampler,
    SuffixDrafter,
    TextDrafter,
    exact_distribution,
    sample_token,
)
from speculative.testing import TableModel, check_drafter
from speculative.testing.cases import largest_difference

FEW = ("plain", "lookup", "choice", "greedy, one-hot", "nothing", "AddsLists", "KeepsTheUnlikely")


def check(drafter):
    check_drafter(drafter, n_vocab=3)


@pytest.mark.parametrize(("answer", "words"), answers("RIGHT", drafters, quick=FEW))
def test_right_ones_pass_in_any_style(answer, words, capsys):
    check(answer)
    said = capsys.readouterr().out
    notes = "note: your drafter is right for a list of tokens", "note: your drafter is right, but proposes nothing"
    assert said == "" or said.startswith(notes), said


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", drafters))
def test_the_mistake_is_named(answer, words):
    said = told(check, answer)
    assert all(word in said for word in words), said


AB = Grammar("(ab)*", [b"a", b"b", b""], end=2, n_prompt=0)


def exported():
    """Some of each exported drafter; a new one must be added here."""
    model, text = TableModel.random(3), [0, 1, 2, 0, 1, 1, 0]
    table = NGramModel.from_tokens(text, n_vocab=3)
    shape = HParams(n_vocab=3, n_ctx=23, n_embd=15, n_head=3, n_layer=2)
    target, heads, block = random_gpt2(shape), random_heads(shape), random_eagle(shape)
    whole = EarlyExit(target, 1)
    all_options = Sampling(0.7, top_k=2, top_p=0.9, min_p=0.1, repetition_penalty=1.3)
    return {
        "ModelDrafter": [
            ModelDrafter(model, sampling=Sampling(0.7)),
            ModelDrafter(model, sampling=all_options),
            ModelDrafter(model, threshold=0.4),
            ModelDrafter(SharedTokensModel(model, OF_TARGET, OF_DRAFT)),
        ],
        "EagleDrafter": [
            EagleDrafter(target, block, sampling=all_options),
            EagleDrafter(target, block, threshold=0.4),
            EagleDrafter(target, block, n_frequent=2),
        ],  # trees: test_eagle.py
        "BlockDrafter": [BlockDrafter(target, random_parallel(shape), sampling=all_options)],
        "EarlyExitDrafter": [EarlyExitDrafter(whole), EarlyExitDrafter(whole, threshold=0.4)],
        "ForcedDrafter": [ForcedDrafter(lambda text: ["ab".index(letter) for letter in text], 3, grammar=AB)],
        "HeadsDrafter": [HeadsDrafter(target, heads, Shape([-1, 0], [0, 1]))],  # trees: test_heads.py
        "JacobiDrafter": [JacobiDrafter(3)],
        "LookaheadDrafter": [LookaheadDrafter(3, W=1, N=2)],
        "NGramDrafter": [NGramDrafter(table), NGramDrafter(table, sampling=all_options, threshold=0.4)],
        "NoisyDrafter": [NoisyDrafter(model, 0.3, sampling=all_options)],
        "OracleDrafter": [OracleDrafter(model)],
        "PromptLookupDrafter": [PromptLookupDrafter(3)],
        "TextDrafter": [
            TextDrafter(ModelDrafter(model, sampling=own), OF_TARGET, OF_DRAFT) for own in (None, Sampling())
        ],
        "SuffixDrafter": [SuffixDrafter(3), SuffixDrafter(3, text, floor=0)],
    }


class SoftRows:
    """Learns the target's last row, and proposes its most probable token with that row."""

    row = None

    def observe(self, tokens, logits, parents):
        self.row = Sampling()(logits[-1:])[0]

    def propose(self, tokens, K, rng):
        k = 0 if self.row is None else K
        row = np.ones(3) / 3 if self.row is None else self.row
        return Draft(np.full(k, row.argmax()), np.tile(row, (k, 1)))


class Nothing:
    def propose(self, tokens, K, rng):
        return Draft(np.empty(0, np.int64), np.empty((0, 3)))


class ObservesTokens(Nothing):
    def observe(self, tokens):
        pass


class Inherits(Nothing):
    """Needs a sampling, which samplers fill in."""

    sampling = None

    def propose(self, tokens, K, rng):
        row = self.sampling(np.log([[0.5, 0.3, 0.2]]), tokens)[0]
        return Draft(np.array([sample_token(row, rng) for _ in range(K)], np.int64), np.tile(row, (K, 1)))


def test_a_drafter_that_learns_is_shown_a_targets_answers(capsys):
    assert "your drafter takes one token for certain" in told(check, SoftRows())
    assert "observe() takes 2 positional arguments" in told(check, ObservesTokens())
    check(JacobiDrafter(3))
    assert "proposes nothing" not in capsys.readouterr().out
    check(Nothing())
    assert "your drafter is right, but proposes nothing for any of the texts" in capsys.readouterr().out


def test_a_drafter_without_a_sampling_is_given_one():
    check(Inherits())


def test_every_exported_drafter_is_looked_at():
    names = {name for name in speculative.__all__ if name.endswith("Drafter")} - {"Drafter"}
    assert names - {"TreeDrafter", "RecyclingDrafter"} == exported().keys()  # trees: test_tree_drafters.py


@pytest.mark.parametrize("name", exported())
def test_every_drafter_passes_its_grader_and_is_exact_in_the_loop(name):
    target = TableModel.random(3, seed=5, n_ctx=12)
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(target).generate([0, 1, 0], 3, rng).tokens)
    for drafter, K in itertools.product(exported()[name], (1, 2)):
        if K == 1:
            check(drafter)
        sampler = SpeculativeSampler(target, drafter, K=K)
        distribution = exact_distribution(lambda rng, sampler=sampler: sampler.generate([0, 1, 0], 3, rng).tokens)
        assert largest_difference(distribution, wanted) < 1e-12
