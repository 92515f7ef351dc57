"""From a model's name or folder to a model and its tokenizer: the parts of this package meet here.

A size such as 124M is looked up on this disk, and downloaded if it is missing. Existing files are used as they are.
"""

import os
import re
from pathlib import Path

from ..model import GPT2
from ..tokenizer import Tokenizer
from .errors import CheckpointError, DownloadError
from .model_files import SIZES, SOURCES, WEIGHTS, files_of, find_on_disk, url_of
from .params import build_params, openai_names, read_config, read_hparams
from .safetensors import read_safetensors
from .tf_checkpoint import read_tf_checkpoint
from .vocabulary import load_tokenizer

BUNDLED = ("tiny-target", "tiny-draft")


def load(
    name_or_folder: str | os.PathLike[str], models_dir: str | os.PathLike[str] = "models", source: str = "hub"
) -> tuple[GPT2, Tokenizer]:
    """A model and its tokenizer.

    Parameters
    ----------
    name_or_folder
        "tiny-target" or "tiny-draft" (bundled), "124M", "355M", "774M" or "1558M", or the path of a folder.
    models_dir
        The folder in which each downloaded size has a folder.
    source
        Where to download from: "hub" (safetensors, Hugging Face hub) or "openai" (OpenAI's TensorFlow checkpoints).

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
        layout, vocabulary_files = files_of(folder)
        config, weights = [folder / name for name in WEIGHTS[layout][:2]]
        hparams, tokenizer = read_tokenizer(config, *vocabulary_files)
        return GPT2(read_params(hparams, weights), hparams), tokenizer
    except CheckpointError as error:
        if not is_size(name_or_folder, models_dir):
            raise
        raise CheckpointError(f"{error}; delete that file, or all of {folder}, and it is downloaded again") from None
    except OSError as error:
        path = error.filename or name_or_folder
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error})") from None


def read_tokenizer(config, vocabulary, merges):
    """(HParams, Tokenizer) from three files. CheckpointError if they do not belong together."""
    hparams = read_hparams(config) if config.name == "hparams.json" else read_config(config)
    tokenizer = load_tokenizer(vocabulary, merges)
    if tokenizer.n_vocab > hparams.n_vocab:
        raise CheckpointError(
            f"{config.parent}: the vocabulary has {tokenizer.n_vocab} tokens, but the model has {hparams.n_vocab}: "
            f"{vocabulary.name} or {config.name} is from a different model; use the files of one model"
        )
    return hparams, tokenizer


def read_n_vocab(folder):
    """The size of the vocabulary of the model in a folder, without its weights."""
    config = folder / WEIGHTS[files_of(folder)[0]][0]
    return (read_hparams(config) if config.name == "hparams.json" else read_config(config)).n_vocab


def read_params(hparams, weights):
    """The parameter tree of model.safetensors, or of model.ckpt.index with its data."""
    return build_params(read_tensors(weights), hparams, weights)


def read_tensors(weights):
    """The tensors of model.safetensors or model.ckpt.index, with Hugging Face's names."""
    if weights.suffix == ".safetensors":
        return read_safetensors(weights)
    return openai_names(read_tf_checkpoint(weights.with_suffix("")))


# ------------------------------------------------------------------------------------------------ from a name to files


def find_folder(name, models_dir, source="hub"):
    """The folder of a model, downloaded if necessary: a folder's path comes first, then bundled names and sizes."""
    if source not in SOURCES:
        raise ValueError(f"unknown source {source!r:.80}: expected {' or '.join(SOURCES)}")
    if not isinstance(name, (str, os.PathLike)):
        raise ValueError(f"unknown model {name!r:.80}: {expected(name)}")
    if is_size(name, models_dir):
        return find_on_disk(name, models_dir) or download_model(name, models_dir / name, source)
    if name not in BUNDLED and not os.path.isdir(name):
        raise ValueError(f"unknown model {str(name)!r:.80}: {expected(name)}")
    return folder_of(name)


def is_size(name, models_dir):
    """Whether a name is a size to look up. A folder of that name comes first, unless downloads of the size go there."""
    return name in SIZES and (not os.path.isdir(name) or Path(name) == Path(models_dir or "", name))


def folder_of(name_or_folder):
    """The folder of a bundled model, by its name; the path of a folder, also of one with such a name, is kept."""
    if not isinstance(name_or_folder, (str, os.PathLike)):
        raise ValueError(f"expected a model's name or folder, such as tiny-target, got {name_or_folder!r:.80}")
    if name_or_folder in BUNDLED and not os.path.isdir(name_or_folder):
        return Path(__file__).parents[1] / "tiny" / name_or_folder
    return Path(name_or_folder)


def expected(name):
    """The remedy for an unknown name."""
    meant = str(name).lower().removeprefix("openai-community/")
    for size, hub_name in SIZES.items():
        if meant in (hub_name, size.lower(), size[:-1]):
            return f'write "{size}"'
    return (
        f"expected {', '.join([*BUNDLED, *SIZES])}, or a folder with {', '.join(SOURCES['hub'])} of a GPT-2 "
        "(the Hugging Face hub has those of other models)"
    )


def download_model(size, folder, source):
    """Download the files of a size that are missing in the folder."""
    from .download import disk_errors, download_file, one_at_a_time  # here, since a browser cannot lock files

    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(folder):
            for name, check in SOURCES[source].items():
                url = url_of(size, name, source)
                try:
                    download_file(url, folder / name, check)
                except DownloadError as error:
                    problem = f"{url}: {error}".replace(f"{folder}{os.sep}", "")
                    problem = re.sub(r"[^\s/'\"(]*@", "", problem)  # without user names and passwords
                    raise DownloadError(
                        f"{problem}; try again (it resumes where it stopped), use the source "
                        f"{'hub' if source == 'openai' else 'openai'} or a mirror in GPT2NP_MODELS_URL, or put "
                        f"{', '.join(SOURCES[source])} into {folder} by hand"
                    ) from None
    return folder
