"""The checks of the notebooks' exercises, one module for each notebook, one function for each exercise.

A cell calls `check.exercise_3(my_verifier)`; `check.exercise_3(my_verifier, seed=3)` uses different numbers. It returns
a sentence if the answer is right. If not, it raises Wrong, whose message says what was misunderstood; a notebook shows
the message without a traceback. An exception raised by the answer itself is not caught: its traceback shows the line.
To grade a file of answers, import the module and call its functions: they do not depend on the notebook.
"""

import functools
from pathlib import Path

import numpy as np

from speculative.testing.mistakes.edits import read
from speculative.testing.names import names_in

asked = {"seed": 0}  # the seed of the check that is running


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
    """check, a function of one or more answers that uses assert, with its failures as Wrong or Unsolved."""

    @functools.wraps(check)
    def graded(*answers, seed=0):
        asked["seed"] = seed
        try:
            return Right(check(*answers))
        except (AssertionError, NotImplementedError) as error:
            missing = next((e for e in causes(error) if isinstance(e, NotImplementedError)), None)
            raise (Unsolved(f"not solved yet: {missing}") if missing else Wrong(str(error))) from None

    return graded


def drawing(n):
    """A generator of random numbers for a check, a different one for each seed=."""
    return np.random.default_rng([asked["seed"], n] if asked["seed"] else n)


def more(make):
    """Three further cases, make(rng), for a check whose own cases are made by hand; none for seed=0."""
    return [make(rng) for rng in [drawing(9)] * 3] if asked["seed"] else []


def causes(error):
    """The exception, and those it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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
    """AssertionError if an answer uses the library's own solution, which has one of these names."""
    library = {*names} & names_in(answer)
    assert not library, f"write it yourself: {library} comes with the library; if it is your own, rename it"
