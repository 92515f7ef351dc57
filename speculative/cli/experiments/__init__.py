"""What the commands measure, each experiment for one command: tables in plain numbers, without a word of output.

Every experiment takes

    target      LanguageModel
    prompts     list of sequences of int
    n_tokens    how many tokens to generate for each prompt
    sampling    Sampling of the target; a drafter has its own
    seed        of the first prompt; the next prompt has seed + 1, and so on
    keep        a function (name, measure) that returns measure(), or what measure() returned earlier

It calls `keep` for each part that takes long. A caller that stores the parts, which are plain numbers, lists and dicts,
can resume an interrupted experiment.

Drafters come as a dict name -> (target, drafter): each with the target that it runs on, whose logits are those of
`target`; K and verifier are those of `SpeculativeSampler`.

A row of a table is a dict. `speedup` is over the target alone, with `low` and `high`; `tokens_per_call` has `calls_low`
and `calls_high`. The intervals are 95 % t intervals over the prompts, and None for a single prompt. `same_texts` of
`n_texts` equal the target's own. The docstrings describe the other names.
"""

from .alpha import alpha_table
from .calibration import Forecast, calibrate, forecast
from .gamma import fit, gamma_table
from .methods import compare_drafters, method_table, native_and_assisted
from .trees import acceptance_table, tree_table

__all__ = [
    "Forecast",
    "acceptance_table",
    "alpha_table",
    "calibrate",
    "compare_drafters",
    "fit",
    "forecast",
    "gamma_table",
    "method_table",
    "native_and_assisted",
    "tree_table",
]
