"""Heads: small layers on a model's last hidden state that predict tokens further ahead, for speculative decoding.

The model's own last layer turns the hidden state h at position t into the distribution of token t + 1. Head i turns the
same h into a prediction of token t + 1 + i, by a vector y that replaces h before the vocabulary projection:

    Medusa    y = h + silu(h W + b)                             sees h only
    Hydra     y = x A + silu(x W), x = (h, e[t+1], .., e[t+i])  also sees the embeddings of the tokens before its own

The pass that verifies a draft yields h for every draft token, and the next draft starts from the h of the last accepted
one: a whole draft costs a few small products and no pass. But h does not know the token that the model has added since.

Here h is the result of the final norm without its gain and bias; these are applied to y instead. The heads are trained
with the model frozen (dev/train/train_heads.py). Leaves out: which tokens to propose (speculative/drafters/heads.py).
Sources: Cai et al. (Medusa), arXiv:2401.10774, section 2.1.1; Ankner et al. (Hydra), arXiv:2402.05109, section 3.
"""

import math
import os
import threading

import numpy as np

from .cache import TokenTree, kept_slots
from .files.errors import CheckpointError
from .files.loading import folder_of
from .files.safetensors import read_safetensors
from .kernels.matmul import pack
from .layers import layer_norm

KINDS = {"hydra": ("a", "w", "accepted"), "medusa": ("w", "b", "accepted")}  # the arrays of a head


class Heads:
    """A language model with the logits of `model`, which keeps the hidden states of its last call for the heads.

    Parameters
    ----------
    model : GPT2
        Shared, not copied.
    heads : list of dict
        Head 1, head 2, ..., see `load_heads`. Copies of the matrices are packed, as the model's are.
    """

    def __init__(self, model, heads):
        self.model = model
        self.n_vocab, self.n_ctx, self.hparams, self.params = model.n_vocab, model.n_ctx, model.hparams, model.params
        check_fit(heads, model.hparams)
        if hasattr(model, "early_exit"):
            raise ValueError("expected a GPT2, got an EarlyExit, which keeps the hidden states of its first layers")
        self.n_heads = len(heads)
        self.n_params = sum(math.prod(head[name].shape) for head in heads for name in head if name != "accepted")
        strategy = model.params["wte"].T.strategy
        self.heads = [{part: pack(w, strategy) if w.ndim == 2 else w for part, w in head.items()} for head in heads]
        self.accepted = np.array([head["accepted"] for head in heads])  # [n_heads, n_ranks], see `load_heads`
        self.cached, self.hidden = TokenTree(), model.hidden[:0]  # the last call's tokens, and the last rows' states
        self.lock = threading.RLock()

    def __reduce__(self):
        """A copy has no hidden states: another thread may be in a call."""
        return type(self), (self.model, self.heads)

    def __call__(self, tokens, n_last=1, parents=()):
        with self.lock, self.model.lock:
            logits = self.model(tokens, n_last, parents)
            self.cached, self.hidden = self.model.cached, self.model.hidden
            return logits

    def head_logits(self, tokens, paths):
        """Logits [n_paths, n_vocab] float32 for the token after `tokens` and each path of draft tokens.

        Parameters
        ----------
        tokens : list of int
            The text, at least two tokens. All but the last have been through the model in its last call; if not, it is
            called for them.
        paths : array [n_paths, depth] int
            Draft tokens that follow the text; depth 0 is for head 1, n_heads - 1 for the last.
        """
        paths = np.asarray(paths, dtype=np.int64)
        n_paths, depth = paths.shape
        if not depth < self.n_heads:
            raise ValueError(f"expected paths of at most {self.n_heads - 1} tokens for the last head, got {depth}")
        h = np.repeat(self.hidden_state(tokens[:-1])[None], n_paths, axis=0)
        return self.head(depth + 1, h, np.concatenate([np.full((n_paths, 1), tokens[-1]), paths], axis=1))

    def head(self, i, x, seen):
        """Logits [n, n_vocab] of head i, from 1, for hidden states x [n, n_embd] and tokens seen [n, i] after."""
        return self.head_state(i, x, seen) @ self.params["wte"].T

    def head_state(self, i, x, seen):
        """y [n, n_embd], which the vocabulary projection turns into the logits of head i; parameters as in `head`."""
        head, last_norm, wte = self.heads[i - 1], self.params["ln_f"], self.params["wte"]
        h = layer_norm(x, 1, 0)
        if "a" in head:  # Hydra
            h_and_e = np.concatenate([h, wte[seen.ravel()].reshape(len(h), -1)], axis=1)  # -> [n, (i + 1) * n_embd]
            y = h_and_e @ head["a"] + silu(h_and_e @ head["w"])
        else:
            y = h + silu(h @ head["w"] + head["b"])
        return y * last_norm["g"] + last_norm["b"]

    def hidden_state(self, tokens):
        """The hidden state [n_embd] of the last of these tokens: kept, or by a call of the model."""
        with self.lock:
            n_cached = len(self.cached.tokens)
            n, slots = kept_slots(self.cached, n_cached, TokenTree(tokens))
            row = (slots[-1] if slots else n - 1) - (n_cached - len(self.hidden))
            if n + len(slots) < len(tokens) or row < 0:
                self(tokens)
                row = -1
            return self.hidden[row]

    def reset(self):
        """Forget the hidden states and the model's cache. No result changes."""
        with self.lock:
            self.cached, self.hidden = TokenTree(), self.hidden[:0]
            self.model.reset()


def silu(x):
    """x / (1 + exp(-x)), written so that nothing overflows."""
    return x * 0.5 * (1 + np.tanh(x * 0.5))


def load_heads(name_or_folder, kind="hydra"):
    """The heads of "tiny-target", which are bundled, or of a folder with heads.safetensors; kind "hydra" or "medusa".

    A list of dict, float32: for each head the parameters "a" and "w" (hydra) or "w" and "b" (medusa), and "accepted"
    [n_ranks]: how often its most probable token, the second, and so on is the target's own in greedy text.

    ValueError for an unknown kind; CheckpointError, a ValueError, for missing heads and a malformed file.

    >>> [head["a"].shape for head in load_heads("tiny-target")]
    [(512, 256), (768, 256), (1024, 256)]
    """
    if kind not in tuple(KINDS):
        raise ValueError(f"unknown heads {kind!r:.40}: expected {' or '.join(KINDS)}")
    if not isinstance(name_or_folder, (str, os.PathLike)):
        raise ValueError(f"expected a model's name or folder, such as tiny-target, got {name_or_folder!r:.80}")
    path = heads_file(name_or_folder)
    if not path.is_file():
        raise CheckpointError(
            f"{name_or_folder} has no heads: expected tiny-target, whose heads are bundled, or a folder with "
            "heads.safetensors, as dev/train/train_heads.py makes it"
        )
    tensors = read_safetensors(path)
    n_heads = sum(name.startswith(f"{kind}.") and name.endswith(".w") for name in tensors)
    if not n_heads:
        raise CheckpointError(f"{path} has no heads of the kind {kind}: its first tensors are {sorted(tensors)[:3]}")
    names = [{part: f"{kind}.{i}.{part}" for part in KINDS[kind]} for i in range(1, n_heads + 1)]
    if missing := [name for head in names for name in head.values() if name not in tensors]:
        raise CheckpointError(f"{path}: {missing[0]} is missing: these are not whole heads; get the file again")
    return [{part: tensors[name].astype(np.float32) for part, name in head.items()} for head in names]


def heads_file(name_or_folder):
    """Where the heads of this model are, if it has some."""
    return folder_of(name_or_folder) / "heads.safetensors"


def check_fit(heads, hparams):
    """Raise ValueError unless these are heads for a model of this shape."""
    if not heads:
        raise ValueError("expected one head or more, got none")
    n, ranks = hparams.n_embd, heads[0]["accepted"].shape
    for i, head in enumerate(heads, 1):
        wanted = {"a": ((i + 1) * n, n), "w": ((i + 1) * n, n)} if "a" in head else {"w": (n, n), "b": (n,)}
        wanted["accepted"] = ranks if len(ranks) == 1 else ("n_ranks",)
        if (found := {name: array.shape for name, array in head.items()}) != wanted:
            raise ValueError(
                f"expected arrays of shapes {wanted} for head {i} of a model with n_embd {n}, got {found}: "
                "these heads are another model's, so load those of this one (--drafter heads takes heads.safetensors "
                "from the model's folder)"
            )
