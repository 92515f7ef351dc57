"""Target and draft with different tokenizers: that of the bundled pair, and GPT-2's."""

import json

import numpy as np
import pytest
from command import refusal, report_of, run_here
from helpers import random_tensors
from safetensors.numpy import load_file, save_file

import gpt2np
from gpt2np.files.loading import find_folder

FEW = ("--n_tokens_to_generate=12", "--prompt=Once upon a time there was an é")
SHARED = "different tokenizer: 1992 of its {} tokens are shared with the target; drafts {}"


@pytest.fixture(scope="module")
def other(tmp_path_factory, gpt2_vocabulary_files):
    """The folder of a small random model with GPT-2's tokenizer."""
    folder = tmp_path_factory.mktemp("models")
    config = {"vocab_size": 50257, "n_positions": 64, "n_embd": 8, "n_head": 2, "n_layer": 1}
    (folder / "config.json").write_text(json.dumps(config))
    for name, source in zip(("vocab.json", "merges.txt"), gpt2_vocabulary_files):
        (folder / name).write_bytes(source.read_bytes())
    save_file(random_tensors(gpt2np.HParams(50257, 64, 8, 2, 1)), folder / "model.safetensors")
    return str(folder)


@pytest.mark.parametrize(
    ("role", "words", "way"),
    [
        ("target", "", "through the text"),
        ("target", "--draft_tokenizer=shared --K=auto", "from the shared tokens"),
        ("target", "--draft_tokenizer=text --K=confidence", "through the text"),
        ("target", "--temperature=1 --verifier=gumbel --draft_tokenizer=text", "through the text"),
        ("draft", "--tree=4", "from the shared tokens"),
        ("draft", "--temperature=1 --verifier=gumbel", "from the shared tokens"),
    ],
)
def test_either_may_have_the_other_tokenizer(role, words, way, other):
    pair = ("--target_model_size", other, "--draft_model_size=tiny-draft")
    report = report_of(*(pair if role == "target" else ("--draft_model_size", other)), *FEW, *words.split())
    assert report["same_tokens"] is True and report["speculative"]["drafted"] > 0
    assert report["draft"]["tokenizer"] == SHARED.format({"target": 2048, "draft": 50257}[role], way)


def test_the_page_says_it_in_one_line(other):
    page = run_here("--draft_model_size", other, *FEW).stdout
    line = f"        {SHARED.format(50257, 'through the text')}\n"
    assert f"million parameters\n{line}K = 3" in page and "\nspeedup       " in page


def test_a_draft_with_its_tokens_in_another_order(tmp_path):
    """All tokens are shared, so it drafts what it drafts with the target's ids."""
    bundled = find_folder("tiny-draft", None)
    vocabulary = json.loads((bundled / "vocab.json").read_text(encoding="utf-8"))
    turned = {symbol: len(vocabulary) - 1 - token for symbol, token in vocabulary.items()}
    (tmp_path / "vocab.json").write_text(json.dumps(turned), encoding="utf-8")
    for name in ("config.json", "merges.txt"):
        (tmp_path / name).write_bytes((bundled / name).read_bytes())
    tensors = load_file(bundled / "model.safetensors")
    (name,) = (name for name in tensors if name.endswith("wte.weight"))
    save_file(tensors | {name: np.ascontiguousarray(tensors[name][::-1])}, tmp_path / "model.safetensors")
    usual = report_of(*FEW)
    shared = report_of(*FEW, "--draft_model_size", tmp_path, "--draft_tokenizer=shared")
    assert "2048 of its 2048 tokens are shared" in shared["draft"]["tokenizer"] and "tokenizer" not in usual["draft"]
    for count in ("tokens", "drafted", "accepted"):
        assert usual["speculative"][count] == shared["speculative"][count]
    assert "have the same tokenizer: leave it out" in refusal(*FEW, "--draft_tokenizer=shared")
