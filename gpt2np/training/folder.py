"""The output folder of a training run: a model with the drafter next to it, or a draft model alone."""

import filecmp
import json
import shutil
from pathlib import Path

import numpy as np
import torch

from ..files.model_files import WEIGHTS, files_of
from ..files.safetensors import read_safetensors, write_safetensors
from ..files.writing import replacing

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
    for name in ("config.json", "vocab.json", "merges.txt"):
        if folder.resolve() != output.resolve():
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
        of_source = source / WEIGHTS[files_of(source)[0]][1]
        known = same or not weights.exists() or filecmp.cmp(weights, of_source, shallow=False)
    if not known or (same and is_draft):
        raise ValueError(f"{output} contains a different model, or its training run: choose a different --output")
    if not is_begun and any(training.glob("*.npy")):
        raise ValueError(f"{training} has texts of an unknown training run: delete it, or choose a different --output")
    training.mkdir(parents=True, exist_ok=True)
    layout, vocabulary_files = files_of(source)
    copies = list(
        zip(vocabulary_files, ("vocab.json", "merges.txt") if is_draft else [p.name for p in vocabulary_files])
    )
    copies += [] if is_draft else [(source / file, file) for file in WEIGHTS[layout]]
    for path, file in copies:
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


def config_of(hparams):
    """A GPT-2's config.json, in the form that `transformers` also reads."""
    h, end = hparams, hparams.n_vocab - 1
    shape = {"vocab_size": h.n_vocab, "n_positions": h.n_ctx, "n_ctx": h.n_ctx, "n_embd": h.n_embd}
    shape |= {"n_head": h.n_head, "n_layer": h.n_layer}
    about = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new"}
    return {**about, **shape, "bos_token_id": end, "eos_token_id": end}


def save(kind, output, tensors):
    """Write the drafter's file; heads of the other kind stay in it."""
    path = Path(output) / kind.file
    if path.exists() and hasattr(kind, "prefix"):
        old = {name: np.array(t) for name, t in read_safetensors(path).items() if not name.startswith(kind.prefix)}
        tensors = old | tensors
    with replacing(path) as new:
        write_safetensors(new, tensors)
