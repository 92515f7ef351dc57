"""From a model's name or folder to a model and its tokenizer: the one place where the parts of this package meet.

A folder is in one of two layouts: that of Hugging Face (config.json, model.safetensors, vocab.json, merges.txt) or
that of OpenAI's release (hparams.json, a TensorFlow checkpoint, and the same vocabulary as encoder.json and vocab.bpe).
A size such as 124M is looked for in the folder of that name in `models_dir`, then in Hugging Face's own cache, and is
downloaded in the end.
"""

import os
import re
from pathlib import Path

from .download import download_file
from .errors import CheckpointError, DownloadError
from .model import GPT2
from .params import build_params, openai_names, read_config, read_hparams
from .safetensors import read_safetensors
from .tf_checkpoint import read_table, read_tf_checkpoint
from .tokenizer import Tokenizer, read_merges, read_vocabulary

BUNDLED = ("tiny-target", "tiny-draft")
SIZES = {
    "124M": "gpt2",
    "355M": "gpt2-medium",
    "774M": "gpt2-large",
    "1558M": "gpt2-xl",
}  # name on the Hugging Face hub
WEIGHTS = {
    "hub": ("config.json", "model.safetensors"),
    "openai": ("hparams.json", "model.ckpt.index", "model.ckpt.data-00000-of-00001"),
}
VOCABULARIES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
SOURCES = {  # what is downloaded from where, and how each file is checked before it gets its name
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
        "model.ckpt.data-00000-of-00001": lambda part: read_tf_checkpoint(
            part.with_name("model.ckpt"), data_files=[part], verify=True
        ),
    },
}


def load(name_or_folder, models_dir="models", source="hub"):
    """A model and its tokenizer.

    Parameters
    ----------
    name_or_folder : str or Path
        "tiny-target" or "tiny-draft" (bundled), "124M", "355M", "774M" or "1558M", or the path of a folder.
    models_dir : str or Path
        Where the folders of the sizes are, and where they are downloaded to.
    source : str
        What is downloaded: "hub" (safetensors, Hugging Face hub) or "openai" (OpenAI's TensorFlow checkpoints).

    Returns
    -------
    GPT2, Tokenizer
        The parameters are float32. The file is mapped into memory; its matrices are copied once, see matmul.py.

    Raises
    ------
    ValueError
        If there is no such model; CheckpointError, a ValueError, if its files are not complete and well-formed;
        DownloadError, a ValueError, if it could not be fetched.

    Examples
    --------
    >>> model, tokenizer = load("tiny-draft")
    >>> model(tokenizer.encode("Once upon a time")).shape
    (1, 2048)
    """
    folder = find_folder(name_or_folder, Path(models_dir), source)
    weights, vocabulary_files = files_of(folder)
    if weights == "hub":
        hparams, file = read_config(folder / "config.json"), folder / "model.safetensors"
        tensors = read_safetensors(file)
    else:
        hparams, file = read_hparams(folder / "hparams.json"), folder / "model.ckpt"
        tensors = openai_names(read_tf_checkpoint(file), file)
    tokenizer = Tokenizer.from_files(*vocabulary_files)
    if tokenizer.n_vocab > hparams.n_vocab:
        raise CheckpointError(
            f"{folder}: the vocabulary has {tokenizer.n_vocab} tokens, but the model {hparams.n_vocab}: "
            "use the files of one and the same model"
        )
    return GPT2(build_params(tensors, hparams, file), hparams), tokenizer


def files_of(folder):
    """("hub" or "openai", the two vocabulary files) of a folder; CheckpointError names what it lacks."""
    weights = next((layout for layout, names in WEIGHTS.items() if has(folder, names)), None)
    pair = next((names for names in VOCABULARIES if has(folder, names)), None)
    if weights and pair:
        return weights, [folder / name for name in pair]
    layout = "openai" if has(folder, ["hparams.json"]) else "hub"
    missing = [] if weights else [name for name in WEIGHTS[layout] if not has(folder, [name])]
    missing += [] if pair else [" with ".join(VOCABULARIES[layout == "openai"])]
    raise CheckpointError(
        f"{folder} lacks {' and '.join(missing)}: expected a GPT-2, with the files {', '.join(SOURCES['hub'])} "
        f"(Hugging Face) or {', '.join(SOURCES['openai'])} (OpenAI)"
    )


def has(folder, names):
    return all((folder / name).is_file() for name in names)


def find_folder(name, models_dir, source="hub"):
    """The folder of a model's name, downloaded if need be, or the folder itself."""
    if name in BUNDLED:
        return Path(__file__).parent / "tiny" / name
    if source not in SOURCES:
        raise ValueError(f"unknown source {source!r}: expected {' or '.join(SOURCES)}")
    if name in SIZES:
        return find_on_disk(name, models_dir) or download_model(name, models_dir / name, source)
    if not Path(name).is_dir():
        names = ", ".join([*BUNDLED, *SIZES])
        raise ValueError(f"unknown model {str(name)!r}: expected {names}, or a folder with a GPT-2")
    return Path(name)


def find_on_disk(size, models_dir):
    """The folder that holds a size already, in models_dir or in Hugging Face's cache; None if there is none."""
    places = [models_dir / size, *cached_on_disk(SIZES[size])]
    return next((place for place in places if is_complete(place)), None)


def is_complete(folder):
    return any(has(folder, names) for names in WEIGHTS.values()) and any(has(folder, names) for names in VOCABULARIES)


def cached_on_disk(repository):
    """The folders in Hugging Face's cache, if any, that hold the main version of a model; they are read in place."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    for owner in ("openai-community--", ""):  # the second is its older name
        folder = cache / f"models--{owner}{repository}"
        try:
            version = (folder / "refs" / "main").read_text().strip()
        except (OSError, ValueError):
            continue
        if re.fullmatch(r"\w+", version):
            yield folder / "snapshots" / version


def download_model(size, folder, source):
    """Fetch the files of a size that are not there yet; returns the folder."""
    for name, check in SOURCES[source].items():
        url = url_of(size, name, source)
        try:
            download_file(url, folder / name, check)
        except DownloadError as error:
            other = next(other for other in SOURCES if other != source)
            raise DownloadError(
                f"{url}: {error}; try again (it goes on where it stopped), take another source (--source {other}, or a "
                f"mirror in GPT2NP_MODELS_URL), or put {', '.join(SOURCES[source])} into {folder} by hand; "
                "the bundled pair needs no download: python main.py"
            ) from None
    return folder


def url_of(size, name, source):
    """Where a file is: in GPT2NP_MODELS_URL, if that is set, as SIZE/FILE; in HF_ENDPOINT as on the hub."""
    if mirror := os.environ.get("GPT2NP_MODELS_URL"):
        return f"{mirror.rstrip('/')}/{size}/{name}"
    if source == "openai":
        return f"https://openaipublic.blob.core.windows.net/gpt-2/models/{size}/{name}"
    hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return f"{hub.rstrip('/')}/openai-community/{SIZES[size]}/resolve/main/{name}"
