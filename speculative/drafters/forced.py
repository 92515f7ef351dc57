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

from ..interfaces import Draft, RandomSource, Tokens
from ..logits.grammar import Grammar
from .deterministic import one_hot


class ForcedDrafter:
    """Drafts what the first grammar among the processors of the sampler's sampling forces; nothing without a grammar.

    Parameters
    ----------
    encode
        From a text to token ids, such as `tokenizer.encode`.
    n_vocab
        The target's number of tokens.
    """

    sampling: Callable[..., np.ndarray] | None = None

    def __init__(self, encode: Callable[[str], list[int]], n_vocab: int):
        self.encode, self.n_vocab = encode, n_vocab

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        processors = getattr(self.sampling, "processors", ())
        grammar = next((processor for processor in processors if isinstance(processor, Grammar)), None)
        forced, ends = grammar.forced(tokens) if grammar else (b"", False)
        drafted = self.encode(forced.decode(errors="ignore"))[:K] if forced else []
        if ends and len(drafted) < K:
            drafted = [*drafted, grammar.end]
        return one_hot(drafted, self.n_vocab)
