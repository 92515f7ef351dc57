"""The files of a model, and their location: on this disk, in Hugging Face's cache, or on a server.

A folder has one of the forms in table.py; GPT-2's own models are downloaded in Hugging Face's or in OpenAI's.
Leaves out: downloading the files (download.py), and making a model from them (loading.py).
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .errors import CheckpointError
from .params import check_setting, read_config
from .raw import read_json
from .safetensors import read_safetensors
from .sstable import read_table
from .table import BESIDE, TOKENIZERS, WEIGHTS, files_read, find_form, matching
from .tf_checkpoint import read_tf_checkpoint
from .tokenizer_files import read_merges, read_vocabulary

SIZES = {"124M": "gpt2", "355M": "gpt2-medium", "774M": "gpt2-large", "1558M": "gpt2-xl"}  # names on the hub
OWNERS = {**dict.fromkeys(SIZES.values(), "openai-community"), "distilgpt2": "distilbert"}  # of names without one
N_VOCAB = 50257  # of all of them


SOURCES = {  # the files from each source, and the check of each download
    "hub": {
        "config.json": read_config,
        "vocab.json": read_vocabulary,
        "merges.txt": read_merges,
        "model.safetensors": read_safetensors,
    },
    "openai": {
        "hparams.json": read_config,
        "encoder.json": read_vocabulary,
        "vocab.bpe": read_merges,
        "model.ckpt.index": read_table,
        "model.ckpt.data-00000-of-00001": lambda path: read_tf_checkpoint(
            path.with_name("model.ckpt"), data_files=[path], verify=True
        ),
    },
}


class ModelFiles(NamedTuple):
    """The files of a model: paths."""

    layout: str  # "hub" or "openai"
    config: Path  # config.json or hparams.json
    weights: Path  # model.safetensors, model.safetensors.index.json or model.ckpt.index
    tokenizer: list  # tokenizer.json, or vocab.json and merges.txt, or their other names; empty if a text is numbers
    all: list  # these, shards, and the settings of the tokenizer


def files_of(folder):
    """The ModelFiles of a folder. A CheckpointError names missing files, or says what to do about other formats."""
    names = names_in(folder)
    (form, weights), (kind, tokenizer) = found = [find_form(forms, names) for forms in (WEIGHTS, TOKENIZERS)]
    if not (form.layout and kind.layout):
        config = {}
        with suppress(OSError, CheckpointError):
            config = read_json(folder / "config.json")
        check_setting(config, "model_type", folder / "config.json")
    for (other, files), forms in zip(found, (WEIGHTS, TOKENIZERS)):
        is_part = any(matching(form.patterns[-1], names) for form in forms if form.layout)
        if files and not other.layout and not is_part:
            raise CheckpointError(f"{folder / files[0]} {other.sentence}")
    has_part = any(matching(p, names) for p in (*BESIDE, *(p for form in TOKENIZERS for p in form.patterns)))
    if form.layout == "hub" and not has_part and read_config(folder / weights[0]).n_vocab != N_VOCAB:
        kind = form  # without a tokenizer, and not with GPT-2's vocabulary: a text is token ids
    if form.layout and kind.layout:
        tokenizer = [folder / name for name in tokenizer]
        everything = [folder / name for name in files_read(names)]
        return ModelFiles(form.layout, folder / weights[0], folder / weights[1], tokenizer, everything)
    source = "openai" if "hparams.json" in names else "hub"
    needed = [name for name in SOURCES[source] if name.startswith(("config", "hparams", "model"))]
    missing = [] if form.layout else [name for name in needed if name not in names]
    missing += [] if kind.layout else ["tokenizer.json (or vocab.json with merges.txt)"]
    raise CheckpointError(
        f"{folder} lacks {' and '.join(missing)}: expected a GPT-2, with the files {', '.join(SOURCES['hub'])} "
        f"(Hugging Face) or {', '.join(SOURCES['openai'])} (OpenAI)"
    )


def names_in(folder):
    """The names in a folder, if there is one, with a "/" after those of folders."""
    return [path.name + "/" * path.is_dir() for path in folder.iterdir()] if folder.is_dir() else []


def known_as(name):
    """The name of a model's folder in models_dir: a size, distilgpt2, or the hub's OWNER/NAME; None for other names.

    >>> known_as("gpt2-xl"), known_as("openai-community/gpt2-xl"), known_as("distilbert/distilgpt2"), known_as("gpt3")
    ('1558M', '1558M', 'distilgpt2', None)
    """
    owner, _, short = name.lower().rpartition("/")
    if short in OWNERS and owner in ("", OWNERS[short]):
        return {hub_name: size for size, hub_name in SIZES.items()}.get(short, short)
    is_on_hub = name in SIZES or re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name)
    return name if is_on_hub else None


def repository_of(model):
    """OWNER/NAME on the hub of a model that `known_as` names."""
    name = SIZES.get(model, model)
    return f"{OWNERS[name]}/{name}" if name in OWNERS else name


def find_on_disk(model, models_dir):
    """The folder with all files of a model, in models_dir or in Hugging Face's cache; None if neither has them."""
    folders, repository = [models_dir / model], repository_of(model)
    short = repository.rpartition("/")[2]
    for name in (repository, *([short] if short in OWNERS else [])):  # the second is an older name of the repository
        cached = hub_cache() / f"models--{name.replace('/', '--')}"
        with suppress(OSError, ValueError):
            version = (cached / "refs" / "main").read_text(encoding="utf-8").strip()
            folders.append(cached / "snapshots" / version)
    for folder in folders:
        if all(find_form(forms, names_in(folder))[0].layout for forms in (WEIGHTS, TOKENIZERS)):
            return folder
    return None


def hub_cache():
    """Hugging Face's cache."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.path.expanduser(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub"))


def url_of(model, name, source):
    """The URL of a file: MODEL/FILE under GPT2NP_MODELS_URL, if that is set; HF_ENDPOINT replaces the hub's address."""
    if mirror := os.environ.get("GPT2NP_MODELS_URL"):
        return f"{mirror.rstrip('/')}/{model}/{name}"
    if source == "openai":
        return f"https://openaipublic.blob.core.windows.net/gpt-2/models/{model}/{name}"
    hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return f"{hub.rstrip('/')}/{repository_of(model)}/resolve/main/{name}"
