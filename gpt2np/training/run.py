"""A training run: a drafter for the target in one folder is trained in another, saved and measured."""

import numpy as np
import torch

from . import card, folder, kinds, network
from .loop import Training, expected
from .needs import check_needs, use_fastest_threads
from .text import lengths

STRIDE = 4  # the distance between the positions that the card measures


def begin(
    name, source, output, model, stream, write, *, shape=None, minutes=0.0, tokens=0, seed=0, is_begun=False,
    overwrite=False,
):  # fmt: skip
    """(Training, a sentence on what it needs): begun in the folder `output`, or continued from there.

    `name` is one of kinds.KINDS, `source` the folder of the target `model`, and `shape` the layers, width and heads of
    a draft model. stream, write, minutes, tokens and seed are as in `Training`. `is_begun` says whether a run in
    `output` is known to be for this target, text and seed, and `overwrite` whether a drafter there may be replaced
    although it was not trained there.
    """
    torch.manual_seed(seed)
    use_fastest_threads(model.hparams.n_embd)
    target = network.Target(source, model.hparams)
    kind = kinds.KINDS[name](target, shape or quarter(model.hparams), folder.eagle_of(output, source))
    needs = check_needs(kind, minutes, tokens, output, folder.copies_for(output, source, name))
    folder.prepare(output, source, kind, name, is_begun, overwrite)
    training = Training(kind, write, stream, output / "training", minutes, tokens, seed)
    return training, f"{name}, {kind.n_params / 1e6:.2f} million parameters: {needs}"


def quarter(hparams):
    """The shape of a draft model when none is given."""
    n_head = max(1, hparams.n_head // 2)
    return [max(1, hparams.n_layer // 4), hparams.d_head * n_head, n_head]


def save(training, output, n_vocab):
    """Write the drafter; returns how often the token of each rank is right, as `Training.ranks`."""
    counts = np.zeros(n_vocab, int)
    for i in range(training.progress["batches"]):
        counts += np.bincount(training.text.batch(i)[0].ravel(), minlength=n_vocab)
    ranks = training.ranks()
    folder.save(training.kind, output, training.kind.tensors(ranks, counts))
    return ranks


def figures(training, name, output, model, ranks):
    """How often the drafter is right on held-out texts, and how it was trained (a dict)."""
    held_out = [np.array(training.held_out.batch(i)[0][:12]) for i in (0, 1)]
    found = {
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads, {network.DEVICE}",
        "training": training.progress, "ranks": ranks.round(4).tolist(),
        **card.measured(name, model, output, *held_out, lengths(model.n_ctx)[1], STRIDE),
    }  # fmt: skip
    return {**found, "tokens_per_call": round(expected(np.array(found["top_1"])), 3)}
