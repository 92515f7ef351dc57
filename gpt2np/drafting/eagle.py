"""EAGLE: one transformer block that continues a model's own hidden states, to draft for speculative decoding.

A head (heads.py) predicts several tokens from one hidden state. This block predicts the next hidden state instead, one
at a time: from a token x and the hidden state s of the token before, it predicts the target's state for x.

    z[t] = (u(s[t-1]), u(wte[x[t]] + wpe[t])) W + b     u: layer norm without gain and bias; s[-1] = 0
    s'[t] = Block(z[0], .., z[t])                       a block as in GPT-2, with its own KV cache
    logits for token t + 1 = ln_f(s'[t]) wte.T          the target's own final norm and vocabulary projection

Within the text, s comes from the target. The target has not yet computed it for the last token. There the draft begins,
and s' replaces s. So each draft token costs one small block, which attends to the whole text. When the target has
verified the draft, the true s of each accepted token replaces its s', and the block's keys and values for the token are
computed again. DeepSeek's MTP modules are the same construction.

Here s is kept after u, like the hidden states of heads.py. The block is trained with the model frozen (training/).
Leaves out: the choice of tokens (speculative/drafters/eagle.py), and EAGLE-3's inputs from several layers.
Sources: Li et al. (EAGLE), arXiv:2401.15077, section 4.1; DeepSeek-V3, arXiv:2412.19437, section 2.2 (MTP); Zhao et al.
(FR-Spec), arXiv:2502.14856, for the frequent tokens.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cache import KVCache, Tokens, TokenTree, kept_slots
from ..files.loading import read_drafter
from ..files.params import check_tensors, param_shapes, tree_of
from ..kernels.matmul import pack
from ..layers import block, layer_norm, linear
from ..model import GPT2, HParams, packed_block


@dataclass(frozen=True)
class EagleBlock:
    """The parameters of a block, as `load_eagle` reads them; `on(model)` makes it draft.

    `input` {w [2 * n_embd, n_embd], b [n_embd]} and `block`, as in files/params.py, are float32. `frequent` [n_vocab]
    int64 lists the token ids, the most frequent first.
    """

    input: dict[str, Any]
    block: dict[str, Any]
    frequent: np.ndarray

    @property
    def n_params(self) -> int:
        n_embd = len(self.input["b"])
        return 14 * (n_embd + 1) * n_embd

    def on(self, model: GPT2, n_frequent: int = 0) -> "Eagle":
        """This block on its model (see `Eagle`)."""
        return Eagle(model, self, n_frequent)


class Eagle:
    """A block that drafts the next tokens of a model's texts.

    Parameters
    ----------
    model : GPT2
        Shared, not copied. Its hidden states come from `GPT2.states`.
    params : EagleBlock
        Copies of the matrices are packed, like the matrices of the model.
    n_frequent : int
        Draft only this many of the most frequent tokens, and save the rest of the vocabulary projection; 0 means all.

    Raises
    ------
    ValueError
        If the block was made for a different model, or the model has no hidden states.
    """

    def __init__(self, model: GPT2, params: EagleBlock, n_frequent: int = 0):
        if not hasattr(model, "states"):
            raise ValueError(f"expected a GPT2, whose hidden states the block continues, got {model!r:.80}")
        check_fit(params, model.hparams)
        h, strategy = model.hparams, model.strategy
        if not 0 <= n_frequent <= h.n_vocab:
            raise ValueError(f"expected n_frequent from 1 to {h.n_vocab}, the number of tokens, or 0, got {n_frequent}")
        self.model, self.n_frequent = model, n_frequent
        self.n_vocab, self.n_ctx = h.n_vocab, h.n_ctx
        packed_input = {**params.input, "w": pack(params.input["w"], strategy)}
        self.params = replace(params, input=packed_input, block=packed_block(params.block, strategy))
        self.frequent = np.sort(params.frequent[: n_frequent or None])
        wte = model.params["wte"]
        self.projection = pack(wte[self.frequent].T, strategy) if n_frequent else wte.T
        self.text = []  # the block has processed these tokens with the target's states; cache.tokens begin with them
        self.cache = KVCache(1, h.n_head, h.n_ctx, h.d_head, strategy)
        self.states = np.zeros((h.n_ctx + 1, h.n_embd), np.float32)  # by slot; states[-1], before the first, stays 0
        self.lock = threading.RLock()

    def __reduce__(self):
        """A copy has an empty cache: another thread may be writing to this one."""
        return type(self), (self.model, self.params, self.n_frequent)

    def draft_model(self, n_text: int) -> "DraftModel":
        """The block as a language model for the tokens that follow a text of n_text tokens."""
        return DraftModel(self, n_text)

    def draft_logits(
        self, tokens: Tokens, n_text: int, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()
    ) -> np.ndarray:
        """Logits [n_last, n_vocab] float32 from the block; -inf for tokens that are not drafted.

        They are bitwise determined by these tokens and n_text.

        Parameters
        ----------
        tokens, n_last, parents
            As for the model itself.
        n_text : int
            The first n_text tokens are the text, and the others are the draft. n_last is at most one more than the
            number of draft tokens. The target is called unless its last call was for the text without its last token.
        """
        wanted, n_last = self.checked(tokens, n_text, n_last, parents)
        n = len(wanted.tokens)
        with self.lock, self.model.lock:
            text, self.text = self.text, []  # if this is interrupted, no cached state is used again
            if text != wanted.tokens[:n_text]:
                self.begin(text, wanted.tokens[:n_text])
                self.run(self.cache.tokens, n_text, last=slice(-1, None))
            self.cache.reuse(wanted, n, self.states)
            while (begin := self.cache.length) < n:  # one depth at a time: a node needs the state of the node above
                self.run(wanted, next((end for end in range(begin + 1, n) if wanted.parent_slot(end) >= begin), n))
            self.text = wanted.tokens[:n_text]
            return self.logits(self.states[n - n_last : n])

    def checked(self, tokens, n_text, n_last, parents):
        """(TokenTree, n_last) from the arguments of `draft_logits`; ValueError if they do not fit."""
        wanted = TokenTree(tokens, parents)
        n_last, n_drafted = wanted.check(n_last, self.model.hparams), len(wanted.tokens) - n_text
        if not (1 <= n_text <= wanted.n_text and n_last <= n_drafted + 1):
            raise ValueError(f"expected rows after a text of 1 to {wanted.n_text} tokens, got {n_last} after {n_text}")
        return wanted, n_last

    def begin(self, old, text):
        """Keep the prefix that a text shares with `old`, the previous text, and get the target's states for the rest.

        The old draft is dropped, since its states were predicted. The text's last token is still to be processed.
        """
        n, _ = kept_slots(TokenTree(old), len(old), TokenTree(text[:-1]))
        n_known = max(0, min(n, len(old) - 1))  # states from the target, not predicted ones
        if n_new := len(text) - 1 - n_known:
            self.states[n_known : len(text) - 1] = layer_norm(self.model.states(text[:-1], n_new), 1, 0)
        self.cache.reuse(TokenTree(text), n)

    def run(self, wanted, end, last=None):
        """Process the tokens up to slot `end` (earlier states are known), and store the states of the rows `last`."""
        begin, wanted = self.cache.length, TokenTree(wanted.tokens[:end], wanted.parents[: max(0, end - wanted.n_text)])
        positions, mask = wanted.positions_and_mask(begin)
        wte, wpe = self.model.params["wte"], self.model.params["wpe"]
        embeddings = wte[wanted.tokens[begin:]] + wpe[positions]
        # a token is paired with the state before it; its own state is not known yet, and would reveal the next token
        before = self.states[[wanted.parent_slot(slot) for slot in range(begin, end)]]
        states = self.through(before, embeddings, mask, last)
        self.states[end - len(states) : end] = states
        self.cache.length = end

    def through(self, before, embeddings, mask=None, last=None):
        """The states s' [n_last, n_embd] of new tokens, from their embeddings and the states `before` them."""
        pairs = np.concatenate([before, layer_norm(embeddings, 1, 0)], axis=1)
        x = linear(pairs, **self.params.input)  # [n_new, 2 * n_embd] -> [n_new, n_embd]
        x = block(x, self.params.block, self.model.hparams.n_head, self.cache.layers[0], mask, last)
        return layer_norm(x, 1, 0)

    def logits(self, states):
        """[n, n_embd] -> [n, n_vocab] float32; -inf for tokens that are not drafted."""
        last_norm = self.model.params["ln_f"]
        logits = (states * last_norm["g"] + last_norm["b"]) @ self.projection
        if not self.n_frequent:
            return logits
        whole = np.full((len(logits), self.n_vocab), -np.inf, np.float32)
        whole[:, self.frequent] = logits
        return whole

    def reset(self) -> None:
        """Forget the cache. No result changes."""
        with self.lock:
            self.text = []
            self.cache.truncate(0)


class DraftModel:
    """A language model for texts whose first n_text tokens are given (see `Eagle.draft_logits`)."""

    n_vocab: int
    n_ctx: int

    def __init__(self, eagle: Eagle, n_text: int, **options: Any):
        self.eagle = eagle
        self.n_text = n_text
        self.options = options
        self.n_vocab, self.n_ctx = eagle.n_vocab, eagle.n_ctx

    def __call__(self, tokens: Tokens, n_last: int = 1, parents: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        return self.eagle.draft_logits(tokens, self.n_text, n_last, parents, **self.options)


def load_eagle(name_or_folder: str | os.PathLike[str]) -> EagleBlock:
    """The `EagleBlock` of "tiny-target", which is bundled, or the one in a folder with eagle.safetensors.

    A missing block and a malformed file raise a CheckpointError, which is a ValueError.

    >>> load_eagle("tiny-target").input["w"].shape
    (512, 256)
    """
    return EagleBlock(**read_block(name_or_folder, "eagle", "EAGLE block"))


def read_block(name_or_folder, kind, title, further_shapes=lambda tensors, n_embd: {}):
    """The fields of a block (a dict). further_shapes(tensors, n_embd) -> the tensors that EAGLE's does not have."""
    path, tensors = read_drafter(name_or_folder, kind, title)
    n = tensors["input.bias"].size if "input.bias" in tensors else 0
    frequent = np.array(tensors.pop("frequent", ()), np.int64)
    shapes = {name: shape for name, shape in param_shapes(HParams(1, 1, n, 1, 1)).items() if name.startswith("h.0.")}
    shapes |= further_shapes({"frequent": frequent, **tensors}, n)
    check_tensors(tensors, {"input.weight": (2 * n, n), "input.bias": (n,), **shapes}, path)
    tree = tree_of(tensors)
    return {"input": tree.pop("input"), "block": tree.pop("h")["0"], "frequent": frequent, **tree}


def check_fit(params, hparams):
    """Raise ValueError unless this is a block for a model of this shape."""
    n, shapes = hparams.n_embd, (params.input["w"].shape, params.block["attn"]["c_attn"]["w"].shape)
    if shapes != ((2 * n, n), (n, 3 * n)) or len(params.frequent) != hparams.n_vocab:
        raise ValueError(
            f"expected a block for a model with n_embd {n} and {hparams.n_vocab} tokens, got one with n_embd "
            f"{shapes[0][-1]} and {len(params.frequent)} tokens: it belongs to a different model"
        )
    if sorted(params.frequent.tolist()) != list(range(hparams.n_vocab)):
        raise ValueError("expected each token once in the block's `frequent`: its file is damaged; get it again")
