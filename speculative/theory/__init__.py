"""What to expect: tokens per target call, speedup, the best draft length, candidates, shapes of trees."""

from .expected import (
    acceptance_of,
    best_K,
    estimate_alpha,
    expected_time,
    expected_tokens,
    operations_factor,
    overlap,
    speedup,
    tree_growth,
    tree_tokens,
)
from .shapes import best_tree, check_shape, of_ranks, widths

__all__ = [
    "acceptance_of",
    "best_K",
    "best_tree",
    "check_shape",
    "estimate_alpha",
    "expected_time",
    "expected_tokens",
    "of_ranks",
    "operations_factor",
    "overlap",
    "speedup",
    "tree_growth",
    "tree_tokens",
    "widths",
]
