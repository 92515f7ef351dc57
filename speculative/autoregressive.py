"""Autoregressive generation, the baseline: one call of the target for every token.

Speculative sampling draws from the same distribution, faster. The loop in sampler.py does the same with an empty draft.
This one stays separate, because an empty draft and a verdict on it take time for every token: the baseline would be
slower, and every speedup would look better.
"""

from collections.abc import Callable

import numpy as np

from .checks import ask_model, ask_sampling, check_model
from .generation import Laps, Round, RoundByRound
from .interfaces import Draft, LanguageModel, Verdict
from .logits.probs import Sampling, sample_token
from .rng import at_position
from .stop import until_stop


class AutoregressiveSampler(RoundByRound):
    """Samples each token from the target's distribution given all tokens before it.

    Parameters
    ----------
    target
        Called once per token: target(tokens) -> logits [1, n_vocab].
    sampling
        A `Sampling`, or a function like one. It turns these logits into probabilities, by temperature, top-k and so on.

    Examples
    --------
    >>> from speculative import AutoregressiveSampler, Sampling
    >>> from speculative.testing import TableModel
    >>> target = TableModel([[0.25, 0.75], [0.6, 0.4]])  # after token 0, token 1 is more likely; after token 1, token 0
    >>> AutoregressiveSampler(target, sampling=Sampling(temperature=0)).generate([0], 5).tokens
    array([1, 0, 1, 0, 1])
    """

    def __init__(self, target: LanguageModel, *, sampling: Callable[..., np.ndarray] = Sampling()):
        self.target = check_model(target, "a target")
        self.sampling = sampling

    def __repr__(self):
        return f"AutoregressiveSampler({self.target}, sampling={self.sampling})"

    def _rounds(self, tokens, n_tokens, rng, stop_tokens, stop):
        n_prompt = len(tokens)
        no_draft = Draft(np.empty(0, np.int64), np.empty((0, self.target.n_vocab)))
        for _ in range(n_tokens):
            laps = Laps()
            probs = ask_sampling(self.sampling, ask_model(self.target, tokens), tokens)  # [1, n_vocab]
            laps.end("target")
            token = sample_token(probs[0], at_position(rng, len(tokens)))
            tokens.append(token)
            laps.end("verify")
            yield Round(np.array([token]), no_draft, Verdict(0, token), probs, laps.seconds)
            if until_stop(tokens[n_prompt:-1], [token], stop_tokens, stop)[1]:
                return
