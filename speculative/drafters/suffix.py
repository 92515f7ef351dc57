"""Drafting by copying, with counts: the most frequent continuation of the longest suffix that occurs elsewhere.

A suffix automaton stores every substring of the text and how often it occurs. Building it takes time linear in the
length of the text. One more token takes a few steps; counting takes one step for each suffix that occurs elsewhere.
From the longest suffix of the text that occurs elsewhere, the draft repeatedly follows the most frequent next token,
until the estimated probability of the whole draft falls below a floor or the draft is too long for its match.
Sources: Oliaro et al., SuffixDecoding, arXiv:2411.04975; the automaton: Blumer et al., "The smallest automaton
recognizing the subwords of a text" (1985).
"""

import heapq

from ..interfaces import Draft, RandomSource, Tokens
from .deterministic import one_hot


class SuffixAutomaton:
    """All substrings of a text. A state represents the substrings that end at the same positions.

    `following[state]` maps a token to the next state, `link[state]` is the state of the longest suffix that occurs in
    more positions, `length[state]` the length of the state's longest substring, `count[state]` how often it occurs.
    """

    def __init__(self, tokens=()):
        self.following, self.link = [{}], [-1]
        self.length, self.count = [0], [0]
        self.last, ends = 0, []
        for token in tokens:
            self.append(token)
            ends.append(self.last)
        for state in ends:
            self.count[state] = 1
        for state in sorted(range(1, len(self.link)), key=self.length.__getitem__, reverse=True):
            self.count[self.link[state]] += self.count[state]  # a suffix occurs where longer ones do, and elsewhere

    def extend(self, token):
        """Append a token to the text, and count the suffixes that end with it."""
        self.append(token)
        state = self.last
        while state != -1:
            self.count[state] += 1
            state = self.link[state]

    def append(self, token):
        """Append a token to the text; nothing is counted."""
        new, state = self.add({}, self.length[self.last] + 1, 0), self.last
        while state != -1 and token not in self.following[state]:
            self.following[state][token] = new
            state = self.link[state]
        self.link[new] = 0 if state == -1 else self.split(state, token)
        self.last = new

    def add(self, following, length, count):
        self.following.append(following)
        self.length.append(length)
        self.count.append(count)
        self.link.append(0)
        return len(self.link) - 1

    def split(self, state, token):
        """The state of `state`'s longest substring plus the token; it is created if longer substrings share it."""
        shared = self.following[state][token]
        if self.length[shared] == self.length[state] + 1:  # it is the longest of its state
            return shared
        # Longer substrings share its state, but it occurs at the end of the text as well, and they do not. So it and
        # its suffixes move to a state of their own, with the same continuations and the same count so far.
        clone = self.add(dict(self.following[shared]), self.length[state] + 1, self.count[shared])
        # the longest suffix that occurs in more positions; for the longer substrings it is now in the clone
        self.link[clone], self.link[shared] = self.link[shared], clone
        # `state` and its suffixes, extended by the token, are the substrings that moved
        while state != -1 and self.following[state].get(token) == shared:
            self.following[state][token] = clone
            state = self.link[state]
        return clone

    def match(self, tokens):
        """(state, length) of the longest suffix of the tokens that occurs in the text."""
        state, length = 0, 0
        for token in tokens:
            while state and token not in self.following[state]:
                state = self.link[state]
                length = self.length[state]
            if token in self.following[state]:
                state, length = self.following[state][token], length + 1
        return state, length

    def continuations(self, state, n, depth, floor, width=None):
        """(tokens, parents) of the n continuations with the largest joint probability, each at least `floor`.

        They form a tree of depth at most `depth`, in which a node has at most `width` children, the most frequent ones.
        """
        tokens, parents = [], []
        heap = []  # the continuations that may be drafted next: (-probability, token, node above, state, depth left)

        def push(state, node, probability, left):
            counts = {token: self.count[after] for token, after in self.following[state].items()} if left else {}
            total = sum(counts.values())
            for token in sorted(counts, key=lambda token: (-counts[token], token))[:width]:
                joint = probability * counts[token] / total
                if joint >= floor:
                    heapq.heappush(heap, (-joint, token, node, self.following[state][token], left - 1))

        push(state, -1, 1.0, depth)
        while heap and len(tokens) < n:
            negative, token, node, after, left = heapq.heappop(heap)
            tokens.append(token)
            parents.append(node)
            push(after, len(tokens) - 1, -negative, left)
        return tokens, parents


class SuffixDrafter:
    """Copies from the text itself and from a corpus, if one is given. Draft tokens are deterministic: rows are one-hot.

    Parameters
    ----------
    n_vocab
        The target's number of tokens.
    corpus
        More token ids to copy from. Any 100,000 of them take about a second.
    floor
        A path ends before its estimated joint probability falls below this value.
    factor
        A path has at most this many tokens for each token of its match.
    n_min
        The length of the shortest match to continue.
    n_nodes
        0 for a chain; otherwise the largest size of a tree, which branches where the match has several continuations.
    """

    N_RECENT = 64  # the last tokens of the text, which are matched with the corpus

    def __init__(
        self,
        n_vocab: int,
        corpus: Tokens = (),
        *,
        floor: float = 0.3,
        factor: float = 4.0,
        n_min: int = 2,
        n_nodes: int = 0,
    ):
        if not 0 <= floor <= 1:
            raise ValueError(f"expected a floor from 0 to 1, got {floor}")
        self.n_vocab, self.n_nodes = n_vocab, n_nodes
        self.floor, self.factor, self.n_min = floor, factor, n_min
        self.corpus = SuffixAutomaton(int(token) for token in corpus)
        self.known = SuffixAutomaton(), []  # the last text, and its tokens

    def __getstate__(self):
        """A copy starts without a text: the original keeps extending its automaton."""
        return {**vars(self), "known": (SuffixAutomaton(), [])}

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        tokens = [int(token) for token in tokens]
        (text, known), self.known = self.known, (SuffixAutomaton(), [])  # nothing remains if this is interrupted
        if tokens[: len(known)] != known:  # a different text
            text, known = SuffixAutomaton(tokens), tokens
        for token in tokens[len(known) :]:
            text.extend(token)
        self.known = text, tokens
        repeated = max(0, text.link[text.last])  # the longest suffix of the text that occurs earlier
        in_text = text, repeated, text.length[repeated]
        in_corpus = self.corpus, *self.corpus.match(tokens[-self.N_RECENT :])
        automaton, state, length = max(in_text, in_corpus, key=lambda match: match[2])
        levels = min(K, int(self.factor * length)) if length >= self.n_min else 0
        n, width = (self.n_nodes, None) if self.n_nodes else (levels, 1)
        drafted, parents = automaton.continuations(state, n, levels, self.floor, width)
        return one_hot(drafted, self.n_vocab, parents)
