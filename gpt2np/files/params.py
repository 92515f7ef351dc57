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

A model with the exact GELU also has mlp["activation"], and one with a different epsilon has "eps" in each layer norm:
layers.py takes both as keyword arguments. The names in files are another matter (names.py).
"""

import numpy as np

from ..layers import exact_gelu
from ..model import HParams
from .errors import CheckpointError
from .names import hub_tensors
from .raw import read_json
from .table import ALIASES, EXACT, SETTINGS

EPSILON = 1e-5


def param_shapes(hparams):
    """The shape of every parameter: dict name -> tuple, with Hugging Face's names without `transformer.`."""
    n, blocks = hparams.n_embd, range(hparams.n_layer)
    shapes = {"wte.weight": (hparams.n_vocab, n), "wpe.weight": (hparams.n_ctx, n)}
    layers = {"ln_f": (n,)} | {f"h.{i}.{norm}": (n,) for i in blocks for norm in ("ln_1", "ln_2")}
    linears = {"attn.c_attn": (n, 3 * n), "attn.c_proj": (n, n), "mlp.c_fc": (n, 4 * n), "mlp.c_proj": (4 * n, n)}
    layers |= {f"h.{i}.{part}": shape for i in blocks for part, shape in linears.items()}
    for name, shape in layers.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[-1:]}
    return shapes


def build_params(tensors, hparams, source, config=None):
    """The parameter tree in float32. Matrices that are float32 in the file remain views of it; the rest is copied.

    A model copies the matrices when it packs them, so no part of a model is a view of its file, which may change later.

    Parameters
    ----------
    tensors : dict str -> array
        As `read_safetensors` returns them.
    hparams : HParams
    source : str or Path
        The file's name, for messages.
    config : dict, optional
        Of config.json: the settings that change numbers. By default they are GPT-2's.

    Raises
    ------
    CheckpointError
        If a tensor is missing or unexpected, or has the wrong shape or type; the message names it.
    """
    config = config or {}
    tensors = hub_tensors(tensors, config, source)
    check_tensors(tensors, param_shapes(hparams), source)
    tree = tree_of(tensors)
    tree = {
        "wte": tree["wte"]["w"],
        "wpe": copied(tree["wpe"]["w"]),
        "blocks": [tree["h"][str(i)] for i in range(hparams.n_layer)],
        "ln_f": tree["ln_f"],
    }
    if (eps := config.get("layer_norm_epsilon", EPSILON)) != EPSILON:
        for layer in (tree["ln_f"], *(block[name] for block in tree["blocks"] for name in ("ln_1", "ln_2"))):
            layer["eps"] = eps
    if config.get("activation_function") in EXACT:
        for block in tree["blocks"]:
            block["mlp"]["activation"] = exact_gelu
    return tree


def tree_of(tensors):
    """Nested dicts of these tensors in float32, by the parts of their names: h.0.ln_1.bias is ["h"]["0"]["ln_1"]["b"].

    A weight is "w" if it is a matrix, and "g" if it is a vector.
    """
    tree = {}
    for name, tensor in tensors.items():
        *path, last = name.split(".")
        part = tree
        for key in path:
            part = part.setdefault(key, {})
        if tensor.ndim == 2:
            part["w" if last == "weight" else last] = np.asarray(tensor, np.float32)  # itself if it is float32
        else:
            part[{"weight": "g", "bias": "b"}.get(last, last)] = copied(tensor)
    return tree


def copied(tensor):
    array = np.array(tensor, dtype=np.float32)
    array.setflags(write=False)
    return array


def check_tensors(tensors, shapes, source):
    """Raise CheckpointError, naming the tensors, if any are missing, unexpected, or of the wrong shape or type."""
    present = {name: tensors[name] for name in shapes if name in tensors}
    problems = {
        "lacks": [name for name in shapes if name not in tensors],
        "has the unexpected": [name for name in tensors if name not in shapes],
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


def shorten(names, n_shown=4):
    """The first n_shown names, and the number of names left out."""
    return ", ".join(names[:n_shown]) + (f" and {len(names) - n_shown} more" if len(names) > n_shown else "")


def read_config(path):
    """HParams from a Hugging Face config.json, or from OpenAI's hparams.json."""
    return read_settings(path)[0]


def read_settings(path):
    """(HParams, all settings as a dict) of a config.json or hparams.json. CheckpointError if one is not supported."""
    config = read_json(path)
    for name, others in ALIASES.items():
        known = [config[other] for other in (name, *others) if config.get(other) is not None]
        config |= {name: known[0]} if known else {}
    if "block_size" in config and "bias" in config:  # nanoGPT's; build-nanogpt, with a different GELU, has no bias
        config = {"activation_function": "gelu"} | config
    check_setting(config, "model_type", path)
    hparams = HParams(*(config.get(name) for name in ALIASES))
    if not all(type(n) is int and 0 < n < 10**6 for n in vars(hparams).values()) or hparams.n_embd % hparams.n_head:
        raise CheckpointError(
            f"{path}: expected whole numbers from 1 to a million and n_embd a multiple of n_head, got {hparams}; "
            "is it the file of a GPT-2?"
        )
    for key in SETTINGS:
        check_setting(config, key, path, hparams.n_embd)
    eps = config.get("layer_norm_epsilon", EPSILON)
    if type(eps) is not float or not 0 < eps < 1:
        raise CheckpointError(f"{path}: layer_norm_epsilon is {eps!r:.40}, expected a number between 0 and 1")
    return hparams, config


def check_setting(config, key, path, n_embd=0):
    values, remedy = SETTINGS[key]
    values = [4 * n_embd if value == "4 n_embd" else value for value in values]
    value = config.get(key, values[0])
    if not any(value == known and type(value) is type(known) for known in values):
        others = f"{', '.join(map(repr, values))} are" if len(values) > 1 else "that is"
        raise CheckpointError(
            f"{path}: {key} is {value!r:.100}, but GPT-2 has {values[0]!r}, and only {others} supported"
            f"{remedy and f': {remedy}'}"
        )
