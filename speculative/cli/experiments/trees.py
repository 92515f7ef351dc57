"""Whether a tree pays: tokens per call and time side by side, the fastest tree next to the fastest chain.

Sources: Chen et al. (Sequoia), arXiv:2402.12374, its figure of tokens per call by tree size; Miao et al. (SpecInfer),
arXiv:2305.09781, its table of the width of a tree.
"""

import numpy as np

from speculative.drafters.shapes import Shape
from speculative.measuring.best_shape import acceptance_together, added
from speculative.measuring.intervals import ratio
from speculative.measuring.runs import against_alone, at_once, compared, of_each, own_text, under
from speculative.sampler import SpeculativeSampler
from speculative.theory.expected import tree_tokens

RANKS = 8


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
