"""What to expect: tokens per target call, speedup and the best K (expected.py), and the shapes of trees (shapes.py).

Only formulas; no model is run. roofline.py has the draft length by batch size, from an accelerator's data sheet;
candidates.py has the acceptance of several candidates for one position, rule by rule.
"""

from .expected import acceptance_of, best_K, estimate_alpha, expected_time, expected_tokens, overlap, speedup
from .shapes import best_tree, tree_tokens, widths

__all__ = [
    "acceptance_of",
    "best_K",
    "best_tree",
    "estimate_alpha",
    "expected_time",
    "expected_tokens",
    "overlap",
    "speedup",
    "tree_tokens",
    "widths",
]
