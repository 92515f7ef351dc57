"""From the tensors in any GPT-2's file to Hugging Face's names and layout, which params.py expects.

transformer.h.0.mlp.c_fc.weight     prefixes (table.py) are dropped
model/h0/mlp/c_fc/w                 OpenAI's names, with an extra first dimension of 1
lm_head.weight                      the only copy of the embeddings, if safetensors kept one of two names for them
[n_out, n_in]                       nanoGPT's matrices multiply from the other side: transposed
without any bias                    a setting of nanoGPT: zeros
"""

import math
import re

import numpy as np

from .errors import CheckpointError
from .table import MASKS, PREFIXES, about_tensor

LINEAR = re.compile(r"h\.\d+\.(attn|mlp)\.(c_attn|c_proj|c_fc)\.weight")


def hub_tensors(tensors, config, source):
    """The tensors (dict name -> array) of the file `source` under Hugging Face's names, and in its layout.

    The settings of config.json say what is in them, and become a part of them if layers.py does not have them.
    """
    tensors = hub_names(tensors, source)
    for name in tensors:
        if sentence := about_tensor(name):
            raise CheckpointError(f"{source} has {name:.80}, which is {sentence}")
    head = tensors.pop("lm_head.weight", None)
    if head is not None and not np.array_equal(head, tensors.setdefault("wte.weight", head), equal_nan=True):
        raise CheckpointError(
            f"{source} has an lm_head.weight that differs from wte.weight: expected GPT-2's tied vocabulary projection"
        )
    tensors = {name: tensor for name, tensor in tensors.items() if not about_tensor(name, {MASKS: True})}
    shape = tensors["h.0.attn.c_attn.weight"].shape if "h.0.attn.c_attn.weight" in tensors else ()
    if len(shape) == 2 and shape[0] == 3 * shape[1]:
        tensors = from_nanogpt(tensors, config, source)
    return with_scaled_queries(tensors, config)


def hub_names(tensors, source):
    """The tensors under their Hugging Face names. CheckpointError if two different ones have the same name."""
    found, names = {}, {}
    for name, tensor in tensors.items():
        short = hub_name(name)
        if short in found and not np.array_equal(found[short], tensor):
            first = sorted([name, names[short]])
            raise CheckpointError(f"{source} has {' and '.join(first)}, with different numbers: remove one of them")
        if re.fullmatch(r"model/h\d+/.*/w", name) and tensor.ndim == 3 and len(tensor) == 1:
            tensor = tensor[0]  # [1, n_in, n_out] -> [n_in, n_out]
        found[short], names[short] = tensor, name
    return found


def hub_name(name):
    """The Hugging Face name of OpenAI's `name`, or of a name with prefixes; any other name unchanged.

    >>> hub_name("model/h0/ln_1/g"), hub_name("model/wte"), hub_name("_orig_mod.transformer.wte.weight")
    ('h.0.ln_1.weight', 'wte.weight', 'wte.weight')
    """
    if name in ("model/wte", "model/wpe"):
        return f"{name.removeprefix('model/')}.weight"
    if openai := re.fullmatch(r"model/(h\d+/\w+/\w+|h\d+/ln_[12]|ln_f)/([wgb])", name):
        path, letter = openai.groups()
        return re.sub(r"^h(\d+)", r"h.\1", path).replace("/", ".") + (".bias" if letter == "b" else ".weight")
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def from_nanogpt(tensors, config, source):
    """The tensors with matrices [n_in, n_out], and with biases of 0 if there are none at all."""
    if "activation_function" not in config:
        raise CheckpointError(
            f"{source} has transposed matrices, as nanoGPT and build-nanogpt write them, and their GELUs differ: write "
            '"activation_function": "gelu" (nanoGPT, the exact one) or "gelu_new" (build-nanogpt) into config.json'
        )
    tensors = {name: tensor.T if LINEAR.fullmatch(name) else tensor for name, tensor in tensors.items()}
    if any(name.endswith(".bias") for name in tensors):
        return tensors
    n_out = {name: tensor.shape[-1:] for name, tensor in tensors.items() if LINEAR.fullmatch(name) or "ln_" in name}
    return tensors | {name.replace(".weight", ".bias"): np.zeros(n, np.float32) for name, n in n_out.items()}


def with_scaled_queries(tensors, config):
    """The tensors of a model with GPT-2's own attention: instead of the scores, the columns of q are scaled."""
    by_layer, unscaled = config.get("scale_attn_by_inverse_layer_idx"), config.get("scale_attn_weights") is False
    tensors = dict(tensors)
    for name, tensor in [*tensors.items()]:
        if re.fullmatch(r"h\.\d+\.attn\.c_attn\.\w+", name) and tensor.ndim and (by_layer or unscaled):
            tensors[name] = np.array(tensor, np.float32)
            q = tensors[name][..., : tensor.shape[-1] // 3]
            q *= math.sqrt(q.shape[-1] / config["n_head"]) if unscaled else 1
            q /= int(name.split(".")[1]) + 1 if by_layer else 1
    return tensors
