"""Measurements of this machine and these models: races, costs, and the K and the tree that follow from them.

The method needs none of it. costs.py has the costs of a round; draft_length.py and best_shape.py choose K and the tree
by them. All times of a table come from a race (runs.py); intervals.py says how far a few prompts can be trusted.
"""

from .intervals import ratio as gain
from .runs import Run, SharedNoise, race, repetition, total, under

__all__ = ["Run", "SharedNoise", "gain", "race", "repetition", "total", "under"]
