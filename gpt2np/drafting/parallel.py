"""A parallel block: EAGLE's block (eagle.py) with mask tokens, which drafts K tokens in one pass instead of K.

EAGLE needs a pass for each draft token, because a row needs the token and the state before it. Here the rows of the
text x[0] .. x[t] are EAGLE's, and after them, in the same pass, come K - 1 slots for tokens not sampled yet. There a
learned vector mask[j] replaces the embedding, and the target's last state replaces the state before.

    z[t + j] = (u(s[t-1]), u(mask[j] + wpe[t + j])) W + b                    j = 1, .., K - 1
    s'[t], .., s'[t + K - 1] = the last rows of Block(z[0], .., z[t + K - 1])
    logits for token t + 1 + j = ln_f(s'[t + j]) wte.T + W1[x[t + j]] W2     the last term only for j > 0

All terms but the last are known before any token is sampled. By themselves they define K marginal distributions, and
independent samples from these do not form a text. Where "of course" and "no problem" are likely, "of problem" becomes
likely as well. W1 [n_vocab, rank] and W2 [rank, n_vocab] are a low-rank table of which token follows which. From left
to right, the row of the token just sampled is added before the next token is sampled, and the sum defines the q that
the verifier needs. So a token depends on the token before it, but on no earlier draft token.

Slots attend to the text and to earlier slots, so a draft of K tokens starts with the draft of K - 1 tokens. Leaves out:
DFlash's attention to later slots, DFlash's states from several layers, and DSpark's confidence in each slot.
Sources: DFlash, arXiv:2602.06036, for the block; DSpark, arXiv:2607.05147, for W1 and W2 (called the Markov head).
"""

import os
from dataclasses import dataclass, replace

import numpy as np

from ..kernels.matmul import pack
from ..model import GPT2
from .eagle import DraftModel, Eagle, EagleBlock, read_block


@dataclass(frozen=True)
class ParallelBlock(EagleBlock):
    """The parameters of a parallel block, as `load_parallel` reads them; `on(model)` makes it draft.

    `mask` [n_slots - 1, n_embd], `w1` [n_vocab, rank] and `w2` [rank, n_vocab] are float32; others as in `EagleBlock`.
    """

    mask: np.ndarray
    w1: np.ndarray
    w2: np.ndarray

    @property
    def n_params(self) -> int:
        return super().n_params + self.mask.size + 2 * self.w1.size

    def on(self, model: GPT2, n_frequent: int = 0) -> "ParallelEagle":
        """This block on its model (see `ParallelEagle`)."""
        return ParallelEagle(model, self, n_frequent)


class ParallelEagle(Eagle):
    """A block that drafts up to n_slots tokens of a model's texts in one pass; parameters and errors as in `Eagle`."""

    def __init__(self, model: GPT2, params: ParallelBlock, n_frequent: int = 0):
        super().__init__(model, params, n_frequent)
        self.n_slots = len(params.mask) + 1
        self.params = replace(self.params, w2=pack(params.w2, model.strategy))
        self.slots = np.empty((0, self.n_vocab), np.float32)  # the logits of the last pass, without the table's term

    def draft_model(self, n_text: int, K: int | None = None) -> DraftModel:
        """Like `Eagle.draft_model`. The first call runs K slots, by default all; later calls need no pass."""
        return DraftModel(self, n_text, K=K)

    def draft_logits(self, tokens, n_text, n_last=1, parents=(), K=None):
        """Like `Eagle.draft_logits`, for up to n_slots tokens in a row, all from one pass of at least K slots."""
        wanted, n_last = self.checked(tokens, n_text, n_last, parents)
        text, before = wanted.tokens[:n_text], wanted.tokens[-n_last:]
        depths = np.r_[wanted.positions_and_mask(len(wanted.tokens) - n_last)[0]] - (n_text - 1)
        if (n := depths.max() + 1) > self.n_slots:
            raise ValueError(f"expected a draft of at most {self.n_slots} tokens, one for each slot, got {n}")
        with self.lock, self.model.lock:
            if self.text != text or len(self.slots) < n:
                self.run_slots(text, min(max(n, K or self.n_slots), self.n_slots, self.n_ctx + 1 - n_text))
            return self.slots[depths] + (self.params.w1[before] * (depths > 0)[:, None]) @ self.params.w2

    def run_slots(self, text, n):
        """Process a text and n slots, the first of which holds the text's last token."""
        old, self.text = self.text, []  # if this is interrupted, no cached state is used again
        self.begin(old, text)
        begin, last = self.cache.length, len(text) - 1
        rows = np.concatenate([self.model.params["wte"][text[begin:]], self.params.mask[: n - 1]])
        before = self.states[np.minimum(np.arange(begin, last + n), last) - 1]
        states = self.through(before, rows + self.model.params["wpe"][begin : last + n], last=slice(-n, None))
        self.slots = self.logits(states)
        self.cache.length, self.text = len(text), text  # the next pass overwrites the slots after these


def load_parallel(name_or_folder: str | os.PathLike[str]) -> ParallelBlock:
    """The `ParallelBlock` of "tiny-target", which is bundled, or the one in a folder with parallel.safetensors.

    A missing block and a malformed file raise a CheckpointError, which is a ValueError.
    """

    def further_shapes(tensors, n_embd):
        lengths = ((*np.shape(tensors.get(name, ())), 0)[0] for name in ("mask", "frequent", "markov.w2"))
        n_masks, n_vocab, rank = lengths
        return {"mask": (n_masks, n_embd), "markov.w1": (n_vocab, rank), "markov.w2": (rank, n_vocab)}

    fields = read_block(name_or_folder, "parallel", "parallel block", further_shapes)
    return ParallelBlock(**fields.pop("markov"), **fields)
