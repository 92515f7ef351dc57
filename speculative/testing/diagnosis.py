"""Name the mistake in a verifier whose tokens have the wrong distribution.

1. `decisions`  enumerates the verifier's decisions on a few drafts, the probes of a stage: one draft token first, then
                tokens of probability 0, several draft tokens, and trees
2. `view`       is a part of these decisions: all of them, the bonus, which tokens are accepted, or what replaces a
                rejected token, so that each of several mistakes can be named
3. `known`      is the same part of the decisions of an entry of the catalogue (mistakes/verifiers.txt)
4. `named`      is the sentence of the entry that decides alike
5. `mistake_on_a_chain` and `mistake_on_a_tree` go through the stages; if no entry decides alike, they say what is wrong

No two mistakes agree on the numbers of the probes. Later stages tell apart the entries that are right in earlier ones.
"""

import itertools
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution
from ..interfaces import Draft
from ..theory.candidates import without
from ..tree import chain, children, is_chain
from ..verifiers.block import block
from ..verifiers.rejection import rejection
from ..verifiers.traversal import traversal
from .cases import NEARLY_CERTAIN, NEARLY_RIGHT, decided
from .mistakes import verifiers as catalogue
from .mistakes.drafters import exponent_of

# ------------------------------------------------------------------------------------------------ the probes


class Probe(NamedTuple):
    """A draft: tokens, rows q, the target's rows, and parents."""

    tokens: tuple
    q: np.ndarray
    p: np.ndarray
    parents: tuple

    def decisions(self, verifier):
        """dict (accepted draft tokens, next token) -> probability."""
        draft = Draft(np.array(self.tokens), np.array(self.q), np.array(self.parents))
        return exact_distribution(lambda rng: decided(verifier, draft, np.array(self.p), rng))


def of_chain(tokens, q, p):
    return Probe(tokens, np.array(q), np.array(p), tuple(chain(len(tokens)).tolist()))


def of_tree(tokens, q, p, parents):
    return Probe(tokens, np.array(q), np.array(p), parents)


TARGET, DRAFT = np.array([0.2, 0.45, 0.05, 0.3]), np.array([0.35, 0.1, 0.4, 0.15])
AFTER = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.2, 0.3], [0.2, 0.5, 0.2, 0.1], [0.35, 0.25, 0.1, 0.3]])
TARGETS = np.array([[0.1, 0.3, 0.6], [0.2, 0.3, 0.5], [0.7, 0.1, 0.2], [0.35, 0.4, 0.25]])  # for several draft tokens
DRAFTS = np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [0.25, 0.25, 0.5]])
TOP, SIBLING = np.array([0.35, 0.36, 0.04, 0.25]), np.array([0.15, 0.3, 0.5, 0.05])  # for trees: target, draft
RISING = np.arange(7, 14) / 70

ONE = [of_chain((x,), [DRAFT], [TARGET, AFTER[x]]) for x in range(4)]
ZEROS = [of_chain((2,), [[0.5, 0.1, 0.4, 0]], [[0, 0.45, 0.25, 0.3], TARGET])]
SEVERAL = [of_chain(x, DRAFTS[: len(x)], TARGETS[: len(x) + 1]) for x in ((0, 0), (0, 2), (2, 0), (0, 1, 0), (2, 0, 2))]
WIDE = [
    of_chain((6,), [np.append(np.full(6, 0.05), 0.7)], [RISING, RISING[::-1]]),
    of_chain((0,), [np.full(7, 1 / 7)], [RISING[::-1], np.array([3, 9, 4, 20, 6, 18, 10]) / 70]),
]
MORE = [  # what is named on ONE must hold here as well: sure tokens, close ones, tokens in the middle
    of_chain((x,), [q], [p, (0.2, 0.5, 0.3)])
    for p, q in [
        *NEARLY_CERTAIN.values(), ((0.48, 0.47, 0.05), (0.3, 0.3, 0.4)), ((0.36, 0.33, 0.31), (0.2, 0.3, 0.5)),
        ((0.62, 0.3, 0.08), (0.8, 0.15, 0.05)), ((0.15, 0.8, 0.05), (0.3, 0.1, 0.6)),
        ((0.1, 0.25, 0.65), (0.2, 0.1, 0.7)),
    ] for x in range(3) if q[x]
]  # fmt: skip
LONG = [
    of_chain((0, 2, 0, 2), DRAFTS[[0, 2, 0, 2]], TARGETS[[0, 3, 1, 3, 2]]),
    of_chain((2, 0, 2, 2), DRAFTS[[0, 0, 2, 2]], TARGETS[[1, 3, 0, 3, 2]]),
]
SURE = [of_tree((0, 1), np.eye(4)[:2], np.eye(4)[[1, 1, 1]], (-1, -1))]  # the target is certain of the second sibling
TREES = [
    of_tree((2, 1), [SIBLING, without(SIBLING, 2)], [TOP, *AFTER[:2]], (-1, -1)),
    of_tree((2, 2), [SIBLING, SIBLING], [TOP, *AFTER[:2]], (-1, -1)),
    of_tree((1, 2), [SIBLING, without(SIBLING, 1)], [TOP, *AFTER[:2]], (-1, -1)),
    of_tree((1, 0, 0, 1), [SIBLING, AFTER[0][::-1], without(SIBLING, 1), AFTER[2]], [TOP, *AFTER], (-1, 0, -1, 2)),
    of_tree((2, 2, 1), [SIBLING, SIBLING, without(SIBLING, 2)], [TOP, *AFTER[:3]], (-1, 0, 0)),
    of_tree((2, 1), [SIBLING, SIBLING], [TOP, *AFTER[:2]], (-1, -1)),
]
STAGES = {
    "one": ONE, "more": MORE, "zeros": ZEROS, "several": SEVERAL, "wide": WIDE, "long": LONG, "sure": SURE,
    "trees": TREES,
}  # fmt: skip
TREES_OF = "sure", "trees"
SECTIONS = {  # stage -> the sections of the catalogue with entries that it tells apart
    **dict.fromkeys(("one", "more", "zeros", "wide"), ("WHOLE", "BONUS", "ACCEPT", "REST", "BLOCK")),
    **dict.fromkeys(("several", "long"), ("BLOCK", "SEVERAL")),
    **dict.fromkeys(TREES_OF, ("TREES",)),
}


# ------------------------------------------------------------------------------------------------ views of decisions


def view(decisions, probes, part):
    """A part of the decisions: dict (probe, accepted draft tokens) -> dict outcome -> probability."""
    rows = {}
    for i, (probe, distribution) in enumerate(zip(probes, decisions)):
        for (nodes, token), share in distribution.items():
            if part == "all":
                rows.setdefault(i, {})[nodes, token] = share
            elif part == "accept":
                rows.setdefault(i, {}).setdefault(nodes, 0.0)
                rows[i][nodes] += share
            elif bool(children(probe.parents, nodes[-1] if nodes else -1)) == (part == "rest"):
                rows.setdefault((i, nodes), {})[token] = share
    if part in ("rest", "bonus"):  # given the accepted tokens
        rows = {key: {x: share / sum(row.values()) for x, share in row.items()} for key, row in rows.items()}
    return rows


def distance(a, b):
    """The largest difference, over the cases in both; 1 if they share no case."""
    both = [(a[key], b[key]) for key in a.keys() & b.keys()]
    return max((abs(x.get(o, 0) - y.get(o, 0)) for x, y in both for o in x.keys() | y.keys()), default=1.0)


def decisions_of(verifier, stage):
    """The decisions of a verifier on the probes of a stage; none if it cannot be applied."""
    try:
        return [probe.decisions(verifier) for probe in STAGES[stage]]
    except (AssertionError, CannotEnumerate):
        return []


def view_of(verifier, stage, part):
    """The view of a verifier; {} if it cannot be applied."""
    return view(decisions_of(verifier, stage), STAGES[stage], part)


known_decisions = cache(decisions_of)  # of an entry, or of a right rule


@cache
def known(verifier, stage, part):
    """The same of an entry, or of a right rule."""
    return view(known_decisions(verifier, stage), STAGES[stage], part)


RIGHT = rejection, block, traversal


@cache
def entries(stage):
    """(hint, verifier) of the entries that first go wrong on the probes of this stage."""
    stages = list(STAGES)
    earlier = [] if stage in TREES_OF else stages[: stages.index(stage)]
    mistakes = [mistake for section in SECTIONS[stage] for mistake in catalogue.SECTIONS[section]]
    pairs = [(mistake.hint, wrong) for mistake in mistakes for wrong in mistake.variants]
    return [(hint, wrong) for hint, wrong in pairs if not any(is_wrong(wrong, step) for step in earlier)]


def is_wrong(verifier, stage, part="all"):
    """Whether the decisions differ from those of every right rule."""
    decisions = known(verifier, stage, part)
    is_seen = bool(decisions.keys() & known(rejection, stage, part).keys())
    return is_seen and all(distance(decisions, known(right, stage, part)) > 1e-13 for right in RIGHT)


def named(verifier, stage, parts=("all", "bonus", "accept", "rest")):
    """(hint, or None if no entry decides like this verifier; the distance of each part from the right rule's)."""
    probes, errors = STAGES[stage], {}
    decisions = [probe.decisions(verifier) for probe in probes]
    for part in parts:
        view_here = view(decisions, probes, part)
        errors[part] = distance(view_here, known(rejection, stage, part)) if view_here else 0.0
        error = min(distance(view_here, known(right, stage, part)) for right in RIGHT) if view_here else 0.0
        if error < 1e-13:
            continue
        for hint, wrong in entries(stage):
            if wrong_part(wrong, stage) != part or distance(view_here, known(wrong, stage, part)) >= min(
                1e-9, error / 100
            ):
                continue
            others = {
                other_stage: view_of(verifier, other_stage, part)
                for other_stage in (("more", "several") if stage == "one" else ())
            }
            if is_like_block(verifier):  # the entries for one draft token are edits of rejection sampling
                others.pop("several", None)
            if all(
                distance(view_there, known(wrong, other_stage, part)) < 1e-9
                for other_stage, view_there in others.items()
                if view_there
            ):
                return hint, errors
    detectors = catalogue.TREES if stage == "trees" else ()
    return next((mistake.hint for mistake in detectors if mistake.tell and mistake.tell(decisions)), None), errors


def is_like_block(verifier):
    """Whether of several draft tokens those are accepted that block verification accepts."""
    return distance(view_of(verifier, "several", "accept"), known(block, "several", "accept")) < 1e-12


@cache
def wrong_part(verifier, stage):
    """The part of the decisions in which an entry differs from rejection: the one that it names, or the only one."""
    if part := getattr(verifier, "part", None):
        return part
    parts = [part for part in ("bonus", "accept", "rest") if is_wrong(verifier, stage, part)]
    return parts[0] if len(parts) == 1 else "all"


# ------------------------------------------------------------------------------------------------ the sentence

KINDS = {
    "zeros in p": "right, but not where the target has a token of probability 0: such a token must never be returned",
    "zeros in q": "right, but not where the draft has tokens of probability 0: these come only from the residual",
    "one-hot q": "right, but not where the draft is deterministic (one-hot rows): accept x with p(x), else draw from "
    "the rest",
    "one-hot p": "right, but not where the target is deterministic (temperature 0, one-hot rows): the text is greedy",
    "one-hot p and q": "right, but not where target and draft are deterministic (temperature 0, one-hot rows)",
    "equal": "right, but not where target and draft are equal: every draft token is accepted then, and max(0, p - q) "
    "is 0 / 0",
    "tie": "right, but not where p(x) = q(x) for the draft token x: it is accepted then, with probability 1",
    "disjoint": "right, but not where target and draft have no token in common: nothing is accepted then",
}


def is_exact_on_one(verifier):
    """Whether the verifier is right for one draft token, whatever its rule."""
    first, decisions = np.zeros(4), [probe.decisions(verifier) for probe in ONE]
    for x, decision in enumerate(decisions):
        for (nodes, token), share in decision.items():
            first[x if nodes else token] += DRAFT[x] * share
    bonus = distance(view(decisions, ONE, "bonus"), known(rejection, "one", "bonus"))
    return np.allclose(first, TARGET, rtol=0, atol=1e-13) and bonus < 1e-13


NOTHING_DRAFTED = "wrong where nothing is drafted (K = 0): the one token is then drawn from target_probs[0]"
DRAWS_NOTHING = (
    "your verifier draws nothing from rng: whether a draft token is accepted must be drawn with rng; here it is "
    "deterministic, or comes from a different source of randomness (np.random, random, a generator of your own)"
)


def mistake_on_a_chain(verifier, failed):
    """The mistake in a sentence; `failed` is the case whose distribution is wrong."""
    if draws_nothing(verifier):
        hint = named(verifier, "one", ("all", "accept"))[0]
        return hint if hint and "never accept" not in hint else DRAWS_NOTHING
    return (
        with_one_token(verifier)
        or limit_of(verifier)
        or (KINDS.get(failed.kind) if failed.K else NOTHING_DRAFTED)
        or with_several_tokens(verifier)
        or named(verifier, "wide")[0]
        or named(verifier, "long")[0]
        or of_the_case(verifier, failed)
    )


def with_one_token(verifier):
    """The mistake on one draft token, or None."""
    hint = None
    if not is_exact_on_one(verifier):
        hint, errors = named(verifier, "one")
        [none_of_all] = catalogue.NONE_OF_ALL  # which never accepts a single token either
        never = not any(nodes for row in view_of(verifier, "one", "accept").values() for nodes in row)
        if never and (not hint or hint.startswith("you never accept")):
            acceptance = view_of(verifier, "several", "accept")
            if distance(acceptance, known(none_of_all.variants[0], "several", "accept")) < 1e-9:
                hint = none_of_all.hint
            elif any(nodes for row in acceptance.values() for nodes in row):
                hint = "a single draft token is never accepted, and of several some are: n_accepted ranges from 0 to K"
        elif not hint or ("rest" in errors and errors["accept"] > 1e-13):  # the test is wrong, and has no entry
            hint = limit_of(verifier) or hint
        hint = hint or unknown_on_one_token(verifier, errors)
    return hint or named(verifier, "zeros")[0]


def accepted_of(verifier, *stages):
    """(draft token, p, q, the probability of acceptance) for each probe of one draft token; p and q are rows."""
    for stage in stages:
        for i, row in view_of(verifier, stage, "accept").items():
            probe = STAGES[stage][i]
            yield probe.tokens[0], probe.p[0], probe.q[0], row.get((0,), 0.0)


def limit_of(verifier):
    """A sentence on a limit, if draft tokens on one side of it are always or never accepted; otherwise None.

    The others have the probability of some rule: min(1, p / q), p(x) as in exact match, or always the other answer.
    """
    points = [(float(p[x]), float(q[x]), share) for x, p, q, share in accepted_of(verifier, "one", "more")]
    for rule, always in itertools.product(RULES, (1, 0)):
        differ = [(p, q, share) for p, q, share in points if abs(rule(p, q) - always) > 1e-12]
        beyond = [probe for probe in differ if abs(probe[2] - always) < 1e-12]
        within = [(p, q, share) for p, q, share in points if abs(share - rule(p, q)) < 1e-12]
        if not beyond or len(beyond) + len(within) < len(points):
            continue
        within = [probe for probe in within if probe in differ]
        if not within:
            continue
        sides = []
        for name, term in TERMS.items():
            inside, outside = (sorted(term(p, q) for p, q, _ in group) for group in (within, beyond))
            sides += [(name, "above", inside[-1], outside[0])] * (inside[-1] < outside[0])
            sides += [(name, "below", outside[-1], inside[0])] * (outside[-1] < inside[0])
        if len(sides) == 1:
            [(name, side, low, high)] = sides
            return (
                f"a draft token x is {'always' if always else 'never'} accepted if {name} is {side} a limit "
                f"(between {low:.4g} and {high:.4g}): no limit is right; accept with probability min(1, p(x) / q(x))"
            )
    return None


RULES = lambda p, q: min(1, p / q), lambda p, q: p, lambda p, q: 0, lambda p, q: 1
TERMS = {"p(x)": lambda p, q: p, "q(x)": lambda p, q: q, "p(x) / q(x)": lambda p, q: p / q}


def with_several_tokens(verifier):
    """The mistake on several draft tokens, or None. Block verification decides differently, and is right."""
    hint, errors = named(verifier, "several")
    to_block = distance(view_of(verifier, "several", "all"), known(block, "several", "all"))
    if hint or min(errors["all"], to_block) < 1e-12:
        return hint
    if errors["accept"] < 1e-12 < errors["rest"]:
        return (
            "right for K = 1, but in a block the replacement of draft token i is drawn from max(0, p - q) of a row "
            "other than i"
        )
    return "right for K = 1, but not for a block of several draft tokens"


OF_BLOCK = {
    "accept": "prefixes are kept with other probabilities than S / (S + 1 - p-hat)",
    "rest": "what replaces a rejected token is not drawn from max(0, p-hat p - q) of the rows after the kept prefix",
    "bonus": "the bonus is not drawn from target_probs[k]",
}


def of_the_case(verifier, case):
    """The first acceptance in the failed case that differs from rejection sampling, or from block verification."""
    if distance(view_of(verifier, "several", "all"), known(block, "several", "all")) < 1e-12:
        views = {part: (view_of(verifier, "long", part), known(block, "long", part)) for part in OF_BLOCK}
        sentences = [OF_BLOCK[part] for part, (a, b) in views.items() if a.keys() & b.keys() and distance(a, b) > 1e-12]
        where = ": " + ", and ".join(sentences) if sentences else ""
        return f"right as block verification for three draft tokens, but not for {case.K}{where}"
    if case.kind == "certain":  # a window
        return None
    for tokens in itertools.product(range(case.n_vocab), repeat=case.K):
        p, q = (np.array([rows[tokens[:i]] for i in range(case.K + 1)]) for rows in (case.p, case.q))
        if not all(q[i, x] > 0 for i, x in enumerate(tokens)):
            continue
        decisions = of_chain(tokens, q[:-1], p).decisions(verifier)
        reached = [sum(share for (n, _), share in decisions.items() if len(n) >= i) for i in range(case.K + 1)]
        for i, x in enumerate(tokens):
            right = min(1, p[i, x] / q[i, x])
            if reached[i] and abs(reached[i + 1] / reached[i] - right) > 1e-12:
                return (
                    f"a draft token x with p(x) = {p[i, x]:.6g} and q(x) = {q[i, x]:.6g} is accepted with "
                    f"{reached[i + 1] / reached[i]:.6g}; min(1, p / q) is {right:.6g}"
                )
    return "the draft tokens are accepted as they should be, but the token after them has the wrong distribution"


def unknown_on_one_token(verifier, errors):
    """A sentence for a mistake that no entry matches; None if there is no mistake."""
    if errors["all"] < 1e-13:
        return None
    if errors["all"] < 2e-3:  # the errors of float16 are smaller
        if errors["bonus"] == errors["accept"] == 0 or max(errors["bonus"], errors["accept"]) < 1e-13:
            return (
                f"your residual is off by {errors['rest']:.1g}: add no epsilon to max(0, p - q), and compute in "
                "float64, not in float32 (torch's default)"
            )
        return NEARLY_RIGHT.format(errors["all"])
    decisions = [probe.decisions(verifier) for probe in ONE]
    if errors["bonus"] > 1e-13:
        return unknown_bonus(view(decisions, ONE, "bonus"))
    if errors["accept"] < 1e-13:
        return "what replaces a rejected token is not drawn from max(0, p - q), normalised, of the p and q tested with"
    accepted = np.array([sum(share for (nodes, _), share in decision.items() if nodes) for decision in decisions])
    rows = {}
    for _, p, q, share in accepted_of(verifier, "more"):
        rows.setdefault((p.tobytes(), q.tobytes()), []).append(share)
    if max(map(np.ptp, [accepted, *rows.values()])) < 1e-9:  # in each row
        return (
            f"where one token is drafted, it is accepted with the same probability, {accepted[0]:.6g}, whatever it is: "
            "accept the draft token x with probability min(1, p(x) / q(x))"
        )
    x = int(np.argmax(abs(accepted - np.minimum(1, TARGET / DRAFT))))
    return (
        "what you accept and what you replace by do not add up to the target: min(p, q) + max(0, p - q) = p; with "
        f"p(x) = {TARGET[x]:g} and q(x) = {DRAFT[x]:g} you accept with {accepted[x]:.4g}, and min(1, p / q) = "
        f"{min(1, TARGET[x] / DRAFT[x]):.4g}"
    )


def unknown_bonus(rows):
    rows = {probe: np.array([row.get(x, 0) for x in range(4)]) for (probe, _), row in rows.items()}
    if all(row.max() == 1 for row in rows.values()):
        return "the bonus is always the same token: draw it with rng from the target's last row"
    powers = {round(exponent_of(row, AFTER[probe]) or 0.0, 6) for probe, row in rows.items()}
    if len(powers) == 1 and 0.0 not in powers:
        return (
            f"the bonus is drawn at a different temperature than its row (the row to the power {powers.pop():g}): draw "
            "from the target's last row as it is, after temperature, top-k and top-p"
        )
    return "when all draft tokens are accepted, the bonus is drawn from the target's last row as it is"


def draws_nothing(verifier):
    def decision(probe, rng):
        decided(verifier, Draft(np.array(probe.tokens), np.array(probe.q)), np.array(probe.p), rng)
        return rng.n_draws

    return all(exact_distribution(partial(decision, probe)).keys() == {0} for probe in ONE)


def mistake_on_a_tree(verifier, failed, passed):
    """The same on a tree, or None in a window; `passed` contains the cases before it."""
    hint = named(verifier, "sure")[0] or named(verifier, "trees")[0] or named(verifier, "zeros")[0]
    trees = [other for other in passed if not is_chain(other.parents)]
    if hint:
        return hint
    if failed.K > 1 and all(other.K == 1 for other in trees):
        return (
            "right for trees of depth 1, but not below: after a node is accepted its children meet "
            "target_probs[node + 1], with new uniform numbers"
        )
    if failed.kind == "certain":
        return None
    where = f"siblings {failed.way} ({failed.kind})"
    if not trees:
        return (
            f"right for chains, but not for {where}: siblings are alternatives, so either one draw from p decides "
            "about all of them, or p becomes max(0, p - q), normalised, after each that is rejected"
        )
    if any((other.way, other.kind) == (failed.way, failed.kind) for other in trees):
        return f"right for smaller trees, but not for the {len(failed.parents)} nodes with parents = {failed.parents}"
    return (
        f"right for siblings {trees[0].way}, but not for {where}: row j of draft.probs is the distribution of sibling "
        "j given its elder siblings"
    )
