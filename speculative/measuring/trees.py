"""Trees of several sizes against chains: tokens per call, time, and the acceptance that both follow from.

Tokens per call grow with the tree. Time need not: a node costs a row of the target's pass, a level a pass of the draft.
So the two columns stand side by side, and the fastest tree is compared with the fastest chain.
Sources, in form: Chen et al. (Sequoia), arXiv:2402.12374, its figure of tokens per call by tree size; Miao et al.
(SpecInfer), arXiv:2305.09781, its table of the width of a tree.
"""

from functools import partial

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..sampler import SpeculativeSampler
from ..theory.expected import tree_tokens
from ..theory.shapes import best_tree, widths
from ..tree import depth_of
from .intervals import calls_of, gain_of, ratio
from .runs import at_once, race, under
from .tree_size import acceptance_together, added

RANKS = 8


def acceptance_table(makers, prompts, n_tokens, *, sampling, seed=0, progress=iter, keep=at_once):
    """w_b for each drafter: how often its b-th candidate for a place is the accepted one, along the target's own text.

    Parameters
    ----------
    makers : dict name -> function (parents, ranks) -> (target, drafter)
    prompts, n_tokens, sampling, seed, progress, keep
        As in `race`.

    Returns
    -------
    dict name -> list of float [RANKS]
    """
    found = {name: [] for name in makers}
    for i, prompt in enumerate(progress(prompts)):
        ranks = keep(f"acceptance, text {i + 1}", partial(ranks_along, makers, prompt, n_tokens, sampling, seed + i))
        for name, together in zip(makers, ranks):
            found[name].append(together)
    return {name: added(np.mean(rows, axis=0)).tolist() for name, rows in found.items()}


def ranks_along(makers, prompt, n_tokens, sampling, seed):
    """[n_makers][RANKS]: the acceptance of 1, 2, ... candidates along the target's continuation of a prompt."""
    rows, tokens = [], None
    for make in makers.values():
        if tokens is None:
            target, _ = make(widths(RANKS))
            tokens = AutoregressiveSampler(target, sampling=sampling).generate(prompt, n_tokens, seed).tokens.tolist()
        together = acceptance_together(make, RANKS, [*prompt, *tokens], n_tokens, sampling, seed).tolist()
        rows.append((together + [max(together, default=0.0)] * RANKS)[:RANKS])
    return rows


def tree_table(
    target, makers, acceptance, prompts, n_tokens, *, sampling, sizes, max_depth, seed=0, progress=iter, keep=at_once
):
    """Rows for chains of 1 .. max_depth tokens and for trees of some sizes, for each drafter.

    Each drafter has its own race: the target alone, the chains and the trees, taking turns.

    Parameters
    ----------
    target : LanguageModel
    makers : dict name -> function (parents, ranks) -> (target, drafter)
    acceptance : dict name -> list of float
        w for each drafter, which gives the trees their shapes, see `acceptance_table`.
    sizes : sequence of int
        The numbers of nodes.
    max_depth : int
        The most levels; fewer where a drafter has an attribute most_levels, as many as it can draft.
    prompts, n_tokens, sampling, seed, progress, keep
        As in `race`.

    Returns
    -------
    list of dict
        drafter; kind, "chain" or "tree"; nodes; levels; expected, the tokens per call by w; tokens_per_call with
        calls_low and calls_high, speedup with low and high, both t intervals over the prompts; for a tree over_chain,
        its tokens per call over those of the chain of the same depth, with over_low and over_high; same_texts of
        n_texts.
    """
    rows = []
    for name, make in makers.items():
        w = np.minimum.accumulate(acceptance[name])
        deepest = min(max_depth, getattr(make(widths(1))[1], "most_levels", max_depth))
        chains = {("chain", depth): widths(*[1] * depth) for depth in range(1, deepest + 1)}
        shapes = {**chains, **{("tree", n): best_tree(n, w, deepest) for n in sizes}}
        samplers = {"alone": AutoregressiveSampler(target, sampling=sampling)}
        samplers |= {key: planted(make, shape, max_depth, sampling) for key, shape in shapes.items()}
        runs = race(samplers, prompts, n_tokens, seed=seed, progress=progress, keep=under(name, keep))
        for (kind, n), shape in shapes.items():
            own, levels = runs[kind, n], depth_of(shape[0])
            row = {
                "drafter": name, "kind": kind, "nodes": len(shape[0]), "levels": levels,
                "expected": tree_tokens(shape[0], w), **calls_of(own), **gain_of(runs["alone"], own),
                "same_texts": sum(a.tokens == b.tokens for a, b in zip(runs["alone"], own)), "n_texts": len(own),
            }  # fmt: skip
            over = ratio(calls(runs["chain", levels]), calls(own)) if kind == "tree" else (None, None, None)
            rows.append(row | dict(zip(("over_chain", "over_low", "over_high"), over)))
    return rows


def planted(make, shape, K, sampling):
    target, drafter = make(shape)
    return SpeculativeSampler(target, drafter, K=K, sampling=sampling)


def calls(runs):
    return np.array([run.target_calls for run in runs], dtype=float)
