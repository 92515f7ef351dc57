"""Autoregressive generation, the baseline: one call of the target for every token.

Speculative sampling draws from the same distribution, faster. The loop in sampler.py does the same with an empty draft.
This one stays separate, because an empty draft and a verdict on it take time for every token: the baseline would be
slower, and every speedup would look better.
"""

from collections.abc import Callable, Collection, Iterator

import numpy as np

from .checks import ask_model, ask_sampling, check_model, check_request, check_stop
from .generation import Generation, Laps, Round, collect
from .interfaces import Draft, LanguageModel, RandomSource, Tokens, Verdict
from .logits.probs import Sampling, sample_token
from .rng import as_generator, at_position
from .stop import until_stop


class AutoregressiveSampler:
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
        self.target: LanguageModel = check_model(target, "a target")
        self.sampling = sampling

    def __repr__(self):
        return f"AutoregressiveSampler({self.target}, sampling={self.sampling})"

    def rounds(
        self,
        prompt: Tokens,
        n_tokens: int,
        rng: int | RandomSource | None = None,
        *,
        stop_tokens: Collection[int] = (),
        stop: Callable[[list[int]], bool] | None = None,
    ) -> Iterator[Round]:
        """An iterator with one `Round` per token. The parameters are those of `generate`."""
        tokens = check_request(prompt, n_tokens, self.target)
        return self._rounds(tokens, n_tokens, as_generator(rng), check_stop(stop_tokens, stop), stop)

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

    def generate(
        self,
        prompt: Tokens,
        n_tokens: int,
        rng: int | RandomSource | None = None,
        *,
        stop_tokens: Collection[int] = (),
        stop: Callable[[list[int]], bool] | None = None,
        keep_probs: bool = False,
    ) -> Generation:
        """A `Generation` with exactly n_tokens new tokens, or with fewer if it stops early.

        Parameters
        ----------
        prompt
            Token ids [n_prompt], at least one.
        n_tokens
            How many tokens to generate.
        rng
            A seed; a source, such as an np.random.Generator, which is used as it is; or None for a fresh seed.
        stop_tokens
            Token ids. The output ends with the first stop token, which is included.
        stop
            The output ends with the first token for which stop(new tokens up to and including it) is true; see stop.py.
        keep_probs
            Keep the probabilities p and q in the rounds.

        Raises
        ------
        ValueError
            If the prompt is not a sequence of the target's token ids, if prompt and n_tokens together exceed n_ctx, or
            if a model, drafter or verifier returns something invalid (checks.py).
        """
        return collect(prompt, self.rounds(prompt, n_tokens, rng, stop_tokens=stop_tokens, stop=stop), keep_probs)
