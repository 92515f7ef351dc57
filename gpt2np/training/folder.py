"""The output folder of a training run: a model with the drafter next to it, or a draft model alone."""

import filecmp
import json
import shutil
from pathlib import Path

import numpy as np
import torch

from ..files.model_files import files_of
from ..files.safetensors import read_safetensors, write_safetensors
from ..files.table import BESIDE
from ..files.writing import replacing
from ..saving import config_of

OF_PYTORCH = "pytorch_model.bin"


def is_of_pytorch(folder):
    """Whether a folder contains a model only in PyTorch's format."""
    return (folder / OF_PYTORCH).is_file() and not (folder / "model.safetensors").exists()


def from_pytorch(folder):
    """Write the model of such a folder as model.safetensors too; ValueError if PyTorch's file cannot be read."""
    try:
        tensors = torch.load(folder / OF_PYTORCH, map_location="cpu", weights_only=True)
        tensors = {name: tensor.numpy() for name, tensor in tensors.items() if "masked_bias" not in name}
    except Exception as error:  # it may have many types
        raise ValueError(f"{folder / OF_PYTORCH} cannot be read ({str(error).splitlines()[0]:.80})") from None
    with replacing(folder / "model.safetensors") as new:
        write_safetensors(new, tensors)


def copies_for(output, source, name):
    """dict path in `output` -> path in `source`: the files that a drafter of this kind needs beside it."""
    files = files_of(source)
    if output.resolve() == source.resolve():
        return {}
    if name != "draft":
        return {output / path.name: path for path in files.all}
    hub_names = {"encoder.json": "vocab.json", "vocab.bpe": "merges.txt"}
    of_tokenizer = [*files.tokenizer, *(path for path in files.all if path.name in BESIDE)]
    return {output / hub_names.get(path.name, path.name): path for path in of_tokenizer}


def prepare(output, source, kind, name, is_begun=False, overwrite=False):
    """Prepare the folder `output` for this kind of drafter of the model in `source`.

    ValueError if it contains a different model, a drafter that would be replaced although its training cannot go on, or
    texts although no training has begun in it. Then nothing is written.
    """
    training, drafter, copies = output / "training", output / kind.file, copies_for(output, source, name)
    is_other = any(new.exists() and not filecmp.cmp(new, old, shallow=False) for new, old in copies.items())
    if name == "draft":
        is_other |= output.resolve() == source.resolve() or (drafter.exists() and not is_begun)
    if is_other:
        raise ValueError(f"{output} contains a different model, or its training run: choose a different --output")
    has_drafter = drafter.exists() and any(name.startswith(kind.prefix) for name in read_safetensors(drafter))
    if has_drafter and not checkpoint_of(kind, training).exists() and not overwrite:
        raise ValueError(f"{drafter} is a drafter whose training is not in {training}: choose a different --output, or "
                         "replace it with --overwrite")  # fmt: skip
    if not is_begun and any(training.glob("*.npy")):
        raise ValueError(f"{training} has texts of an unknown training run: delete it, or choose a different --output")
    training.mkdir(parents=True, exist_ok=True)
    for new, old in copies.items():
        if not new.exists():
            with replacing(new) as part:
                shutil.copyfile(old, part)
    if name == "draft":
        with replacing(output / "config.json") as new:
            new.write_text(json.dumps(config_of(kind.draft_hparams), indent=1) + "\n", encoding="utf-8")


def checkpoint_of(kind, training):
    return training / f"{type(kind).__name__.lower()}.pt"


def remove_parts(output):
    """Remove the parts of files that a run left when it was killed. Call this while no other run writes here."""
    for part in (*output.glob(".*.part"), *(output / "training").glob(".*.part")):
        part.unlink()


def eagle_of(*folders):
    """The tensors of the first EAGLE block in these folders, or None."""
    paths = [folder / "eagle.safetensors" for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    return path and read_safetensors(path)


def save(kind, output, tensors):
    """Write the drafter's file; heads of the other kind stay in it."""
    path = Path(output) / kind.file
    if path.exists() and kind.prefix:
        old = {name: np.array(t) for name, t in read_safetensors(path).items() if not name.startswith(kind.prefix)}
        tensors = old | tensors
    with replacing(path) as new:
        write_safetensors(new, tensors)
