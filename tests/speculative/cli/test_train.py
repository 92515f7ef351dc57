"""train, from the command to a drafter that --drafter finds. The training itself: tests/gpt2np/training."""

import json
import shutil
import signal
from pathlib import Path
from time import sleep, time

import pytest
from command import process, refusal, run_here
from helpers import ROOT
from systems import needs_ctrl_c

import gpt2np
from speculative.cli.commands import train
from speculative.cli.drafters import DRAFTERS

pytestmark = pytest.mark.peers
MODEL = ("config.json", "vocab.json", "merges.txt", "model.safetensors")
TINY, TALES = ROOT / "gpt2np" / "tiny", ROOT / "gpt2np" / "tiny" / "held_out.txt"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    pytest.importorskip("torch", reason="pip install -e '.[train]'")
    monkeypatch.setattr("gpt2np.training.loop.N_TEXTS", 4)


@pytest.fixture
def mine(in_a_folder):
    """A folder with a GPT-2, and nothing else."""
    folder = Path("mine")
    folder.mkdir()
    for name in MODEL:
        shutil.copy(TINY / "tiny-draft" / name, folder)
    return folder


def trained(folder, *words, tokens="2000"):
    result = run_here("train", "--target_model_size", folder, "--text", TALES, "--tokens", tokens, *words)
    assert result.returncode == 0 and "Traceback" not in result.stderr, result
    return result


@pytest.mark.parametrize("kind", [kind for kind in train.KINDS if kind in DRAFTERS])
def test_the_drafter_is_found_beside_its_target(kind, mine):
    message = refusal("--target_model_size", mine, "--drafter", kind)
    assert f"python main.py train --target_model_size {mine} --kind {kind}" in message
    result = trained(mine, "--kind", kind)
    assert f"main.py --target_model_size {mine} --drafter {kind}" in result.stdout and "GB of memory" in result.stderr
    page = run_here("--target_model_size", mine, "--drafter", kind, "--n_tokens_to_generate", "8")
    assert page.returncode == 0 and "same text     yes" in page.stdout
    card = json.loads((mine / f"{kind}_figures.json").read_text("utf-8"))
    assert card["training"]["tokens_seen"] >= 2000 and len(card["top_1"]) == (3 if kind == "heads" else 4)
    assert f"--text {TALES}" in card["command"] and card["text"]["tokens"] > 80_000
    assert "continuing after" in trained(mine, "--kind", kind, tokens="3000").stderr


def test_a_draft_has_a_folder_of_its_own(mine):
    assert "train needs" not in trained(mine, "--kind", "draft", "--shape", "1,64,2").stderr
    assert json.loads(Path("mine-draft/config.json").read_text("utf-8"))["n_embd"] == 64
    page = run_here("--target_model_size=mine", "--draft_model_size=mine-draft", "--n_tokens_to_generate=8")
    assert page.returncode == 0 and "same text     yes" in page.stdout


def test_a_folder_learns_from_one_text_of_one_target_with_one_seed(mine):
    """Its journal has all three; another kind, or training longer, is no such difference."""
    trained(mine, "--kind", "heads")
    trained(mine, "--kind", "medusa", tokens="3000")
    Path("other.txt").write_text(TALES.read_text("utf-8")[::-1], encoding="utf-8")
    journal, words = mine / "training" / "journal.jsonl", ("train", "--target_model_size", mine)
    for changed, difference in (
        (("--text", "other.txt", "--kind", "heads"), "other contents of other.txt"),
        (("--text", TALES, "--seed", "5"), "--seed none, and this is 5"),
    ):
        remedy = f"choose a different --output, or delete {mine / 'training'}"
        assert refusal(*words, *changed) == f"{journal} was made with {difference}: {remedy}"
    parts = [json.loads(line).get("part") for line in journal.read_text("utf-8").splitlines()]
    assert parts[:2] == [None, "text"] and [part.split(",")[0] for part in parts[2:]] == ["heads", "medusa"]
    journal.unlink()
    assert "has texts of an unknown training run" in last_line(*words, "--text", TALES)


def test_a_drafter_is_replaced_only_by_its_own_training_or_with_overwrite(mine):
    trained(mine, "--kind", "heads")
    trained(mine, "--kind", "medusa")
    assert [gpt2np.load_heads(mine, kind).n_heads for kind in ("hydra", "medusa")] == [3, 3]  # of one file
    shutil.rmtree(mine / "training")
    before = (mine / "heads.safetensors").read_bytes()
    words = "train", "--target_model_size", mine, "--text", TALES, "--tokens", "2000", "--kind", "heads"
    assert last_line(*words).endswith("choose a different --output, or replace it with --overwrite")
    assert (mine / "heads.safetensors").read_bytes() == before
    trained(mine, "--kind", "heads", "--overwrite")
    trained(mine, "--kind", "heads", tokens="3000")


def test_a_bundled_model_is_copied():
    trained("tiny-draft", "--kind", "medusa")
    names = {path.name for path in Path("tiny-draft-medusa").iterdir()}
    assert names == {*MODEL, "heads.safetensors", "medusa_figures.json", "training"}
    assert not (TINY / "tiny-draft" / "training").exists()


def test_what_cannot_work_is_refused_in_a_sentence(mine, monkeypatch):
    Path("a.txt").write_text("too short", encoding="utf-8")
    words = ("train", "--target_model_size", mine, "--text")
    assert "expected 2052 tokens of text or more" in refusal(*words, "a.txt")
    shutil.copytree(TINY / "tiny-target", "other")
    assert "contains a different model" in last_line(*words, TALES, "--output=other")
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("usage", (), {"free": 10**3}))
    assert "which has room for 1e-06 GB: give fewer" in refusal(*words, TALES)
    monkeypatch.setattr(train, "find_spec", lambda name: None)
    assert refusal(*words, TALES) == "train needs PyTorch, which is missing: pip install torch"


def last_line(*words):
    result = run_here(*words)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


@needs_ctrl_c
def test_ctrl_c_leaves_a_drafter_and_the_same_command_goes_on(mine):
    words = ("train", "--target_model_size", mine, "--text", TALES, "--tokens")
    with process(*words, "500000") as child:
        text, began = mine / "training" / "text_00000.npy", time()
        while not text.exists() and time() - began < 100:
            sleep(0.01)
        sleep(3)  # the first step
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    assert child.returncode == 130 and "the drafter so far is in" in errors and "Traceback" not in errors
    assert (mine / "eagle.safetensors").exists()
    with process(*words, "24000") as child:
        page, errors = child.communicate(timeout=300)
    assert child.returncode == 0 and "continuing after" in errors and "tokens per call" in page
