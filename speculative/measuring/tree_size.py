"""How large a tree should be, from measured acceptance by rank and measured costs, and whether a tree pays at all.

A larger tree yields at least as many tokens per call, but each node adds a row to the target's pass, and each depth a
pass of the draft model. With w_b, the probability that the b-th child of a node is accepted, the shape with the best

    (1 + the sum over the nodes of the products of w along their paths) / (v(n + 1) + levels c)

is found by trying all sizes and depths; for each, `Shape.best` has the shape. That takes w as the same at every node.
The table of trees puts tokens per call and time side by side, and the fastest tree next to the fastest chain.
Sources: Chen et al. (Sequoia), arXiv:2402.12374, section 3.3 (the hardware-aware tree optimizer) and its figure of
tokens per call by tree size; Miao et al. (SpecInfer), arXiv:2305.09781, its table of the width of a tree.
"""

import numpy as np

from ..checks import show_drafter
from ..drafters.shapes import Shape
from ..interfaces import Draft
from ..logits.probs import acceptance_probability, inheriting, residual
from ..rng import as_generator
from ..sampler import SpeculativeSampler
from ..theory.expected import tree_tokens
from ..verifiers.rejection import rejection
from .intervals import ratio
from .runs import against_alone, at_once, compared, of_each, own_text, under

N_COUNTED = 4  # verdicts at each position
RANKS = 8


def accepted_by_rank(draft: Draft, p):
    """The probability that each child of the text is the one that `rejection` accepts, given the draft: [n_children].

    >>> draft = Draft(np.array([0, 1]), np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([-1, -1]))
    >>> accepted_by_rank(draft, np.array([0.25, 0.75]))
    array([0.5, 0.5])
    """
    left, found = 1.0, []
    for child in draft.children():
        q = draft.probs[child]
        accept = acceptance_probability(p, q, draft.tokens[child])
        found.append(left * accept)
        left *= 1 - accept
        p = residual(p, q)
    return np.array(found)


def acceptance_by_rank(target, drafter, tokens, n, sampling, rng=0, verifier=rejection):
    """w [n_ranks]: how often the child of each rank is accepted, on average over the last n positions of a text.

    The drafter drafts a tree of one level, `Shape.widths(n_ranks)`, or fewer tokens. Of `rejection` each position's
    probabilities are computed, and at temperature 0 of all rules, which then accept the same. Else verdicts are
    counted: one at each position with common random numbers, four without.
    """
    drafter = inheriting(drafter, sampling)
    rng, ends = as_generator(rng), range(len(tokens) - n, len(tokens))
    if verifier is rejection or getattr(sampling, "temperature", 1) == 0:
        found = []
        for text in (tokens[:end] for end in ends):
            draft, logits = drafter.propose(text, 1, rng), target(text)
            found.append(accepted_by_rank(draft, sampling(logits, text)[0]))
            show_drafter(drafter, text, logits, draft.parents[:0])
    else:
        sampler = SpeculativeSampler(target, drafter, K=1, sampling=sampling, verifier=verifier)
        times = 1 if hasattr(rng, "at") else N_COUNTED
        rounds = [next(sampler.rounds(tokens[:end], 2, rng)) for end in [*ends] * times]
        found = [[float(child in round_.nodes) for child in round_.draft.children()] for round_ in rounds]
    w = np.zeros((len(found), max(map(len, found))))
    for row, accepted in zip(w, found):
        row[: len(accepted)] = accepted
    return w.mean(axis=0)


def acceptance_together(make, n_ranks, *where, **how):
    """[n_ranks or fewer]: how often one of 1, 2, ... children is accepted, for (target, drafter) = make(shape).

    Where a child's row depends on the number of its siblings, as with the rule "drawn" of `TreeDrafter`, each number is
    measured for itself. The further arguments are those of `acceptance_by_rank` from `tokens` on.
    """
    target, drafter = make(Shape.widths(n_ranks))
    if not getattr(drafter, "depends_on_siblings", False):
        return np.cumsum(acceptance_by_rank(target, drafter, *where, **how))
    return np.array([acceptance_by_rank(*make(Shape.widths(k)), *where, **how).sum() for k in range(1, n_ranks + 1)])


def added(together):
    """w [n_ranks]: the acceptance that each child adds to that of those before it; never less than 0.

    >>> added(np.array([0.5, 0.75, 0.625, 0.875]))
    array([0.5  , 0.25 , 0.   , 0.125])
    """
    return np.diff(np.maximum.accumulate(together), prepend=0.0)


def best_shape(w, c, v, max_depth=8):
    """(Shape, speedup): the tree that is expected to save the most time; of 0 nodes where none pays.

    w is that of `acceptance_by_rank`, c and v are those of `Costs`, c of a level of the draft. A tree has at most
    len(v) - 1 nodes.

    Where a pass for more tokens costs nothing, the tree is as large as it may be; where each token costs a step, none
    pays.

    >>> shape, speedup = best_shape([0.6, 0.2], c=0.1, v=[1] * 5)
    >>> shape.parents, round(speedup, 2)
    ((-1, -1, 0, 0), 1.9)
    >>> best_shape([0.6, 0.2], c=0.1, v=range(1, 6))
    (Shape(parents=(), ranks=()), 1.0)
    """
    falling = np.minimum.accumulate(w)
    shapes = [Shape((), ())]
    for depth in range(1, min(max_depth, len(v) - 1) + 1):
        shapes += [Shape.chain(depth), *(Shape.best(n, falling, depth) for n in range(depth, len(v)))]

    def speedup(shape):
        return tree_tokens(shape.parents, w) / (v[len(shape)] + shape.depth * c)

    best = max(shapes, key=speedup)
    return best, speedup(best)


# ------------------------------------------------------------------------------------------------ the table


def acceptance_table(makers, prompts, n_tokens, *, sampling, seed=0, keep=at_once):
    """w [RANKS] by drafter: how often its b-th candidate for a position is the accepted one, along the target's text.

    `makers` is a dict name -> function (Shape) -> (target, drafter).
    Parameters not named here are those of every experiment, see __init__.py.
    """

    def along(i, prompt):
        """[n_makers][RANKS]: the acceptance of 1, 2, ... candidates along the target's continuation of a prompt."""
        rows, text = [], None
        for make in makers.values():
            if text is None:
                text, _ = own_text(make(Shape.widths(RANKS))[0], prompt, n_tokens, sampling, seed + i)
            together = acceptance_together(make, RANKS, text, n_tokens, sampling, seed + i).tolist()
            rows.append((together + [max(together, default=0.0)] * RANKS)[:RANKS])
        return rows

    together = np.mean(of_each(prompts, keep, "acceptance, text", along), axis=0)
    return {name: added(row).tolist() for name, row in zip(makers, together)}


def tree_table(target, makers, acceptance, prompts, n_tokens, *, sampling, sizes, max_depth, seed=0, keep=at_once):
    """Rows for chains of 1 .. max_depth tokens and for trees of some sizes, for each drafter.

    Each drafter has its own race: the target alone, the chains and the trees, taking turns.
    Parameters not named here are those of every experiment, see __init__.py.

    Parameters
    ----------
    makers, acceptance : dict
        The makers of `acceptance_table` and its results for them, which determine the shapes of the trees.
    sizes : sequence of int
        The numbers of nodes.
    max_depth : int
        The most levels; fewer where a drafter has an attribute most_levels, as many as it can draft.

    Returns
    -------
    list of dict
        drafter; kind, "chain" or "tree"; nodes; levels; expected, the tokens per call by w; tokens_per_call, speedup
        and same_texts, see `compared`; for a tree over_chain, its tokens per call over those of the chain of the same
        depth, with over_low and over_high.
    """
    rows = []
    for name, make in makers.items():
        w = np.minimum.accumulate(acceptance[name])
        deepest = min(max_depth, getattr(make(Shape.chain(1))[1], "most_levels", max_depth))
        shapes = {("chain", depth): Shape.chain(depth) for depth in range(1, deepest + 1)}
        shapes |= {("tree", n): Shape.best(n, w, deepest) for n in sizes}
        samplers = {
            key: SpeculativeSampler(*make(shape), K=max_depth, sampling=sampling) for key, shape in shapes.items()
        }
        part = under(name, keep)
        alone, runs = against_alone(target, samplers, prompts, n_tokens, sampling=sampling, seed=seed, keep=part)
        calls = {key: np.array([run.target_calls for run in some], dtype=float) for key, some in runs.items()}
        for key, shape in shapes.items():
            kind, levels = key[0], shape.depth
            over = ratio(calls["chain", levels], calls[key]) if kind == "tree" else (None, None, None)
            rows.append({
                "drafter": name, "kind": kind, "nodes": len(shape), "levels": levels,
                "expected": tree_tokens(shape.parents, w), **compared(alone, runs[key]),
                **dict(zip(("over_chain", "over_low", "over_high"), over)),
            })  # fmt: skip
    return rows
