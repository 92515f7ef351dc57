"""Measurements of this machine and these models: races, costs, and the K and the tree that follow from them.

The method needs no measurements. costs.py measures the costs of a round, draft_length.py and best_shape.py use them
to choose K and the tree. All times of a table come from a race (runs.py): the target alone and any samplers take turns
on one prompt after the other. intervals.py says how far a few prompts can be trusted.

A race takes `keep`, a function (name, measure) that returns measure() or its earlier result. So a caller that stores
the parts, which are plain numbers, lists and dicts, can resume.
"""

from .intervals import ratio as gain
from .runs import Run, compared, race, repetition, total, under

__all__ = [
    "Run", "compared", "gain", "race", "repetition", "total", "under",
]  # fmt: skip
