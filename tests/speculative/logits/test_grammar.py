"""Grammars: the automaton agrees with `re`, the tokens with the automaton, and no text is a dead end."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import AutoregressiveSampler, Grammar, MinTokens, Sampling, exact_distribution
from speculative.logits.automaton import byte_automaton, utf8
from speculative.testing import TableModel

ATOMS = (
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", r"\.", "[a-cé]", "€", r"[^\dé-ü]", r"[\w-]", "[]a]", "[^€]", "{"]
    + ["a{", r"\x41", r"[^\n]", r"\S", "[b-]", r"\u20ac", "}", "-", r"\ "]
)  # fmt: skip
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{0}", "{,2}", "{1,}"]
PATTERNS = st.recursive(
    st.sampled_from(ATOMS),
    lambda part: st.one_of(
        st.tuples(part, part).map("".join),
        st.tuples(part, part).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(part, st.sampled_from(QUANTIFIERS)).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)
TEXTS = st.text("ab.A3é€\nü {}-\U0001f600", max_size=4)


@given(PATTERNS, st.lists(TEXTS, min_size=20, max_size=20))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_a_pattern_means_what_it_means_in_python(pattern, texts):
    steps, accepting = byte_automaton(pattern)
    for text in texts:
        state = 0
        for byte in text.encode():
            state = steps[state, byte] if state >= 0 else state
        matches = re.compile(pattern, re.ASCII).fullmatch(text)
        assert (state >= 0 and bool(accepting[state])) == bool(matches), text


@given(st.integers(0, 0x10FFFF), st.sampled_from([0, 1, 70, 5000, 70_000]))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_ranges_of_characters_are_their_utf8(first, n):
    last = min(first + n, 0x10FFFF)
    sequences = [itertools.product(*(range(a, b + 1) for a, b in sequence)) for sequence in utf8(first, last)]
    found = [bytes(codes) for sequence in sequences for codes in sequence]
    assert found == [chr(code).encode() for code in range(first, last + 1) if not 0xD800 <= code < 0xE000]


REFUSED = {
    "(": "expected a regular expression, got '(': ",
    "a**": "expected a regular expression",
    "a*?": "expected a supported grammar, got 'a*?': a grammar has characters",
    **dict.fromkeys(("(?=a)", "(?i:a)", "(?i)a", "^a", "a$", r"a\b", r"(a)\1"), "expected a supported grammar, got "),
    r"[^\s\S]": "no sequence of tokens matches the grammar",
    "c": "no sequence of tokens matches the grammar",
    ".{0,9}": "needs too many states",
    "(a{999}){999}": "needs too many states",
    "(a|" * 400 + "a" + ")" * 400: "needs too many states",
    "(" * 900 + "a" + ")" * 900: "'((((((",
}


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_other_patterns_are_refused(pattern, monkeypatch):
    monkeypatch.setattr("speculative.logits.automaton.MOST_STATES", 20)
    with pytest.raises(ValueError, match=re.escape(REFUSED[pattern])):
        Grammar(pattern, [b"a", b"b", b""], end=2, n_prompt=0)


# ------------------------------------------------------------------------------------------------ tokens

VOCABULARY = [b"a", b"b", b"ab", b"", b"aba", b"<|end|>", b"\xc3", b"\xa9"]
END, SPECIAL = 5, 3


@pytest.mark.parametrize("pattern", ["ab(ab|b)*", "(ab?)+", "a|é|", r"[^\n]*b"])
def test_the_texts_are_those_that_match(pattern):
    """All and only they, in every tokenisation, without special tokens, even if their bytes match."""
    grammar, found, waiting = Grammar(pattern, VOCABULARY, END, 0), [], [()]
    while waiting:
        tokens = waiting.pop()
        allowed = np.flatnonzero(grammar(np.zeros(len(VOCABULARY) + 1), list(tokens)) == 0).tolist()
        found += [tokens] * (END in allowed)
        waiting += [(*tokens, token) for token in allowed if token != END and len(tokens) < 3]
    ordinary = [token for token in range(len(VOCABULARY)) if token not in (END, SPECIAL)]
    every = [tokens for n in range(4) for tokens in itertools.product(ordinary, repeat=n)]
    text_of = {tokens: b"".join(VOCABULARY[token] for token in tokens).decode(errors="replace") for tokens in every}
    wanted = [tokens for tokens, text in text_of.items() if "\ufffd" not in text and re.fullmatch(pattern, text)]
    assert sorted(found) == sorted(wanted)


def test_no_text_is_a_dead_end():
    """After "a" only "c" could follow, which no token begins with; and half a character needs its other half."""
    grammar = Grammar("(ac|b)é?", [b"a", b"b", b"\xc3", b"", b"\xa9x"], end=3, n_prompt=0)
    np.testing.assert_array_equal(grammar.tokens[0], [1])
    np.testing.assert_array_equal(grammar(np.zeros(5), [1]), [-np.inf, -np.inf, -np.inf, 0, -np.inf])


def test_after_the_end_and_off_the_grammar():
    grammar, logits = Grammar("ab", VOCABULARY, END, n_prompt=2), np.arange(9.0)
    only_end = np.where(np.arange(9) == END, logits, -np.inf)
    for new in ([0, 1], [2, END], [2, END, END]):
        np.testing.assert_array_equal(grammar(logits, [7, 7, *new]), only_end)
    for new in ([1], [0, 1, 0], [2, END, 0], [100], [SPECIAL]):
        assert grammar.state([7, 7, *new]) is None
        np.testing.assert_array_equal(grammar(logits, [7, 7, *new]), logits)
    np.testing.assert_array_equal(grammar(logits, [7]), grammar(logits, [7, 7]))  # a text shorter than the prompt
    assert np.isfinite(grammar(logits, [7, 7])).tolist() == [token in (0, 2) for token in range(9)]


def test_what_must_follow():
    grammar = Grammar("aba(a|bb)", VOCABULARY, END, 0)
    assert [grammar.forced(text) for text in ([], [0], [4], [4, 0], [4, 1], [4, 0, END], [1])] == [
        (b"aba", False), (b"ba", False), (b"", False), (b"", True), (b"b", True), (b"", True), (b"", False),
    ]  # fmt: skip


def test_a_set_of_strings_and_what_lossless_means():
    """The masked target is not the target given that it matches: arXiv:2405.21047."""
    pattern = "|".join(map(re.escape, ("a.b", "(b)")))
    grammar, model = Grammar(pattern, [b"a", b".", b"b", b"(", b")", b""], 5, n_prompt=1), TableModel.random(6, seed=3)
    sampler = AutoregressiveSampler(model, sampling=Sampling(processors=[grammar]))
    found = exact_distribution(lambda rng: sampler.generate([5], 4, rng, stop_tokens=[5]).tokens)
    free, first, (a, b) = model.distribution([5], 4), np.exp(model([5])[0]), ((0, 1, 2, 5), (3, 2, 4, 5))
    assert found[a] == pytest.approx(first[0] / (first[0] + first[3]), abs=1e-6)
    assert abs(found[a] - free[a] / (free[a] + free[b])) > 0.01


def test_a_grammar_has_the_last_word_if_it_comes_first_and_is_never_passed_over():
    """Only the end may follow; the minimal length would forbid it, and is passed over."""
    grammar, least, row = Grammar("a", VOCABULARY, END, 0), MinTokens(5, END, 0), np.zeros((1, 8))
    np.testing.assert_array_equal(Sampling(processors=[grammar, least])(row, [0]), [np.eye(8)[END]])
    with pytest.raises(ValueError, match=r"Grammar\('a'.* forbids all tokens that are left: put it first"):
        Sampling(processors=[least, grammar])(row, [0])
    row[0, END] = -np.inf  # a draft model that never ends a text, such as one with a few frequent tokens
    assert Sampling(processors=[grammar, least])(row, [0])[0, END] == 0
