"""The bundled pair is as its README says."""

import json
import re
from functools import partial

import numpy as np
import pytest
from helpers import ROOT

import gpt2np
from speculative import AutoregressiveSampler, Sampling

TINY = ROOT / "gpt2np" / "tiny"


@pytest.fixture(scope="module")
def held_out(tiny_pair):
    """[10, 513]: windows, spread over the tales that neither model was trained on."""
    text = "<|endoftext|>" + (TINY / "held_out.txt").read_text(encoding="utf-8").replace("\n\n", "<|endoftext|>")
    tokens = tiny_pair[2].encode(text, special=True)
    windows = np.array(tokens[: len(tokens) // 513 * 513]).reshape(-1, 513)
    return windows[:: len(windows) // 10][:10]


@pytest.fixture(scope="module")
def probabilities(tiny_pair, held_out):
    """For target and draft, [10, 512, n_vocab] at temperature 1."""
    return [np.array([Sampling()(model(tokens[:-1], n_last=512)) for tokens in held_out]) for model in tiny_pair[:2]]


def test_sizes(tiny_pair):
    target, draft, tokenizer = tiny_pair
    assert target.n_params <= 8e6 and target.hparams.n_layer >= 8
    assert draft.n_params <= 1e6 and draft.hparams.n_layer <= 2
    assert tokenizer.n_vocab == target.n_vocab == draft.n_vocab == 2048 and target.n_ctx == draft.n_ctx == 512
    assert tokenizer.end_of_text == 2047
    sizes = [path.stat().st_size for path in TINY.rglob("*") if path.is_file()]
    assert sum(sizes) <= 22.5e6  # the wheel, which is compressed, has less than 21 MB


def test_draft_and_target_agree_on_held_out_text(probabilities):
    """Mean overlap sum min(p, q), which is the expected acceptance of a drafted token."""
    p, q = probabilities
    overlap = np.minimum(p, q).sum(axis=-1).mean()
    figures = json.loads((TINY / "figures.json").read_text("utf-8"))
    assert overlap > 0.70
    np.testing.assert_allclose(overlap, figures["overlap"], atol=0.02)
    np.testing.assert_allclose((p.argmax(-1) == q.argmax(-1)).mean(), figures["same_greedy_token"], atol=0.03)


def test_the_losses_are_those_of_the_card(probabilities, held_out):
    figures = json.loads((TINY / "figures.json").read_text("utf-8"))
    for name, probs in zip(("target", "draft"), probabilities):
        loss = -np.log(np.take_along_axis(probs, held_out[:, 1:, None], axis=-1)).mean()
        np.testing.assert_allclose(loss, figures[f"{name}_loss"], atol=0.1)
        assert f"{figures[f'{name}_loss']:.2f}" in (TINY / "README.md").read_text(encoding="utf-8")


def cards():
    """name -> (the measurements of these heads, or of the block, and the columns of their table)"""
    read = lambda name: json.loads((TINY / "tiny-target" / f"{name}_figures.json").read_text("utf-8"))  # noqa: E731
    columns, heads = [f"top_{k}" for k in (1, 2, 3, 5, 10)], read("heads")
    blocks = {name: (read(name), [*columns, "overlap"]) for name in ("eagle", "block")}
    return {name: (heads[name], columns) for name in ("hydra", "medusa")} | blocks


@pytest.mark.parametrize("name", ["hydra", "medusa", "eagle", "block"])
def test_the_table_of_a_card_is_that_of_its_measurements(name):
    (card, columns), page = cards()[name], (TINY / "README.md").read_text("utf-8")
    load = {"eagle": gpt2np.load_eagle, "block": gpt2np.load_block}.get(name, partial(gpt2np.load_heads, kind=name))
    params = load("tiny-target")
    assert params.n_params == card["parameters"] and f"{card['parameters']:,}" in page
    for i in range(len(card["top_1"])):
        assert f"| {i + 1} | {' | '.join(f'{card[column][i]:.3f}' for column in columns)} |" in page
    if name in ("hydra", "medusa"):
        np.testing.assert_allclose(params.accepted, card["accepted"], atol=0.002)
    for measure, i, least in {
        "hydra": [("top_1", 0, 0.55), ("top_3", 0, 0.75)],
        "medusa": [],
        "eagle": [("top_1", 0, 0.82), ("top_1", 3, 0.81), ("overlap", 0, 0.77), ("overlap", 3, 0.75)],
        "block": [("top_1", 0, 0.8), ("top_1", 1, 0.76), ("top_1", 2, 0.7)],
    }[name]:
        assert card[measure][i] >= least


@pytest.mark.slow
def test_the_cards_of_the_heads_and_of_the_block(tiny_pair, monkeypatch):
    """Fewer prompts than the files of figures have: about 600 positions, with a standard error of .02."""
    monkeypatch.syspath_prepend(ROOT / "dev" / "train")
    from measure_eagle import along
    from measure_heads import accepted, greedy_texts, held_out_prompts

    target, _, tokenizer = tiny_pair
    texts = greedy_texts(target, held_out_prompts(tokenizer, 36)[::4], 64)
    for kind in ("hydra", "medusa"):
        heads = gpt2np.load_heads("tiny-target", kind)
        np.testing.assert_allclose(accepted(target, heads, texts, 64), cards()[kind][0]["accepted"], atol=0.08)
    for name, params in (("eagle", gpt2np.load_eagle("tiny-target")), ("block", gpt2np.load_block("tiny-target"))):
        ranks, _ = along(params.on(target), texts, 64)
        np.testing.assert_allclose((ranks == 0).mean(axis=(0, 1)), cards()[name][0]["top_1"], atol=0.08)


@pytest.mark.slow
def test_dialogue_closes_its_quotes(tiny_pair):
    """Where a held-out tale has just opened a quotation, the target closes it before the paragraph ends."""
    target, _, tokenizer = tiny_pair
    text = (TINY / "held_out.txt").read_text(encoding="utf-8")
    opened = [match.start() for match in re.finditer(r'(?<=, )"(?=\w)', text) if match.start() > 400]
    stop = {token for token in range(target.n_vocab) if re.search(r'["\n]', tokenizer.decode([token]))}
    sampler, closed = AutoregressiveSampler(target, sampling=Sampling(0.7)), []
    for seed, place in enumerate(opened[:: len(opened) // 12][:12]):
        prompt = tokenizer.encode(text[place - 400 : place].rstrip() + ' "')
        ending = tokenizer.decode(sampler.generate(prompt, 120, seed, stop_tokens=stop).tokens.tolist())
        closed.append('"' in ending)
    assert len(closed) == 12 and sum(closed) >= 11, sum(closed)


def test_the_files_are_those_of_a_hugging_face_folder():
    model, *of_target = (
        {"config.json", "merges.txt", "model.safetensors", "vocab.json"},
        {"heads.safetensors", "heads_figures.json"},
        {"eagle.safetensors", "eagle_figures.json"},
        {"block.safetensors", "block_figures.json"},
    )
    for name, files in (("tiny-target", model.union(*of_target)), ("tiny-draft", model)):
        assert {p.name for p in (TINY / name).iterdir()} == files
        config = json.loads((TINY / name / "config.json").read_text(encoding="utf-8"))
        assert config["model_type"] == "gpt2" and config["n_ctx"] == config["n_positions"] == 512
