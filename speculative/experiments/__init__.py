"""The experiments of the literature, over any models handed in. Start reading at clock.py.

Every experiment takes `keep`, a function (name, measure) that gives measure() or what measure() gave before, and calls
it for each part that takes long: so that whoever keeps the parts, which are plain numbers, lists and dicts, can go on
with an experiment that was interrupted.
"""

from .alpha import alpha_table
from .assisted import native_and_assisted
from .calibration import Forecast, calibrate, forecast
from .clock import Run, SharedNoise, gain, race, total, under
from .drafters import compare_drafters
from .gamma import fit, gamma_table
from .methods import method_table
from .repeated import repetition

__all__ = [
    "Forecast",
    "Run",
    "SharedNoise",
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
    "under",
]
