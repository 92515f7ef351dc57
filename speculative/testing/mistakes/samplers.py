"""Mistakes in samplers: samplers.txt, edits of `Loop`, the right loop around a verifier that may itself be wrong.

A penalty or a grammar needs the tokens before each row of a draft. Engines keep them as a state, such as counts of
tokens or a state of an automaton. They update it once per round, and must still apply it row by row. `Loop.seen` models
such bookkeeping.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...drafters.model import ModelDrafter
from ...generation import Laps, Round, collect
from ...interfaces import Draft, Verdict
from ...logits.grammar import Grammar
from ...logits.look_back import FrequencyPenalty
from ...logits.probs import Sampling, residual, sample_token
from ...rng import Recorder
from ...tree import depths, is_chain, path, texts_of_rows
from ...verifiers.rejection import rejection
from .edits import read
from .verifiers import Repeated

TOYS = {  # what mistakes about history need in the museum's toy case: samplings that look back
    "a penalty": Sampling(processors=[FrequencyPenalty(1, n_prompt=2)]),
    "a grammar": Sampling(processors=[Grammar("a(ba)*", [b"a", b"b", b""], end=2, n_prompt=2)]),
}


class Loop:
    """The loop of speculative sampling; `loop(step=...)` returns a class with different steps."""

    verifier = staticmethod(rejection)

    def __init__(self, target, drafter, *, K, sampling):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    def room(self, n_left, n_text):
        """The number of tokens to draft."""
        return min(self.K, n_left - 1, self.target.n_ctx - n_text - 1)

    def propose(self, text, k, rng):
        return self.drafter.propose(text, k, rng)

    def seen(self, rounds, i):
        """The tokens that row i of the last round sees, or None if penalties and masks are not applied to it.

        `rounds` lists (the text before the draft, the draft tokens) for each round so far, both lists of int; row i
        predicts the token after the first i draft tokens.
        """
        text, drafted = rounds[-1]
        return [*text, *drafted[:i]]

    def rows(self, text, drafted):
        """The target's distributions [k + 1, n_vocab]."""
        tokens = [*text, *drafted]
        logits = self.target(tokens, n_last=len(drafted) + 1)
        if type(self).seen is Loop.seen:
            return self.sampling(logits, tokens)
        self.rounds.append((text, drafted))
        return np.concatenate([self.row(logits[i : i + 1], self.seen(self.rounds, i)) for i in range(len(logits))])

    def row(self, logits, text):
        return replace(self.sampling, processors=())(logits) if text is None else self.sampling(logits, text)

    def added(self, draft, verdict):
        """The new tokens of a round."""
        return [*draft.tokens[list(verdict.nodes)].tolist(), int(verdict.next_token)]

    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        text, n_prompt, stop = list(prompt), len(prompt), None
        self.rounds, rounds = [], []
        end, seconds = n_prompt + n_tokens, Laps().seconds
        while len(text) < end and stop is None:
            k = self.room(end - len(text), len(text))
            draft = self.propose(list(text), k, rng)
            rows = self.rows(list(text), draft.tokens.tolist())
            verdict = self.verifier(draft, rows, rng)
            new = self.added(draft, verdict)
            stop = next((i for i, token in enumerate(new) if token in stop_tokens), None)
            n_kept = len(new) if stop is None else stop + 1
            text += new[:n_kept]
            said = Verdict(min(verdict.n_accepted, n_kept), new[n_kept - 1])
            rounds.append(Round(np.array(new[:n_kept], np.int64), draft, said, None, seconds))
        return collect(text[:n_prompt], rounds)


class TreeLoop(Loop):
    """The loop for drafts that branch."""

    def propose(self, text, k, rng):
        self.draft = self.drafter.propose(text, k, rng)
        return self.draft

    def rows(self, text, drafted):
        tokens, parents = [*text, *drafted], self.draft.parents.tolist()
        options = {} if is_chain(parents) else {"parents": parents}
        return self.looked(self.target(tokens, n_last=len(drafted) + 1, **options), tokens, parents)

    def looked(self, logits, tokens, parents):
        """The target's distributions, each row given the tokens on its own path."""
        texts = texts_of_rows(tokens, len(logits), parents)
        return np.concatenate([self.sampling(row[None], text) for row, text in zip(logits, texts)])


def loop(base=Loop, **steps):
    return type(base.__name__, (base,), steps)


# ------------------------------------------------------------------------------------------------ called by edits


def power(rows, temperature):
    rows = rows ** (1 / temperature) if temperature else rows
    return rows / rows.sum(axis=1, keepdims=True)


def rejected_too(rounds, i):
    """All tokens so far, including the draft tokens that were rejected."""
    tokens = list(rounds[0][0])
    for (_, drafted), (text, _) in pairwise(rounds):
        tokens += [*drafted, text[-1]]
    return [*tokens, *rounds[-1][1][:i]]


def replaces_and_goes_on(draft, rows, rng):
    """Replaces each draft token that is rejected, and keeps those after it."""
    for i, x in enumerate(draft.tokens):
        if not rng.random() * draft.probs[i, x] < rows[i, x]:
            draft.tokens[i] = sample_token(residual(rows[i], draft.probs[i]), rng)
    return Verdict(len(draft.tokens), sample_token(rows[-1], rng))


def until(draft, token):
    """The draft up to the first such token."""
    n = next((i for i, x in enumerate(draft.tokens) if x == token), len(draft.tokens))
    return Draft(draft.tokens[:n], draft.probs[:n])


def with_soft_rows(drafter, text, k, rng):
    """A greedy draft with the rows of a draft that was drawn."""
    greedy = replace(drafter.sampling, temperature=0)
    draft = ModelDrafter(drafter.model, sampling=greedy).propose(text, k, rng)
    tokens = [*text, *draft.tokens.tolist()]
    rows = drafter.sampling(drafter.model(tokens, n_last=len(draft.tokens) + 1), tokens)[:-1]
    return Draft(draft.tokens, rows)


def rows_as_planned(loop, tokens, k):
    """The rows of k draft tokens, however many were drafted."""
    return loop.sampling(loop.target(tokens, n_last=min(k + 1, len(tokens))), tokens)


def first_branch(text, tokens, parents):
    """For each row, the text and as many tokens of the first branch as the row's own path has."""
    branch = path(parents, max(range(len(parents)), key=lambda node: (is_first(parents, node), node), default=-1))
    return [[*text, *(tokens[node] for node in branch[: depth + 1])] for depth in [-1, *depths(parents)]]


def is_first(parents, node):
    """Whether a node and all above it are first siblings."""
    return all(parents[i] not in parents[:i] for i in path(parents, node))


def siblings_too(text, tokens, parents):
    """For each row, the text, its path and the elder siblings of its node."""
    seen = ({*path(parents, i), *(j for j in range(i) if parents[j] == parents[i])} for i in range(len(parents)))
    return [text, *([*text, *(tokens[node] for node in sorted(nodes))] for nodes in seen)]


# ------------------------------------------------------------------------------------------------ programs


class OneNoise(Loop):
    """Draws what replaces a rejected token with the number that drew the token."""

    def propose(self, text, k, rng):
        self.noise = Recorder(rng)
        return self.drafter.propose(text, k, self.noise)

    def verifier(self, draft, rows, rng):
        for i, x in enumerate(draft.tokens):
            if not rng.random() * draft.probs[i, x] < rows[i, x]:
                return Verdict(i, sample_token(residual(rows[i], draft.probs[i]), Repeated(self.noise.uniforms[i])))
        return Verdict(len(draft.tokens), sample_token(rows[-1], rng))


SECTIONS = read(Path(__file__).with_suffix(".txt"), {"Loop": Loop, "TreeLoop": TreeLoop}, globals())
SAMPLING, LOOPS, LOOKING_BACK, OTHERWISE, IN_TREES, SLOW = SECTIONS.values()  # SLOW ones are exact
ROW_I = "; row i of sampling(logits, tokens) looks at the text and the first i draft tokens"
LOOKING_BACK = [replace(mistake, hint=mistake.hint + ROW_I) for mistake in LOOKING_BACK]
