"""The experiments of the literature, on any models.

Every experiment takes `keep`, a function (name, measure) that returns measure(), or what measure() returned earlier.
The experiment calls it for each part that takes long. A caller that stores the parts, which are plain numbers, lists
and dicts, can resume an interrupted experiment.
"""

from .alpha import alpha_table
from .assisted import native_and_assisted
from .calibration import Forecast, calibrate, forecast
from .drafters import compare_drafters
from .gamma import fit, gamma_table
from .intervals import gain
from .methods import method_table
from .repeated import repetition
from .runs import Run, SharedNoise, race, total, under
from .trees import acceptance_table, tree_table

__all__ = [
    "Forecast",
    "Run",
    "SharedNoise",
    "acceptance_table",
    "alpha_table",
    "calibrate",
    "compare_drafters",
    "fit",
    "forecast",
    "gain",
    "gamma_table",
    "method_table",
    "native_and_assisted",
    "race",
    "repetition",
    "total",
    "tree_table",
    "under",
]
