"""Drafting with a model: a draft ends where the model is unsure or its context ends."""

import numpy as np
import pytest

from speculative import ByPaths, ModelDrafter, NoisyDrafter, Sampling, Shape, SpeculativeSampler, TreeDrafter
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def length(drafter, tokens, K):
    return len(drafter.propose(tokens, K, np.random.default_rng(0)).tokens)


def test_each_token_is_drawn_given_those_before_it():
    tokens = [0, 1]
    draft = ModelDrafter(DRAFT).propose(tokens, 3, np.random.default_rng(0))
    assert tokens == [0, 1] and draft.tokens.shape == (3,)
    for i, row in enumerate(draft.probs):
        np.testing.assert_array_equal(row, Sampling()(DRAFT([0, 1, *draft.tokens[:i]]))[0])
    nothing = ModelDrafter(DRAFT).propose(tokens, 0, np.random.default_rng(0))
    assert nothing.tokens.shape == (0,) and nothing.probs.shape == (0, 3)


def test_a_draft_ends_after_the_first_unsure_token():
    model = TableModel([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.4, 0.3, 0.3]])  # 0 -> 1 -> 2 -> unsure
    for sampling in (Sampling(0), Sampling()):
        drafters = [ModelDrafter(model, sampling=sampling, threshold=t) for t in (0, 0.25, 0.41, 0.9)]
        assert [length(drafter, [0], 2) for drafter in drafters] == [2, 2, 2, 2]
        assert [length(drafter, [2], 3) for drafter in drafters] == [3, 3, 1, 1]
        assert length(drafters[2], [1], 3) == 2  # 2 is sure, what follows it is not, and stays
    with pytest.raises(ValueError, match="expected a threshold from 0 to 1, got 2"):
        ModelDrafter(model, threshold=2)


def test_a_model_with_a_shorter_context_drafts_while_it_can():
    drafter = ModelDrafter(TableModel(DRAFT.probs, n_ctx=10))
    generation = SpeculativeSampler(TARGET, drafter, K=3).generate([0] * 5, 20, 0)
    n_before, drafted = 5, []
    for r in generation.rounds:
        drafted.append((n_before, len(r.drafted)))
        n_before += len(r.tokens)
    assert len(generation.tokens) == 20
    assert all(n == min(3, 25 - at - 1, max(0, 10 - at + 1)) for at, n in drafted)
    assert {n for _, n in drafted} >= {0, 3}


def test_a_penalty_on_the_draft_looks_at_draft_tokens():
    model, sampling = TableModel.random(40, seed=1), Sampling(repetition_penalty=3.0)
    for seed in range(5):
        sampler = SpeculativeSampler(model, ModelDrafter(model), K=4, sampling=sampling)
        assert sampler.generate([0], 20, seed).stats.rejected == 0


@pytest.mark.parametrize("sampling", [Sampling(0), Sampling(top_k=2), Sampling(0.7, repetition_penalty=2.0)], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda own: ModelDrafter(DRAFT, sampling=own),
        lambda own: NoisyDrafter(TARGET, 0.3, sampling=own),
        lambda own: TreeDrafter(ByPaths(DRAFT), Shape.widths(2, 1), sampling=own),
        lambda own: TreeDrafter(ByPaths(DRAFT), Shape.widths(2, 1), siblings="drawn", sampling=own),
    ],
    ids=["chain", "noisy", "tree", "drawn"],
)
def test_a_drafter_samples_as_its_sampler_does_unless_it_is_told_otherwise(make, sampling):
    def drafts(own):
        sampler = SpeculativeSampler(ByPaths(TARGET), make(own), K=3, sampling=sampling)
        return [r.draft_probs.tolist() for r in sampler.generate([0, 1], 12, 0, keep_probs=True).rounds]

    assert drafts(None) == drafts(sampling) != drafts(Sampling())


def test_what_is_no_model_is_refused():
    for make in (ModelDrafter, lambda model: TreeDrafter(model, Shape.widths(2)), ByPaths):
        with pytest.raises(ValueError, match=r"got 'tiny-draft': gpt2np.load\(name\) returns \(model, tokenizer\)"):
            make("tiny-draft")
