"""GPT-2 in PyTorch, as far as training needs it: hidden states and logits of whole texts, without a cache.

This is like layers.py, but with named tensors, as in Hugging Face's files (files/params.py), and for several texts at
once. A hidden state is kept after the last norm without its gain and bias, as heads.py and eagle.py use it.
"""

import numpy as np
import torch
import torch.nn.functional as F

from ..files.loading import read_tensors
from ..files.model_files import files_of
from ..files.names import hub_tensors
from ..files.params import EPSILON, param_shapes, read_settings
from ..files.table import EXACT

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Network:
    """A GPT-2 with these parameters: dict name -> tensor float32."""

    def __init__(self, params, hparams):
        self.params = params
        self.hparams = hparams

    def embeddings(self, n):
        """(token embeddings [n_vocab, n_embd], embeddings of the first n positions [n, n_embd])."""
        return self.params["wte.weight"], self.params["wpe.weight"][:n]

    def states(self, tokens):
        """The hidden states [n_texts, n, n_embd] of tokens [n_texts, n]."""
        wte, wpe = self.embeddings(tokens.shape[1])
        x = F.embedding(tokens, wte) + wpe
        for i in range(self.hparams.n_layer):
            x = block(x, self.params, f"h.{i}", self.hparams.n_head)
        return normed(x)

    def logits(self, states):
        """The last norm's gain and bias, and the vocabulary projection: [.., n_embd] -> [.., n_vocab]"""
        return F.linear(states * self.params["ln_f.weight"] + self.params["ln_f.bias"], self.params["wte.weight"])


class Target(Network):
    """The model in a folder, with frozen parameters."""

    def __init__(self, folder, hparams):
        files = files_of(folder)
        _, config = read_settings(files.config)
        if config.get("activation_function") in EXACT or config.get("layer_norm_epsilon", EPSILON) != EPSILON:
            raise ValueError(
                f"{files.config}: train has GPT-2's own GELU and layer_norm_epsilon only: draft for this model without "
                "training, for example with --drafter prompt_lookup"
            )
        tensors = hub_tensors(read_tensors(files), config, files.weights)
        arrays = {name: np.array(tensors[name], np.float32) for name in param_shapes(hparams)}
        super().__init__({name: torch.from_numpy(array).to(DEVICE) for name, array in arrays.items()}, hparams)


def block(x, params, name, n_head, context=None, mask=None):
    """The block of this name: [n_texts, n, n_embd] -> [n_texts, n, n_embd]; a row sees itself and all rows before it.

    With rows `context` [n_texts, m, n_embd], mask [n, m + n] says which of these and of x a row of x attends to.
    """

    def linear(x, part):
        return x @ params[f"{name}.{part}.weight"] + params[f"{name}.{part}.bias"]

    def norm(x, part):
        return normed(x, params[f"{name}.{part}.weight"], params[f"{name}.{part}.bias"])

    seen = x if context is None else torch.cat([context, x], 1)
    q, k, v = linear(norm(seen, "ln_1"), "attn.c_attn").unflatten(-1, (3, n_head, -1)).permute(2, 0, 3, 1, 4)
    q = q[:, :, -x.shape[1] :]
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
    x = x + linear(heads.transpose(1, 2).flatten(2), "attn.c_proj")
    return x + linear(F.gelu(linear(norm(x, "ln_2"), "mlp.c_fc"), approximate="tanh"), "mlp.c_proj")


def normed(x, g=None, b=None):
    return F.layer_norm(x, x.shape[-1:], g, b)
