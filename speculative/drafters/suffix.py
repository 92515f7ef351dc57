"""Drafting by copying, with counts: what followed the longest repeated end of the text, for as long as that is likely.

A suffix automaton knows every substring of the text and how often it occurs, and grows by a token in a few steps. From
the longest end of the text that occurs elsewhere it follows the token that came next most often, and the next, until
the estimated probability of the whole guess falls below a floor, or the guess is long against the match it rests on.
Sources: Oliaro et al., SuffixDecoding, arXiv:2411.04975; the automaton: Blumer et al., "The smallest automaton
recognizing the subwords of a text" (1985).
Next: early_exit.py
"""

from .prompt_lookup import one_hot


class SuffixAutomaton:
    """All substrings of a text. A state stands for those that end in the same places.

    `following[state]` maps a token to the state one token on, `link[state]` is the longest shorter suffix that occurs
    in more places, `length[state]` that of the state's longest substring, `count[state]` how often it occurs.
    """

    def __init__(self, tokens=()):
        self.following, self.link, self.length, self.count = [{}], [-1], [0], [0]
        self.last = 0
        for token in tokens:
            self.extend(token)

    def extend(self, token):
        """Put a token at the end of the text."""
        new, state = self.add({}, self.length[self.last] + 1, 0), self.last
        while state != -1 and token not in self.following[state]:
            self.following[state][token] = new
            state = self.link[state]
        self.link[new] = 0 if state == -1 else self.split(state, token)
        self.last = new
        while new != -1:  # one more place where all suffixes end
            self.count[new] += 1
            new = self.link[new]

    def add(self, following, length, count):
        self.following.append(following)
        self.length.append(length)
        self.count.append(count)
        self.link.append(0)
        return len(self.link) - 1

    def split(self, state, token):
        """The state of the longest substring of `state` and the token; made where it shares one with longer ones."""
        shared = self.following[state][token]
        if self.length[shared] == self.length[state] + 1:
            return shared
        clone = self.add(dict(self.following[shared]), self.length[state] + 1, self.count[shared])
        self.link[clone], self.link[shared] = self.link[shared], clone
        while state != -1 and self.following[state].get(token) == shared:
            self.following[state][token] = clone
            state = self.link[state]
        return clone

    def match(self, tokens):
        """(state, length) of the longest end of the tokens that occurs in the text."""
        state, length = 0, 0
        for token in tokens:
            while state and token not in self.following[state]:
                state = self.link[state]
                length = self.length[state]
            if token in self.following[state]:
                state, length = self.following[state][token], length + 1
        return state, length

    def guess(self, state, most, floor):
        """At most `most` tokens, each the likeliest to follow, while their joint probability is at least `floor`."""
        guesses, probability = [], 1.0
        while len(guesses) < most and self.following[state]:
            counts = {token: self.count[after] for token, after in self.following[state].items()}
            token = min(counts, key=lambda token: (-counts[token], token))
            probability *= counts[token] / sum(counts.values())
            if probability < floor:
                break
            guesses.append(token)
            state = self.following[state][token]
        return guesses


class SuffixDrafter:
    """Copies from the text itself, and from a corpus where one is given. Each guess is certain, so its row is one-hot.

    Parameters
    ----------
    n_vocab : int
    corpus : sequence of int
        Token ids to copy from, too; a second for 100,000.
    floor : float
        Of the estimated probability of the whole guess.
    factor : float
        A guess has at most this many tokens for each token of its match.
    """

    LOOK_BACK = 64  # tokens to match with the corpus

    def __init__(self, n_vocab, corpus=(), *, floor=0.3, factor=4.0):
        if not 0 <= floor <= 1:
            raise ValueError(f"expected a floor from 0 to 1, got {floor}")
        self.n_vocab, self.floor, self.factor = n_vocab, floor, factor
        self.corpus = SuffixAutomaton(int(token) for token in corpus)
        self.text, self.tokens = SuffixAutomaton(), []

    def propose(self, tokens, K, rng):
        tokens = [int(token) for token in tokens]
        if tokens[: len(self.tokens)] != self.tokens:  # another text
            self.text, self.tokens = SuffixAutomaton(), []
        for token in tokens[len(self.tokens) :]:
            self.text.extend(token)
        self.tokens = tokens
        repeated = max(0, self.text.link[self.text.last])  # the longest end of the text that occurs before
        in_text = self.text, repeated, self.text.length[repeated]
        in_corpus = self.corpus, *self.corpus.match(tokens[-self.LOOK_BACK :])
        automaton, state, length = max(in_text, in_corpus, key=lambda found: found[2])
        guesses = automaton.guess(state, min(K, int(self.factor * length)), self.floor)
        return one_hot(guesses, self.n_vocab)
