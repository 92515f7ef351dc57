"""What samplers are made of here: a target that watches its calls, drafters, a sampling; and `Made`, such a sampler."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.table import TableModel
from ..interfaces import Draft
from ..logits.probs import Sampling
from ..tree import is_chain, texts_of_rows
from .cases import NEARLY_CERTAIN, TOLERANCE, has, is_right, marginal, shortened, up_to
from .mistakes.samplers import Loop
from .tree_windows import TreeWindow, WindowTree
from .watch import asked, fail, told_error

PROMPT = [2, 1]
MOST_CALLS = 400  # calls of target and drafter together, for at most 10 tokens
ROWS = ": target([*tokens, *draft_tokens], n_last=k + 1) has a row for each of k draft tokens, and one for the bonus"


class Target:
    """A language model on a TableModel that enforces its n_ctx and detects endless loops."""

    n_ctx, question, drafter = 12, ([], 0), None  # drafter: a WindowTree

    def __init__(self, table, calls):
        self.table, self.n_vocab, self.n_ctx = table, table.n_vocab, table.n_ctx
        self.calls = calls  # (model, tokens) of each call of this model and its drafters since the last generate

    def count(self, tokens):
        self.calls.append((self, tokens))
        if len(self.calls) > MOST_CALLS:
            fail(
                f"your sampler does not return: an endless loop? After {MOST_CALLS} calls of target and drafter there "
                "is no result; each round adds at least one token, also if nothing is drafted (k = 0)"
            )

    def __call__(self, tokens, n_last=1, parents=()):
        tokens, parents = ([operator.index(node) for node in nodes] for nodes in (tokens, parents))
        self.count(tokens)
        self.question = tokens, n_last
        drafted, above = self.drafter.drafted if self.drafter else ([], [])
        if not parents and tokens == drafted and not is_chain(above):
            fail(
                "your sampler asks the target about a tree as if it were a chain: pass its parents, "
                "target([*tokens, *draft.tokens], n_last=n + 1, parents=draft.parents)"
            )
        if parents and (len(parents) >= len(tokens) or any(not -1 <= node < i for i, node in enumerate(parents))):
            fail(
                f"your sampler asks the target with parents that are no tree, {parents} for {len(tokens)} tokens: the "
                "last len(parents) tokens are the draft, and each parent is -1 or the index of an earlier one"
            )
        texts = texts_of_rows(tokens, n_last, parents) if parents else [tokens]  # a tree is as long as its paths
        if (n := max(map(len, texts))) > self.n_ctx:
            fail(
                f"your sampler asks the target about {n} tokens, and its n_ctx is {self.n_ctx}: draft at "
                "most min(K, remaining - 1, n_ctx - len(tokens) - 1)"
            )
        if not 1 <= n_last <= len(tokens):
            fail(f"your sampler asks the target for the last n_last = {n_last} rows of {len(tokens)} tokens{ROWS}")
        return np.array([self.table(text)[0] for text in texts]) if parents else self.table(tokens, n_last)


class Recorded:
    """A drafter that lists (the text, the draft tokens) of each draft in `rounds`."""

    def __init__(self, drafter):
        self.drafter, self.rounds = drafter, []
        self.model, self.sampling = drafter.model, drafter.sampling  # for loops that draft with a model alone

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        self.rounds.append(([*map(int, tokens)], draft.tokens.tolist()))
        return draft


class ShortDrafter:
    """Drafts with a model, but proposes only one token of every K, and none after token 0."""

    def __init__(self, model):
        self.drafter = ModelDrafter(model)
        self.model, self.sampling = model, self.drafter.sampling

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, min(K, 1 if tokens[-1] else 0), rng)
        for array in (draft.tokens, draft.probs):
            array.setflags(write=False)
        return Draft(draft.tokens, draft.probs)


class AllTokens:
    """A logits processor that depends on every token before the row and on its position, and sometimes bans a token."""

    def __init__(self, rng, n_vocab=3):
        self.n_vocab, self.weights = n_vocab, rng.normal(size=(64, n_vocab, n_vocab))

    def __repr__(self):
        return "AllTokens()"

    def __call__(self, logits, tokens):
        changed = logits + self.weights[np.arange(len(tokens)) % 64, tokens].sum(axis=0)
        if self.n_vocab > 2 and sum(tokens) % 2:
            changed[sum(tokens) % self.n_vocab] = -np.inf
        return changed


def models(rng):
    """Target and draft model. After the prompt two of three tokens are more probable for the target than for the draft,
    so the residual contains two tokens, and mistakes can be told apart."""
    calls = []
    tables = rng.dirichlet(np.ones(3), size=(2, 3, 3))
    tables[:, 2, 1] = rng.dirichlet([30, 20, 10]), rng.dirichlet([10, 10, 40])
    return (Target(TableModel(table, n_ctx=Target.n_ctx), calls) for table in tables)


@dataclass
class Made:
    """A sampler made from these parts, and how to ask it for a text."""

    make: Callable
    target: Any
    drafter: Any
    K: int
    sampling: Any = field(default_factory=Sampling)
    case: str = ""
    prompt: Any = field(default_factory=PROMPT.copy)
    tolerance: float = TOLERANCE
    overshoots: bool = False
    stops: tuple = ()
    elsewhere: Callable = list  # what the grader knows of other cases (see check_windows)

    def __post_init__(self):
        def made():
            return self.make(self.target, self.drafter, K=self.K, sampling=self.sampling)

        def where():
            return f"when it is made as make(target, drafter, K={self.K}, sampling={self.sampling})"

        self.sampler = asked(made, "your sampler", where)
        if not callable(getattr(self.sampler, "generate", None)):
            fail(f"a sampler has a method generate(prompt, n_tokens, rng); yours is {shortened(self.sampler)}")

    def text(self, n_tokens, rng, prompt=None, case="", **options):
        """The new tokens, a list of int; `rng` is a generator or a seed."""
        rng, prompt = np.random.default_rng(rng), (self.prompt if prompt is None else prompt).copy()
        self.target.calls.clear()

        def where():
            parts = f"for prompt = {[int(token) for token in prompt]}, n_tokens = {n_tokens}", case or self.case
            return ", ".join(filter(None, parts))

        if self.stops:
            options["stop_tokens"] = [*self.stops]

        def call():
            result = self.sampler.generate(prompt, n_tokens, rng, **options)
            if result is None:
                fail("generate returns the new tokens, or a Generation; yours returns None", f"  {where()}")
            self.stats = getattr(result, "stats", None)
            return list(getattr(result, "tokens", result))

        try:
            tokens = asked(call, "your sampler", where, (prompt,))
        except AssertionError as error:
            if error.__cause__ is None or not (hint := self.wrong_question()):
                raise
            raise told_error(hint, *str(error).splitlines()) from error.__cause__
        try:
            return [operator.index(token) for token in tokens]
        except TypeError:
            hint = f"generate returns tokens, whole numbers in one sequence; yours returns {shortened(tokens)}"
            fail(hint, f"  {where()}")

    def wrong_question(self):
        """A sentence if the last question to the target does not fit the draft; otherwise None."""
        rounds, (tokens, n_last) = getattr(self.drafter, "rounds", ()), self.target.question
        text, drafted = rounds[-1] if rounds else ([], [])
        if drafted and tokens == text:
            return f"your sampler asks the target about the text without its draft tokens{ROWS}"
        if drafted and tokens == text + drafted and n_last <= len(drafted):
            return f"your sampler asks the target for too few rows, {n_last} for {len(drafted)} draft tokens{ROWS}"
        return None

    def wanted(self, n_tokens):
        """The target's distribution, each text cut at its first stop token."""
        whole = self.target.table.distribution(self.prompt, n_tokens, self.sampling)
        return marginal(whole, lambda tokens: up_to(tokens, self.stops))

    def is_right(self, n_tokens, until):
        return is_right(partial(self.text, n_tokens), self.wanted(n_tokens), until, self.tolerance)

    def is_like(self, make, n_tokens, wanted, until):
        """Whether n_tokens tokens have this distribution, from a second sampler with the same parts."""
        if self.overshoots and make.room is Loop.room:  # like a function that always drafts K tokens
            make = type(make.__name__, (make,), {"room": lambda self, n_left, n_text: self.K})
        sampler = make(self.target, self.drafter, K=self.K, sampling=self.sampling)

        def text(rng):
            self.target.calls.clear()
            return sampler.generate(self.prompt.copy(), n_tokens, rng, self.stops).tokens[:n_tokens]

        return has(text, wanted, until)


def nearly_certain(made):
    """The sampler in cases with probabilities close to 1 and to 0."""
    for kind, rows in NEARLY_CERTAIN.items():
        sure, other = (TableModel([row] * 3, made.target.n_ctx) for row in rows)
        drafter, target = ModelDrafter(other, sampling=made.sampling), Target(sure, made.target.calls)
        case = f"K = 1, {made.sampling}, {kind}"
        yield replace(made, target=target, drafter=drafter, K=1, case=case, prompt=[0])


def in_window(made, window, seed, target_sampling=None, elsewhere=list):
    """The sampler in a window; the text ends at n_ctx or before it."""
    room = len(window.prompt) + window.n_tokens + window.near + 20 * made.overshoots
    table, other = (window.model(name, seed, room) for name in ("target", "draft"))
    sampling = replace(window.sampling, temperature=0) if window.greedy else window.sampling
    drafter, target = ModelDrafter(other, sampling=sampling), Target(table, made.target.calls)
    if isinstance(window, TreeWindow):
        drafter = target.drafter = WindowTree(window, table, other, sampling)
    return replace(
        made, target=target, drafter=drafter, K=window.K, sampling=target_sampling or window.sampling,
        case=str(window), prompt=window.prompt, stops=window.stops, elsewhere=elsewhere,
    )  # fmt: skip
