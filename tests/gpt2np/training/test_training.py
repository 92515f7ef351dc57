"""A training learns from the right tokens, goes on where it was stopped, and makes the drafter that is used."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import random_gpt2

import gpt2np
from gpt2np.files.safetensors import read_safetensors
from gpt2np.layers import layer_norm
from gpt2np.model import HParams
from gpt2np.saving import config_of

torch = pytest.importorskip("torch", reason="pip install -e '.[train]'")
from gpt2np.training import card, folder, kinds, loop, network, text  # noqa: E402

pytestmark = pytest.mark.peers
SMALL, LARGE = HParams(2053, 67, 24, 3, 2), HParams(50257, 41, 16, 2, 1)
SHAPE = [1, 24, 2]


def written(prompts, n_new, temperature, seeds):
    """Made-up text in the target's place: token t is followed by 7 t + 3."""
    texts = [np.array(prompts)]
    for _ in range(n_new):
        texts.append((7 * texts[-1][:, -1:] + 3) % 2048)
    return np.concatenate(texts, axis=1)


def model_folder(path, hparams, seed=0):
    """A random GPT-2, with the vocabulary of the bundled one."""
    gpt2np.save(random_gpt2(hparams, seed), gpt2np.load("tiny-draft")[1], path)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return model_folder(tmp_path_factory.mktemp("models") / "small", SMALL)


def new_kind(name, path, hparams=SMALL):
    torch.manual_seed(1)
    return kinds.KINDS[name](network.Target(path, hparams), SHAPE)


def training(name, path, out, tokens=4000, hparams=SMALL, **options):
    Path(out).mkdir(exist_ok=True)
    stream = np.random.default_rng(2).integers(0, hparams.n_vocab, 2000).astype(np.int32)
    return loop.Training(new_kind(name, path, hparams), written, stream, Path(out), 0, tokens, n_texts=4, **options)


def test_states_and_logits_are_those_of_the_model(small):
    model, target = gpt2np.load(small)[0], network.Target(small, SMALL)
    tokens = np.random.default_rng(0).integers(0, SMALL.n_vocab, (3, 29))
    states = target.states(torch.from_numpy(tokens))
    for row, found in zip(tokens.tolist(), states):
        np.testing.assert_allclose(found, layer_norm(model.states(row, 29), 1, 0), atol=1e-4)
        np.testing.assert_allclose(target.logits(found), model(row, 29), atol=1e-3)


def test_a_model_in_pytorchs_format_is_the_same_model(small, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(small, old)
    tensors = {
        f"transformer.{name}": torch.from_numpy(np.array(t))
        for name, t in read_safetensors(old / "model.safetensors").items()
    }
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(tensors, old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    assert folder.is_of_pytorch(old)
    folder.from_pytorch(old)
    np.testing.assert_array_equal(gpt2np.load(old)[0]([1, 2, 3]), gpt2np.load(small)[0]([1, 2, 3]))
    (old / "pytorch_model.bin").write_bytes(b"no weights")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin cannot be read"):
        folder.from_pytorch(old)


@pytest.mark.parametrize("name", kinds.KINDS)
def test_what_is_trained_is_the_drafter_that_is_used(name, small, tmp_path):
    """Its predictions along a text are the rows of the drafter that its file makes."""
    kind, target = new_kind(name, small), gpt2np.load(small)[0]
    for p in kind.params.values():  # no zeros, and nothing that float16 would round
        p.data = (p.data + 0.1 * torch.randn(p.shape)).half().float()
    tokens = np.random.default_rng(0).integers(0, SMALL.n_vocab, (1, 41))
    states = kind.target.states(torch.from_numpy(tokens[:, :-1]))
    shutil.copytree(small, tmp_path, dirs_exist_ok=True)
    if name == "draft":
        (tmp_path / "config.json").write_text(json.dumps(config_of(kind.draft_hparams)))
    depths = np.zeros((len(kind.weights), loop.N_RANKS))
    folder.save(kind, tmp_path, kind.tensors(depths, np.arange(SMALL.n_vocab)))
    rows, depth, _ = card.rows_of(name, target, tmp_path)
    n = 20
    found = rows(tokens[0, : n + depth - 1].tolist(), n)
    with torch.no_grad():
        at = kind.rows(40, n - 1, 1)
        predicted = [z.numpy()[0] for z in kind.predictions(torch.from_numpy(tokens), states, at)[0]]
    if name in ("heads", "medusa"):  # head j: the token j after the one that follows the state
        predicted = [z[j] for j, z in enumerate(predicted)]
    elif name in ("eagle", "draft"):
        predicted = predicted[0][: 1 if name == "eagle" else depth]  # later ones see EAGLE's own states
    else:
        predicted = [z[0] for z in predicted[:depth]]
    np.testing.assert_allclose(found[: len(predicted)], predicted, atol=2e-2 if name == "heads" else 2e-3)


@pytest.mark.parametrize("name", kinds.KINDS)
def test_stopped_in_the_middle_it_ends_at_the_same_place(name, small, tmp_path):
    whole, n = training(name, small, tmp_path / "whole"), 0
    whole.run()
    assert whole.progress["batches"] > 1

    def stopped():
        nonlocal n
        n += 1
        return n % 5 == 0

    while (part := training(name, small, tmp_path / "parts")).share < 1:
        part.run(stopped)
    assert n > 10 and {**part.progress, "seconds": 0, "checks": 0} == {**whole.progress, "seconds": 0, "checks": 0}
    for p, q in zip(part.kind.params.values(), whole.kind.params.values()):
        np.testing.assert_array_equal(p.detach(), q.detach())


def test_another_trainings_checkpoint_is_refused(small, tmp_path):
    training("eagle", small, tmp_path, tokens=200).run()
    with pytest.raises(ValueError, match=r"is from a different training run .* delete it, or choose a new --output"):
        training("eagle", small, tmp_path, seed=3)


@pytest.mark.parametrize("damage", ["empty", "cut", "other bytes", "other shape"])
@pytest.mark.parametrize("name", ["eagleblock.pt", "text_00000.npy", "text_00000.states.npy"])
def test_a_damaged_file_is_named(name, damage, small, tmp_path):
    training("eagle", small, tmp_path, tokens=200).run()
    path, content, other = tmp_path / name, (tmp_path / name).read_bytes(), io.BytesIO()
    torch.save({"about": 3}, other) if path.suffix == ".pt" else np.save(other, np.zeros((3, 4, 5)))
    other_bytes = bytes(range(256))
    damaged = {"empty": b"", "cut": content[:-100], "other bytes": other_bytes, "other shape": other.getvalue()}
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=rf"{name} is damaged \(\w+\): delete"):
        training("eagle", small, tmp_path, tokens=400).run()


def test_it_trains_on_the_tokens_of_a_large_vocabulary(tmp_path, monkeypatch):
    """Above 32767, which int16 would make negative; with a fourth of the positions."""
    seen, path = [], model_folder(tmp_path / "large", LARGE)
    model = training("eagle", path, tmp_path / "out", 600, LARGE)
    stream = model.text.stream
    predictions = model.kind.predictions
    monkeypatch.setattr(model.kind, "predictions", lambda *args: seen.append(args) or predictions(*args))
    model.text.write = lambda prompts, n_new, *_: np.concatenate([prompts, prompts[:, :1].repeat(n_new, 1)], 1)
    model.held_out.write = model.text.write
    model.run()
    pieces = {tuple(stream[i : i + 13].tolist()) for i in range(len(stream) - 12)}
    for tokens, hidden, rows in seen[:-4]:
        assert tokens.max() > 32767 and tokens.min() >= 0 and len(rows) in (10, hidden.shape[1] // 4 + 1)
        assert all(tuple(row[:13].tolist()) in pieces for row in tokens)
        np.testing.assert_allclose(hidden, model.target.states(tokens[:, :-1]), atol=2e-2)


def test_the_gradient_is_that_of_its_loss():
    z, p = torch.randn(5, 11, dtype=torch.float64, requires_grad=True), torch.randn(5, 11).double().softmax(-1)
    for share in (0.0, 0.3, 1.0):
        q = z.softmax(-1)
        rejected = 1 - torch.minimum(p, q).sum(-1).mean()
        kl = (p * (p.log() - q.log())).sum(-1).mean()
        [expected] = torch.autograd.grad((1 - share) * kl + share * rejected, z)
        gradient, rate = loop.gradient_of(p, q.detach(), share)
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
        np.testing.assert_allclose(rate, rejected.item(), atol=1e-12)


@pytest.mark.parametrize("n_ctx", [32, 40, 192, 1024])
def test_texts_fit_the_context(n_ctx):
    for i in range(8):
        n_prompt, n_new = text.lengths(n_ctx, i)
        assert n_prompt > 0 and n_prompt + n_new <= n_ctx
    assert sum(text.lengths(n_ctx, text.LAST_POSITIONS)) == n_ctx


def test_a_context_or_a_text_that_is_too_short_is_refused(tmp_path):
    path = model_folder(tmp_path / "short", HParams(2048, 31, 8, 2, 1))
    with pytest.raises(ValueError, match="expected n_positions of 32 or more, for a prompt and some text, got 31"):
        training("eagle", path, tmp_path / "out", hparams=HParams(2048, 31, 8, 2, 1))
    with pytest.raises(ValueError, match="expected 272 tokens of text or more, for different prompts, got 100: add te"):
        text.split(np.arange(100), 67)


def test_a_folder_with_a_different_model_is_left_alone(small, tmp_path):
    other = model_folder(tmp_path / "other", SMALL, seed=1)
    kinds_of = {name: new_kind(name, small) for name in ("eagle", "draft")}
    before = (other / "model.safetensors").read_bytes()
    for output, name in ((other, "eagle"), (other, "draft"), (small, "draft")):
        with pytest.raises(ValueError, match="contains a different model, or its training run: choose a"):
            folder.prepare(output, small, kinds_of[name], name)
    assert (other / "model.safetensors").read_bytes() == before and not (other / "training").exists()
    folder.prepare(small, small, kinds_of["eagle"], "eagle")
    shutil.rmtree(small / "training")
