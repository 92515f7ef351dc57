"""Where a text stops: at the first stop token or stop text, wherever it falls in a block, and exactly there."""

import itertools

import pytest
from exactness import largest_difference

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    ModelDrafter,
    Shape,
    SpeculativeSampler,
    StopText,
    TreeDrafter,
    exact_distribution,
    rejection,
    traversal,
)
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
    """The text is the one without it, up to the first token that completes it; nothing after it is emitted."""

    def is_stopped(tokens):
        return tokens[-1] in stop["stop_tokens"] if "stop_tokens" in stop else "aba" in decode(tokens)

    places = set()
    for seed, sampler in itertools.product(range(25), SAMPLERS):
        whole = sampler.generate([1, 1], 12, seed).tokens.tolist()
        n = next((n for n in range(1, 13) if is_stopped(whole[:n])), 12)
        stopped = sampler.generate([1, 1], 12, seed, **stop)
        assert stopped.tokens.tolist() == whole[:n]
        last, origins = stopped.rounds[-1], [origin for r in stopped.rounds for origin in r.origins]
        assert len(origins) == n and stopped.stats.accepted == origins.count("accepted")
        if n < 12:
            places.add(last.origins[-1])
    assert places == {"accepted", "correction", "bonus", "plain"}


def test_the_text_is_cut_after_the_stop_text():
    stop = StopText("ba", decode)
    assert [stop([1]), stop([1, 0]), stop([1, 2])] == [False, True, True]
    assert [stop.cut(text) for text in ("abba", "abab", "bb")] == ["abba", "aba", "bb"]


@pytest.mark.parametrize("verifier", [rejection, traversal])
def test_a_stopped_text_has_the_distribution_of_the_target(verifier):
    target, draft = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    options = {"stop": StopText("ba", decode), "stop_tokens": [2]}
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(target).generate([0], 3, rng, **options).tokens)
    assert {len(tokens) for tokens in wanted} == {1, 2, 3}
    sampler = SpeculativeSampler(target, ModelDrafter(draft), verifier=verifier, K=2)
    found = exact_distribution(lambda rng: sampler.generate([0], 3, rng, **options).tokens)
    assert largest_difference(found, wanted) < 1e-12


def test_a_stop_text_in_the_prompt_does_not_count():
    target = TableModel([[1, 0, 0, 0]] * 4)
    for sampler in (AutoregressiveSampler(target), SpeculativeSampler(target, ModelDrafter(OTHER))):
        assert sampler.generate([1], 5, 0, stop=StopText("ba", decode)).tokens.tolist() == [0] * 5


def test_a_stop_text_may_have_several_tokens_for_a_character():
    stop = StopText("\N{SNOWMAN}", lambda tokens: bytes(tokens).decode("utf-8", errors="replace"))
    assert [stop([97, *"\N{SNOWMAN}".encode()][:n]) for n in (1, 2, 3, 4)] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected a stop text of at least one character, got an empty one"),
        *(
            (text, "expected a stop text without U+FFFD, which stands for an incomplete character, and without lone "
             f"surrogates, which no text has, got {text!r}") for text in ("a\ufffd", "a\udcff")
        ),
    ],
)  # fmt: skip
def test_what_no_text_has_is_refused(text, sentence):
    with pytest.raises(ValueError) as error:
        StopText(text, decode)
    assert str(error.value) == sentence
