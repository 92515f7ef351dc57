"""Heads: small layers on a model's last hidden state that predict tokens further ahead, for speculative decoding.

The model's own last layer turns the hidden state h at position t into the distribution of token t + 1. Head i turns the
same h into a prediction of token t + 1 + i, by means of a vector y that replaces h before the vocabulary projection:

    Medusa    y = h + silu(h W + b)                             sees h only
    Hydra     y = x A + silu(x W), x = (h, e[t+1], .., e[t+i])  also sees the embeddings of the tokens in between

The pass that verifies a draft yields h for every draft token, and the next draft starts from the h of the last accepted
one. So a whole draft costs a few small matmuls and no pass. But h does not know the token that the model added since.

Here h is the result of the final norm without its gain and bias; these are applied to y instead. The heads are trained
with the model frozen (training/). Leaves out: the choice of tokens (speculative/drafters/heads.py).
Sources: Cai et al. (Medusa), arXiv:2401.10774, section 2.1.1; Ankner et al. (Hydra), arXiv:2402.05109, section 3.
"""

import math
import os

import numpy as np

from ..files.errors import CheckpointError
from ..files.loading import read_drafter
from ..files.params import tree_of
from ..kernels.matmul import pack, strategy
from ..layers import layer_norm
from ..model import GPT2

KINDS = {"hydra": ("a", "w", "accepted"), "medusa": ("w", "b", "accepted")}  # the arrays of a head


class Heads:
    """The heads of a model. They store nothing about a text: hidden states come from `GPT2.states`.

    Parameters
    ----------
    params
        Head 1, head 2, ... (see `load_heads`). Copies of the matrices are packed, like the matrices of a model.
    """

    n_heads: int
    accepted: np.ndarray

    def __init__(self, params: list[dict[str, np.ndarray]]):
        check_shapes(params)
        self.n_heads, self.n_embd = len(params), params[0]["w"].shape[1]
        self.n_params = sum(math.prod(head[name].shape) for head in params for name in head if name != "accepted")
        name = strategy(n_params=self.n_params)
        self.params = [{part: pack(w, name) if w.ndim == 2 else w for part, w in head.items()} for head in params]
        self.accepted = np.array([head["accepted"] for head in params])  # [n_heads, n_ranks] (see `load_heads`)

    def check(self, model: GPT2) -> "Heads":
        """Return these heads; ValueError unless they are as wide as the model's hidden states."""
        if self.n_embd != model.hparams.n_embd:
            raise ValueError(
                f"expected heads for a model with n_embd {model.hparams.n_embd}, got heads with n_embd {self.n_embd}: "
                "load those of this model"
            )
        return self

    def logits(self, model: GPT2, states: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Logits [n, n_vocab] float32 of head i, which predicts the token after `seen`.

        Parameters
        ----------
        model
            The heads' model: its embeddings and its vocabulary projection are used.
        states
            [n, n_embd] float32: the hidden states of tokens of a text (see `GPT2.states`).
        seen
            [n, i] int: the i tokens that follow each of them, from 1 to n_heads.
        """
        if not 1 <= seen.shape[1] <= self.n_heads:
            raise ValueError(f"expected 1 to {self.n_heads} tokens after the hidden state, got {seen.shape[1]}")
        return self.replaced(model, states, seen) @ model.params["wte"].T

    def replaced(self, model, states, seen):
        """y [n, n_embd], which replaces the states before the vocabulary projection; parameters as in `logits`."""
        head, h = self.params[seen.shape[1] - 1], layer_norm(states, 1, 0)
        last_norm, wte = model.params["ln_f"], model.params["wte"]
        if "a" in head:  # Hydra
            h_and_e = np.concatenate([h, wte[seen.ravel()].reshape(len(h), -1)], axis=1)  # -> [n, (i + 1) * n_embd]
            y = h_and_e @ head["a"] + silu(h_and_e @ head["w"])
        else:
            y = h + silu(h @ head["w"] + head["b"])
        return y * last_norm["g"] + last_norm["b"]


def silu(x):
    """x / (1 + exp(-x)), written so that nothing overflows."""
    return x * 0.5 * (1 + np.tanh(x * 0.5))


def load_heads(name_or_folder: str | os.PathLike[str], kind: str = "hydra") -> Heads:
    """The `Heads` of "tiny-target", which are bundled, or those in a folder with heads.safetensors.

    Parameters
    ----------
    name_or_folder
        A model's name, or the path of a folder.
    kind
        "hydra" or "medusa". The file contains float16 arrays for each head: "a" and "w" (hydra) or "w" and "b"
        (medusa), and "accepted" [n_ranks]: how often the head's most probable token, its second most probable token,
        and so on, is the target's own token in greedy text.

    Raises
    ------
    ValueError
        If the kind is unknown. Missing heads and a malformed file raise a CheckpointError, which is a ValueError.

    Examples
    --------
    >>> [head["a"].shape for head in load_heads("tiny-target").params]
    [(512, 256), (768, 256), (1024, 256)]
    """
    if kind not in tuple(KINDS):
        raise ValueError(f"unknown heads {kind!r:.40}: expected {' or '.join(KINDS)}")
    path, tensors = read_drafter(name_or_folder, "heads", "heads")
    n_heads = sum(name.startswith(f"{kind}.") and name.endswith(".w") for name in tensors)
    if not n_heads:
        raise CheckpointError(f"{path} has no heads of the kind {kind}: its first tensors are {sorted(tensors)[:3]}")
    names = [f"{kind}.{i}.{part}" for i in range(1, n_heads + 1) for part in KINDS[kind]]
    if missing := [name for name in names if name not in tensors]:
        raise CheckpointError(f"{path}: {missing[0]} is missing: the heads are incomplete; get the file again")
    try:
        return Heads([*tree_of({name: tensors[name] for name in names})[kind].values()])
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None


def check_shapes(params):
    """Raise ValueError unless these are the parameters of heads of one model."""
    if not params:
        raise ValueError("expected one head or more, got none")
    n, ranks = params[0]["w"].shape[-1], params[0]["accepted"].shape
    for i, head in enumerate(params, 1):
        wanted = {"a": ((i + 1) * n, n), "w": ((i + 1) * n, n)} if "a" in head else {"w": (n, n), "b": (n,)}
        wanted["accepted"] = ranks if len(ranks) == 1 else ("n_ranks",)
        if (got := {name: array.shape for name, array in head.items()}) != wanted:
            raise ValueError(f"expected arrays of shapes {wanted} for head {i} of a model with n_embd {n}, got {got}")
