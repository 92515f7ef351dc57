"""Drafting through the text: the proposal of a drafter with a different tokenizer is decoded and encoded again.

The proposal becomes deterministic tokens of the target, with one-hot rows. Verifying them is exact whatever they are
and however they were found (deterministic.py). So nothing has to be known about the other drafter: it may sample,
branch, or have no model. Only the new text is encoded; the target's own tokens are kept, because the way the target
divided its text is part of the distribution.
The last token may be wrong, because more text would tokenize differently; it stays because it costs only one row of the
target's pass.
Source: Timor et al., arXiv:2502.05202, section 3 (there called SLEM); shared_tokens.py is the alternative.
"""

import sys
from math import ceil

from ..interfaces import Draft, Drafter, RandomSource, Tokens
from ..logits.probs import Sampling, inheriting
from ..models.shared_tokens import Tokenizer, Translation, latest
from ..tree import path
from .deterministic import merged, one_hot


class TextDrafter:
    """Translates the proposals of a drafter with its own vocabulary into the target's.

    The other drafter is asked for as many of its own tokens as K target tokens have been worth in the text so far. It
    is greedy unless it was given a sampling: for a sampled draft token to be accepted, the target would have to sample
    it as well.

    Parameters
    ----------
    drafter
        It drafts in its own vocabulary. It is not shown the target's answers, which are in a different vocabulary.
    of_target, of_draft
        See shared_tokens.py.
    n_vocab
        The target's n_vocab; by default the number of tokens in its tokenizer.
    n_ctx
        The longest text for the other drafter, in its tokens; of a longer text it sees only the end.
    """

    def __init__(
        self,
        drafter: Drafter,
        of_target: Tokenizer,
        of_draft: Tokenizer,
        *,
        n_vocab: int | None = None,
        n_ctx: int = sys.maxsize,
    ):
        self.drafter = inheriting(drafter, Sampling(temperature=0))
        self.n_vocab, self.n_ctx = n_vocab or of_target.n_vocab, n_ctx
        self.to_draft, self.to_target = Translation(of_target, of_draft), Translation(of_draft, of_target)

    def __repr__(self):
        return f"TextDrafter({self.drafter})"

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        text = self.to_draft(tokens) or [self.to_draft.new.end_of_text or 0]
        n = ceil(K * len(text) / len(tokens))
        draft = self.drafter.propose(latest(text, max(1, self.n_ctx - n)), n, rng)
        leaves = [node for node in range(len(draft.tokens)) if not draft.children(node)]
        paths = [self.to_target(draft.tokens[path(draft.parents, leaf)], is_whole=False)[:K] for leaf in leaves]
        drafted, parents, _ = merged(paths)
        return one_hot(drafted, self.n_vocab, parents)
