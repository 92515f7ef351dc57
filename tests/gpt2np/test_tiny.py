"""The bundled pair is as its README says."""

import json

import numpy as np
import pytest
from helpers import ROOT

import gpt2np
from speculative import Sampling

TINY = ROOT / "gpt2np" / "tiny"


def read(name):
    return json.loads((TINY / name).read_text(encoding="utf-8"))


def test_sizes_and_files(tiny_pair):
    target, draft, tokenizer = tiny_pair
    assert target.n_params <= 8e6 and target.hparams.n_layer >= 8
    assert draft.n_params <= 1e6 and draft.hparams.n_layer <= 2
    assert tokenizer.n_vocab == target.n_vocab == draft.n_vocab == 2048 and tokenizer.end_of_text == 2047
    sizes = {path.name: path.stat().st_size for path in TINY.rglob("*") if path.is_file()}
    assert sum(path.stat().st_size for path in TINY.rglob("*") if path.is_file()) <= 24.5e6  # the wheel is compressed
    assert sizes["eagle.safetensors"] < 1.9e6 and sizes["parallel.safetensors"] < 2.2e6
    model = {"config.json", "merges.txt", "model.safetensors", "vocab.json"}
    more = {f"{name}{end}" for name in ("heads", "eagle", "parallel") for end in (".safetensors", "_figures.json")}
    for name, files in (("tiny-target", model | more), ("tiny-draft", model)):
        assert {path.name for path in (TINY / name).iterdir()} == files
        config = read(f"{name}/config.json")
        assert config["model_type"] == "gpt2" and config["n_ctx"] == config["n_positions"] == 512


def test_the_losses_and_the_overlap_on_held_out_tales_are_those_of_the_card(tiny_pair):
    """Of three windows in places that are like the whole; sum min(p, q) is the acceptance rate of a drafted token."""
    text = "<|endoftext|>" + (TINY / "held_out.txt").read_text(encoding="utf-8").replace("\n\n", "<|endoftext|>")
    tokens = tiny_pair[2].encode(text, special=True)
    windows = np.array(tokens[: len(tokens) // 513 * 513]).reshape(-1, 513)[36::54][:3]
    p, q = (np.array([Sampling()(model(text[:-1], n_last=512)) for text in windows]) for model in tiny_pair[:2])
    card, page = read("figures.json"), (TINY / "README.md").read_text(encoding="utf-8")
    overlap = np.minimum(p, q).sum(axis=-1).mean()
    assert overlap > 0.70
    np.testing.assert_allclose(overlap, card["overlap"], atol=0.02)
    np.testing.assert_allclose((p.argmax(-1) == q.argmax(-1)).mean(), card["same_greedy_token"], atol=0.03)
    for name, probs in (("target", p), ("draft", q)):
        loss = -np.log(np.take_along_axis(probs, windows[:, 1:, None], axis=-1)).mean()
        np.testing.assert_allclose(loss, card[f"{name}_loss"], atol=0.1)
        assert f"{card[f'{name}_loss']:.2f}" in page


def card_of(name):
    """The measurements of heads, or of the block."""
    if name in ("eagle", "parallel"):
        return read(f"tiny-target/{name}_figures.json")
    return read("tiny-target/heads_figures.json")[name]


@pytest.mark.parametrize(
    ("name", "n_params", "least"),
    [
        ("hydra", 1_179_648, [("top_1", 0, 0.55), ("top_3", 0, 0.75)]),
        ("medusa", 197_376, []),
        ("parallel", 1_053_952, [("top_1", 0, 0.8), ("top_1", 1, 0.76), ("top_1", 2, 0.7)]),
        ("eagle", 921_088, [("top_1", 0, 0.82), ("top_1", 3, 0.81), ("overlap", 0, 0.77), ("overlap", 3, 0.75)]),
    ],
)
def test_the_table_of_a_card_is_that_of_its_measurements(tiny_pair, name, n_params, least):
    card, page, columns = card_of(name), (TINY / "README.md").read_text("utf-8"), [f"top_{k}" for k in (1, 2, 3, 5, 10)]
    if name in ("eagle", "parallel"):
        params, columns = getattr(gpt2np, f"load_{name}")("tiny-target"), [*columns, "overlap"]
        assert params.on(tiny_pair[0]).draft_model(1)([5]).shape == (1, 2048)
        assert params.input["w"].dtype == np.float32 and sorted(params.frequent.tolist()) == [*range(2048)]
    else:
        params = gpt2np.load_heads("tiny-target", name).check(tiny_pair[0])
        assert params.n_heads == 3 and params.accepted.shape == (3, 10) and params.accepted.dtype == np.float32
        np.testing.assert_allclose(params.accepted, card["accepted"], atol=0.002)
    assert params.n_params == card["parameters"] == n_params and f"{n_params:,}" in page
    for i in range(len(card["top_1"])):
        assert f"| {i + 1} | {' | '.join(f'{card[column][i]:.3f}' for column in columns)} |" in page
    assert all(card[measure][i] >= least for measure, i, least in least)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hydra", "eagle", "parallel"])
def test_a_card_is_measured_by_the_program(tiny_pair, monkeypatch, kind):
    """Fewer prompts than the files of figures have: about 600 positions, with a standard error of .02."""
    monkeypatch.syspath_prepend(ROOT / "dev" / "train")
    from measure import N_NEW, measured, texts

    target, _, tokenizer = tiny_pair
    both = [texts(target, tokenizer, temperature, n_prompts=9) for temperature in (0, 1.0)]
    found = measured("heads" if kind == "hydra" else kind, target, "tiny-target", *both, N_NEW)["top_1"]
    np.testing.assert_allclose(found, card_of(kind)["top_1"], atol=0.08)
