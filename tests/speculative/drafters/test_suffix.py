"""The suffix drafter: its automaton knows every substring, its drafts are those of its definition."""

from hypothesis import given, settings
from hypothesis import strategies as st

from speculative import SuffixDrafter
from speculative.drafters.suffix import SuffixAutomaton

texts = st.lists(st.integers(0, 2), max_size=30)


def guesses(drafter, tokens, K=4):
    return drafter.propose(tokens, K, None).tokens.tolist()


def places(tokens, part):
    """How often `part` occurs in `tokens`."""
    return sum(tokens[i : i + len(part)] == part for i in range(len(tokens) - len(part) + 1))


@given(texts, st.integers(0, 30), texts)
@settings(deadline=None, derandomize=True)
def test_the_automaton_knows_every_substring_how_often_it_occurs_and_the_longest_match(tokens, n_at_once, other):
    automaton, n = SuffixAutomaton(tokens[:n_at_once]), len(tokens)
    for token in tokens[n_at_once:]:
        automaton.extend(token)
    found, pending = {}, [((), 0)]
    while pending:  # every path from the start is a substring, and no substring is missing
        part, state = pending.pop()
        found[part] = automaton.count[state]
        pending += [((*part, token), after) for token, after in automaton.following[state].items()]
    substrings = {tuple(tokens[i:j]) for i in range(n) for j in range(i + 1, n + 1)}
    assert found.keys() - {()} == substrings and len(automaton.link) <= max(1, 2 * n)
    assert all(found[part] == places(tokens, list(part)) for part in substrings)
    _, length = automaton.match(other)
    assert length == max(n for n in range(len(other) + 1) if n == 0 or places(tokens, other[len(other) - n :]))


def by_definition(corpus, tokens, K, floor, factor, n_min):
    """The suffix drafter's tokens, with counts looked up in the texts themselves."""
    found = [(n, tokens) for n in range(n_min, len(tokens)) if places(tokens, tokens[-n:]) > 1]
    found += [(n, corpus) for n in range(n_min, len(tokens) + 1) if places(corpus, tokens[-n:])]
    n, text = max(found, key=lambda match: (match[0], match[1] is tokens), default=(0, tokens))
    part, drafted, probability = tokens[len(tokens) - n :], [], 1.0
    while len(drafted) < min(K, int(factor * n)):
        counts = [places(text, [*part, *drafted, token]) for token in range(3)]
        if not sum(counts) or (probability := probability * max(counts) / sum(counts)) < floor:
            break
        drafted.append(counts.index(max(counts)))
    return drafted


@given(
    texts,
    texts.filter(bool),
    st.integers(0, 6),
    st.sampled_from([0, 0.3, 0.5, 1]),
    st.sampled_from([0.5, 1, 4]),
    st.integers(1, 3),
)
@settings(deadline=None, derandomize=True)
def test_drafts_are_those_of_the_definition(corpus, tokens, K, floor, factor, n_min):
    drafter = SuffixDrafter(3, corpus, floor=floor, factor=factor, n_min=n_min)
    wanted = by_definition(corpus, tokens, K, floor, factor, n_min)
    guesses(drafter, tokens[: len(tokens) // 2], K)  # the text grows ...
    assert guesses(drafter, tokens, K) == wanted
    guesses(drafter, [2, 2, *tokens], K)  # ... or is another one
    assert guesses(drafter, tokens, K) == wanted


def test_the_tree_branches_where_the_text_did():
    """After 1 came 2 3, 2 4 and 5: two thirds and one third, then a third each. A share equal to the floor is kept."""
    text = [1, 2, 3, 1, 2, 4, 1, 5, 6, 1]
    draft = SuffixDrafter(7, n_min=1, n_nodes=4, floor=0.1).propose(text, 2, None)
    assert draft.tokens.tolist() == [2, 3, 4, 5] and draft.parents.tolist() == [-1, 0, 0, -1]
    assert guesses(SuffixDrafter(7, n_min=1, n_nodes=4), text, 1) == [2, 5]
    assert guesses(SuffixDrafter(7, n_min=1, n_nodes=9, floor=0.4), text) == [2]
    assert guesses(SuffixDrafter(7, n_min=1, n_nodes=4), [1, 2]) == []
    assert guesses(SuffixDrafter(3, n_min=1, n_nodes=2, floor=0.5), [0, 1, 0, 2, 0], 1) == [1, 2]
