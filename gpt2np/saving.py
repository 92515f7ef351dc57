"""From a model and its tokenizer to a folder in Hugging Face's layout, which transformers and `load` read.

config.json             the sizes, and the settings that are not GPT-2's
model.safetensors       the parameters in float32
tokenizer.json          vocabulary, merges and added tokens; tokenizer_config.json: the names of special tokens
"""

import json
import os
from pathlib import Path

import numpy as np

from .files.params import EPSILON
from .files.safetensors import write_safetensors
from .files.writing import replacing
from .model import GPT2
from .tokenizer import NumberTokenizer, Tokenizer

LETTERS = {"g": "weight", "w": "weight", "b": "bias"}


def save(model: GPT2, tokenizer: Tokenizer, folder: str | os.PathLike[str]) -> None:
    """Write a model and its tokenizer to a new folder, from which `load`, transformers and mlx-lm make the same model.

    Raises
    ------
    ValueError
        If the folder contains anything, or if the tokenizer has more tokens than the model.

    Examples
    --------
    >>> import tempfile
    >>> from gpt2np import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(*load("tiny-draft"), folder)
    ...     sorted(os.listdir(folder))
    ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json']
    """
    folder, params = Path(folder), model.params
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not an empty folder: choose a new one")
    if tokenizer.n_vocab > model.n_vocab:
        raise ValueError(f"the tokenizer has {tokenizer.n_vocab} tokens, but the model has {model.n_vocab}")
    config = config_of(model.hparams, tokenizer.end_of_text)
    config["layer_norm_epsilon"] = params["ln_f"].get("eps", EPSILON)
    if "activation" in params["blocks"][0]["mlp"]:
        config["activation_function"] = "gelu"
    contents = {"config.json": config}
    if not isinstance(tokenizer, NumberTokenizer):
        contents["tokenizer.json"] = tokenizer_json(tokenizer)
        contents["tokenizer_config.json"] = tokenizer_config(tokenizer, model.n_ctx)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with replacing(folder / "model.safetensors") as path:
        whole = {"wte": {"w": params["wte"]}, "wpe": {"w": params["wpe"]}, "ln_f": params["ln_f"]}
        write_safetensors(path, dict(named_tensors(whole | {"h": dict(enumerate(params["blocks"]))})))


def config_of(hparams, end=None):
    """A GPT-2's config.json; without an `end`, the token that ends a text is the last one."""
    h, end = hparams, hparams.n_vocab - 1 if end is None else end
    shape = {"vocab_size": h.n_vocab, "n_positions": h.n_ctx, "n_ctx": h.n_ctx, "n_embd": h.n_embd}
    shape |= {"n_head": h.n_head, "n_layer": h.n_layer}
    about = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new"}
    return {**about, **shape, "bos_token_id": end, "eos_token_id": end}


def named_tensors(tree, name=""):
    """(name as in the hub's own gpt2, such as h.0.ln_1.weight; array float32) of each parameter in a tree.

    The inverse of `tree_of` in files/params.py.
    """
    for key, part in tree.items():
        if isinstance(part, dict):
            yield from named_tensors(part, f"{name}{key}.")
        elif key in LETTERS:
            yield f"{name}{LETTERS[key]}", np.asarray(part, np.float32)


def tokenizer_json(tokenizer):
    """The content of a tokenizer.json: a dict."""
    split = {"type": "ByteLevel", "add_prefix_space": tokenizer.prefix_space, "trim_offsets": True, "use_regex": True}
    before, name_of = None, {token: name for name, token in tokenizer.vocabulary.items()}
    if tokenizer.start:
        names = [name_of[token] for token in tokenizer.start]
        single = [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]
        single.append({"Sequence": {"id": "A", "type_id": 0}})
        specials = {name: {"id": name, "ids": [tokenizer.vocabulary[name]], "tokens": [name]} for name in names}
        pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
        before = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials}
    bpe = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": tokenizer.vocabulary,
        "merges": [*tokenizer.ranks],
    }  # fmt: skip
    added = [{"id": tokenizer.vocabulary[token.content], **vars(token)} for token in tokenizer.added]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": sorted(added, key=lambda t: t["id"]),
        "normalizer": None, "pre_tokenizer": split, "post_processor": before or split, "decoder": split, "model": bpe,
    }  # fmt: skip


def tokenizer_config(tokenizer, n_ctx):
    """The content of a tokenizer_config.json: a dict. transformers 4 and 5 both read this class."""
    end = tokenizer.end_name if tokenizer.end_of_text is not None else None
    names = {f"{kind}_token": end for kind in ("bos", "eos", "unk")}
    more = {"clean_up_tokenization_spaces": False, "model_max_length": n_ctx}
    return {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": tokenizer.prefix_space, **names, **more}
