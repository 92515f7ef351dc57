"""Self-speculation: the target's first layers draft, with the target's final norm and vocabulary projection.

The keys, values and hidden states that the first layers compute for a draft token stay in the cache, and the target's
pass continues from them: nothing is computed twice. This file knows nothing about layers: it asks the model for its
early exit, which is also a language model.
Source: Elhoushi et al., LayerSkip, arXiv:2404.16710, section 4.3 (where the model is also trained for it).
"""

from collections.abc import Callable

import numpy as np

from ..interfaces import LanguageModel
from .model import ModelDrafter


class EarlyExitDrafter(ModelDrafter):
    """A `ModelDrafter` whose model is `target.early_exit`, the language model of the target's first layers.

    Parameters
    ----------
    target
        It needs an attribute `early_exit`, such as a gpt2np.EarlyExit.
    sampling, threshold
        As in `ModelDrafter`.
    """

    def __init__(
        self, target: LanguageModel, *, sampling: Callable[..., np.ndarray] | None = None, threshold: float = 0.0
    ):
        if not hasattr(target, "early_exit"):
            raise ValueError(f"expected a target with an early exit, such as EarlyExit(model, 2), got {target!r:.80}")
        super().__init__(target.early_exit, sampling=sampling, threshold=threshold)
