import numpy as np
import pytest
from helpers import TreeDrafter

from speculative import ByPaths, ModelDrafter, Sampling, SpeculativeSampler, rejection
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(7, seed=1, n_ctx=64), TableModel.random(7, seed=2, n_ctx=64)


@pytest.fixture(autouse=True)
def sampled_once(monkeypatch):
    """An enumeration asks for the same few rows thousands of times: those of small vocabularies are remembered."""
    compute, known = Sampling.__call__, {}

    def remembered(sampling, logits, tokens=None, parents=()):
        logits = np.asarray(logits)
        if logits.size > 50 or sampling.processors or sampling.repetition_penalty != 1:
            return compute(sampling, logits, tokens, parents)
        key = id(sampling), logits.dtype, logits.shape, logits.tobytes()
        if key not in known:
            known[key] = compute(sampling, logits, tokens, parents), sampling  # which stays, and so does its id
        return known[key][0].copy()

    monkeypatch.setattr(Sampling, "__call__", remembered)


@pytest.fixture
def generated():
    """A function that generates a text with drafts of K tokens, its probabilities kept."""

    def generate(verifier=rejection, K=3, rng=5, temperature=1.0, n_tokens=30, **options):
        sampling = Sampling(temperature)
        drafter = ModelDrafter(DRAFT, sampling=sampling)
        sampler = SpeculativeSampler(TARGET, drafter, verifier=verifier, K=K, sampling=sampling)
        return sampler.generate([3, 1], n_tokens, rng, keep_probs=True, **options)

    return generate


@pytest.fixture
def of_trees():
    """The same with drafts that branch."""

    def generate(verifier=rejection, parents=(-1, -1, 0, 0, 1, 3), n_tokens=60, keep_probs=True):
        target, draft = (TableModel.random(3, seed=seed, n_ctx=64) for seed in (1, 2))
        drafter = TreeDrafter(draft, list(parents), "without")
        sampler = SpeculativeSampler(ByPaths(target), drafter, verifier=verifier, K=3)
        return sampler.generate([0], n_tokens, 7, keep_probs=keep_probs)

    return generate
