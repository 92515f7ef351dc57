"""From the tensors of a checkpoint to the parameter tree of the forward pass, every name and shape checked.

The tree (a dict) uses OpenAI's own names, which the functions of layers.py take as keyword arguments:

    wte [n_vocab, n_embd]       token embeddings, also the vocabulary projection
    wpe [n_ctx, n_embd]         position embeddings
    blocks                      a list of n_layer entries
        ln_1, ln_2              {g [n_embd], b [n_embd]}
        attn    c_attn          {w [n_embd, 3 * n_embd], b [3 * n_embd]}
                c_proj          {w [n_embd, n_embd], b [n_embd]}
        mlp     c_fc            {w [n_embd, 4 * n_embd], b [4 * n_embd]}
                c_proj          {w [4 * n_embd, n_embd], b [n_embd]}
    ln_f                        {g [n_embd], b [n_embd]}

For blocks[0]["attn"]["c_attn"]["w"], Hugging Face writes h.0.attn.c_attn.weight, with or without the prefix
`transformer.`, and OpenAI's release model/h0/attn/c_attn/w, with an extra first dimension of 1.
"""

import re

import numpy as np

from ..model import HParams
from .errors import CheckpointError
from .raw import read_json

# Some files also contain the causal mask, and a second copy of wte as the vocabulary projection.
NOT_PARAMETERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)|lm_head\.weight")


def param_shapes(hparams):
    """The shape of every parameter: dict name -> tuple, with Hugging Face's names without `transformer.`."""
    n = hparams.n_embd
    shapes = {"wte.weight": (hparams.n_vocab, n), "wpe.weight": (hparams.n_ctx, n)}
    norms, linears = ["ln_f"], {}
    for i in range(hparams.n_layer):
        norms += [f"h.{i}.ln_1", f"h.{i}.ln_2"]
        linears |= {
            f"h.{i}.attn.c_attn": (n, 3 * n),
            f"h.{i}.attn.c_proj": (n, n),
            f"h.{i}.mlp.c_fc": (n, 4 * n),
            f"h.{i}.mlp.c_proj": (4 * n, n),
        }
    for name in norms:
        shapes |= {f"{name}.weight": (n,), f"{name}.bias": (n,)}
    for name, shape in linears.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[1:]}
    return shapes


def build_params(tensors, hparams, source):
    """The parameter tree in float32. Matrices that are float32 in the file remain views of it; the rest is copied.

    A model copies the matrices when it packs them, so no part of a model is a view of its file, which may change later.

    Parameters
    ----------
    tensors : dict str -> array
        As `read_safetensors` returns them.
    hparams : HParams
    source : str or Path
        The file's name, for messages.

    Raises
    ------
    CheckpointError
        If a tensor is missing or unexpected, or has the wrong shape or type; the message names it.
    """
    for name in [name for name in tensors if name.startswith("transformer.")]:
        tensor, short = tensors[name], name.removeprefix("transformer.")
        if short in tensors and not np.array_equal(tensors[short], tensor):
            raise CheckpointError(f"{source} has {short} and {name}, with different numbers: remove one of them")
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    check_tensors(tensors, param_shapes(hparams), source)
    return {
        "wte": matrix(tensors["wte.weight"]),
        "wpe": copied(tensors["wpe.weight"]),
        "blocks": [block_params(tensors, f"h.{i}") for i in range(hparams.n_layer)],
        "ln_f": norm(tensors, "ln_f"),
    }


def block_params(tensors, name):
    """The part of the parameter tree for the block of this name, such as "h.0"."""
    return {
        "ln_1": norm(tensors, f"{name}.ln_1"),
        "attn": {part: linear_params(tensors, f"{name}.attn.{part}") for part in ("c_attn", "c_proj")},
        "ln_2": norm(tensors, f"{name}.ln_2"),
        "mlp": {part: linear_params(tensors, f"{name}.mlp.{part}") for part in ("c_fc", "c_proj")},
    }


def linear_params(tensors, name):
    return {"w": matrix(tensors[f"{name}.weight"]), "b": copied(tensors[f"{name}.bias"])}


def norm(tensors, name):
    return {"g": copied(tensors[f"{name}.weight"]), "b": copied(tensors[f"{name}.bias"])}


def matrix(tensor):
    return np.asarray(tensor, dtype=np.float32)  # the array itself if it is float32


def copied(tensor):
    array = np.array(tensor, dtype=np.float32)
    array.setflags(write=False)
    return array


def openai_names(tensors):
    """The tensors of OpenAI's checkpoint under their Hugging Face names; any other name is kept.

    >>> {name: tensor.shape for name, tensor in openai_names({"model/h0/mlp/c_fc/w": np.zeros((1, 2, 8))}).items()}
    {'h.0.mlp.c_fc.weight': (2, 8)}
    """

    def without_first(name, tensor):  # [1, n_in, n_out] -> [n_in, n_out]
        return tensor[0] if name.endswith("/w") and tensor.ndim == 3 and len(tensor) == 1 else tensor

    return {hub_name(name): without_first(name, tensor) for name, tensor in tensors.items()}


def hub_name(name):
    """The Hugging Face name of OpenAI's `name`; any other name unchanged.

    >>> hub_name("model/h0/ln_1/g"), hub_name("model/wte")
    ('h.0.ln_1.weight', 'wte.weight')
    """
    if name in ("model/wte", "model/wpe"):
        return f"{name[6:]}.weight"
    *path, leaf = re.sub(r"^model/(h(?=\d))?", lambda match: "h/" if match[1] else "", name).split("/")
    is_parameter = name.startswith("model/") and leaf in ("w", "g", "b")
    return ".".join([*path, "bias" if leaf == "b" else "weight"]) if is_parameter else name


def check_tensors(tensors, shapes, source):
    """Raise CheckpointError, naming the tensors, if any are missing, unexpected, or of the wrong shape or type."""
    present = {name: tensors[name] for name in shapes if name in tensors}
    problems = {
        "lacks": [name for name in shapes if name not in tensors],
        "has the unexpected": [name for name in tensors if name not in shapes and not NOT_PARAMETERS.fullmatch(name)],
        "has the wrong shape for": [
            f"{name} {list(tensor.shape)} instead of {list(shapes[name])}"
            for name, tensor in present.items()
            if tensor.shape != shapes[name]
        ],
        "has no floating-point values in": [
            f"{name} ({tensor.dtype})" for name, tensor in present.items() if tensor.dtype.kind != "f"
        ],
    }
    if any(problems.values()):
        listed = " and ".join(f"{problem} {shorten(names)}" for problem, names in problems.items() if names)
        raise CheckpointError(f"{source} does not fit its config: it {listed}; use the files of one GPT-2 model")
    head = tensors.get("lm_head.weight")
    if head is not None and not np.array_equal(head, tensors["wte.weight"], equal_nan=True):
        raise CheckpointError(
            f"{source} has an lm_head.weight that differs from wte.weight: expected GPT-2's tied vocabulary projection"
        )


def shorten(names, n_shown=4):
    """The first n_shown names, and the number of names left out."""
    return ", ".join(names[:n_shown]) + (f" and {len(names) - n_shown} more" if len(names) > n_shown else "")


def read_hparams(path):
    """HParams from OpenAI's hparams.json."""
    hparams = read_json(path)
    return checked(path, *(hparams.get(name) for name in ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer")))


def checked(path, *numbers):
    """HParams with these numbers, after a check; `path` is for messages."""
    hparams = HParams(*numbers)
    if not all(type(n) is int and 0 < n < 10**6 for n in numbers) or hparams.n_embd % hparams.n_head:
        raise CheckpointError(
            f"{path}: expected whole numbers from 1 to a million and n_embd a multiple of n_head, got {hparams}; "
            "is it the file of a GPT-2?"
        )
    return hparams


def other_engine(kind, engine="transformers"):
    """The words for a model that is not a GPT-2."""
    return (
        f"a model of type {kind!r:.40}, and this is GPT-2 in NumPy: --engine {engine} runs it, or in Python an adapter "
        "(docs/adapters.md)"
    )


def read_config(path):
    """HParams from a Hugging Face config.json. CheckpointError unless it describes a supported GPT-2."""
    config = read_json(path)
    if (kind := config.get("model_type", "gpt2")) != "gpt2":
        raise CheckpointError(f"{path} is that of {other_engine(kind)}")
    hparams = checked(
        path, *(config.get(name) for name in ("vocab_size", "n_positions", "n_embd", "n_head", "n_layer"))
    )
    expected = {
        "activation_function": ["gelu_new", "gelu_pytorch_tanh"], "layer_norm_epsilon": [1e-5],
        "n_inner": [None, 4 * hparams.n_embd], "tie_word_embeddings": [True], "add_cross_attention": [False],
        "scale_attn_weights": [True], "scale_attn_by_inverse_layer_idx": [False], "is_causal": [True],
    }  # fmt: skip
    for key, values in expected.items():
        if config.get(key, values[0]) not in values:
            raise CheckpointError(
                f"{path}: {key} is {config[key]!r}, but GPT-2 has {values[0]!r}, and only that is supported"
            )
    return hparams


def check_finite(tensors, source):
    """Raise a CheckpointError that names the tensor if it contains a NaN or an infinity."""
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise CheckpointError(f"{source}: {name} contains NaN or infinity; get the file again")
