"""The museum of bugs: real mistakes, each as a small variant of the right code, importable for teaching.

Every exhibit was seen in a public project (or is the plain form of what was seen), says what is wrong, and names the
grader of `speculative.testing` that catches it. `law_error` measures how far the text is from the target's law on one
fixed toy case; some mistakes do not show in a law at all, and another check sees them.

    >>> from speculative.museum import EXHIBITS
    >>> EXHIBITS["residual from the target"].grader.__name__
    'check_verifier'

Read next: verifiers.py, drafters.py, samplers.py, models.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import testing
from ..drafters.model import ModelDrafter
from ..exact import exact_law
from ..probs import Sampling
from ..sampler import SpeculativeSampler
from . import drafters, models, samplers, verifiers


@dataclass(frozen=True)
class Exhibit:
    """A mistake."""

    name: str
    wrong: Any  # what the grader gets: a verifier, a drafter, a class of samplers, or a language model
    what: str  # what is wrong, and what is right
    seen: str  # where
    grader: Callable  # the check that catches it
    hint: str  # how its message begins


def collected():
    """All exhibits, dict name -> Exhibit; those of a file have one grader."""
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


EXHIBITS = collected()

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
    """The largest error of a probability in the law of the first three tokens, on the toy case at temperature 0.5.

    It is computed once: some exhibits need thousands of paths, and seconds.
    """

    def generated(rng):
        result = sampler_with(exhibit).generate(list(PROMPT), N_TOKENS, rng)
        return [int(token) for token in getattr(result, "tokens", result)][:N_TOKENS]

    law, wanted = exact_law(generated), TARGET.distribution(PROMPT, N_TOKENS, SAMPLING)
    return max(abs(law.get(tokens, 0) - wanted.get(tokens, 0)) for tokens in law.keys() | wanted.keys())


def caught_by(exhibit):
    """The first line of what the exhibit's grader says about it; None if it lets it pass."""
    wrong = exhibit.wrong(TARGET) if exhibit.grader is testing.check_language_model else exhibit.wrong
    try:
        exhibit.grader(wrong)
    except AssertionError as error:
        return str(error).split("\n")[0]
    return None
