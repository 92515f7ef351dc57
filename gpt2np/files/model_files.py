"""The files of a model, and their location: on this disk, in Hugging Face's cache, or on a server.

A folder has one of two layouts. Hugging Face's is config.json, model.safetensors, vocab.json and merges.txt. OpenAI's
is hparams.json, a TensorFlow checkpoint, and the same vocabulary as encoder.json and vocab.bpe.
Leaves out: downloading the files (download.py), and making a model from them (loading.py).
"""

import os
from contextlib import suppress
from pathlib import Path

from .errors import CheckpointError
from .params import read_config, read_hparams
from .safetensors import read_safetensors
from .sstable import read_table
from .tf_checkpoint import read_tf_checkpoint
from .vocabulary import read_merges, read_vocabulary

SIZES = {"124M": "gpt2", "355M": "gpt2-medium", "774M": "gpt2-large", "1558M": "gpt2-xl"}  # names on the hub
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


def find_on_disk(size, models_dir):
    """The folder with all files of a size, in models_dir or in Hugging Face's cache; None if neither has them."""
    for folder in (models_dir / size, *cached_on_disk(SIZES[size])):
        if any(has(folder, names) for names in WEIGHTS.values()) and any(has(folder, names) for names in VOCABULARIES):
            return folder
    return None


def cached_on_disk(repository):
    """The folders in Hugging Face's cache, if any, with the main version of a model. The files are not copied."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    cache = os.path.expanduser(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    for owner in ("openai-community--", ""):  # the second is an older name of the repository
        folder = Path(cache) / f"models--{owner}{repository}"
        with suppress(OSError, ValueError):
            yield folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="utf-8").strip()


def url_of(size, name, source):
    """The URL of a file: SIZE/FILE under GPT2NP_MODELS_URL, if that is set; HF_ENDPOINT replaces the hub's address."""
    if mirror := os.environ.get("GPT2NP_MODELS_URL"):
        return f"{mirror.rstrip('/')}/{size}/{name}"
    if source == "openai":
        return f"https://openaipublic.blob.core.windows.net/gpt-2/models/{size}/{name}"
    hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return f"{hub.rstrip('/')}/openai-community/{SIZES[size]}/resolve/main/{name}"
