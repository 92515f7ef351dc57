"""Target and draft with different tokenizers: that of the bundled pair, and GPT-2's."""

import json

import pytest
from command import row_of, run_here
from helpers import random_tensors
from safetensors.numpy import save_file

import gpt2np

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
    row = row_of(*(pair if role == "target" else ("--draft_model_size", other)), *FEW, *words.split())
    assert row["same_texts"] == row["n_texts"] and row["drafted"] > 0
    assert row["draft"]["tokenizer"] == SHARED.format({"target": 2048, "draft": 50257}[role], way)


def test_the_page_says_it_in_one_line(other):
    page = run_here("--draft_model_size", other, *FEW).stdout
    line = f"        {SHARED.format(50257, 'through the text')}\n"
    assert f"million parameters\n{line}K = 3" in page and "\nspeedup       " in page
