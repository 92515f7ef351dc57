"""The museum of bugs: plausible mistakes, each as a small variant of the right code, importable for teaching.

Every exhibit says what is wrong, and names the grader of `speculative.testing` that catches it. `seen` links the public
projects in which the mistake was found; an exhibit without such a source is marked as constructed. `law_error` measures
how far the output is from the target's distribution on one fixed toy case. Some mistakes do not change the
distribution, and another check sees them.

    >>> from speculative.museum import EXHIBITS
    >>> EXHIBITS["residual from the target"].grader.__name__
    'check_verifier'

TREE_EXHIBITS has the mistakes that only trees can have. Their toy case is one place with two candidates, drawn from
q = (.1, .1, .1, .7) where the target has p = (.2, .2, .4, .2).

"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import testing
from ..drafters.model import ModelDrafter
from ..exact.enumeration import exact_distribution
from ..probs import Sampling
from ..sampler import SpeculativeSampler
from ..testing.cases import largest_difference
from . import drafters, models, samplers, siblings, tree_drafters, tree_models, tree_verifiers, verifiers
from .trees import toy_distributions
from .verifiers import CONSTRUCTED  # noqa: F401, for those who list the exhibits


@dataclass(frozen=True)
class Exhibit:
    """A mistake."""

    name: str
    wrong: Any  # a verifier, a drafter, a class of samplers, or a class that makes a wrong model of a language model
    what: str  # what is wrong, and what is right
    seen: str  # links to public projects, or CONSTRUCTED
    grader: Callable  # the check that catches it
    hint: str  # a regular expression for the beginning of its message
    draft: tuple | None = None  # of a verifier of trees: how siblings are drawn in its toy case, and the parents


def collected():
    """All exhibits, dict name -> Exhibit; those of one file have the same grader."""
    graders = {
        verifiers: testing.check_verifier,
        drafters: testing.check_drafter,
        samplers: testing.check_sampler,
        models: testing.check_language_model,
    }
    exhibits = {}
    for module, grader in graders.items():
        for name, (wrong, what, seen, hint) in module.EXHIBITS.items():
            exhibits[name] = Exhibit(name, wrong, what, seen, grader, hint)
    return exhibits


def collected_trees():
    """The exhibits of trees, dict name -> Exhibit."""
    found = {}
    for module in (siblings, tree_verifiers):
        for name, (wrong, draft, what, seen, hint) in module.EXHIBITS.items():
            found[name] = Exhibit(name, wrong, what, seen, testing.check_verifier, hint, draft)
    for module, grader in ((tree_drafters, testing.check_drafter), (tree_models, testing.check_language_model)):
        for name, (wrong, what, seen, hint) in module.EXHIBITS.items():
            found[name] = Exhibit(name, wrong, what, seen, grader, hint)
    return found


EXHIBITS, TREE_EXHIBITS = collected(), collected_trees()

TARGET, DRAFT = testing.TableModel.random(3, seed=2, n_ctx=12), testing.TableModel.random(3, seed=102, n_ctx=12)
SAMPLING, K, PROMPT, N_TOKENS = Sampling(temperature=0.5), 2, [0, 1], 3


def sampler_with(exhibit):
    """A sampler of the toy case with this mistake in it."""
    drafter = ModelDrafter(DRAFT, sampling=SAMPLING)
    if exhibit.grader is testing.check_verifier:
        return SpeculativeSampler(TARGET, drafter, verifier=exhibit.wrong, K=K, sampling=SAMPLING)
    if exhibit.grader is testing.check_drafter:
        return SpeculativeSampler(TARGET, exhibit.wrong, K=K, sampling=SAMPLING)
    if exhibit.grader is testing.check_language_model:
        return SpeculativeSampler(exhibit.wrong(TARGET), drafter, K=K, sampling=SAMPLING)
    return exhibit.wrong(TARGET, drafter, K=K, sampling=SAMPLING)


@lru_cache
def law_error(exhibit):
    """The largest error in the distribution of the tokens of the exhibit's toy case; see `sampler_with` and trees.py.

    Computed once per exhibit: some need thousands of paths, and seconds.
    """
    if exhibit.name in TREE_EXHIBITS:
        output, wanted = toy_distributions(exhibit)
    else:

        def generated(rng):
            result = sampler_with(exhibit).generate(list(PROMPT), N_TOKENS, rng)
            return [int(token) for token in getattr(result, "tokens", result)][:N_TOKENS]

        output, wanted = exact_distribution(generated), TARGET.distribution(PROMPT, N_TOKENS, SAMPLING)
    return largest_difference(output, wanted)


def caught_by(exhibit):
    """The first line of what the exhibit's grader says about it; None if it passes."""
    wrong = exhibit.wrong(TARGET) if exhibit.grader is testing.check_language_model else exhibit.wrong
    try:
        exhibit.grader(wrong)
    except AssertionError as error:
        return str(error).split("\n")[0]
    return None
