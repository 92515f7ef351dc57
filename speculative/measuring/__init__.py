"""Measurements of this machine and these models: clocks, races, costs, and the K and the tree that follow from them.

The method needs none of it. clocks.py is the clock around a model, costs.py has the costs of a round, draft_length.py
and best_shape.py choose K and the tree by them; audit.py measures how far rows change with the rows beside them. All
times come from a race (runs.py); intervals.py says how far a few prompts can be trusted.
"""

from .intervals import ratio as gain
from .runs import Run, SharedNoise, race, repetition, total, under

__all__ = ["Run", "SharedNoise", "gain", "race", "repetition", "total", "under"]
