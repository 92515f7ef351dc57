"""The draft length of --K and the tree of --tree: given by numbers, or chosen from what is measured.

Next: texts.py
"""

from dataclasses import asdict

import speculative
from speculative.measuring import tree_size
from speculative.tree import depth_of

from .registry import RULES

MOST_CONFIDENT = 16  # tokens, of --K confidence
MOST_NODES = 16  # of --tree auto
N_PLACES = 32  # of the target's text, for the acceptance by rank of --tree auto


def at_once(name, find):
    return find()


def draft_length(request, setting, drafter, tokens, note=at_once):
    """(K or a function that chooses it, the measured costs as a dict or None), for a prompt of these tokens.

    `note` is called with what is measured, and may return what was measured earlier, see saved.py.
    """
    if request.K == "heuristic":
        return speculative.Heuristic(), None
    if request.K == "confidence":
        return MOST_CONFIDENT, None
    if request.K == "auto":
        costs = note("costs", lambda: asdict(costs_of(request, setting, drafter, tokens, 8)))
        return speculative.CostModel(costs["c"], costs["v"]), costs
    return request.K, None


def nodes_of(drafter):
    """The number of nodes of a drafter whose tree has a fixed shape, else None."""
    tree = getattr(drafter, "tree", None)
    return len(tree[0]) if hasattr(tree, "__len__") else None


def costs_of(request, setting, drafter, tokens, most):
    somewhere = [*tokens, *tokens][: setting.target.n_ctx - most - 1]
    return speculative.measure_costs(
        setting.target, drafter, somewhere, sampling=request.sampling, verifier=RULES[request.verifier].verifier,
        most=most,
    )  # fmt: skip


def drafter_of(request, setting, tokens, note=at_once):
    """(drafter, its measured tree as a dict or None), for a prompt of these tokens; `note` as in `draft_length`."""
    if request.tree != "auto":
        return setting.drafter(request.sampling), None
    found = note("tree", lambda: measured_tree(request, setting, tokens))
    return setting.tree(request.sampling, (found["parents"], found["ranks"])), found


def measured_tree(request, setting, tokens):
    """The best shape for the acceptance along some text of the target and for the costs, as a dict."""
    sampling, n_ctx, rule = request.sampling, setting.target.n_ctx, RULES[request.verifier]
    start = tokens[: max(1, n_ctx - N_PLACES - 1)]
    text = speculative.AutoregressiveSampler(setting.target, sampling=sampling).generate(start, N_PLACES, request.seed)
    text = [*start, *text.tokens.tolist()]
    together = tree_size.acceptance_together(
        lambda shape: (setting.target, setting.tree(sampling, shape)), 8, text, N_PLACES, sampling,
        rule.noise(request.seed), rule.verifier,
    )  # fmt: skip
    chain = setting.tree(sampling, speculative.widths(*[1] * MOST_NODES))
    costs = costs_of(request, setting, chain, tokens, MOST_NODES)
    levels = min(request.most_levels, getattr(chain, "most_levels", MOST_NODES))
    w = tree_size.added(together)
    (parents, ranks), speedup = tree_size.best_shape(w, costs.c, costs.v, levels)
    return {
        "nodes": len(parents), "levels": depth_of(parents), "expected_speedup": speedup,
        "c": costs.c, "v": list(costs.v), "acceptance_by_rank": w.tolist(), "parents": parents, "ranks": ranks,
    }  # fmt: skip
