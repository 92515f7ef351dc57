"""A grammar as a mask on tokens: a regular expression that the new text must match, or still be able to match.

The expression becomes a finite automaton over bytes (automaton.py), as a token may be part of a word, several words or
a part of a character. A token is allowed where the automaton can read its bytes and some sequence of tokens leads from
there to the end of the expression. So no text is a dead end, whatever is drawn. Where the expression may end, so may
the text: with the token `end`, after which only `end` is allowed.

The mask is a function of the tokens on a row's own path, like everything in look_back.py. With it the output of an
exact verifier has the same distribution as that of the target alone with the same mask, which is the meaning of
"lossless" here. It is not the target's distribution given that the whole text matches: a mask looks one token ahead,
and does not know how likely a text that starts this way is to match.

>>> from speculative import AutoregressiveSampler, Sampling, exact_distribution
>>> from speculative.testing import TableModel
>>> model = TableModel([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.5, 0.25, 0.25]])  # the rows after "a", "b", the end
>>> either = Grammar("ab|ba", [b"a", b"b", b""], end=2, n_prompt=1)
>>> masked = AutoregressiveSampler(model, sampling=Sampling(processors=[either]))
>>> distribution = exact_distribution(lambda rng: masked.generate([2], 2, rng).tokens)
>>> round(distribution[0, 1], 3)  # "ab", and the rest is "ba": the first row, 0.5 to 0.25, decides
0.667
>>> free = model.distribution([2], 3)
>>> ab, ba = free[0, 1, 2], free[1, 0, 2]  # 0.5 * 0.25 * 0.75 and 0.25 * 0.125 * 0.25
>>> round(ab / (ab + ba), 3)  # the target itself, given that it writes one of the two
0.923

The drafter may have the same mask, and should: a token that the target's mask forbids is never accepted.
Sources: Willard and Louf, arXiv:2307.09702 (tokens on an automaton); Park et al., arXiv:2405.21047 (a mask's effect).
"""

from collections.abc import Sequence

import numpy as np

from .automaton import byte_automaton


class Grammar:
    """A logits processor that allows only tokens with which the new text can still match a pattern.

    Parameters
    ----------
    pattern
        A regular expression for the whole of the new text, in a subset of Python's syntax with the same meaning:
        characters, `.`, sets such as [^"a-z], \\d \\w \\s in their ASCII meaning, groups, |, and the quantifiers
        * + ? {m,n}. A set of strings is "|".join(map(re.escape, strings)). Bound repetitions: only the model ends a
        [a-z]+.
    token_bytes
        The bytes of each token; b"" for special tokens, which are never allowed. A model may have more tokens.
    end
        The token that ends a text; its bytes do not matter. Pass it to the sampler as one of the `stop_tokens`.
    n_prompt
        The number of tokens in the prompt, which the expression does not cover.

    Raises
    ------
    ValueError
        If the pattern is not such an expression, no sequence of tokens matches it, or it needs too many states.

    Examples
    --------
    >>> date = Grammar(r"\\d{1,2} (May|June)", [b"1", b"23", b"1 Ma", b" ", b"y", b"", b"June"], end=5, n_prompt=0)
    >>> date([0.0] * 7, []), date([0.0] * 7, [2])  # "1", "23" or "1 Ma"; then "y"
    (array([  0.,   0.,   0., -inf, -inf, -inf, -inf]), array([-inf, -inf, -inf, -inf,   0., -inf, -inf]))
    """

    never_passed_over = True  # `Sampling` does not skip it where it leaves no token

    def __init__(self, pattern: str, token_bytes: Sequence[bytes], end: int, n_prompt: int):
        self.pattern = pattern
        self.end, self.n_prompt = end, n_prompt
        self.steps, self.accepting = byte_automaton(pattern)
        self.tokens, self.after = token_automaton(self.steps, self.accepting, token_bytes, end)
        if not len(self.tokens[0]):
            raise ValueError(f"no sequence of tokens matches the grammar {pattern!r:.200}")

    def __repr__(self):
        return f"Grammar({self.pattern!r}, ..., end={self.end}, n_prompt={self.n_prompt})"

    def __call__(self, logits: Sequence[float] | np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        """The logits, with -inf for tokens that are not allowed; unchanged if the text so far does not match.

        Such a text follows a draft token that is not allowed: its row is never reached, but must be a distribution.
        """
        logits, state = np.asarray(logits, dtype=np.float64), self.state(tokens)
        if state is None:
            return logits
        masked = np.full_like(logits, -np.inf)
        masked[self.tokens[state]] = logits[self.tokens[state]]
        return masked

    def state(self, tokens: Sequence[int]) -> int | None:
        """The state of the automaton after the new tokens of a text; None if they cannot match."""
        state = 0
        for token in tokens[self.n_prompt :]:
            allowed = self.tokens[state]
            index = int(np.searchsorted(allowed, token))
            if index == len(allowed) or allowed[index] != token:
                return None
            state = int(self.after[state][index])
        return state

    def forced(self, tokens: Sequence[int]) -> tuple[bytes, bool]:
        """The bytes that must follow a text, up to the first choice, and whether the text must then end."""
        state, text = self.state(tokens), b""
        while state is not None and state < len(self.steps) and not self.accepting[state]:
            possible = np.flatnonzero(self.steps[state] >= 0)
            if len(possible) != 1:
                return text, False
            text += bytes([possible[0]])
            state = int(self.steps[state, possible[0]])
        return text, state is not None and (state == len(self.steps) or not (self.steps[state] >= 0).any())


# ------------------------------------------------------------------------------------------------ tokens


def token_automaton(steps, accepting, token_bytes, end):
    """(tokens, after): for each state of a byte automaton the allowed tokens, and the states that they lead to.

    Both are lists of arrays of int, with the tokens in order. There is one more state than in `steps`, after `end`.
    """
    lengths = np.array([0 if token == end else len(text) for token, text in enumerate(token_bytes)])
    codes = np.zeros((len(lengths), lengths.max(initial=1)), dtype=np.uint8)
    for token in np.flatnonzero(lengths):
        codes[token, : lengths[token]] = list(token_bytes[token])
    starting = [np.flatnonzero((codes[:, 0] == byte) & (lengths > 0)) for byte in range(256)]
    ended = len(steps)
    leads = {ended: (np.array([end]), np.array([ended]))}  # for each state: the tokens, and the states after them
    waiting = [0]
    while waiting:
        if (state := waiting.pop()) in leads:
            continue
        read = [(np.array([end]), np.array([ended]))] if accepting[state] else []
        alive = np.concatenate([starting[byte] for byte in np.flatnonzero(steps[state] >= 0)] or [np.arange(0)])
        states = np.full(len(alive), state)
        for i in range(codes.shape[1]):
            states = steps[states, codes[alive, i]]
            alive, states = alive[states >= 0], states[states >= 0]
            is_read = lengths[alive] == i + 1
            read.append((alive[is_read], states[is_read]))
            alive, states = alive[~is_read], states[~is_read]
            if not len(alive):
                break
        tokens, after = (np.concatenate(parts) for parts in zip(*read)) if read else (np.arange(0), np.arange(0))
        order = np.argsort(tokens)
        leads[state] = tokens[order], after[order]
        waiting += np.unique(after).tolist()
    return without_dead_ends(leads, ended)


def without_dead_ends(leads, ended):
    """The (tokens, after) of `token_automaton`, with only the states from which tokens lead to the end."""
    before = {state: [] for state in leads}
    for state, (_, after) in leads.items():
        for other in np.unique(after).tolist():
            before[other].append(state)
    lives, waiting = np.zeros(ended + 1, dtype=bool), [ended]
    while waiting:
        if not lives[state := waiting.pop()]:
            lives[state] = True
            waiting += before[state]
    nothing = np.arange(0), np.arange(0)
    kept = [leads.get(state, nothing) if lives[state] else nothing for state in range(ended + 1)]
    return [tokens[lives[after]] for tokens, after in kept], [after[lives[after]] for _, after in kept]
