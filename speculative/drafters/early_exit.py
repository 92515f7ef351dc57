"""Self-speculation: the target's own first layers draft, with its own final norm and vocabulary projection.

What the first layers compute for a drafted token, their keys and values and the hidden state that leaves them, is kept
for the target's own pass, which goes on from there: nothing is computed twice. This file knows no layers: it asks the
model for a part of itself, which is a language model, too.
Source: Elhoushi et al., LayerSkip, arXiv:2404.16710, section 4.3 (there with training for it).
Next: dials.py
"""

from ..probs import Sampling
from .model import ModelDrafter, check_threshold


class EarlyExitDrafter(ModelDrafter):
    """A `ModelDrafter` whose model is `target.early_exit`, the language model of the target's first layers.

    Parameters
    ----------
    target : LanguageModel
        With an attribute early_exit, as gpt2np.EarlyExit has it.
    sampling, threshold
        As in `ModelDrafter`.
    """

    def __init__(self, target, *, sampling=Sampling(), threshold=0.0):
        self.model = target.early_exit
        self.sampling = sampling
        self.threshold = check_threshold(threshold)
