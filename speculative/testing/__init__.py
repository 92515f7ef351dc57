"""Graders: plain functions that raise AssertionError, whose first line names the mistake in a sentence.

    check_verifier(fn)              a function of (draft, target_probs, rng), or an object that is called like one
    check_drafter(drafter)          an object with propose(tokens, K, rng)
    check_sampler(make)             a class, or a function, called as make(target, drafter, K=..., sampling=...)
    check_language_model(model)     a function of (tokens, n_last), or an object that is called like one

They need NumPy alone and take seconds, so they can be used in a notebook cell, in a test, or in a cell of nbgrader or
otter. They look at what comes out, not at how: exact distributions by enumeration (exact.py) on small cases, which
`seed` varies, and a few properties that no distribution shows. Any solution with the right distribution passes, in
whatever style it is written. What goes wrong inside somebody's code is told with the case in which it does, and what
does not come to an end is ended. `TableModel` is a language model small enough to know everything about.
"""

from .drafters import check_drafter
from .models import check_language_model
from .samplers import check_sampler
from .table import TableModel
from .verifiers import check_verifier

__all__ = ["TableModel", "check_drafter", "check_language_model", "check_sampler", "check_verifier"]
