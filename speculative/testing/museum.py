"""The museum of bugs: the named mistakes of the catalogue (mistakes/), with their effect on the output.

Each exhibit describes a mistake, contains it as running code, and names its grader in `speculative.testing`.
`seen` links the public projects in which the mistake was found; without such a source it is marked as constructed.
`law_error` measures how far the output is from the target's distribution on one fixed toy case. Some mistakes leave the
distribution unchanged, and are caught by a different check. TREE_EXHIBITS contains the mistakes that only trees can
have, and ENGINE_EXHIBITS the mistakes of serving engines: penalties and masks of drafts, shared random numbers,
counters, several texts at once.

    >>> from speculative.testing.museum import EXHIBITS
    >>> EXHIBITS["residual from the target"].grader.__name__
    'check_verifier'
"""

import ast
import contextlib
import difflib
import inspect
import io
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from .. import testing
from ..drafters.model import ModelDrafter
from ..exact.enumeration import exact_distribution
from ..exact.table import TableModel
from ..interfaces import Draft
from ..logits.probs import Sampling
from ..sampler import SpeculativeSampler
from ..theory.candidates import P
from ..verifiers.rejection import rejection
from .batches import CASES, Loop
from .cases import TOLERANCE, Case, alike, independent, largest_difference, marginal
from .mistakes import CONSTRUCTED, batches, drafters, models, samplers, verifiers
from .mistakes.edits import code_of

TARGET, DRAFT = TableModel.random(3, seed=2, n_ctx=12), TableModel.random(3, seed=102, n_ctx=12)
SAMPLING = Sampling(temperature=0.5)
K = 2
PROMPT, N_TOKENS = [0, 1], 3
__all__ = [
    "CONSTRUCTED", "DRAFT", "ENGINE_EXHIBITS", "EXHIBITS", "N_TOKENS", "PROMPT", "SAMPLING", "TARGET", "TREE_EXHIBITS",
    "Exhibit", "K", "caught_by", "law_error", "sampler_with",
]  # fmt: skip


@dataclass(frozen=True)
class Exhibit:
    """A mistake in the museum."""

    name: str
    kind: str  # "chains", "trees" or "engines"
    wrong: Any  # a verifier, a drafter, a class of samplers or of wrong models of a language model, a loop over texts
    what: str  # the mistake, and the right way
    seen: str  # links to public projects, or CONSTRUCTED
    grader: Callable  # the check that catches it
    hint: str  # a regular expression for the beginning of its message
    options: dict  # the options of the toy case

    __hash__ = object.__hash__


def exhibits(grader, kind, *groups):
    """The exhibits of one grader: the mistakes in these groups that have a name. A mistake may name its own kind."""
    return [exhibit_of(mistake, grader, kind) for group in groups for mistake in group if mistake.name]


def exhibit_of(mistake, grader, kind):
    sentence = mistake.hint[0].upper() + mistake.hint[1:] + "."
    said = mistake.options.get("said", mistake.hint.split("{")[0])  # what follows a { depends on the case
    return Exhibit(
        name=mistake.name,
        kind=mistake.options.get("kind", kind),
        wrong=mistake.variants[0],
        what=mistake.why or sentence,
        seen=mistake.seen,
        grader=grader,
        hint=re.escape(said),
        options=mistake.options,
    )


ALL = [
    *exhibits(testing.check_verifier, "trees", verifiers.TREES),
    *exhibits(testing.check_verifier, "chains", verifiers.CHAINS),
    *exhibits(testing.check_drafter, "chains", drafters.IN_CHAINS, drafters.OF_ROWS),
    *exhibits(testing.check_drafter, "trees", drafters.IN_TREES, drafters.OTHERWISE),
    *exhibits(testing.check_sampler, "chains", samplers.SAMPLING, samplers.LOOPS),
    *exhibits(testing.check_sampler, "chains", samplers.OTHERWISE),
    *exhibits(testing.check_sampler, "engines", samplers.LOOKING_BACK, samplers.SLOW),
    *exhibits(testing.check_batch, "engines", batches.BATCHES),
    *exhibits(testing.check_language_model, "chains", models.ROWS, models.OTHERWISE),
    *exhibits(testing.check_language_model, "trees", models.IN_TREES, models.OTHERWISE_IN_TREES),
]
EXHIBITS = {exhibit.name: exhibit for exhibit in ALL if exhibit.kind == "chains"}
TREE_EXHIBITS = {exhibit.name: exhibit for exhibit in ALL if exhibit.kind == "trees"}
ENGINE_EXHIBITS = {exhibit.name: exhibit for exhibit in ALL if exhibit.kind == "engines"}


@lru_cache
def law_error(exhibit):
    """The largest error in the distribution of the tokens of the exhibit's toy case.

    Computed once per exhibit: some need thousands of paths and take seconds. In chains the models are TARGET and DRAFT;
    in trees there is one position with two candidates, drawn from q = (.1, .1, .1, .7) where the target has
    p = (.2, .2, .4, .2); in a batch there are two texts, of three and two tokens, with prompts of different lengths.
    """
    if exhibit.grader is testing.check_batch:
        return largest_difference(*in_a_batch(exhibit))
    return largest_difference(*(in_a_tree if exhibit.kind == "trees" else in_a_chain)(exhibit))


def caught_by(exhibit):
    """The first line of the grader's message or note about the exhibit; None if it passes without one."""
    wrong = exhibit.wrong(TARGET) if exhibit.grader is testing.check_language_model else exhibit.wrong
    try:
        with contextlib.redirect_stdout(io.StringIO()) as notes:
            exhibit.grader(wrong)
    except AssertionError as error:
        return str(error).split("\n")[0]
    return notes.getvalue().split("\n")[0] or None


def source(exhibit):
    """The right program with the lines that the mistake removes (-) and adds (+); of other mistakes, the code."""
    wrong = exhibit.wrong
    if edit := getattr(wrong, "edit", None):
        before, after = (code.splitlines(keepends=True) for code in (code_of(edit.right), edit.source))
        _, _, _, *lines = difflib.unified_diff(before, after, n=8)
        return "".join(lines)
    for module in (drafters, models):
        text = inspect.getsource(module)
        for node in ast.walk(ast.parse(text)):
            is_entry = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Mistake"
            if is_entry and exhibit.name in [getattr(keyword.value, "value", None) for keyword in node.keywords]:
                return textwrap.dedent(" " * node.col_offset + ast.get_source_segment(text, node))
    program = wrong if inspect.isroutine(wrong) or inspect.isclass(wrong) else type(wrong)
    return textwrap.dedent(inspect.getsource(program))


# ------------------------------------------------------------------------------------------------ the toy cases


def sampling_of(exhibit):
    """The target's sampling in the toy case: a history-dependent one for mistakes about history."""
    usual = "a penalty" if exhibit.name.startswith("looking back: ") else None
    return samplers.TOYS.get(exhibit.options.get("toy", usual), SAMPLING)


def sampler_with(exhibit):
    """A sampler of the toy case of chains with this mistake in it."""
    grader = exhibit.grader.__name__
    drafter = ModelDrafter(DRAFT, sampling=SAMPLING)
    sampling = sampling_of(exhibit)
    if grader == "check_sampler":
        return exhibit.wrong(TARGET, drafter, K=K, sampling=sampling)
    if getattr(exhibit.wrong, "drafts", False):
        return SpeculativeSampler(TARGET, ModelDrafter(exhibit.wrong(DRAFT)), K=K, sampling=sampling)
    target = exhibit.wrong(TARGET) if grader == "check_language_model" else TARGET
    drafter = exhibit.wrong if grader == "check_drafter" else drafter
    verifier = exhibit.wrong if grader == "check_verifier" else rejection
    return SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=sampling)


def in_a_chain(exhibit):
    """(the distribution of the tokens with this mistake, the right one), dicts tokens -> probability."""

    def generated(rng):
        result = sampler_with(exhibit).generate(list(PROMPT), N_TOKENS, rng)
        return [int(token) for token in getattr(result, "tokens", result)][:N_TOKENS]

    return exact_distribution(generated), TARGET.distribution(PROMPT, N_TOKENS, sampling_of(exhibit))


def in_a_batch(exhibit):
    """The same pair for a batch: the joint distributions of its two texts."""
    case = next(case for case in CASES if case.about == "all lengths different")
    loop = Loop(exhibit.wrong, TableModel.random(2, seed=2), TableModel.random(2, seed=102))
    return loop.distribution(case), loop.wanted(case)


def in_a_tree(exhibit):
    """The same pair, for mistakes that only trees can have."""
    if exhibit.grader is testing.check_verifier:
        parents = [int(parent) for parent in exhibit.options.get("parents", "-1 -1").split()]
        return with_verifier(exhibit.wrong, exhibit.options["way"], parents)
    if exhibit.grader is testing.check_drafter:
        return with_drafter(exhibit.wrong)
    return with_model(exhibit.wrong), with_model(models.TreeAttention)


def with_verifier(verifier, way, parents):
    """The pair for the first token; if it is right, for the tokens of the first round, continued by the target.

    q is Q everywhere; p is P after the text, and P rotated by a few positions after a token.
    """
    case = Case(len(P), parents, "random", np.random.default_rng(0), way)
    for tokens in case.p:
        case.p[tokens], case.q[tokens] = np.roll(P, len(tokens) + sum(tokens)), drafters.Q
    distribution = case.continued(exact_distribution(lambda rng: case.run(verifier, rng)))
    first = first_token(distribution)
    return (distribution, case.wanted()) if is_right(first) else (first, dict(enumerate(P)))


def with_drafter(drafter):
    """The pair for the first token; if it is right, for the first tokens of two rounds. p is P everywhere."""

    def generated(rng, n_rounds):
        tokens = []
        for _ in range(n_rounds):
            draft = drafter.propose([0] * (1 + len(tokens)), 1, rng)
            verdict = rejection(draft, np.tile(P, (len(draft.tokens) + 1, 1)), rng)
            tokens.append(int([*draft.tokens[list(verdict.nodes)], verdict.next_token][0]))
        return tokens

    first = first_token(exact_distribution(lambda rng: generated(rng, 1)))
    if not is_right(first):
        return first, dict(enumerate(P))
    return exact_distribution(lambda rng: generated(rng, 2)), independent([dict(enumerate(P))] * 2)


def first_token(distribution):
    return marginal(distribution, itemgetter(0))


def is_right(first):
    return alike(first, dict(enumerate(P)), TOLERANCE)


class Nine:
    """Nine deterministic tokens, a tree of depth 3."""

    def propose(self, tokens, K, rng):
        nodes, parents = [0, 1, 2, 0, 1, 2, 0, 1, 2], [-1, -1, -1, 0, 0, 1, 3, 3, 4]
        kept = slice({0: 0, 1: 3, 2: 6}.get(K))
        return Draft(np.array(nodes[kept], np.int64), np.eye(3)[nodes[kept]], np.array(parents[kept], np.int64))


@lru_cache
def with_model(make):
    """The pair for four tokens, drafted by `Nine`."""
    return exact_distribution(lambda rng: SpeculativeSampler(make(), Nine(), K=3).generate([0, 1], 4, rng).tokens)
