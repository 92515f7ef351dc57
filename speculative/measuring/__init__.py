"""Measurements of this machine and these models: experiments, costs, and the K and the tree that follow from them.

The method needs no measurements. costs.py measures the costs of a round, draft_length.py and best_shape.py use them
to choose K and the tree. All times of a page or a table come from an experiment (experiment.py): the target alone and
any samplers take turns on one prompt after the other. rows.py compares their runs, table.py and page.py show that, and
intervals.py says how far a few prompts can be trusted.
"""

from .experiment import Experiment, Run, race, total
from .intervals import ratio as gain
from .rows import compared, repetition

__all__ = [
    "Experiment", "Run", "compared", "gain", "race", "repetition", "total",
]  # fmt: skip
