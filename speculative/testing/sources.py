"""Sources of random numbers other than the one that is passed in: which of them a piece of code draws from.

Numbers from such a source are not enumerated, and one seed no longer gives one text. `exact_distribution` refuses code
that draws from one; the graders watch where the numbers came from, to name it. While they watch, np.random.default_rng
is replaced, for the whole process, by a function that calls it and takes note.
"""

import contextlib
import functools
import pickle
import random
import threading
import types
from itertools import islice

import numpy as np

from ..exact.global_generators import changed, global_states

GENERATORS = np.random.Generator, np.random.RandomState, random.Random
CAPTURED = "a generator of its own, made before the call"
MOST_PARTS = 1000  # parts that are searched for generators
PACKAGE = __name__.split(".")[0]  # its modules contain no generators

guard, watching, replaced = threading.Lock(), [], [np.random.default_rng]  # who watches, and what `noting` replaces


def noting(seed=None):  # np.random.default_rng while somebody watches
    for sources in list(watching):
        if sources.thread == threading.get_ident() and not hasattr(seed, "random"):
            sources.is_own, sources.is_fresh = True, sources.is_fresh or seed is None
    return replaced[0](seed)


class Sources:
    """The sources of random numbers other than rng that are used inside a `with` block.

    The states of np.random, of the module random and, if it is imported, of torch are compared; all threads share them.
    So are those of the generators that `fn` can reach (see `generators_in`). Calls of np.random.default_rng that make a
    new generator in this thread are recorded.
    """

    def __init__(self, fn=None):
        self.captured = generators_in(fn)

    def __enter__(self):
        self.before, self.is_own, self.is_fresh = self.states(), False, False
        self.thread = threading.get_ident()
        with guard:
            if not watching:
                replaced[0], np.random.default_rng = np.random.default_rng, noting
            watching.append(self)
        return self

    def __exit__(self, *_):
        with guard:
            watching.remove(self)
            np.random.default_rng = noting if watching else replaced[0]
        self.changed = changed(self.before, self.states())

    def states(self):
        return {**global_states(), CAPTURED: [state_of(generator) for generator in self.captured]}

    def named(self, seeded=True):
        """The other source, or None. If `seeded`, a new generator with its own seed also counts."""
        if self.is_own if seeded else self.is_fresh:
            return "a generator of its own, np.random.default_rng(...)"
        return self.changed[0] if self.changed else None


def state_of(generator):
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(getattr(generator.bit_generator, "state", None))  # None for an ExactGenerator
    return pickle.dumps(generator.getstate() if isinstance(generator, random.Random) else generator.get_state())


def generators_in(fn):
    """The generators that a function can reach: its closure, globals and defaults, and the attributes of objects."""
    generators, seen, parts = [], set(), [fn]
    for part in parts:  # the list grows during the loop
        if isinstance(part, GENERATORS) and id(part) not in seen:
            generators.append(part)
        elif id(part) not in seen and len(parts) < MOST_PARTS:
            parts += islice(parts_of(part), MOST_PARTS)
        seen.add(id(part))
    return generators


def parts_of(thing):
    """The parts of a function, an object or a collection that may hold a generator."""
    if isinstance(thing, types.FunctionType):
        is_ours = (thing.__module__ or "").split(".")[0] == PACKAGE
        names = set() if is_ours else {name for code in codes(thing.__code__) for name in code.co_names}
        variables = [thing.__globals__[name] for name in names & thing.__globals__.keys()]
        for cell in thing.__closure__ or ():
            with contextlib.suppress(ValueError):  # not assigned yet
                variables.append(cell.cell_contents)
        return [*variables, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
    if isinstance(thing, types.MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, (list, tuple)):
        return thing
    if isinstance(thing, dict):
        return thing.values()
    if isinstance(thing, (type, types.ModuleType)):
        return ()
    return [*getattr(thing, "__dict__", {}).values(), *methods_of(type(thing))]


@functools.cache
def methods_of(kind):
    return [method for method in vars(kind).values() if isinstance(method, types.FunctionType)]


def codes(code):
    """A code object and those nested in it: comprehensions, lambdas, functions and classes."""
    return [code, *(inner for part in code.co_consts if isinstance(part, types.CodeType) for inner in codes(part))]
