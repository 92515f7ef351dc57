"""The grader of verifiers: the tokens of a round must have the target's distribution, whatever the draft."""

import contextlib
import itertools
from functools import cache

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution
from ..interfaces import Draft, Verifier, takes_trees
from ..logits.probs import sample_token
from ..tree import chain, children, is_chain, texts_of_rows
from . import tree_windows
from .cases import MOST_PATHS, NEARLY_CERTAIN, TOLERANCE, WAYS, Case, Passed, alike, compared, decided, marginal, show
from .diagnosis import TREES, mistake_on_a_chain, mistake_on_a_tree, of_chain
from .pace import less, percent
from .tree_windows import TreeWindow, WindowTree, tree_window
from .watch import fail, note, with_progress
from .windows import N_VOCAB, Window, facts, shared

# (n_vocab, K or parents, kind, how siblings are drawn); the first case that fails is shown
SMALL = [(2, 1, "random"), (3, 1, "random"), (3, 0, "random")]
SMALL_TREES = [(3, [-1, -1], "random", way) for way in WAYS]
LARGER = [
    (2, 2, "random"), (3, 2, "random"), (3, 1, "zeros in p"), (3, 1, "zeros in q"), (3, 2, "zeros in p"),
    (3, 2, "one-hot q"), (3, 2, "one-hot p"), (3, 2, "one-hot p and q"), (3, 2, "equal"), (4, 1, "disjoint"),
    (2, 3, "random"), (3, 2, "tie"), (12, 1, "many"),
    *((3, K, kind) for K in (1, 2) for kind in NEARLY_CERTAIN), (8, 1, "many, of a flat q"),
]  # fmt: skip
LARGER_TREES = [
    *((3, [-1, -1], kind, "drawn without replacement") for kind in ("zeros in p", "zeros in q", "one-hot p", "equal")),
    (4, [-1, -1], "disjoint", "drawn without replacement"),
    (3, [-1, -1, -1], "random", "drawn independently"),
    (4, [-1, -1, -1], "random", "drawn without replacement"),
    *((2, [-1, 0, 0, -1, 3], "random", way) for way in WAYS),
    (3, [-1, -1, 0, 0], "zeros in p", "one drawn, then the most likely"),
]
WINDOWS = [  # with two open positions each
    Window(K, opened, (), "more", [0, 1]) for K in range(3, 7) for opened in itertools.combinations(range(K + 1), 2)
]


def check_verifier(verifier: Verifier, *, seed: int = 0, trees: bool | None = None) -> str:
    """Raise AssertionError unless the verifier is exact.

    The joint distribution of the tokens of a round, continued by the target to K + 1 tokens, must equal the target's to
    1e-12, for K = 0 to 6 and for distributions that depend on the tokens before: random ones, with zeros, one-hot,
    equal, equal for some tokens, disjoint, with many tokens in the residual, with probabilities close to 1 and to 0. So
    a test of p(x), q(x) or p(x) / q(x) against a limit from 1e-4 to .9999, or of their ranks against one up to 9, fails
    if it changes a decision. A token of target probability 0 must not pass if the uniform number is exactly 0, and the
    arguments must not be modified. A verifier for trees is then tested on trees whose siblings are drawn independently,
    drawn without replacement, one drawn and the others the most likely tokens, or all of them the most likely. Prints a
    note if the verifier is exact but slower than it could be, and returns one line that lists the checks.

    Parameters
    ----------
    verifier
        (draft, target_probs, rng) -> Verdict.
    seed
        Varies the distributions.
    trees
        Whether to test it on trees; by default if its attribute `trees` says so.
    """
    check_it_can_be_called(verifier)
    rng, passed = np.random.default_rng(seed), []
    trees = takes_trees(verifier) if trees is None else trees
    shapes = [*SMALL, *SMALL_TREES, *LARGER, *LARGER_TREES] if trees else [*SMALL, *LARGER]
    cases = [*shapes, *WINDOWS, *(in_trees() if trees else ())]
    for case in with_progress("check_verifier", cases):
        is_window = isinstance(case, Window)
        case = WindowCase(case, seed) if is_window else Case(*case[:3], rng, *case[3:])
        passed.append(checked_case(verifier, case, passed))
    check_zero(verifier, rng)
    usual = next(case for case in passed if (case.n_vocab, case.K, case.kind) == (3, 2, "random"))
    gain = note_lost_tokens(verifier, usual)
    if trees and not any(nodes == (1,) for nodes, _ in TREES[0].decisions(verifier)):
        note(
            "your verifier is exact, but accepts the first child of a node or none: test its siblings as well, against "
            "the residual that is left"
        )
    n_trees = sum(not is_chain(case.parents) for case in passed)
    and_trees = f", {n_trees} of them trees" if trees else ""
    return Passed(
        f"check_verifier: the tokens of a round have the target's distribution, to {TOLERANCE:g}, in {len(cases)} "
        f"cases{and_trees}, K = 0 to 6{gain}"
    )


def in_trees():
    """A window for each open node, and where several siblings are below it for each way of drawing them."""
    seen = set()
    for n, (shape, leaf, depth) in enumerate(tree_windows.PLACES):
        window = tree_window((shape, leaf, depth), n)
        node = [-1, *window.nodes][depth]
        if (shape, node) not in seen:
            seen.add((shape, node))
            ways = range(len(WAYS)) if len(children(window.parents, node)) > 1 else [n]
            yield from (tree_window((shape, leaf, depth), way) for way in ways)


class WindowCase(Case):
    """The first round of a window (windows.py, tree_windows.py) as a case."""

    def __init__(self, window, seed):
        self.window, self.seed, self.n_vocab, self.kind, self.K = window, seed, N_VOCAB, "certain", window.K
        self.target, draft = (window.model(name, seed) for name in ("target", "draft"))
        of_tree = isinstance(window, TreeWindow)
        self.parents, self.way = (window.parents, window.way) if of_tree else (chain(self.K).tolist(), "")
        self.row, self.row_of_draft = cache(self.target.probs), cache(draft.probs)
        self.drafter = WindowTree(window, self.target, draft) if of_tree else self

    def wanted(self):
        return self.target.distribution(self.window.prompt, self.K + 1)

    def continued(self, runs):
        begun = marginal(runs, lambda run: (*run[0][: run[1]], run[2]))
        return self.target.distribution(self.window.prompt, self.K + 1, begun=begun)

    def drawn(self, rng):
        draft = self.drafter.propose(self.window.prompt, self.K, rng)
        texts = texts_of_rows([*self.window.prompt, *draft.tokens.tolist()], len(draft.tokens) + 1, draft.parents)
        return draft, np.array([self.row(tuple(text)) for text in texts])

    def propose(self, tokens, K, rng):
        """A chain."""
        text, rows = tuple(tokens), []
        for _ in range(K):
            rows.append(self.row_of_draft(text))
            text = *text, sample_token(rows[-1], rng)
        return Draft(np.array(text[len(tokens) :]), np.array(rows))


def check_it_can_be_called(verifier):
    if isinstance(verifier, type):
        name = verifier.__name__
        fail(
            f"pass a verifier, not its class: check_verifier({name}()), with {name}.__call__(draft, target_probs, rng)"
        )
    if not callable(verifier):
        fail(
            f"a verifier is called as verifier(draft, target_probs, rng); yours is {verifier!r}, which cannot be called"
        )


def checked_case(verifier, case, passed):
    """The case; AssertionError if the tokens do not have the target's distribution. `passed`: the cases before it."""

    def told(distribution):
        on_a_chain = is_chain(case.parents)
        try:
            hint = mistake_on_a_chain(verifier, case) if on_a_chain else mistake_on_a_tree(verifier, case, passed)
        except CannotEnumerate:
            hint = ("" if on_a_chain else "in a tree, ") + "the tokens of a round do not have the target's distribution"
        return hint or where_it_is(verifier, case), *story(verifier, case)

    n_again = 12 if not passed else 1  # repetitions of the most probable path
    compared(
        "your verifier",
        lambda rng: case.run(verifier, rng),
        case.wanted(),
        told,
        seen_as=case.continued,
        n_again=n_again,
    )
    return case


def where_it_is(verifier, case):
    """A sentence on the windows in which the verifier goes wrong."""
    windows, in_words = (WINDOWS, facts) if is_chain(case.parents) else ([*in_trees()], tree_windows.facts)

    def is_wrong(window):
        other = WindowCase(window, case.seed)
        with contextlib.suppress(AssertionError, CannotEnumerate):
            runs = exact_distribution(lambda rng: other.run(verifier, rng), max_leaves=MOST_PATHS, n_again=1)
            return not alike(other.continued(runs), other.wanted())
        return True

    return f"your verifier goes wrong {shared([*filter(is_wrong, windows)], windows, in_words)}"


def story(verifier, case):
    """Lines that show a case: p and q after the text, and what happens to each token that can be drafted there."""
    if isinstance(case, WindowCase):
        return ["", f"  {case.window}"]
    p, q = case.p[()], case.q[()]
    rows = f"target p = {show(p)}, draft q = {show(q)}"
    if not is_chain(case.parents):
        of_tree = f"  a tree with parents = {case.parents}, siblings {case.way}; after the text"
        return ["", of_tree, f"  {rows}"]
    lines = ["", f"  K = {case.K}, {rows}" if case.K else f"  K = 0, target p = {show(p)}"]
    for token in np.flatnonzero(q) if case.K == 1 else ():
        try:
            decisions = of_chain((int(token),), [q], [p, case.p[(token,)]]).decisions(verifier)
        except CannotEnumerate:
            return lines
        rest = np.array([decisions.get(((), x), 0.0) for x in range(case.n_vocab)])
        by = f", replaced by a draw from {show(rest / rest.sum())}" if rest.any() else ""
        lines.append(f"  draft token {token}: accepted with probability {1 - rest.sum():.6g}{by}")
    return lines


class AlwaysZero(np.random.Generator):
    """A generator whose uniform numbers are all 0, the smallest that random() can return."""

    def __init__(self):
        np.random.Generator.__init__(self, np.random.PCG64(0))

    def random(self, size=None, dtype=np.float64):
        """0, or an array of zeros."""
        return 0.0 if size is None else np.zeros(size)

    def uniform(self, low=0.0, high=1.0, size=None):
        """`low`, or an array of it."""
        return low + self.random(size)


def check_zero(verifier, rng):
    case, impossible = Case(3, 1, "random", rng), 0
    case.p[()], case.q[()] = np.array([0, 0.4, 0.6]), np.array([0.5, 0.3, 0.2])
    draft, target_probs = Draft(np.array([impossible]), case.q[()][None]), np.array([case.p[()], case.p[(impossible,)]])
    try:
        accepted, next_token = decided(verifier, draft, target_probs, AlwaysZero())
    except AssertionError:  # such as log(0)
        return
    if accepted:
        fail(
            "a token of target probability 0 passes where the uniform number is 0: test u < p / q, not u <= p / q",
            *story(verifier, case)[:3],
            f"  draft token {impossible}, and rng.random() returned 0.0",
        )
    if next_token == impossible:
        note(
            "your verifier is exact, but where the uniform number is exactly 0 it draws a token of probability 0: "
            'np.searchsorted(cdf, u, side="right")'
        )


def note_lost_tokens(verifier, case):
    """Notes on a verifier that is exact, but accepts or adds fewer tokens than it could; `case` is a chain.

    Returns the end of the grader's line on a verifier that accepts more than rejection sampling.
    """
    K, runs = case.K, exact_distribution(lambda rng: case.run(verifier, rng))
    shares = [sum(share for (_, n, _), share in runs.items() if n == accepted) for accepted in range(K + 1)]
    repeated = sum(share for (drafted, n, token), share in runs.items() if n == K - 1 and token == drafted[-1])
    first = np.minimum(case.p[()], case.q[()])
    second = [np.minimum(case.p[(x,)], case.q[(x,)]).sum() for x in range(case.n_vocab)]
    possible, mean = first.sum() + first @ second, sum(n * share for n, share in enumerate(shares))
    if shares[0] > 1 - TOLERANCE:
        note("your verifier is exact, but it never accepts a draft token: one token a round, as without speculation")
    elif shares[K] == 0 and repeated > 0:
        note(
            "your verifier is exact, but wastes the bonus: if all k draft tokens pass it returns the last of them as "
            "next_token; return Verdict(k, a draw from target_probs[k]), one token more in each such round"
        )
    elif mean < possible - TOLERANCE:
        note(f"your verifier is exact, but {less(mean, possible, f'of {K} draft tokens on average')}")
    elif mean > possible + TOLERANCE:
        return f"; it accepts {percent(mean / possible)} of what min(1, p / q) accepts, token by token"
    return ""
