import pytest

from speculative import AutoregressiveSampler, ModelDrafter, PromptLookupDrafter, Sampling, SpeculativeSampler


@pytest.fixture
def ways():
    """A function that returns every way to a target's greedy text."""

    def samplers(target, same, draft):
        greedy = Sampling(0)
        drafters = {
            "with itself as draft": ModelDrafter(same, sampling=greedy),
            "with another draft": ModelDrafter(draft, sampling=greedy),
            "with prompt lookup": PromptLookupDrafter(target.n_vocab),
        }
        speculative = {name: SpeculativeSampler(target, d, K=3, sampling=greedy) for name, d in drafters.items()}
        return {"alone": AutoregressiveSampler(target, sampling=greedy), **speculative}

    return samplers
