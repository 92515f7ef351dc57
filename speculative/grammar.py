"""A grammar as a mask on tokens: a regular expression that the new text must match, or still be able to match.

The expression becomes a finite automaton over bytes, as a token may be part of a word, several words or a part of a
character. A token is allowed where the automaton can read its bytes and some sequence of tokens leads from there to the
end of the expression. So no text is a dead end, whatever is drawn. Where the expression may end, so may the text: with
the token `end`, after which only `end` is allowed.

The mask is a function of the tokens on a row's own path, like everything in look_back.py. With it the output of an
exact verifier has the same distribution as that of the target alone with the same mask, which is what "lossless" can
mean here. It is not the target's distribution given that the whole text matches: a mask looks one token ahead, and does
not know how probable it is that a text begun this way will match.

>>> from speculative import AutoregressiveSampler, Sampling, exact_distribution
>>> from speculative.testing import TableModel
>>> model = TableModel([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.5, 0.25, 0.25]])  # the rows after "a", "b", the end
>>> either = Grammar("ab|ba", [b"a", b"b", b""], end=2, n_prompt=1)
>>> masked = AutoregressiveSampler(model, sampling=Sampling(processors=[either]))
>>> found = exact_distribution(lambda rng: masked.generate([2], 2, rng).tokens)
>>> round(found[0, 1], 3)  # "ab", and the rest is "ba": the first row, 0.5 to 0.25, decides
0.667
>>> free = model.distribution([2], 3)
>>> ab, ba = free[0, 1, 2], free[1, 0, 2]  # 0.5 * 0.25 * 0.75 and 0.25 * 0.125 * 0.25
>>> round(ab / (ab + ba), 3)  # the target itself, if it says one of the two
0.923

The drafter may have the same mask, and should: a token that the target's mask forbids is never accepted. Sources:
Willard and Louf, arXiv:2307.09702, for tokens on an automaton; Park et al., arXiv:2405.21047, for a mask's effect on
the distribution; Thompson, "Regular expression search algorithm" (1968), for the automaton.
"""

import re
from collections.abc import Sequence

import numpy as np

MOST_STATES = 20_000
LAST = 0x10FFFF  # the last code point
KINDS = {"d": [(48, 57)], "w": [(48, 57), (65, 90), (95, 95), (97, 122)], "s": [(9, 13), (32, 32)]}  # as in ASCII
CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
HEXADECIMAL = {"x": 2, "u": 4, "U": 8}  # digits
QUANTIFIER = re.compile(r"[*+?]|\{(?=[\d,])(\d*)(,?)(\d*)\}")
SUBSET = (
    "a grammar has characters, ., [...], \\d \\w \\s (ASCII), (...), |, and the quantifiers * + ? {m,n}; it always "
    "describes the whole text"
)


class Grammar:
    """A logits processor that lets through only tokens with which the new text can still match a pattern.

    Parameters
    ----------
    pattern : str
        A regular expression for the whole of the new text, with Python's syntax and meaning, but a subset: characters,
        `.`, sets such as [^"a-z], \\d \\w \\s in their ASCII meaning, groups, |, and the quantifiers * + ? {m,n}. A
        set of strings is "|".join(map(re.escape, strings)). Bound what repeats: only the model ends a [a-z]+.
    token_bytes : sequence of bytes
        The bytes of each token; b"" for special tokens, which are then never allowed. A model may have more tokens.
    end : int
        The token that ends a text, whatever its bytes are. Pass it to the sampler as one of the `stop_tokens`.
    n_prompt : int
        The number of tokens in the prompt, which the expression does not cover.

    Raises
    ------
    ValueError
        If the pattern is no such expression, no sequence of tokens matches it, or it needs too many states.

    Examples
    --------
    >>> date = Grammar(r"\\d{1,2} (May|June)", [b"1", b"23", b"1 Ma", b" ", b"y", b"", b"June"], end=5, n_prompt=0)
    >>> date([0.0] * 7, []), date([0.0] * 7, [2])  # "1", "23" or "1 Ma"; then "y"
    (array([  0.,   0.,   0., -inf, -inf, -inf, -inf]), array([-inf, -inf, -inf, -inf,   0., -inf, -inf]))
    """

    def __init__(self, pattern: str, token_bytes: Sequence[bytes], end: int, n_prompt: int):
        self.pattern, self.end, self.n_prompt = pattern, end, n_prompt
        self.steps, self.accepting = byte_automaton(pattern)
        self.tokens, self.after = token_automaton(self.steps, self.accepting, token_bytes, end)
        if not len(self.tokens[0]):
            raise ValueError(f"no sequence of tokens matches the grammar {pattern!r:.200}")

    def __repr__(self):
        return f"Grammar({self.pattern!r}, ..., end={self.end}, n_prompt={self.n_prompt})"

    def __call__(self, logits, tokens):
        """The logits, -inf for tokens that are not allowed; unchanged if the text so far does not match.

        Such a text follows a draft token that is not allowed: its row is never reached, but must be a distribution.
        """
        logits, state = np.asarray(logits, dtype=np.float64), self.state(tokens)
        if state is None:
            return logits
        masked = np.full_like(logits, -np.inf)
        masked[self.tokens[state]] = logits[self.tokens[state]]
        return masked

    def state(self, tokens):
        """The state of the automaton after the new tokens of a text (int); None if they cannot match."""
        state = 0
        for token in tokens[self.n_prompt :]:
            allowed = self.tokens[state]
            place = int(np.searchsorted(allowed, token))
            if place == len(allowed) or allowed[place] != token:
                return None
            state = int(self.after[state][place])
        return state

    def forced(self, tokens):
        """The bytes that must follow a text, up to the first choice, and whether the text must then end."""
        state, found = self.state(tokens), b""
        while state is not None and state < len(self.steps) and not self.accepting[state]:
            possible = np.flatnonzero(self.steps[state] >= 0)
            if len(possible) != 1:
                return found, False
            found, state = found + bytes([possible[0]]), int(self.steps[state, possible[0]])
        return found, state is not None and (state == len(self.steps) or not (self.steps[state] >= 0).any())


# ------------------------------------------------------------------------------------------------ tokens


def token_automaton(steps, accepting, token_bytes, end):
    """(tokens, after): for each state of a byte automaton the allowed tokens, and the states that they lead to.

    Both are lists of arrays of int, the tokens in order. One state more than in `steps` is that after `end`.
    """
    lengths = np.array([0 if token == end else len(text) for token, text in enumerate(token_bytes)])
    codes = np.zeros((len(lengths), lengths.max(initial=1)), dtype=np.uint8)
    for token in np.flatnonzero(lengths):
        codes[token, : lengths[token]] = list(token_bytes[token])
    starting = [np.flatnonzero((codes[:, 0] == byte) & (lengths > 0)) for byte in range(256)]
    ended = len(steps)
    found = {ended: (np.array([end]), np.array([ended]))}
    waiting = [0]
    while waiting:
        if (state := waiting.pop()) in found:
            continue
        read = [(np.array([end]), np.array([ended]))] * bool(accepting[state])
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
        found[state] = tokens[order], after[order]
        waiting += np.unique(after).tolist()
    return without_dead_ends(found, ended)


def without_dead_ends(found, ended):
    """The (tokens, after) of `token_automaton`, with only those states from which tokens lead to the end."""
    before = {state: [] for state in found}
    for state, (_, after) in found.items():
        for other in np.unique(after).tolist():
            before[other].append(state)
    lives, waiting = np.zeros(ended + 1, dtype=bool), [ended]
    while waiting:
        if not lives[state := waiting.pop()]:
            lives[state] = True
            waiting += before[state]
    nothing = np.arange(0), np.arange(0)
    kept = [found.get(state, nothing) if lives[state] else nothing for state in range(ended + 1)]
    return [tokens[lives[after]] for tokens, after in kept], [after[lives[after]] for _, after in kept]


# ------------------------------------------------------------------------------------------------ bytes


def byte_automaton(pattern):
    """(steps [n_states, 256] int, accepting [n_states] bool): the deterministic automaton of a regular expression.

    steps[state, byte] is the next state, -1 where the text cannot match any more; state 0 is the first.

    >>> steps, accepting = byte_automaton("a?b")
    >>> int(steps[0, ord("b")]), accepting.tolist()
    (2, [False, False, True])
    """
    parts = Expression(pattern)
    accept = parts.state()
    try:
        start = parts.closure([parts.whole()(accept)])
    except RecursionError:
        parts.too_large()
    numbers, found, steps = {start: 0}, [start], []
    for states in found:  # grows while it is read
        reached = [set() for _ in range(256)]
        for state in states:
            for first, last, after in parts.edges[state]:
                for byte in range(first, last + 1):
                    reached[byte].add(after)
        closures = {after: parts.closure(after) for after in map(frozenset, reached) if after}
        for closure in closures.values():
            if closure not in numbers:
                numbers[closure] = len(found)
                found.append(closure)
        steps.append([numbers[closures[frozenset(after)]] if after else -1 for after in reached])
        if len(found) > MOST_STATES:
            parts.too_large()
    return np.array(steps, dtype=np.int32), np.array([accept in states for states in found])


class Expression:
    """A regular expression, read from left to right, and the states of its nondeterministic automaton.

    Each method that reads a part returns a function from the state after the part to the state before it.
    """

    def __init__(self, pattern):
        try:
            re.compile(pattern)  # what is wrong for Python is wrong here, so below all brackets match
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"expected a regular expression, got {pattern!r:.200}: {error}") from None
        self.text, self.i = pattern, 0
        self.edges, self.jumps = [], []  # of each state: (first byte, last byte, state after it), states without a byte

    def state(self, edges=(), jumps=()):
        if len(self.edges) > 10 * MOST_STATES:
            self.too_large()
        self.edges.append(list(edges))
        self.jumps.append(list(jumps))
        return len(self.edges) - 1

    def closure(self, states):
        """These states and those that can be reached from them without a byte, as a frozenset."""
        found, waiting = set(), list(states)
        while waiting:
            if (state := waiting.pop()) not in found:
                found.add(state)
                waiting += self.jumps[state]
        return frozenset(found)

    def next(self):
        """The next character, or "" after the last."""
        return self.text[self.i : self.i + 1]

    def take(self, n=1):
        self.i += n
        return self.text[self.i - n : self.i]

    def refuse(self, what):
        raise ValueError(f"expected a grammar without {what}, got {self.text!r:.200}: {SUBSET}")

    def too_large(self):
        raise ValueError(f"the grammar {self.text!r:.100} needs more than {MOST_STATES} states: make it simpler")

    def whole(self):
        """Alternatives, up to the end of the pattern or of a group."""
        parts = [self.sequence()]
        while self.next() == "|":
            self.take()
            parts.append(self.sequence())
        return lambda after: self.state(jumps=[part(after) for part in parts])

    def sequence(self):
        parts = []
        while self.next() not in ("", "|", ")"):
            parts.append(self.repeated(self.one()))

        def build(after):
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def repeated(self, part):
        found = QUANTIFIER.match(self.text, self.i)
        if not found:
            return part
        sign, (least, comma, most) = self.take(len(found[0])), found.groups()
        if self.next() in ("?", "+"):
            self.refuse(f"{sign + self.next()!r}")
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or (
            int(least or 0), int(most) if most else None if comma else int(least)
        )  # fmt: skip

        def build(after):
            if most is None:
                loop = self.state(jumps=[after])
                self.jumps[loop].append(part(loop))
                after = loop
            end = after
            for _ in range((most or least) - least):
                after = self.state(jumps=[part(after), end])
            for _ in range(least):
                after = part(after)
            return after

        return build

    def one(self):
        """A group, a set or a character."""
        character = self.take()
        if character == "(":
            if self.next() == "?" and self.take(2) != "?:":
                self.refuse("(?...) other than (?:...)")
            part = self.whole()
            self.take()  # the closing bracket
            return part
        if character in "^$":
            self.refuse(f"the anchor {character}")
        if character == ".":
            return self.characters(others([(10, 10)]))
        if character == "[":
            return self.characters(self.set())
        return self.characters(self.escaped() if character == "\\" else [(ord(character), ord(character))])

    def set(self):
        negated, ranges = self.next() == "^", []
        self.take(negated)
        while self.next() != "]" or not ranges:
            found = self.member()
            if self.next() == "-" and self.text[self.i + 1] != "]":
                self.take()
                found = [(found[0][0], self.member()[0][1])]  # Python has checked that both are characters
            ranges += found
        self.take()
        return others(ranges) if negated else ranges

    def member(self):
        return self.escaped() if (character := self.take()) == "\\" else [(ord(character), ord(character))]

    def escaped(self):
        """The ranges of code points that an escape stands for, given the text after its backslash."""
        character = self.take()
        if character.lower() in KINDS:
            return KINDS[character] if character.islower() else others(KINDS[character.lower()])
        if character in HEXADECIMAL:
            code = int(self.take(HEXADECIMAL[character]), 16)
        elif character.isascii() and character.isalnum() and character not in CONTROL:
            self.refuse(f"\\{character}")
        else:
            code = CONTROL.get(character, ord(character))
        return [(code, code)]

    def characters(self, ranges):
        """One character, of these ranges of code points, as UTF-8."""
        sequences = [sequence for first, last in ranges for sequence in utf8(first, last)]

        def build(after):
            shared = {}  # the states inside of a character
            start = self.state()
            for sequence in sequences:
                state = after
                for edge in reversed(sequence[1:]):
                    if (key := (*edge, state)) not in shared:
                        shared[key] = self.state(edges=[key])
                    state = shared[key]
                self.edges[start].append((*sequence[0], state))
            return start

        return build


def others(ranges):
    """The code points outside of some ranges, as ranges.

    >>> others([(5, 9), (0, 2)])
    [(3, 4), (10, 1114111)]
    """
    found, begin = [], 0
    for first, last in sorted(ranges):
        if first > begin:
            found.append((begin, first - 1))
        begin = max(begin, last + 1)
    return [*found, (begin, LAST)] if begin <= LAST else found


def utf8(first, last):
    """The code points from first to last in UTF-8: sequences of (first byte, last byte), which together are all of
    them. Surrogates are left out, as they have no UTF-8.

    >>> utf8(0x7E, 0x80)
    [[(126, 127)], [(194, 194), (128, 128)]]
    """
    if first > last:
        return []
    cuts = [0x80, 0x800, 0xD800, 0xE000, 0x10000]  # before which the number of bytes grows, and of the surrogates
    for block in (1 << 6, 1 << 12, 1 << 18) if last >= 0x80 else ():  # of later bytes, all or one of them
        if first // block < last // block:
            cuts += [-(-first // block) * block, (last + 1) // block * block]
    cut = next((cut for cut in cuts if first < cut <= last), None)
    if cut is not None:
        return utf8(first, cut - 1) + utf8(cut, last)
    if 0xD800 <= first < 0xE000:
        return []
    return [list(zip(chr(first).encode(), chr(last).encode()))]
