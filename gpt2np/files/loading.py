"""From a model's name or folder to a model and its tokenizer: the parts of this package meet here.

A size such as 124M, or a name on the Hugging Face hub, is looked up on this disk, and downloaded if it is missing.
Existing files are used as they are.
"""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..model import GPT2
from ..tokenizer import NumberTokenizer, Tokenizer
from .errors import CheckpointError, DownloadError, NoSuchFile
from .model_files import SIZES, SOURCES, files_of, find_on_disk, hub_cache, known_as, url_of
from .params import build_params, read_settings
from .raw import read_json
from .safetensors import read_safetensors, read_shards, shards_in
from .table import BESIDE, TOKENIZERS, WEIGHTS, find_form
from .tf_checkpoint import read_tf_checkpoint
from .tokenizer_files import load_tokenizer
from .writing import replacing

BUNDLED = ("tiny-target", "tiny-draft")


def load(
    name_or_folder: str | os.PathLike[str], models_dir: str | os.PathLike[str] = "models", source: str = "hub"
) -> tuple[GPT2, Tokenizer]:
    """A model and its tokenizer.

    Parameters
    ----------
    name_or_folder
        "tiny-target" or "tiny-draft" (bundled); "124M", "355M", "774M" or "1558M", also as "gpt2", "gpt2-medium",
        "gpt2-large" or "gpt2-xl"; "distilgpt2", or the OWNER/NAME of any GPT-2 on the Hugging Face hub; or the path of
        a folder, which comes first.
    models_dir
        The folder in which each downloaded model has a folder.
    source
        Where to download from: "hub" (safetensors, Hugging Face hub) or, for the four sizes, "openai" (OpenAI's
        TensorFlow checkpoints).

    Returns
    -------
    model, tokenizer
        The parameters are float32. They are copied, so the model does not depend on the file once it is loaded.

    Raises
    ------
    ValueError
        If there is no such model. Two subclasses: CheckpointError if the files are incomplete or malformed, and
        DownloadError if they could not be downloaded.

    Examples
    --------
    >>> model, tokenizer = load("tiny-draft")
    >>> model(tokenizer.encode("Once upon a time")).shape
    (1, 2048)
    """
    try:
        folder = find_folder(name_or_folder, Path(models_dir), source)
        files = files_of(folder)
        hparams, config = read_settings(files.config)
        tokenizer = read_tokenizer(files, hparams, config)
        return GPT2(build_params(read_tensors(files), hparams, files.weights, config), hparams), tokenizer
    except CheckpointError as error:
        if not model_to_find(name_or_folder, models_dir):
            raise
        raise CheckpointError(f"{error}; delete that file, or all of {folder}, and it is downloaded again") from None
    except OSError as error:
        path = error.filename or name_or_folder
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error})") from None


def read_tokenizer(files, hparams, config):
    """The tokenizer of a model's `ModelFiles`. CheckpointError if it does not belong to the model."""
    if not files.tokenizer:
        end = config.get("eos_token_id")
        return NumberTokenizer(hparams.n_vocab, end if type(end) is int and 0 <= end < hparams.n_vocab else None)
    tokenizer = load_tokenizer(*files.tokenizer, n_rows=hparams.n_vocab)
    if tokenizer.n_vocab > hparams.n_vocab:
        raise CheckpointError(
            f"{files.config.parent}: the vocabulary has {tokenizer.n_vocab} tokens, but the model has "
            f"{hparams.n_vocab}: {files.tokenizer[0].name} or {files.config.name} is from a different model, or tokens "
            "were added without model.resize_token_embeddings; use the files of one model"
        )
    return tokenizer


def read_tensors(files):
    """The tensors of a model's `ModelFiles`, under the names that they have there."""
    if files.layout == "openai":
        return read_tf_checkpoint(files.weights.with_suffix(""))
    return read_shards(files.weights) if files.weights.suffix == ".json" else read_safetensors(files.weights)


def read_drafter(name_or_folder, kind, title):
    """(path, tensors) of the file of a trained drafter, which `title` names. CheckpointError if it is missing."""
    path = drafter_file(kind, name_or_folder)
    if not path.is_file():
        raise CheckpointError(
            f"{name_or_folder} has no {title}: expected tiny-target, whose "
            f"{'heads are' if kind == 'heads' else 'block is'} bundled, or a folder with {path.name}; "
            f"python main.py train --target_model_size {name_or_folder} --kind {kind} makes one"
        )
    tensors = read_safetensors(path)
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise CheckpointError(f"{path}: {name} contains NaN or infinity; get the file again")
    return path, tensors


def drafter_file(kind, name_or_folder):
    """The path of the drafter of this kind for a model, whether or not the file exists."""
    return folder_of(name_or_folder) / f"{kind}.safetensors"


# ------------------------------------------------------------------------------------------------ from a name to files


def find_folder(name, models_dir, source="hub"):
    """The folder of a model, downloaded if necessary: a folder's path comes first, then bundled and known names."""
    if source not in SOURCES:
        raise ValueError(f"unknown source {source!r:.80}: expected {' or '.join(SOURCES)}")
    folder = folder_of(name)
    if model := model_to_find(name, models_dir):
        return find_on_disk(model, models_dir) or download_model(model, models_dir / model, source)
    if os.path.isfile(name):
        form, _ = find_form(WEIGHTS, [Path(name).name])
        raise ValueError(f"{name} {form.sentence or 'is a file: name the folder that it is in'}")
    if name not in BUNDLED and not os.path.isdir(name):
        raise ValueError(
            f"unknown model {str(name)!r:.80}: expected {', '.join([*BUNDLED, *SIZES])}, the OWNER/NAME of a GPT-2 on "
            f"the Hugging Face hub, or a folder with its files: {', '.join(SOURCES['hub'])}"
        )
    return folder


def model_to_find(name, models_dir):
    """The model (see `known_as`) that a name means, or None. A file or folder of that name comes first, except for the
    folder that its download goes to."""
    model = known_as(str(name))
    is_path = os.path.isfile(name) or (os.path.isdir(name) and Path(name) != Path(models_dir or "", model or ""))
    return None if is_path or name in BUNDLED else model


def folder_of(name_or_folder):
    """The folder of a bundled model, by its name; the path of a folder, also of one with such a name, is kept."""
    if not isinstance(name_or_folder, (str, os.PathLike)):
        raise ValueError(f"expected a model's name or folder, such as tiny-target, got {name_or_folder!r:.80}")
    if name_or_folder in BUNDLED and not os.path.isdir(name_or_folder):
        return Path(__file__).parents[1] / "tiny" / name_or_folder
    return Path(name_or_folder)


def download_model(model, folder, source):
    """Download the files of a model that are missing in the folder, which is made when the first of them has arrived.

    HF_HUB_OFFLINE forbids it, as in huggingface_hub. Of a model that is not one of the sizes, the repository may have
    any of the forms in table.py. The weights are put in place last, since they make the folder complete.
    """
    from .download import disk_errors, download_file, one_at_a_time  # here, since a browser cannot lock files

    if source == "openai" and model not in SIZES:
        raise DownloadError(f"{model}: the source openai has {', '.join(SIZES)} only; use the source hub")

    def fetch(name, into=folder):
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
            raise DownloadError("HF_HUB_OFFLINE forbids downloads")
        url = url_of(model, name, source)
        try:
            other = read_safetensors if name.endswith(".safetensors") else read_json
            download_file(url, into / name, SOURCES[source].get(name, other))
        except DownloadError as error:
            problem = f"{url}: {error}".replace(f"{into / name}.part", name)
            raise type(error)(re.sub(r"[^\s/'\"(]*@", "", problem)) from None  # without user names and passwords

    def move(new):
        with replacing(folder / new.name) as path:
            path.write_bytes(new.read_bytes())

    def has(name, into=folder):
        """Whether the repository has the file, which is then fetched."""
        try:
            fetch(name, into)
        except NoSuchFile:
            return False
        return True

    def fetch_any(new):
        """A tokenizer, its settings and the weights, in the first form that the repository has."""
        if not any(all(map(has, form.patterns)) for form in TOKENIZERS if form.layout):
            fetch("tokenizer.json")  # says that it is missing
        for name in BESIDE:
            has(name)
        weights, index = "model.safetensors", "model.safetensors.index.json"
        if not has(weights):
            if not has(index, new):
                fetch(weights)
            for name in shards_in(new / index):
                fetch(name)
            move(new / index)

    first, *others = SOURCES[source]
    try:
        with disk_errors(folder), TemporaryDirectory() as new:
            if not (folder / first).exists():
                fetch(first, Path(new))
            folder.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(folder):
                if not (folder / first).exists():
                    move(Path(new, first))
                if model not in SIZES:
                    fetch_any(Path(new))
                for name in others if model in SIZES else ():
                    fetch(name)
    except DownloadError as error:
        remedies = (
            f"{model} is no folder here, nor in {folder} or {hub_cache()}: put its files there, or name a folder "
            "(docs/models.md has the files that are read)"
        )
        if model in SIZES:
            remedies = (
                f"{model} is neither in {folder} nor in {hub_cache()}: put {', '.join(SOURCES[source])} there, name a "
                "folder that has them, or try again (a download resumes), also with the source "
                f"{'hub' if source == 'openai' else 'openai'} or a mirror in GPT2NP_MODELS_URL"
            )
        raise DownloadError(f"{error}; {remedies}") from None
    return folder
