"""The museum of bugs: plausible mistakes, each as a small variant of the right code, importable for teaching.

Every exhibit describes its mistake, and names the grader of `speculative.testing` that catches it. `seen` links the
public projects in which the mistake was found; an exhibit without such a source is marked as constructed. `law_error`
measures how far the output is from the target's distribution on one fixed toy case. Some mistakes do not change the
distribution, and another check sees them. TREE_EXHIBITS has the mistakes that only trees can have, ENGINE_EXHIBITS
those of serving engines: penalties and masks of drafts, shared random numbers, counters.

    >>> from speculative.museum import EXHIBITS
    >>> EXHIBITS["residual from the target"].grader.__name__
    'check_verifier'
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import testing
from ..testing.cases import largest_difference
from . import drafters, engines, models, samplers, verifiers
from .toy import DRAFT, N_TOKENS, PROMPT, SAMPLING, TARGET, K, chain_distributions, sampler_with, tree_distributions

__all__ = [
    "CONSTRUCTED", "DRAFT", "ENGINE_EXHIBITS", "EXHIBITS", "N_TOKENS", "PROMPT", "SAMPLING", "TARGET", "TREE_EXHIBITS",
    "Exhibit", "K", "caught_by", "law_error", "sampler_with",
]  # fmt: skip
CONSTRUCTED = "constructed (no public source is known)"


@dataclass(frozen=True)
class Exhibit:
    """A mistake."""

    name: str
    wrong: Any  # a verifier, a drafter, a class of samplers, or a class that makes a wrong model of a language model
    what: str  # the mistake, and the right way
    seen: str  # links to public projects, or CONSTRUCTED
    grader: Callable  # the check that catches it
    hint: str  # a regular expression for the beginning of its message
    draft: tuple = ()  # of a verifier of trees: how siblings are drawn in its toy case, and the parents if no pair


def collected(module, grader, kind):
    """The exhibits of a file, dict name -> Exhibit; their docstrings describe the mistake and say where it was seen."""
    found = {}
    for name, (wrong, hint, *draft) in getattr(module, kind, {}).items():
        what, _, seen = (" ".join(part.split()) for part in (inspect.getdoc(wrong) or "").partition("\n\nSeen: "))
        found[name] = Exhibit(name, wrong, what, seen or CONSTRUCTED, grader, hint, tuple(draft))
    return found


EXHIBITS, TREE_EXHIBITS, ENGINE_EXHIBITS = (
    collected(verifiers, testing.check_verifier, kind)
    | collected(drafters, testing.check_drafter, kind)
    | collected(samplers, testing.check_sampler, kind)
    | collected(engines, testing.check_sampler, kind)
    | collected(models, testing.check_language_model, kind)
    for kind in ("EXHIBITS", "TREE_EXHIBITS", "ENGINE_EXHIBITS")
)


@lru_cache
def law_error(exhibit):
    """The largest error in the distribution of the tokens of the exhibit's toy case, see toy.py.

    Computed once per exhibit: some need thousands of paths, and seconds.
    """
    return largest_difference(*(tree_distributions if exhibit.name in TREE_EXHIBITS else chain_distributions)(exhibit))


def caught_by(exhibit):
    """The first line of the grader's message about the exhibit; None if it passes."""
    wrong = exhibit.wrong(TARGET) if exhibit.grader is testing.check_language_model else exhibit.wrong
    try:
        exhibit.grader(wrong)
    except AssertionError as error:
        return str(error).split("\n")[0]
    return None
