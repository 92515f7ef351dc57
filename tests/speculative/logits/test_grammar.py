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


def reads(pattern, text):
    steps, accepting = byte_automaton(pattern)
    state = 0
    for byte in text.encode():
        state = steps[state, byte]
        if state < 0:
            return False
    return bool(accepting[state])


@given(PATTERNS, st.lists(TEXTS, min_size=20, max_size=20))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_a_pattern_means_what_it_means_in_python(pattern, texts):
    whole = re.compile(pattern, re.ASCII)
    for text in texts:
        assert reads(pattern, text) == bool(whole.fullmatch(text)), text


@given(st.integers(0, 0x10FFFF), st.sampled_from([0, 1, 70, 5000, 70_000]))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_ranges_of_characters_are_their_utf8(first, n):
    last = min(first + n, 0x10FFFF)
    sequences = [itertools.product(*(range(a, b + 1) for a, b in sequence)) for sequence in utf8(first, last)]
    found = [bytes(codes) for sequence in sequences for codes in sequence]
    assert found == [chr(code).encode() for code in range(first, last + 1) if not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "expected a regular expression, got '(': "),
        ("a**", "expected a regular expression"),
        ("a*?", "expected a grammar without '*?', got 'a*?': a grammar has characters"),
        ("(?=a)", "(?...) other than (?:...)"),
        ("^a", "the anchor ^"),
        ("a$", "the anchor $"),
        (r"a\b", r"\b"),
        (r"(a)\1", r"\1"),
        (r"[^\s\S]", "no sequence of tokens matches the grammar"),
        ("c", "no sequence of tokens matches the grammar"),
        (".{0,9}", "needs too many states"),
        ("(a{999}){999}", "needs too many states"),
        ("(" * 900 + "a" + ")" * 900, "'(((((("),
    ],
)
def test_other_patterns_are_refused(pattern, words, monkeypatch):
    monkeypatch.setattr("speculative.logits.automaton.MOST_STATES", 20)
    with pytest.raises(ValueError, match=re.escape(words)):
        Grammar(pattern, [b"a", b"b", b""], end=2, n_prompt=0)


# ------------------------------------------------------------------------------------------------ tokens

VOCABULARY = [b"a", b"b", b"ab", b"", b"aba", b"<|end|>", b"\xc3", b"\xa9"]
END, SPECIAL = 5, 3


def texts(grammar, most):
    """All sequences of at most this many tokens that the grammar lets through, each followed by `end`."""
    found, waiting = [], [[]]
    while waiting:
        tokens = waiting.pop()
        for token in np.flatnonzero(grammar(np.zeros(len(VOCABULARY) + 1), tokens) == 0).tolist():
            if token == END:
                found.append(tokens)
            elif len(tokens) < most:
                waiting.append([*tokens, token])
    return found


@pytest.mark.parametrize("pattern", ["ab(ab|b)*", "(ab?)+", "a|é|", r"[^\n]*b"])
def test_the_texts_are_those_that_match(pattern):
    """All and only they, in every tokenisation, without special tokens, even if their bytes match."""
    found = [tuple(tokens) for tokens in texts(Grammar(pattern, VOCABULARY, END, 0), 3)]
    ordinary = [token for token in range(len(VOCABULARY)) if token not in (END, SPECIAL)]
    wanted = [
        tokens
        for n in range(4)
        for tokens in itertools.product(ordinary, repeat=n)
        for text in [b"".join(VOCABULARY[token] for token in tokens).decode(errors="replace")]
        if "\ufffd" not in text and re.fullmatch(pattern, text)
    ]
    assert sorted(found) == sorted(wanted)


def test_no_text_is_a_dead_end():
    """After "a" only "c" could follow, which no token begins with; and half a character needs its other half."""
    grammar = Grammar("(ac|b)é?", [b"a", b"b", b"\xc3", b"", b"\xa9x"], end=3, n_prompt=0)
    np.testing.assert_array_equal(grammar.tokens[0], [1])
    np.testing.assert_array_equal(grammar(np.zeros(5), [1]), [-np.inf, -np.inf, -np.inf, 0, -np.inf])


def test_after_the_end_and_off_the_grammar():
    grammar, logits = Grammar("ab", VOCABULARY, END, n_prompt=2), np.arange(9.0)
    only_end = np.where(np.arange(9) == END, logits, -np.inf)
    for text in ([7, 7, 0, 1], [7, 7, 2, END], [7, 7, 2, END, END]):
        np.testing.assert_array_equal(grammar(logits, text), only_end)
    for text in ([7, 7, 1], [7, 7, 0, 1, 0], [7, 7, 2, END, 0], [7, 7, 100], [7, 7, SPECIAL]):
        assert grammar.state(text) is None
        np.testing.assert_array_equal(grammar(logits, text), logits)
    assert grammar(logits, [7])[0] == 0 == grammar(logits, [7, 7])[0]  # a text shorter than the prompt


def test_what_must_follow():
    grammar = Grammar("aba(a|bb)", VOCABULARY, END, 0)
    assert [grammar.forced(text) for text in ([], [0], [4], [4, 0], [4, 1], [4, 0, END], [1])] == [
        (b"aba", False), (b"ba", False), (b"", False), (b"", True), (b"b", True), (b"", True), (b"", False),
    ]  # fmt: skip


def test_a_set_of_strings_and_what_lossless_means():
    """The masked target is not the target given that it matches: arXiv:2405.21047."""
    strings = ["a.b", "(b)"]
    grammar = Grammar("|".join(map(re.escape, strings)), [b"a", b".", b"b", b"(", b")", b""], end=5, n_prompt=1)
    model = TableModel.random(6, seed=3)
    sampler = AutoregressiveSampler(model, sampling=Sampling(processors=[grammar]))
    found = exact_distribution(lambda rng: sampler.generate([5], 4, rng, stop_tokens=[5]).tokens)
    free = model.distribution([5], 4)
    given = {tokens: free[tokens] for tokens in ((0, 1, 2, 5), (3, 2, 4, 5))}
    first = np.exp(model([5])[0])
    assert found[0, 1, 2, 5] == pytest.approx(first[0] / (first[0] + first[3]), abs=1e-6)
    assert abs(found[0, 1, 2, 5] - given[0, 1, 2, 5] / sum(given.values())) > 0.01


def test_the_grammar_has_the_last_word_if_it_comes_first():
    """Only the end may follow; the minimal length would forbid it, and is passed over."""
    grammar = Grammar("a", VOCABULARY, END, 0)
    sampling = Sampling(processors=[grammar, MinTokens(5, END, 0)])
    np.testing.assert_array_equal(sampling(np.zeros((1, 8)), [0]), [np.eye(8)[END]])


def test_a_grammar_is_never_passed_over():
    sampling = Sampling(processors=[MinTokens(5, END, 0), Grammar("a", VOCABULARY, END, 0)])
    with pytest.raises(ValueError, match=r"Grammar\('a'.* forbids all tokens that are left: put it first"):
        sampling(np.zeros((1, 8)), [0])
