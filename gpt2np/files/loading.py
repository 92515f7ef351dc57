"""From a model's name or folder to a model and its tokenizer: the one place where the parts of this package meet.

A size such as 124M is looked up on this disk, and downloaded if it is not there. The files are downloaded to
SIZE/downloading, checked together there, and moved to SIZE once they form a model. Files in SIZE are used as they are.
"""

import os
import re
from pathlib import Path

from ..model import GPT2
from ..tokenizer import Tokenizer
from .declared import forget
from .download import complaint, disk_errors, download_file, workplace
from .errors import MAX_MESSAGE, CheckpointError, DownloadError
from .model_files import SIZES, SOURCES, VOCABULARIES, WEIGHTS, files_of, find_on_disk, url_of
from .params import build_params, openai_names, read_config, read_hparams
from .safetensors import read_safetensors
from .tf_checkpoint import read_tf_checkpoint

BUNDLED = ("tiny-target", "tiny-draft")


def load(name_or_folder, models_dir="models", source="hub"):
    """A model and its tokenizer.

    Parameters
    ----------
    name_or_folder : str or Path
        "tiny-target" or "tiny-draft" (bundled), "124M", "355M", "774M" or "1558M", or the path of a folder.
    models_dir : str or Path
        The folder that has, or gets, a folder for each downloaded size.
    source : str
        Where to download from: "hub" (safetensors, Hugging Face hub) or "openai" (OpenAI's TensorFlow checkpoints).

    Returns
    -------
    GPT2, Tokenizer
        The parameters are float32. They are copied, so the model does not depend on the file once it is loaded.

    Raises
    ------
    ValueError
        If there is no such model; CheckpointError, a ValueError, if its files are incomplete or malformed;
        DownloadError, a ValueError, if it could not be downloaded.

    Examples
    --------
    >>> model, tokenizer = load("tiny-draft")
    >>> model(tokenizer.encode("Once upon a time")).shape
    (1, 2048)
    """
    try:
        folder = find_folder(name_or_folder, Path(models_dir), source)
        layout, vocabulary_files = files_of(folder)
        files = [folder / name for name in WEIGHTS[layout]]
        hparams, tokenizer = read_tokenizer(files[0], *vocabulary_files)
        return GPT2(read_params(hparams, files[1]), hparams), tokenizer
    except CheckpointError as error:
        if name_or_folder not in SIZES:
            raise
        remedy = f"; delete that file, or all of {folder}, and it is downloaded again"
        raise CheckpointError(public(str(error), MAX_MESSAGE - len(remedy)) + remedy) from None
    except OSError as error:
        place = error.filename or name_or_folder
        raise CheckpointError(f"{place} cannot be read ({error.strerror or error})") from None


def read_tokenizer(config, vocabulary, merges):
    """(HParams, Tokenizer) of three files; CheckpointError if they do not belong together."""
    hparams = read_hparams(config) if config.name == "hparams.json" else read_config(config)
    tokenizer = Tokenizer.from_files(vocabulary, merges)
    if tokenizer.n_vocab > hparams.n_vocab:
        raise CheckpointError(
            f"{config.parent}: the vocabulary has {tokenizer.n_vocab} tokens, but the model has {hparams.n_vocab}: "
            f"{vocabulary.name} or {config.name} is another model's; use the files of one and the same model"
        )
    return hparams, tokenizer


def read_params(hparams, weights, data_file=None, *, verify=False):
    """The parameter tree of model.safetensors, or of model.ckpt.index with its data."""
    if weights.suffix == ".safetensors":
        tensors = read_safetensors(weights)
    else:
        data_files = data_file and [data_file]
        checkpoint = read_tf_checkpoint(weights.with_suffix(""), data_files=data_files, verify=verify)
        tensors = openai_names(checkpoint, weights)
    return build_params(tensors, hparams, weights)


# ------------------------------------------------------------------------------------------------ from a name to files


def find_folder(name, models_dir, source="hub"):
    """The folder of a model's name, downloaded if necessary; the path of a folder is returned as it is."""
    if source not in SOURCES:
        raise ValueError(f"unknown source {source!r:.80}: expected {' or '.join(SOURCES)}")
    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise ValueError(f"unknown model {name!r:.80}: {expected(name)}")
    if name in BUNDLED:
        return Path(__file__).parents[1] / "tiny" / name
    if name in SIZES:
        return find_on_disk(name, models_dir) or download_model(name, models_dir / name, source)
    if not os.path.isdir(name):
        raise ValueError(f"unknown model {str(name)!r:.80}: {expected(name)}")
    return Path(name)


def expected(name):
    """What to write instead of an unknown name."""
    meant = str(name).lower().removeprefix("openai-community/")
    for size, hub_name in SIZES.items():
        if meant in (hub_name, size.lower(), size[:-1]):
            return f'write "{size}"'
    return (
        f"expected {', '.join([*BUNDLED, *SIZES])}, or a folder with {', '.join(SOURCES['hub'])} of a GPT-2 "
        "(the Hugging Face hub has those of other models)"
    )


def download_model(size, folder, source):
    """Download the missing files of a size, check them together, then move them into place."""
    arriving, pair = folder / "downloading", VOCABULARIES[source == "openai"]
    with disk_errors(folder), workplace(arriving):
        files = {name: (arriving if not (folder / name).exists() else folder) / name for name in SOURCES[source]}
        small = [files[name] for name in (WEIGHTS[source][0], *pair)]
        for name, check in SOURCES[source].items():
            download(url_of(size, name, source), files[name], check, folder, source)
            if name == pair[1]:
                check_together(files, arriving, read_tokenizer, *small)
        large = [files[name] for name in WEIGHTS[source][1:]]
        check_together(files, arriving, lambda: read_params(read_tokenizer(*small)[0], *large, verify=True))
        for path in files.values():
            if path.parent == arriving:
                os.replace(path, folder / path.name)
    return folder


def download(url, path, check, folder, source):
    """`download_file`, with an error that says what else to try."""
    try:
        download_file(url, path, check)
    except DownloadError as error:
        problem = str(error).replace(f"{path.parent}{os.sep}", "")
        other = next(other for other in SOURCES if other != source)
        ways = (
            f"; try again (it resumes where it stopped), use --source {other} or a mirror in GPT2NP_MODELS_URL, or put "
            f"{', '.join(SOURCES[source])} into {folder} by hand; python main.py needs no download"
        )
        url = public(url, max(60, (MAX_MESSAGE - len(ways)) // 2))
        raise DownloadError(
            f"{url}: {public(problem, max(60, MAX_MESSAGE - len(ways) - len(url) - 2))}{ways}"
        ) from None


def check_together(files, arriving, check, *arguments):
    """Unless the files are those of one model, delete those that were downloaded and raise DownloadError."""
    try:
        problem = complaint(check, *arguments)
    except OSError as error:  # of a file that was there before: a folder, or not for this user
        raise DownloadError(f"{error.filename or arriving.parent} cannot be read ({error.strerror or error})") from None
    if problem is None:
        return
    arrived = [path for path in files.values() if path.parent == arriving]
    for path in arrived:
        forget(path)
    kept = ", ".join(path.name for path in files.values() if path not in arrived)
    problem = public(problem.replace(f"{arriving}{os.sep}", ""))
    raise DownloadError(
        f"{arriving}: the downloaded files are not those of one model and have been removed ({problem}); "
        + (f"delete {kept}, which were there before; " if kept else "")
        + "try again, or take another source"
    )


def public(text, most=150):
    """A text without the user names and passwords of URLs, and without its middle if it is too long."""
    text = re.sub(r"(?<=//)[^\s/'\"]*@|(?<![^\s'\"(])[^\s/'\":]+:[^\s/'\"]*@", "", text)
    half = max(most - 3, 0) // 2
    return text if len(text) <= most else f"{text[:half]}...{text[len(text) - half :]}"
