"""Expected tokens per target call, speedup and the best K (expected.py).

Only formulas; no model is run. candidates.py computes the acceptance of several candidates for one position, rule by
rule; draft_length.py chooses K from the rounds so far.
"""

from .expected import (
    acceptance_of,
    best_K,
    estimate_alpha,
    expected_time,
    expected_tokens,
    overlap,
    speedup,
    tree_tokens,
)

__all__ = [
    "acceptance_of",
    "best_K",
    "estimate_alpha",
    "expected_time",
    "expected_tokens",
    "overlap",
    "speedup",
    "tree_tokens",
]
