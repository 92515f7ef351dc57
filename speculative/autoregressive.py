"""Ordinary generation: one call of the target for every token. Speculative sampling must equal it, and be faster.

Next: sampler.py
"""

from time import perf_counter

import numpy as np

from .interfaces import Round, check_request, collect
from .probs import Sampling, as_generator, at_position, sample_token


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

    def rounds(self, prompt, n_tokens, rng=None, *, stop_tokens=()):
        """One `Round` of one token after the other; see `generate` for the parameters."""
        return self._rounds(check_request(prompt, n_tokens, self.target), n_tokens, as_generator(rng), stop_tokens)

    def _rounds(self, tokens, n_tokens, rng, stop_tokens):
        nothing = np.empty(0, np.int64), np.empty((0, self.target.n_vocab))
        for _ in range(n_tokens):
            started = perf_counter()
            probs = self.sampling(self.target(tokens), tokens)  # [1, n_vocab]
            called = perf_counter()
            token = sample_token(probs[0], at_position(rng, len(tokens)))
            tokens.append(token)
            seconds = {"draft": 0.0, "target": called - started, "verify": perf_counter() - called}
            yield Round(np.array([token]), nothing[0], 0, seconds, nothing[1], probs)
            if token in stop_tokens:
                return

    def generate(self, prompt, n_tokens, rng=None, *, stop_tokens=(), keep_probs=False):
        """A `Generation` of exactly n_tokens new tokens, or of fewer, the last of which is the first stop token.

        Parameters
        ----------
        prompt : sequence of int
            Token ids, at least one.
        n_tokens : int
        rng : int, np.random.Generator, or None
            A seed, a generator, or any object with a method `random`, which is used as it is.
        stop_tokens : collection of int
        keep_probs : bool
            Keep the rows of probabilities in the rounds.

        Raises
        ------
        ValueError
            If prompt and n_tokens together exceed the target's n_ctx, or the prompt is no sequence of its tokens.
        """
        return collect(prompt, self.rounds(prompt, n_tokens, rng, stop_tokens=stop_tokens), keep_probs)
