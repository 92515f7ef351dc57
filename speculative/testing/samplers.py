"""The grader of samplers: the distribution of the tokens, their number, and what else a loop can get wrong."""

import inspect
import itertools
import operator

import numpy as np

from ..drafters.model import ModelDrafter
from ..interfaces import Draft
from ..probs import Sampling
from .cases import TOLERANCE, enumerated, largest_difference, shortened, show_distributions
from .sampler_hints import mistake_in_a_text
from .table import TableModel
from .watch import UNKNOWN_SOURCE, Progress, Sources, asked, fail, fail_by_source, note

PROMPT = [2, 1]
FEW_PATHS = 150  # for two tokens: then three are enumerated, too
MOST_CALLS = 400  # of target and drafter together, for at most 10 tokens


def check_sampler(make, *, seed=0):
    """Raise AssertionError unless the samplers made by `make` produce the target's distribution.

    Checked are the joint distribution of up to three tokens, at three temperatures and with four drafters; the number
    of tokens up to n_ctx; a stop token. Prints a note if a sampler is exact but slower than it could be.

    Parameters
    ----------
    make : callable
        make(target, drafter, K=..., sampling=...) -> an object with generate(prompt, n_tokens, rng), which returns a
        `Generation` or a sequence of new tokens, and may take a keyword stop_tokens. A class will do.
    seed : int
        Varies the models.
    """
    rng = np.random.default_rng(seed)
    target, other = models(rng)
    drafters = {
        "a draft model": lambda sampling: ModelDrafter(other, sampling=sampling),
        "the target as its own draft": lambda sampling: ModelDrafter(target, sampling=sampling),
        "a greedy draft": lambda sampling: ModelDrafter(other, sampling=Sampling(temperature=0)),
        "a drafter that proposes fewer than K tokens": lambda sampling: ShortDrafter(other),
    }
    check_counts(make, target, ModelDrafter(other))
    cases = [
        *itertools.product((1, 0.5, 0), drafters.items(), (1, 2)),
        (1, ("a draft model", drafters["a draft model"]), 3),
    ]
    with Progress("check_sampler", len(cases)) as progress:
        for temperature, (name, drafter), K in cases:
            sampling = Sampling(temperature=temperature)
            samplers = [
                made(make, target, d, K, sampling) for d in (drafter(sampling), ModelDrafter(target, sampling=sampling))
            ]
            check_distribution(*samplers, target, other, sampling, f"K = {K}, temperature {temperature}, {name}")
            progress.step()
    check_stop(make, target, ModelDrafter(other))
    note_wasted_calls(make, target)


def made(make, target, drafter, K, sampling):
    def where():
        return f"when it is made as make(target, drafter, K={K}, sampling={sampling})"

    sampler = asked(lambda: make(target, drafter, K=K, sampling=sampling), "your sampler", where)
    if not callable(getattr(sampler, "generate", None)):
        fail(f"a sampler has a method generate(prompt, n_tokens, rng); yours is {shortened(sampler)}")
    return sampler


def generated(sampler, target, prompt, n_tokens, rng, case="", **options):
    """The new tokens, a list of int."""

    def where():
        return ", ".join(
            [f"for prompt = {[int(token) for token in prompt]}, n_tokens = {n_tokens}", *filter(None, [case])]
        )

    def call():
        result = sampler.generate(prompt, n_tokens, rng, **options)
        if result is None:
            fail("generate returns the new tokens, or a Generation; yours returns None", f"  {where()}")
        return list(getattr(result, "tokens", result))

    target.calls[0] = 0
    tokens = asked(call, "your sampler", where, (prompt,))
    try:
        return [operator.index(token) for token in tokens]
    except TypeError:
        fail(
            f"generate returns tokens, whole numbers in one sequence; yours returns {shortened(tokens)}", f"  {where()}"
        )


def check_counts(make, target, drafter):
    for K, n_tokens in itertools.product((1, 2, 3, 5), range(11)):
        sampler = made(make, target, drafter, K, Sampling())

        def text(rng, sampler=sampler, K=K, n_tokens=n_tokens):
            return generated(sampler, target, list(PROMPT), n_tokens, rng, f"K = {K}")

        first, second, third = (np.random.default_rng(0) for _ in range(3))
        tokens = text(first)
        if len(tokens) != n_tokens:
            whole = tokens[: len(PROMPT)] == PROMPT and len(tokens) == len(PROMPT) + n_tokens
            fail(
                f"your sampler returns {len(tokens)} tokens where {n_tokens} were asked for: draft at most min(K, "
                "remaining - 1, n_ctx - len(tokens) - 1), and return the new tokens alone"
                + (", without the prompt" if whole else ""),
                f"  K = {K}, n_tokens = {n_tokens}, a prompt of {len(PROMPT)}, n_ctx = {target.n_ctx}",
            )
        if text(second) != tokens:
            with Sources() as sources:
                text(third)
            if sources.named():
                fail_by_source("your sampler", sources.named())
            fail(f"your sampler {UNKNOWN_SOURCE}", f"  for K = {K}, n_tokens = {n_tokens} one seed gave two texts")


def distributions(sampler, target, sampling, n_tokens, case=""):
    """(the distribution of n_tokens tokens, the target's own, the number of paths)."""
    wanted, n_paths = target.table.distribution(PROMPT, n_tokens, sampling), [0]

    def text(rng):
        n_paths[0] += 1
        return generated(sampler, target, list(PROMPT), n_tokens, rng, case)

    distribution = enumerated(
        text, "your sampler", lambda distribution: largest_difference(distribution, wanted) <= TOLERANCE
    )
    return distribution, wanted, n_paths[0]


def check_distribution(sampler, always_accepting, target, other, sampling, case):
    for n_tokens in (1, 2, 3):
        distribution, wanted, n_paths = distributions(sampler, target, sampling, n_tokens, case)
        if largest_difference(distribution, wanted) > TOLERANCE:
            perfect = {n: distributions(always_accepting, target, sampling, n)[:2] for n in (1, 2, 3)}
            hint = mistake_in_a_text(distribution, wanted, perfect, (target.table, other.table, PROMPT), sampling, case)
            fail(hint, "", f"  {case}, {n_tokens} tokens", *show_distributions(distribution, wanted))
        if n_tokens == 2 and n_paths > FEW_PATHS:
            return


def check_stop(make, target, drafter):
    """With a stop token the text is the same up to the first one, and ends there."""
    sampler = made(make, target, drafter, 1, Sampling())
    if not takes_stop_tokens(sampler, target):
        return
    for seed, K in itertools.product(range(20), (1, 3)):
        sampler = made(make, target, drafter, K, Sampling())
        whole = generated(sampler, target, list(PROMPT), 9, np.random.default_rng(seed))
        tokens = generated(
            sampler, target, list(PROMPT), 9, np.random.default_rng(seed), "stop_tokens = [1]", stop_tokens=[1]
        )
        wanted = whole[: whole.index(1) + 1] if 1 in whole else whole
        if tokens == wanted[:-1] != wanted:
            fail("your sampler leaves the stop token out; the text ends with it", f"  {tokens} should be {wanted}")
        if tokens != wanted:
            fail(
                "your sampler misses a stop token in the middle of a block: look at every token that a round adds, and "
                "drop those after the first",
                f"  without a stop token the text is {whole}; with stop token 1 it is {wanted}, yours is {tokens}",
            )


def takes_stop_tokens(sampler, target):
    """Whether generate has a parameter stop_tokens, or passes it on with **options to a function that has one."""
    try:
        parameters = inspect.signature(sampler.generate).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(parameter.name == "stop_tokens" for parameter in parameters):
        return True
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return False
    try:
        generated(sampler, target, list(PROMPT), 0, np.random.default_rng(0), stop_tokens=[1])
    except AssertionError as error:
        return "unexpected keyword argument 'stop_tokens'" not in str(error)
    return True


def note_wasted_calls(make, target):
    """Notes on a sampler that is exact but slower than it could be, and on one that takes only lists."""
    n_tokens, K, greedy = 9, 2, Sampling(temperature=0)
    perfect = ModelDrafter(target.table, sampling=greedy)
    sampler = made(make, target, perfect, K, greedy)
    tokens = generated(sampler, target, list(PROMPT), n_tokens, np.random.default_rng(0))
    n_calls = target.calls[0]
    if n_calls > n_tokens // (K + 1):
        note(
            f"your sampler is exact, but calls the target {n_calls} times for {n_tokens} tokens where K = {K} and "
            f"every draft token is right; {n_tokens // (K + 1)} calls would do, K + 1 tokens each"
        )
    try:
        same = generated(sampler, target, np.array(PROMPT), n_tokens, np.random.default_rng(0)) == tokens
    except AssertionError:
        same = False
    if not same:
        note("your sampler is right for a prompt that is a list, but not for an array: tokens = list(prompt)")


# ------------------------------------------------------------------------------------------------ models


class Target:
    """A language model on a TableModel that enforces its n_ctx and detects endless loops."""

    n_ctx = 12

    def __init__(self, table, calls):
        self.table, self.n_vocab = table, table.n_vocab
        self.calls = calls  # [number], of it and its drafters, since the last call of generate

    def count(self):
        self.calls[0] += 1
        if self.calls[0] > MOST_CALLS:
            fail(
                f"your sampler does not return: an endless loop? After {MOST_CALLS} calls of target and drafter there "
                "is no result; each round adds at least one token, also if nothing is drafted (k = 0)"
            )

    def __call__(self, tokens, n_last=1):
        self.count()
        tokens = [operator.index(token) for token in tokens]
        if len(tokens) > self.n_ctx:
            fail(
                f"your sampler asks the target about {len(tokens)} tokens, and its n_ctx is {self.n_ctx}: draft at "
                "most min(K, remaining - 1, n_ctx - len(tokens) - 1)"
            )
        if not 1 <= n_last <= len(tokens):
            fail(f"your sampler asks the target for the last n_last = {n_last} rows of {len(tokens)} tokens")
        if not all(0 <= token < self.n_vocab for token in tokens):
            fail(f"your sampler asks the target about tokens that it does not have: {tokens}, n_vocab = {self.n_vocab}")
        return self.table(tokens, n_last)


class ShortDrafter:
    """Drafts with a model, but proposes only one token of every K, and none after token 0."""

    def __init__(self, model):
        self.drafter = ModelDrafter(model)

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, min(K, 1 if tokens[-1] else 0), rng)
        for array in (draft.tokens, draft.probs):
            array.setflags(write=False)
        return Draft(draft.tokens, draft.probs)


def models(rng):
    """Target and draft model. After the prompt two of three tokens are more probable for the target than for the draft:
    then the residual has two tokens, and mistakes can be told apart."""
    calls = [0]
    tables = rng.dirichlet(np.ones(3), size=(2, 3, 3))
    tables[:, 2, 1] = rng.dirichlet([30, 20, 10]), rng.dirichlet([10, 10, 40])
    return (Target(TableModel(table, n_ctx=Target.n_ctx), calls) for table in tables)
