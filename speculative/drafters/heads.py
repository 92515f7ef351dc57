"""Drafting with heads on the target's last hidden state, without a second model or an extra pass.

Heads turn one hidden state into predictions of the next tokens, so a draft costs a few small matmuls and no call of a
model. Several candidates per position are cheap, and they are needed: heads are right less often than a draft model.
The draft is a tree of the heads' most probable tokens. They are deterministic (one-hot rows), so `exact_match` and
`rejection` are exact at any temperature.

Head 1 predicts the token after the text, head 2 the one after that, so a tree is at most as deep as the number of
heads. The last hidden state is that of the next-to-last token: the target has not processed the token it added last.
The model keeps its states of the last call, so only the first draft of a text costs a pass, over the prompt without its
last token, which the target's cache keeps for the call that follows.
Sources: Cai et al. (Medusa), arXiv:2401.10774, section 2.3.3; Ankner et al. (Hydra), arXiv:2402.05109.
"""

from typing import Any

import numpy as np

from ..interfaces import Draft, LanguageModel, RandomSource, Tokens
from .deterministic import one_hot
from .ranked import fixed_tree, top
from .shapes import Shape, check_shape


class HeadsDrafter:
    """A tree of the heads' most probable tokens.

    Parameters
    ----------
    model
        The target, with `states(tokens, n_last) -> hidden states [n_last, n_embd]`, such as a gpt2np.GPT2.
    heads
        gpt2np.Heads, as gpt2np.load_heads returns them, or any object with the same attributes: `n_heads`; `accepted`
        [n_heads, n_ranks], how often the candidate of each rank is right; `check(model)`; `logits(model, states [n,
        n_embd], seen [n, i]) -> [n, n_vocab]` of head i.
    tree
        By default the best tree of 3 nodes by `accepted`. More nodes yield more tokens per call, but each is a position
        to verify. Nodes deeper than the number of heads are left out.
    """

    def __init__(self, model: LanguageModel, heads: Any, tree: Shape | None = None):
        if not hasattr(model, "states"):
            raise ValueError(f"expected a model with hidden states, such as a gpt2np.GPT2, got {model!r:.80}")
        if not hasattr(heads, "n_heads"):
            raise ValueError(
                f"expected heads, such as gpt2np.load_heads returns, got {heads!r:.80}: use a different drafter, or "
                "train heads for this model"
            )
        self.model, self.heads = model, heads.check(model)
        tree = Shape.best(3, self.weights(), heads.n_heads) if tree is None else tree
        self.tree: Shape = check_shape(tree, model.n_vocab, "tokens")

    def propose(self, tokens: Tokens, K: int, rng: RandomSource | None) -> Draft:
        text = [int(token) for token in tokens]
        n_levels = min(K, self.heads.n_heads)
        if n_levels < 1 or len(text) < 2:
            return one_hot([], self.model.n_vocab)
        state = self.model.states(text[:-1])  # [1, n_embd]

        def most_likely(paths, n):
            seen = np.insert(paths, 0, text[-1], axis=1)
            return top(self.heads.logits(self.model, np.repeat(state, len(paths), axis=0), seen), n)

        return fixed_tree(self.tree, n_levels, most_likely, self.model.n_vocab)

    def weights(self) -> np.ndarray:
        """`accepted` for at most n_vocab ranks, with increases that are due to chance removed."""
        return np.minimum.accumulate(self.heads.accepted[:, : self.model.n_vocab], axis=-1)
