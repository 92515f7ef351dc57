"""Where a text stops: at the first stop token or stop text, wherever it falls in a block, and exactly there."""

import itertools

import pytest

from speculative import AutoregressiveSampler, ByPaths, ModelDrafter, Shape, SpeculativeSampler, StopText, TreeDrafter
from speculative.testing import TableModel

TARGET, OTHER = TableModel.random(4, seed=1, n_ctx=20), TableModel.random(4, seed=2, n_ctx=20)
LETTERS = ["a", "b", "ab", "\N{SNOWMAN}"]
SAMPLERS = [
    AutoregressiveSampler(TARGET),
    *(SpeculativeSampler(TARGET, ModelDrafter(OTHER), K=K) for K in (1, 3, 5)),
    SpeculativeSampler(ByPaths(TARGET), TreeDrafter(ByPaths(OTHER), Shape.widths(2, 1)), K=2),
]


def decode(tokens):
    return "".join(LETTERS[token] for token in tokens)


@pytest.mark.parametrize("stop", [{"stop_tokens": [1]}, {"stop_tokens": [2, 3]}, {"stop": StopText("aba", decode)}])
def test_a_text_stops_wherever_the_stop_falls(stop):
    """The text is the one without it, up to the first token that completes it; one in the prompt does not count."""
    prompt, places = [1, 2, 2], set()
    for seed, sampler in itertools.product(range(16), SAMPLERS):
        whole = sampler.generate(prompt, 12, seed).tokens.tolist()
        ends = (n for n in range(1, 13) if whole[n - 1] in stop.get("stop_tokens", ()))
        if "stop" in stop:
            ends = (n for n in range(1, 13) if "aba" in decode(whole[:n]))
        n = next(ends, 12)
        stopped = sampler.generate(prompt, 12, seed, **stop)
        assert stopped.tokens.tolist() == whole[:n]
        origins = [origin for r in stopped.rounds for origin in r.origins]
        assert len(origins) == n and stopped.stats.accepted == origins.count("accepted")
        places |= {origins[-1]} if n < 12 else set()
    assert places == {"accepted", "correction", "bonus", "plain"}


def test_the_text_is_cut_after_the_stop_text():
    assert [StopText("ba", decode).cut(text) for text in ("abba", "abab", "bb")] == ["abba", "aba", "bb"]


def test_a_stop_text_may_have_several_tokens_for_a_character():
    stop = StopText("\N{SNOWMAN}", lambda tokens: bytes(tokens).decode("utf-8", errors="replace"))
    assert [stop([97, *"\N{SNOWMAN}".encode()][:n]) for n in (1, 2, 3, 4)] == [False, False, False, True]
