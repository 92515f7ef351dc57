"""The draft length of --K and the tree of --tree: given by numbers, or chosen from what is measured.

Next: texts.py
"""

import speculative
from speculative import tree_size
from speculative.tree import depth_of

from .registry import RULES

MOST_CONFIDENT = 16  # tokens, of --K confidence
MOST_NODES = 16  # of --tree auto
N_PLACES = 32  # of the target's text, for the acceptance by rank of --tree auto


def draft_length(request, setting, drafter, tokens):
    """(K or a function that chooses it, Costs or None), for a prompt of these tokens."""
    if request.K == "heuristic":
        return speculative.Heuristic(), None
    if request.K == "confidence":
        return MOST_CONFIDENT, None
    if request.K == "auto":
        costs = costs_of(request, setting, drafter, tokens, 8)
        return speculative.CostModel(costs.c, costs.v), costs
    return request.K, None


def costs_of(request, setting, drafter, tokens, most):
    somewhere = [*tokens, *tokens][: setting.target.n_ctx - most - 1]
    return speculative.measure_costs(
        setting.target, drafter, somewhere, sampling=request.sampling, verifier=RULES[request.verifier].verifier,
        most=most,
    )  # fmt: skip


def drafter_of(request, setting, tokens):
    """(drafter, what is known of its tree as a dict or None), for a prompt of these tokens.

    With --tree auto some text of the target is generated, and the best shape for its acceptance and costs taken.
    """
    sampling = request.sampling
    if request.tree != "auto":
        return setting.drafter(sampling), None
    n_ctx, rule = setting.target.n_ctx, RULES[request.verifier]
    start = tokens[: max(1, n_ctx - N_PLACES - 1)]
    text = speculative.AutoregressiveSampler(setting.target, sampling=sampling).generate(start, N_PLACES, request.seed)
    text = [*start, *text.tokens.tolist()]
    w = tree_size.acceptance_by_rank(
        setting.target, setting.tree(sampling, speculative.widths(8)), text, N_PLACES, sampling,
        rule.noise(request.seed), rule.verifier,
    )  # fmt: skip
    chain = setting.tree(sampling, speculative.widths(*[1] * MOST_NODES))
    costs = costs_of(request, setting, chain, tokens, MOST_NODES)
    shape, speedup = tree_size.best_shape(w, costs.c, costs.v, request.most_levels)
    found = {"nodes": len(shape[0]), "levels": depth_of(len(shape[0]), shape[0]), "expected_speedup": speedup}
    return setting.tree(sampling, shape), {**found, "c": costs.c, "v": list(costs.v), "acceptance_by_rank": w.tolist()}
