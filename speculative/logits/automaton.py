"""The bytes that a regular expression matches, as a deterministic automaton.

Python's own parser reads the expression. It becomes a nondeterministic automaton, built backwards: each part turns the
state after it into the state before it. The deterministic one follows by the usual construction, with a state for each
set of states that can be reached. Characters are sequences of bytes here, in UTF-8.
Source: Thompson, "Regular expression search algorithm" (1968).
"""

import re
import warnings

import numpy as np

try:
    from re import _parser as sre
except ImportError:  # Python 3.10
    import sre_parse as sre

MOST_STATES = 20_000
MOST_IN_SETS = 20 * MOST_STATES  # nondeterministic states, counted again in each deterministic state
LAST = 0x10FFFF  # the last code point
ASCII = {"DIGIT": [(48, 57)], "WORD": [(48, 57), (65, 90), (95, 95), (97, 122)], "SPACE": [(9, 13), (32, 32)]}
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
    parts = Nondeterministic(pattern)
    accept = parts.state()
    try:
        start = parts.closure([parts.before_all(parsed(pattern), accept)])
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


def parsed(pattern):
    """The parts of a regular expression, as Python's parser returns them. ValueError if it is not one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings: a later Python may read constructs differently
            parts = sre.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"expected a regular expression, got {pattern!r:.200}: {error}") from None
    if parts.state.flags & ~re.UNICODE:
        refuse(pattern)
    return parts


def refuse(pattern):
    raise ValueError(f"expected a supported grammar, got {pattern!r:.200}: {SUBSET}")


class Nondeterministic:
    """The states of a nondeterministic automaton. A method `before...` adds those of a part, and returns the first.

    It is given the state after the part.
    """

    def __init__(self, pattern):
        self.pattern = pattern
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

    def too_large(self):
        raise ValueError(f"the grammar {self.pattern!r:.100} needs too many states: make it simpler")

    def before_all(self, parts, after):
        for kind, value in reversed(parts):
            after = self.before(kind, value, after)
        return after

    def before(self, kind, value, after):
        match kind, value:
            case sre.BRANCH, (_, alternatives):
                return self.state(jumps=[self.before_all(parts, after) for parts in alternatives])
            case sre.SUBPATTERN, (_, 0, 0, parts):  # without flags
                return self.before_all(parts, after)
            case sre.MAX_REPEAT, (at_least, at_most, parts):
                return self.before_repeated(at_least, at_most, parts, after)
            case ((sre.LITERAL | sre.NOT_LITERAL | sre.ANY | sre.IN), _):
                return self.before_character(ranges_of(kind, value), after)
        refuse(self.pattern)

    def before_repeated(self, at_least, at_most, parts, after):
        if at_most is sre.MAXREPEAT:
            loop = self.state(jumps=[after])
            self.jumps[loop].append(self.before_all(parts, loop))
            after, at_most = loop, at_least
        end = after
        for _ in range(at_most - at_least):
            after = self.state(jumps=[self.before_all(parts, after), end])
        for _ in range(at_least):
            after = self.before_all(parts, after)
        return after

    def before_character(self, ranges, after):
        """One character from these ranges of code points, as UTF-8."""
        shared = {}  # the states between the bytes of a character
        start = self.state()
        for sequence in [sequence for first, last in ranges for sequence in utf8(first, last)]:
            state = after
            for edge in reversed(sequence[1:]):
                if (key := (*edge, state)) not in shared:
                    shared[key] = self.state(edges=[key])
                state = shared[key]
            self.edges[start].append((*sequence[0], state))
        return start


def ranges_of(kind, value):
    """The code points of a character, of a set or of a member of one, as ranges."""
    match kind, value:
        case sre.LITERAL, _:
            return [(value, value)]
        case sre.NOT_LITERAL, _:
            return others([(value, value)])
        case sre.ANY, _:
            return others([(10, 10)])
        case sre.RANGE, _:
            return [value]
        case sre.CATEGORY, _:
            name = str(value).removeprefix("CATEGORY_")
            return others(ASCII[name.removeprefix("NOT_")]) if name.startswith("NOT_") else ASCII[name]
        case sre.IN, [(sre.NEGATE, _), *members]:
            return others(ranges_of(sre.IN, members))
        case sre.IN, members:
            return [a_range for member in members for a_range in ranges_of(*member)]


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
