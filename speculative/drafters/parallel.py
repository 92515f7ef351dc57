"""Drafting several tokens in one pass: EAGLE's block with mask tokens (gpt2np/drafting/parallel.py).

A draft of K tokens costs one pass instead of K. The rows of that pass are K marginals: each token's distribution
averaged over the possible tokens before it. A table indexed by the previous token makes them depend on each other, as
far as one token of memory can. So tokens are still sampled from left to right, each from its row corrected for the
token before it, and that row is the verifier's q. Acceptance falls with depth, whereas EAGLE's stays the same.
Sources: DFlash, arXiv:2602.06036; DSpark, arXiv:2607.05147.
"""

from ..interfaces import Draft, RandomSource, Tokens
from .eagle import EagleDrafter


class ParallelDrafter(EagleDrafter):
    """A chain or a tree from a parallel block; parameters as in `EagleDrafter`.

    `block` is a gpt2np.ParallelBlock, as gpt2np.load_parallel returns it, or any object whose `on(model, n_frequent)`
    returns an object with `n_slots`, the largest depth of a draft, and `draft_model(n_text, K)`, K for this draft.
    """

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        """At most K tokens, or a tree of depth at most K; never deeper than the block's n_slots."""
        K = min(K, self.block.n_slots)
        draft_model = self.block.draft_model(len(tokens), K)
        return self.drafter(draft_model, sampling=self.sampling).propose(tokens, K, rng)
