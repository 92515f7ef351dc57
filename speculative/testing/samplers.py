"""The grader of samplers: the law of the generated tokens, their number, and what else a loop can get wrong."""

import itertools

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact import exact_law
from ..interfaces import Draft
from ..probs import Sampling
from .cases import TOLERANCE, fail, frozen, guarded, largest_difference, show_laws
from .table import TableModel

PROMPT = [0, 1]


class ShortDrafter:
    """Drafts with a model, but proposes only one token of every K, and none after token 0."""

    def __init__(self, model):
        self.drafter = ModelDrafter(model)

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, min(K, 1 if tokens[-1] else 0), rng)
        return Draft(frozen(draft.tokens), frozen(draft.probs))


def check_sampler(make, *, seed=0):
    """Raise AssertionError unless the samplers that `make` makes give the target's law, in the right number of tokens.

    Parameters
    ----------
    make : callable
        make(target, drafter, K=..., sampling=...) -> an object with generate(prompt, n_tokens, rng), which returns a
        `Generation` or a sequence of new tokens; with a keyword stop_tokens, if it knows of any. A class will do.
    seed : int
        Varies the models.
    """
    rng = np.random.default_rng(seed)
    target, other = (TableModel(rng.dirichlet(np.ones(3), size=(3, 3)), n_ctx=12) for _ in range(2))
    drafters = {
        "a draft model": lambda sampling: ModelDrafter(other, sampling=sampling),
        "the target as its own draft": lambda sampling: ModelDrafter(target, sampling=sampling),
        "a greedy draft": lambda sampling: ModelDrafter(other, sampling=Sampling(temperature=0)),
        "a drafter that proposes fewer than K tokens": lambda sampling: ShortDrafter(other),
    }
    check_counts(make, target, ModelDrafter(other))
    for temperature, (name, drafter), K in itertools.product((1, 0.5, 0), drafters.items(), (1, 2, 3)):
        sampling = Sampling(temperature=temperature)
        always_accepted = ModelDrafter(target, sampling=sampling)
        samplers = [make(target, d, K=K, sampling=sampling) for d in (drafter(sampling), always_accepted)]
        check_law(*samplers, target, sampling, f"K = {K}, temperature {temperature}, {name}")
    check_stop(make, target, ModelDrafter(other))


def generated(sampler, prompt, n_tokens, rng, **options):
    """The new tokens, a list of int."""
    result = guarded(lambda: sampler.generate(prompt, n_tokens, rng, **options), "your sampler")
    return [int(token) for token in getattr(result, "tokens", result)]


def check_counts(make, target, drafter):
    for K, n_tokens in itertools.product((1, 2, 3, 5), range(11)):
        prompt, sampler = list(PROMPT), make(target, drafter, K=K, sampling=Sampling())
        tokens = generated(sampler, prompt, n_tokens, np.random.default_rng(0))
        if prompt != PROMPT:
            fail("your sampler writes to the prompt it is given: work on a copy", f"  {PROMPT} became {prompt}")
        if len(tokens) != n_tokens:
            fail(
                f"your sampler returns {len(tokens)} tokens where {n_tokens} were asked for: draft at most "
                "min(K, remaining - 1, n_ctx - len(tokens) - 1), and return the new tokens alone",
                f"  K = {K}, n_tokens = {n_tokens}, a prompt of {len(PROMPT)}, n_ctx = {target.n_ctx}",
            )
        again = generated(sampler, frozen(PROMPT), n_tokens, np.random.default_rng(0))
        if again != tokens:
            fail("your sampler gives another text for the same seed: draw from the generator that is handed in alone")


def laws(sampler, target, sampling, n_tokens):
    """(the law of n_tokens tokens, the target's own)."""
    law = guarded(lambda: exact_law(lambda rng: generated(sampler, list(PROMPT), n_tokens, rng)), "your sampler")
    return law, target.distribution(PROMPT, n_tokens, sampling)


def check_law(sampler, always_accepting, target, sampling, where):
    for n_tokens in (1, 2, 3):
        law, wanted = laws(sampler, target, sampling, n_tokens)
        if largest_difference(law, wanted) > TOLERANCE:
            goes_wrong = largest_difference(*laws(always_accepting, target, sampling, 3)) > TOLERANCE
            hint = of_law(law, n_tokens, where, goes_wrong)
            fail(hint, "", f"  {where}, {n_tokens} tokens", *show_laws(law, wanted))


def of_law(law, n_tokens, where, wrong_if_all_accepted):
    """The mistake in a sentence."""
    if len(law) == 1:
        return "the text does not depend on the generator: draw from the one that is handed in, do not seed in the loop"
    if wrong_if_all_accepted:
        return (
            "your sampler goes wrong where every guess is accepted: keep all K of them and the bonus (a[:-0] is empty)"
        )
    if "fewer" in where:
        return "your sampler goes wrong where the drafter proposes fewer than K tokens: count the tokens of the draft"
    if n_tokens == 1:
        return "already the first token does not have the law of the target"
    return (
        f"the law is right for {n_tokens - 1} tokens and wrong for {n_tokens}: what does the second round start from?"
    )


def check_stop(make, target, drafter):
    """With a stop token the text is the same up to the first of them, and ends there."""
    for seed, K in itertools.product(range(20), (1, 3)):
        sampler = make(target, drafter, K=K, sampling=Sampling())
        whole = generated(sampler, PROMPT, 9, np.random.default_rng(seed))
        try:
            tokens = generated(sampler, PROMPT, 9, np.random.default_rng(seed), stop_tokens=[1])
        except TypeError:  # it knows of no stop tokens
            return
        wanted = whole[: whole.index(1) + 1] if 1 in whole else whole
        if tokens != wanted:
            fail(
                "your sampler misses a stop token in the middle of a block: look at every token that a round adds, "
                "and drop those behind the first",
                f"  without a stop token the text is {whole}; with stop token 1 it is {wanted}, yours is {tokens}",
            )
