"""Drafting the text that a grammar forces, without a model: after `{` perhaps `"name": "`.

The grammar's automaton says which bytes must follow, and the tokenizer encodes them. Such a draft is still a guess: the
text is forced, but its division into tokens is not, and the target gives some probability to other divisions of the
same text. So it is verified like any other, and exact with every exact rule. Appending forced text to the output
unverified ("jump forward") saves the target call, but changes the distribution.

A draft model with the same grammar in its sampling accepts more, as it also drafts where there is a choice. This one is
for targets without a draft model.
Source: Zheng et al. (SGLang), arXiv:2312.07104, section 4, where forced text is appended.
"""

from collections.abc import Callable

import numpy as np

from ..interfaces import Draft, Drafter, RandomSource, Tokens
from ..logits.grammar import Grammar
from ..logits.probs import inheriting
from .deterministic import one_hot


class ForcedDrafter:
    """Drafts the forced text; where there is a choice, it drafts nothing or asks a different drafter.

    Parameters
    ----------
    encode
        From a text to token ids, such as `tokenizer.encode`.
    n_vocab
        The target's number of tokens.
    grammar
        By default the first one among the processors of the sampler's sampling.
    otherwise
        A drafter to be asked where nothing is forced.
    """

    def __init__(
        self,
        encode: Callable[[str], list[int]],
        n_vocab: int,
        *,
        grammar: Grammar | None = None,
        otherwise: Drafter | None = None,
    ):
        self.encode, self.n_vocab = encode, n_vocab
        self.grammar, self.otherwise = grammar, otherwise
        self._sampling = None

    @property
    def sampling(self) -> Callable[..., np.ndarray] | None:
        """The sampler's `Sampling`, whose processors may include a grammar; `otherwise` inherits it."""
        return self._sampling

    @sampling.setter
    def sampling(self, sampling: Callable[..., np.ndarray] | None) -> None:
        self._sampling = sampling
        self.otherwise = self.otherwise and inheriting(self.otherwise, sampling)

    def observe(self, tokens: list[int], logits: np.ndarray, parents: np.ndarray) -> None:
        """Pass the target's answer on."""
        if hasattr(self.otherwise, "observe"):
            self.otherwise.observe(tokens, logits, parents)

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        processors = self.grammar, *getattr(self.sampling, "processors", ())
        grammar = next((processor for processor in processors if isinstance(processor, Grammar)), None)
        forced, ends = grammar.forced(tokens) if grammar else (b"", False)
        drafted = self.encode(forced.decode(errors="ignore"))[:K] if forced else []
        if ends and len(drafted) < K:
            drafted = [*drafted, grammar.end]
        if not drafted and self.otherwise:
            return self.otherwise.propose(tokens, K, rng)
        return one_hot(drafted, self.n_vocab)
