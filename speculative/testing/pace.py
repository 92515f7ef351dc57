"""Exact, but is it as fast as rejection sampling? The mean number of target calls, and what an exact program wastes.

A draft model that is asked about a wrong text (its cache is cut too far, the bonus is missing) drafts badly, and the
output stays exact: no comparison of distributions can see it. Two others can, on a draft that knows most of the target:

1. `Pace.share`    E[target calls] over every outcome of the random numbers, beside that of rejection sampling
2. `Pace.reasons`  what the draft was asked about in each outcome, beside what the target was asked about next
"""

import contextlib
import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import CannotEnumerate, exact_distribution
from ..exact.table import TableModel
from .watch import note

LENGTHS = {1: 4, 2: 5}  # K: the number of tokens
MOST_PATHS = 1500
ROUNDING = 1e-6  # of a sampler in float32
SLOWER = 0.999  # a note says what is lost below this share of rejection sampling's tokens per target call


def told_pace(made, what, seed=0):
    """The end of a grader's line, "; K = 2: 1.92 tokens per target call, as rejection sampling", or "".

    `made` has the samplings of target and draft. Prints a note if rejection sampling with the same draft is faster.
    """
    paces, reasons = {}, {}
    for K in LENGTHS:
        with contextlib.suppress(CannotEnumerate):  # too many paths
            paces[K] = Pace(made, K, seed)
            reasons = {**(paces[K].reasons() if paces[K].share < SLOWER else {}), **reasons}
    if reasons:
        shares = ", ".join(f"{percent(pace.share)} where K = {K}" for K, pace in paces.items())
        words = "; ".join([f"it has {shares}", *filter(None, reasons.values())])
        note(f"{what} is exact, but slow: of rejection sampling's tokens per target call with the same draft {words}")
    for K, pace in reversed(paces.items()):
        return f"; K = {K}: {in_words(pace.n_tokens / pace.calls, pace.share)}"
    return ""


def in_words(tokens_per_call, share):
    beside = "as rejection sampling" if abs(share - 1) < 1 - SLOWER else f"{percent(share)} of rejection sampling's"
    return f"{tokens_per_call:.2f} tokens per target call, {beside}"


def percent(share):
    return f"{100 * share:.1f} %"


def less(accepted, possible, of_these):
    """A sentence on a rule that accepts fewer draft tokens than rejection sampling."""
    share = percent(accepted / possible)
    return (
        f"accepts less than it could: {accepted:.3f} {of_these}, where min(1, p / q) accepts {possible:.3f} ({share})"
    )


def calls_of_rejection(p, q, prompt, n_tokens, K):
    """E[target calls] of rejection sampling for n_tokens tokens; p(text) and q(text) are the models' distributions."""

    def further(text, n_left, k):  # in a round that tests k more draft tokens
        accepted = np.minimum(p(text), q(text)) * (k > 0)
        calls = 0.0
        for x, (in_round, others) in enumerate(zip(accepted, p(text) - accepted)):
            if in_round > 0:
                calls += in_round * further((*text, x), n_left - 1, k - 1)
            if others > 0 and n_left > 1:
                calls += others * (1 + further((*text, x), n_left - 1, min(K, n_left - 2)))
        return calls

    return 1 + further(tuple(prompt), n_tokens, min(K, n_tokens - 1))


class Step(NamedTuple):
    """A round, as its questions show it."""

    when: str
    text: list  # before the round
    drafted: list
    added: list
    fit: int  # how many tokens could be drafted
    astray: str  # a sentence about a question to the draft that does not fit


class Pace:
    """The calls of a sampler, enumerated on a target and a draft that knows three quarters of it."""

    def __init__(self, made, K, seed):
        probs, noise = np.random.default_rng(seed).dirichlet(np.ones(3) / 2, size=(2, 3, 3))
        a, _, token = np.indices(probs.shape)
        probs, noise = (rows * (token != a) for rows in (probs, noise))  # two tokens a row: few paths
        probs, noise = (rows / rows.sum(axis=-1, keepdims=True) for rows in (probs, noise))
        self.n_tokens, self.prompts, self.K, self.paths = LENGTHS[K], [(2, 1)], K, []
        known = 0.75
        if getattr(made.sampling, "temperature", 1) == 0:  # one path
            self.n_tokens, self.prompts, known = 12, [*itertools.product(range(3), repeat=2)], 0.5
        target, draft = (
            type(made.target)(TableModel(table, n_ctx=32), made.target.calls)
            for table in (probs, known * probs + (1 - known) * noise)
        )
        drafter = ModelDrafter(draft, sampling=made.drafter.sampling)
        self.p = cache(lambda text: made.sampling(target.table(text), text)[0])
        self.q = cache(lambda text: drafter.sampling(draft.table(text), text)[0])
        sampler = replace(made, target=target, drafter=drafter, K=K)

        def n_calls(rng):
            texts = []
            for prompt in self.prompts:
                new = sampler.text(self.n_tokens, rng, [*prompt])
                texts.append(([*prompt, *new], [(model is target, tokens) for model, tokens in target.calls]))
            self.paths.append((rng.reached(), texts))
            return sum(of_target for _, questions in texts for of_target, _ in questions) / len(texts)

        calls = exact_distribution(n_calls, max_leaves=MOST_PATHS, n_again=1)
        self.paths.pop()  # the most probable one, again
        self.calls = math.fsum(n * share for n, share in calls.items())

    @cached_property
    def share(self):
        """Tokens per target call, as a share of rejection sampling's with the same draft."""
        calls = [calls_of_rejection(self.p, self.q, prompt, self.n_tokens, self.K) for prompt in self.prompts]
        return np.mean(calls) / self.calls

    def reasons(self):
        """What was seen, a dict kind -> sentence: questions that are astray; otherwise what else costs calls."""
        steps = [(share, step) for share, texts in self.paths for text in texts for step in self.steps(*text)]
        if astray := {step.when: step.astray for _, step in reversed(steps) if step.astray}:
            return astray
        return dict([*of_the_length(steps, self.K), *(of_the_bonus(steps) or self.of_the_rule(steps)), ("", "")])

    def steps(self, whole, questions):
        """The rounds of one text."""
        rounds, context = [], []
        for of_target, tokens in questions:
            if of_target:
                rounds.append((tokens, *text_before(context, tokens)))
            context = [] if of_target else [*context, tokens]
        when = "in the first round"
        for (tokens, text, wrong), longer in zip(rounds, [*(text for _, text, _ in rounds[1:]), whole]):
            fit, drafted = min(self.K, len(whole) - len(text) - 1), tokens[len(text) :]
            yield Step(when, text, drafted, longer[len(text) :], fit, f"{when} {wrong}" if wrong else "")
            as_a_whole = "after an accepted draft" if drafted else "after a round without a draft"
            when = as_a_whole if longer[: len(tokens)] == tokens else "after a rejection"

    def of_the_rule(self, steps):
        """Whether the first draft token has the draft's distribution, and is accepted as often as it could be."""
        drawn, sums = defaultdict(Counter), np.zeros(3)
        for share, step in steps:
            if step.drafted:
                text = tuple(step.text)
                drawn[text][step.drafted[0]] += share
                possible = np.minimum(self.p(text), self.q(text)).sum()
                sums += share * np.array([len(step.added) > 1, possible, 1])
        for text, shares in drawn.items():
            for x, q in enumerate(self.q(text)):
                if abs((drafted := shares[x] / shares.total()) - q) > ROUNDING:
                    words = (
                        f"after {[*text]} token {x} is drafted with probability {drafted:.3f}, where the draft's own"
                    )
                    return [("draft", f"{words} sampling has {q:.3f}: a different temperature?")]
        accepted, possible, n = sums
        if accepted > possible - ROUNDING:
            return []
        return [("rule", f"it {less(accepted / n, possible / n, 'of the first draft tokens')}")]


def of_the_length(steps, K):
    """Where fewer tokens are drafted than fit."""
    short = {step.when: (len(step.drafted), step.fit) for _, step in steps if len(step.drafted) < step.fit}
    if short and short.keys() >= {step.when for _, step in steps if step.fit == K}:
        short = {"": max(short.values(), key=lambda both: both[1])}
    for when, (n, fit) in short.items():
        yield (when, n), f"{when} it drafts {n or 'nothing'} where {fit} fit{'s' * (fit == 1)}".strip()


def of_the_bonus(steps):
    """Whether a token of the target's never follows a draft that is accepted as a whole."""
    accepted = [step for _, step in steps if step.drafted and step.added[: len(step.drafted)] == step.drafted]
    if not accepted or any(step.added != step.drafted for step in accepted):
        return []
    return [("bonus", "no bonus follows an accepted draft: draw one more token from the target's last row")]


def text_before(context, tokens):
    """(the text before a round, or a sentence) from the questions to the draft and the next one to the target.

    Each question to the draft is a prefix of it, and the first one leaves out no more than what is drafted.
    """
    if not context:
        return tokens, ""
    if context[0] == tokens:
        return tokens, f"the target is asked about {tokens} without the draft: {ONE_CALL}"
    n, first = len(context), context[0]
    wrong = [question for question in context if question != tokens[: len(question)]]
    if not wrong and len(tokens) - len(first) <= n:
        return first, ""
    text = tokens[: max(1, len(tokens) - n)]
    n_behind = len(text) - len(first)
    is_behind = n_behind > 0 and first == text[: len(first)]
    where = f"{n_behind} tokens behind".replace("1 tokens", "a token") if is_behind else "a different one"
    question = first if is_behind else [*wrong, first][0]
    return text, f"your draft is asked about {question}, where the text is {text}: its cache or its text is {where}"


ONE_CALL = "one call for the text and all draft tokens, with n_last = k + 1, is enough"
