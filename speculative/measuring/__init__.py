"""Measurements of this machine and these models: experiments, costs, and the K that follows from them.

The method needs no measurements. All times of a page or a table come from an experiment (experiment.py): the target
alone and any samplers take turns on one prompt after the other. rows.py compares their runs, table.py and page.py show
that, and intervals.py says how far a few prompts can be trusted. costs.py measures the costs of a round, from which
`CostModel` (theory/draft_length.py) chooses K.
"""

from .experiment import Experiment, Prompt, Run, race, total
from .intervals import ratio as gain
from .rows import compared, repetition

__all__ = [
    "Experiment", "Prompt", "Run", "compared", "gain", "race", "repetition", "total",
]  # fmt: skip
