"""The draft length of --K: a number, or the name of a policy that chooses it.

Next: texts.py
"""

import speculative

from .registry import RULES

MOST_CONFIDENT = 16  # tokens, of --K confidence


def draft_length(request, setting, drafter, tokens):
    """(K or a function that chooses it, Costs or None), for a prompt of these tokens."""
    if request.K == "heuristic":
        return speculative.Heuristic(), None
    if request.K == "confidence":
        return MOST_CONFIDENT, None
    if request.K == "auto":
        somewhere = [*tokens, *tokens][: setting.target.n_ctx - 9]
        costs = speculative.measure_costs(
            setting.target, drafter, somewhere, sampling=request.sampling, verifier=RULES[request.verifier].verifier
        )
        return speculative.CostModel(costs.c, costs.v), costs
    return request.K, None
