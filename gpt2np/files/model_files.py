"""The files of a model, and their location: on this disk, in Hugging Face's cache, or on a server.

A folder has one of two layouts. Hugging Face's is config.json, model.safetensors, vocab.json and merges.txt. OpenAI's
is hparams.json, a TensorFlow checkpoint, and the same vocabulary as encoder.json and vocab.bpe.
Leaves out: downloading the files (download.py), and making a model from them (loading.py).
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from .errors import CheckpointError
from .params import read_config, read_hparams
from .safetensors import read_safetensors
from .sstable import read_table
from .tf_checkpoint import read_tf_checkpoint
from .vocabulary import read_merges, read_vocabulary

SIZES = {"124M": "gpt2", "355M": "gpt2-medium", "774M": "gpt2-large", "1558M": "gpt2-xl"}  # names on the hub
OWNERS = {**dict.fromkeys(SIZES.values(), "openai-community"), "distilgpt2": "distilbert"}  # of names without one
WEIGHTS = {
    "hub": ("config.json", "model.safetensors"),
    "openai": ("hparams.json", "model.ckpt.index", "model.ckpt.data-00000-of-00001"),
}
VOCABULARIES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))


def check_data(path):
    """Raise CheckpointError unless a data file has the checksums in the index next to it."""
    read_tf_checkpoint(path.with_name("model.ckpt"), data_files=[path], verify=True)


SOURCES = {  # the files from each source, and the check of each download
    "hub": {
        "config.json": read_config,
        "vocab.json": read_vocabulary,
        "merges.txt": read_merges,
        "model.safetensors": read_safetensors,
    },
    "openai": {
        "hparams.json": read_hparams,
        "encoder.json": read_vocabulary,
        "vocab.bpe": read_merges,
        "model.ckpt.index": read_table,
        "model.ckpt.data-00000-of-00001": check_data,
    },
}
OTHER_FORMS = {  # files of other programs: the file that is expected instead, and the remedy
    "tokenizer.json": ("merges.txt", "tokenizer.json has both: write its model.vocab as vocab.json, and each of its "
                       "model.merges as a line of merges.txt"),
    "model.safetensors.index.json": ("model.safetensors", "save the model with max_shard_size='100GB', in one file"),
    "pytorch_model.bin": ("model.safetensors", "save_pretrained of transformers writes model.safetensors"),
}  # fmt: skip


def files_of(folder):
    """("hub" or "openai", the two vocabulary files) for a folder. A CheckpointError names missing files."""
    layout = next((layout for layout, names in WEIGHTS.items() if has(folder, names)), None)
    pair = next((names for names in VOCABULARIES if has(folder, names)), None)
    if layout and pair:
        return layout, [folder / name for name in pair]
    source = "openai" if has(folder, ["hparams.json"]) else "hub"
    missing = [name for name in WEIGHTS[source] if not layout and not has(folder, [name])]
    missing += [] if pair else [" with ".join(VOCABULARIES[source == "openai"])]
    hints = [hint for name, (instead, hint) in OTHER_FORMS.items() if instead in str(missing) and has(folder, [name])]
    raise CheckpointError(
        f"{folder} lacks {' and '.join(missing)}: expected a GPT-2, with the files {', '.join(SOURCES['hub'])} "
        f"(Hugging Face) or {', '.join(SOURCES['openai'])} (OpenAI){''.join('; ' + hint for hint in hints)}"
    )


def has(folder, names):
    return all((folder / name).is_file() for name in names)


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
    for folder in (models_dir / model, *cached_on_disk(repository_of(model))):
        if any(has(folder, names) for names in WEIGHTS.values()) and any(has(folder, names) for names in VOCABULARIES):
            return folder
    return None


def hub_cache():
    """Hugging Face's cache."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.path.expanduser(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub"))


def cached_on_disk(repository):
    """The folders in Hugging Face's cache, if any, with the main version of a model. The files are not copied."""
    short = repository.rpartition("/")[2]
    for name in (repository, *([short] if short in OWNERS else [])):  # the second is an older name of the repository
        folder = hub_cache() / f"models--{name.replace('/', '--')}"
        with suppress(OSError, ValueError):
            yield folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="utf-8").strip()


def url_of(model, name, source):
    """The URL of a file: MODEL/FILE under GPT2NP_MODELS_URL, if that is set; HF_ENDPOINT replaces the hub's address."""
    if mirror := os.environ.get("GPT2NP_MODELS_URL"):
        return f"{mirror.rstrip('/')}/{model}/{name}"
    if source == "openai":
        return f"https://openaipublic.blob.core.windows.net/gpt-2/models/{model}/{name}"
    hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return f"{hub.rstrip('/')}/{repository_of(model)}/resolve/main/{name}"
