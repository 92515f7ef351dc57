"""The checks of the notebooks' exercises, one module for each notebook, one function for each exercise.

A cell calls `check.exercise_3(my_verifier)`; `check.exercise_3(my_verifier, seed=3)` uses different numbers. It returns
a sentence that begins with "right: " if the answer is right. If not, it raises Wrong, whose message says what was
misunderstood, or which line of the answer failed; a notebook shows the message without a traceback. `check.progress()`
says which exercises are solved. To grade a file of answers, import the module and call its functions: they do not
depend on the notebook.
"""

import dis
import functools
import linecache
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

import numpy as np

import gpt2np
import speculative
from speculative.testing.mistakes.edits import read
from speculative.testing.sources import codes

asked = {"seed": 0}  # the seed of the check that is running
states = {}  # module of checks -> {exercise: what its check found last}
OURS = tuple(str(Path(file).parent) + os.sep for file in (__file__, gpt2np.__file__, speculative.__file__))
OTHERS = *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), "<frozen"


class Wrong(AssertionError):
    """A wrong answer; the message says what was misunderstood."""

    def _render_traceback_(self):  # IPython shows these lines in place of a traceback
        return str(self).splitlines()


class Right(str):
    """A sentence that a notebook shows without quotes."""

    __repr__ = str.__str__


class Unsolved(Wrong):
    """An exercise that still raises NotImplementedError."""


def exercise(check):
    """check, a function of one or more answers that uses assert, with every failure as Wrong or Unsolved."""

    found = states.setdefault(check.__module__, {})
    found[check.__name__] = "not checked yet"
    check.__globals__["progress"] = functools.partial(progress, found)

    @functools.wraps(check)
    def graded(*answers, seed=0):
        if not __debug__:
            raise Wrong(
                "the checks are assert statements, which python -O and PYTHONOPTIMIZE remove: run without these"
            )
        asked["seed"] = seed
        try:
            said = Right(check(*answers))
            found[check.__name__] = "right"
            return said
        except Exception as error:
            missing = next((e for e in causes(error) if isinstance(e, NotImplementedError)), None)
            found[check.__name__] = "not solved yet" if missing else "wrong"
            raise (Unsolved(f"not solved yet: {missing}") if missing else Wrong(told(error))) from None

    return graded


def progress(found):
    """A line for each exercise of a module of checks, and how many are solved."""
    lines = [f"{name.replace('_', ' ')}   {state}" for name, state in found.items()]
    return Right("\n".join([*lines, f"solved {sum(state == 'right' for state in found.values())} of {len(found)}"]))


def told(error):
    """What an exception says: the sentence of a check; or the failing line of the answer, and its variables there."""
    frames = [step for step in traceback.walk_tb(error.__traceback__) if is_in(step, OURS) or not is_in(step, OTHERS)]
    if isinstance(error, AssertionError) and is_in(frames[-1], OURS):
        return str(error)
    try:
        words = " ".join(str(error).split())[:300] or "without a message"
        text = f"{type(error).__name__}: {words}"
    except Exception:
        text = f"{type(error).__name__} (its message cannot be shown)"
    if "read-only" in text:
        text = f"your function writes to its argument: work on a copy ({text})"
    for frame, number in reversed(frames):
        line = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
        if line and not is_in((frame, number), OURS):
            known = ", ".join(f"{name} {shown(value)}" for name, value in [*frame.f_locals.items()][:9])
            return f"{text}\n  line {number}: {line}" + (f"\n  where {known}" if known else "")
    return f"{text}\n  in no line of yours: are its arguments and what it returns as in the docstring?"


def is_in(step, folders):
    """Whether a step of a traceback is in a file in one of these folders."""
    return step[0].f_code.co_filename.startswith(folders)


def shown(value):
    """A variable in a word or two: [4, 5] float32."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{[*value.shape]} {value.dtype}"
    return f"= {value!r:.30}" if isinstance(value, (bool, int, float, str)) else f"({type(value).__name__})"


def drawing(n):
    """A generator of random numbers for a check, a different one for each seed=."""
    return np.random.default_rng([asked["seed"], n] if asked["seed"] else n)


def more(make):
    """Three further cases, make(rng), for a check whose own cases are made by hand; none for seed=0."""
    return [make(rng) for rng in [drawing(9)] * 3] if asked["seed"] else []


def causes(error):
    """The exception, and those it was raised from."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def mistakes_of(module, *programs):
    """The mistakes in the text file beside a module of checks, dict exercise -> list, as edits of these programs."""
    globals_of_the_checks = programs[0].__globals__
    return read(Path(__file__).with_name(f"{module}.txt"), {f.__name__: f for f in programs}, globals_of_the_checks)


def refuse_mistakes(answers, cases, mistakes):
    """AssertionError, with the sentence of the mistake, if one of them gives these answers in these cases."""
    for mistake in mistakes:
        for wrong in mistake.variants:
            both = ((answer, wrong(*case)) for answer, case in zip(answers, cases))
            assert not all(alike(*one) for one in both), mistake.hint


def alike(answer, other):
    """Whether two answers are the same: numbers, arrays, or tuples of these."""
    if isinstance(other, tuple):
        return all(map(alike, answer, other))
    return np.shape(answer) == np.shape(other) and np.allclose(answer, other, equal_nan=True)


def refuse_library(answer, *names):
    """AssertionError if an answer uses one of the library's own solutions, functions and classes with these names."""
    used = {value.__name__ for value in reached(answer, set()) if is_of_the_library(value)} & {*names}
    assert not used, f"write it yourself: {' and '.join(sorted(used))} comes with the library"


def is_of_the_library(value):
    """Whether a function or class is defined there, whatever it is called here."""
    is_named = hasattr(value, "__name__") and not isinstance(value, ModuleType)
    return is_named and str(getattr(value, "__module__", "")).split(".")[0] in ("gpt2np", "speculative")


def reached(answer, seen):
    """What the code of an answer names: globals, imports, attributes of modules, and what its own helpers name."""
    while inner := getattr(answer, "__wrapped__", None) or getattr(answer, "func", None):
        answer = inner
    if id(answer) in seen or is_of_the_library(answer):
        yield answer
        return
    seen.add(id(answer))
    if hasattr(answer, "__code__"):
        cells = zip(answer.__code__.co_freevars, answer.__closure__ or ())
        outside = answer.__globals__ | {name: cell.cell_contents for name, cell in cells}
        found = [value for code in codes(answer.__code__) for value in values_of(code, outside)]
    else:
        bases = (answer if isinstance(answer, type) else type(answer)).__mro__[:-1]
        methods = [value for base in bases if not is_of_the_library(base) for value in vars(base).values()]
        methods = [getattr(method, "__func__", method) for method in methods]
        found = [*bases, *(method for method in methods if hasattr(method, "__code__"))]
    for value in found:
        yield value
        if callable(value) and getattr(value, "__module__", 0) == getattr(answer, "__module__", 1):
            yield from reached(value, seen)


def values_of(code, known):
    """The values that the names in a code object stand for, as far as they are known before it runs."""
    known, value, imported = dict(known), None, None
    for step in dis.get_instructions(code):
        kind = step.opname.rpartition("_")[2]
        if step.opname == "IMPORT_NAME":
            value = imported = sys.modules.get(step.argval)
        elif step.opname == "IMPORT_FROM":
            value = getattr(imported, step.argval, None)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            value = getattr(value, step.argval, None) if isinstance(value, ModuleType) else None
        elif step.opname.startswith("LOAD_") and kind in ("GLOBAL", "NAME", "FAST", "BORROW", "CHECK", "DEREF"):
            value = known.get(step.argval)
        elif step.opname.startswith("STORE_") and kind in ("GLOBAL", "NAME", "FAST", "DEREF"):
            known[step.argval] = value
        elif step.opname not in ("CACHE", "PUSH_NULL", "PRECALL"):
            value = None
        yield value
