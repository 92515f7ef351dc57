"""The output folder of a training run: a model with the drafter next to it, or a draft model alone."""

import filecmp
import json
import shutil
from pathlib import Path

import numpy as np
import torch

from ..files.model_files import files_of, names_in
from ..files.safetensors import read_safetensors, write_safetensors
from ..files.table import BESIDE, files_read
from ..files.writing import replacing
from ..saving import config_of

OF_PYTORCH = "pytorch_model.bin"


def is_of_pytorch(folder):
    """Whether a folder contains a model only in PyTorch's format."""
    return (folder / OF_PYTORCH).is_file() and not (folder / "model.safetensors").exists()


def from_pytorch(folder, output):
    """Write the same model in safetensors to the folder `output`; ValueError if PyTorch's file cannot be read."""
    try:
        tensors = torch.load(folder / OF_PYTORCH, map_location="cpu", weights_only=True)
        tensors = {name: tensor.numpy() for name, tensor in tensors.items() if "masked_bias" not in name}
    except Exception as error:  # it may have many types
        raise ValueError(f"{folder / OF_PYTORCH} cannot be read ({str(error).splitlines()[0]:.80})") from None
    output.mkdir(parents=True, exist_ok=True)
    if folder.resolve() != output.resolve():
        for name in files_read([*names_in(folder), "model.safetensors"]):
            if name != "model.safetensors":
                shutil.copyfile(folder / name, output / name)
    write_safetensors(output / "model.safetensors", tensors)


def prepare(output, source, kind, name, is_begun=False):
    """Prepare the folder `output` for this kind of drafter of the model in `source`.

    ValueError if it contains a different model, or texts although no training has begun in it. Then nothing is written.
    """
    is_draft, same = name == "draft", output.resolve() == source.resolve()
    weights, training = output / "model.safetensors", output / "training"
    if is_begun:
        known = True
    elif is_draft:
        known = not weights.exists()
    else:
        known = same or not weights.exists() or filecmp.cmp(weights, files_of(source).weights, shallow=False)
    if not known or (same and is_draft):
        raise ValueError(f"{output} contains a different model, or its training run: choose a different --output")
    if not is_begun and any(training.glob("*.npy")):
        raise ValueError(f"{training} has texts of an unknown training run: delete it, or choose a different --output")
    training.mkdir(parents=True, exist_ok=True)
    files = files_of(source)
    of_tokenizer = [*files.tokenizer, *(path for path in files.all if path.name in BESIDE)]
    hub_names = {"encoder.json": "vocab.json", "vocab.bpe": "merges.txt"} if is_draft else {}
    for path in of_tokenizer if is_draft else files.all:
        file = hub_names.get(path.name, path.name)
        if not same and not (output / file).exists():
            with replacing(output / file) as new:
                shutil.copyfile(path, new)
    if is_draft:
        (output / "config.json").write_text(
            json.dumps(config_of(kind.draft_hparams), indent=1) + "\n", encoding="utf-8"
        )


def eagle_of(*folders):
    """The tensors of the first EAGLE block in these folders, or None."""
    paths = [folder / "eagle.safetensors" for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    return path and read_safetensors(path)


def save(kind, output, tensors):
    """Write the drafter's file; heads of the other kind stay in it."""
    path = Path(output) / kind.file
    if path.exists() and hasattr(kind, "prefix"):
        old = {name: np.array(t) for name, t in read_safetensors(path).items() if not name.startswith(kind.prefix)}
        tensors = old | tensors
    with replacing(path) as new:
        write_safetensors(new, tensors)
