"""Ordinary generation: one call of the target for every token. Speculative sampling must equal it, and be faster.

Next: sampler.py
"""

from time import perf_counter

import numpy as np

from .interfaces import Round, check_request, collect
from .probs import Sampling, as_generator, at_position, sample_token
from .stop import until_stop


class AutoregressiveSampler:
    """Draws each token from the target's distribution after all tokens before it.

    Parameters
    ----------
    target : LanguageModel
    sampling : Sampling
    """

    def __init__(self, target, *, sampling=Sampling()):
        self.target = target
        self.sampling = sampling

    def rounds(self, prompt, n_tokens, rng=None, *, stop_tokens=(), stop=None):
        """One `Round` of one token after the other; see `generate` for the parameters."""
        tokens = check_request(prompt, n_tokens, self.target)
        return self._rounds(tokens, n_tokens, as_generator(rng), stop_tokens, stop)

    def _rounds(self, tokens, n_tokens, rng, stop_tokens, stop):
        nothing = np.empty(0, np.int64), np.empty((0, self.target.n_vocab))
        begin = len(tokens)
        for _ in range(n_tokens):
            started = perf_counter()
            probs = self.sampling(self.target(tokens), tokens)  # [1, n_vocab]
            called = perf_counter()
            token = sample_token(probs[0], at_position(rng, len(tokens)))
            tokens.append(token)
            seconds = {"draft": 0.0, "target": called - started, "verify": perf_counter() - called}
            yield Round(np.array([token]), nothing[0], 0, seconds, nothing[1], probs)
            if until_stop(tokens[begin:-1], [token], stop_tokens, stop)[1]:
                return

    def generate(self, prompt, n_tokens, rng=None, *, stop_tokens=(), stop=None, keep_probs=False):
        """A `Generation` of exactly n_tokens new tokens, or of fewer, with the first of which the text is to end.

        Parameters
        ----------
        prompt : sequence of int
            Token ids, at least one.
        n_tokens : int
        rng : int, np.random.Generator, or None
            A seed, a generator, or any object with a method `random`, which is used as it is.
        stop_tokens : collection of int
            The text ends with the first of them.
        stop : callable, optional
            The text ends with the first token for which stop(new tokens up to it) is true, see stop.py.
        keep_probs : bool
            Keep the rows of probabilities in the rounds.

        Raises
        ------
        ValueError
            If prompt and n_tokens together exceed the target's n_ctx, or the prompt is no sequence of its tokens.
        """
        return collect(prompt, self.rounds(prompt, n_tokens, rng, stop_tokens=stop_tokens, stop=stop), keep_probs)
