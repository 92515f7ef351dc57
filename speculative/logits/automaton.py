"""The bytes that a regular expression matches, as a deterministic automaton.

The expression is read from left to right and becomes a nondeterministic automaton, built backwards: each part is a
function from the state after it to the state before it. The deterministic one follows by the usual construction, with
a state for each set of states that can be reached. Characters are sequences of bytes here, in UTF-8.
Source: Thompson, "Regular expression search algorithm" (1968).
"""

import re
import warnings

import numpy as np

MOST_STATES = 20_000
MOST_IN_SETS = 20 * MOST_STATES  # nondeterministic states, counted again in each deterministic state
LAST = 0x10FFFF  # the last code point
KINDS = {"d": [(48, 57)], "w": [(48, 57), (65, 90), (95, 95), (97, 122)], "s": [(9, 13), (32, 32)]}  # as in ASCII
CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
HEXADECIMAL = {"x": 2, "u": 4, "U": 8}  # digits
SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}  # the least and the largest number of repetitions
QUANTIFIER = re.compile(r"[*+?]|\{(?=[\d,])(\d*)(,?)(\d*)\}")
SUBSET = (
    "a grammar has characters, ., [...], \\d \\w \\s (ASCII), (...), |, and the quantifiers * + ? {m,n}; it always "
    "describes the whole text"
)


def byte_automaton(pattern):
    """(steps [n_states, 256] int, accepting [n_states] bool): the deterministic automaton of a regular expression.

    steps[state, byte] is the next state, or -1 if the text can no longer match; state 0 is the first.

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
    numbers, steps = {start: 0}, []
    reached, n_in_sets = [start], 0  # the sets of states of the nondeterministic automaton; each is a state of this one
    for states in reached:  # grows during the loop
        after_byte, n_in_sets = [set() for _ in range(256)], n_in_sets + len(states)
        if n_in_sets > MOST_IN_SETS:
            parts.too_large()
        for state in states:
            for first, last, after in parts.edges[state]:
                for byte in range(first, last + 1):
                    after_byte[byte].add(after)
        closures = {after: parts.closure(after) for after in map(frozenset, after_byte) if after}
        for closure in closures.values():
            if closure not in numbers:
                numbers[closure] = len(reached)
                reached.append(closure)
        steps.append([numbers[closures[frozenset(after)]] if after else -1 for after in after_byte])
        if len(reached) > MOST_STATES:
            parts.too_large()
    return np.array(steps, dtype=np.int32), np.array([accept in states for states in reached])


class Expression:
    """A regular expression, read from left to right, and the states of its nondeterministic automaton.

    Each method that reads a part returns a function from the state after the part to the state before it.
    """

    def __init__(self, pattern):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings: a later Python may read constructs differently
                re.compile(pattern)  # a pattern must be valid in Python, so all brackets match from here on
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"expected a regular expression, got {pattern!r:.200}: {error}") from None
        self.text, self.i = pattern, 0
        self.edges, self.jumps = [], []  # per state: (first byte, last byte, next), and next states without a byte

    def state(self, edges=(), jumps=()):
        if len(self.edges) > 10 * MOST_STATES:
            self.too_large()
        self.edges.append(list(edges))
        self.jumps.append(list(jumps))
        return len(self.edges) - 1

    def closure(self, states):
        """These states and all states that can be reached from them without a byte, as a frozenset."""
        reached, waiting = set(), list(states)
        while waiting:
            if (state := waiting.pop()) not in reached:
                reached.add(state)
                waiting += self.jumps[state]
        return frozenset(reached)

    def next(self):
        """The next character, or "" after the last."""
        return self.text[self.i : self.i + 1]

    def take(self, n=1):
        self.i += n
        return self.text[self.i - n : self.i]

    def refuse(self, construct):
        raise ValueError(f"expected a grammar without {construct}, got {self.text!r:.200}: {SUBSET}")

    def too_large(self):
        raise ValueError(f"the grammar {self.text!r:.100} needs too many states: make it simpler")

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
        quantifier = QUANTIFIER.match(self.text, self.i)
        if not quantifier:
            return part
        sign = self.take(len(quantifier[0]))
        if self.next() in ("?", "+"):
            self.refuse(f"{sign + self.next()!r}")
        if sign in SIGNS:
            at_least, at_most = SIGNS[sign]
        else:
            first, comma, last = quantifier.groups()
            at_least = int(first or 0)
            at_most = int(last) if last else None if comma else at_least

        def build(after):
            if at_most is None:
                loop = self.state(jumps=[after])
                self.jumps[loop].append(part(loop))
                after = loop
            end = after
            for _ in range((at_most or at_least) - at_least):
                after = self.state(jumps=[part(after), end])
            for _ in range(at_least):
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
            member = self.member()
            if self.next() == "-" and self.text[self.i + 1] != "]":
                self.take()
                member = [(member[0][0], self.member()[0][1])]  # Python has checked that both are characters
            ranges += member
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
        """One character from these ranges of code points, as UTF-8."""
        sequences = [sequence for first, last in ranges for sequence in utf8(first, last)]

        def build(after):
            shared = {}  # the states between the bytes of a character
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
    outside, begin = [], 0
    for first, last in sorted(ranges):
        if first > begin:
            outside.append((begin, first - 1))
        begin = max(begin, last + 1)
    return [*outside, (begin, LAST)] if begin <= LAST else outside


def utf8(first, last):
    """Sequences of (first byte, last byte): the UTF-8 of the code points from first to last; surrogates have none.

    >>> utf8(0x7E, 0x80)
    [[(126, 127)], [(194, 194), (128, 128)]]
    """
    if first > last:
        return []
    cuts = [0x80, 0x800, 0xD800, 0xE000, 0x10000]  # where the number of bytes grows; the bounds of the surrogates
    for block in (1 << 6, 1 << 12, 1 << 18) if last >= 0x80 else ():  # blocks of the last 1, 2 or 3 bytes
        if first // block < last // block:
            cuts += [-(-first // block) * block, (last + 1) // block * block]
    cut = next((cut for cut in cuts if first < cut <= last), None)
    if cut is not None:
        return utf8(first, cut - 1) + utf8(cut, last)
    if 0xD800 <= first < 0xE000:
        return []
    return [list(zip(chr(first).encode(), chr(last).encode()))]
