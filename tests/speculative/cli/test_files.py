"""Files that options name: what can be written, and that nothing else is touched."""

import json
import os
from pathlib import Path

import pytest
from command import refusal, run_here
from systems import needs_any_name, needs_full_device, needs_links, needs_proc

from speculative.cli.files import check_file, deliver

FEW = ("--target_model_size=tiny-draft", "--drafter=prompt_lookup", "--n_tokens_to_generate=4")


@needs_proc
@needs_full_device
@needs_links
def test_a_folder_that_cannot_be_written_is_seen_before_anything_is_measured(tmp_path):
    assert "--json: cannot write /proc/self/a.json (" in refusal(*FEW, "--json", "/proc/self/a.json")
    assert "--plot: cannot write /proc/a.png (" in refusal("alpha_table", "--plot", "/proc/a.png")
    (tmp_path / "full.json").symlink_to("/dev/full")
    assert "full.json (it is not a regular file): name a" in refusal(*FEW, "--json", tmp_path / "full.json")
    (tmp_path / "closed").mkdir(mode=0o555)
    if os.access(tmp_path / "closed", os.W_OK):
        pytest.skip("this user may write into every folder")
    assert "closed/a.json (Permission denied)" in refusal(*FEW, "--json", tmp_path / "closed" / "a.json")


def test_a_name_of_a_file_is_checked_and_nothing_is_left(tmp_path):
    check_file("json", tmp_path / "a.json", (".json",))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "b.json").mkdir()
    with pytest.raises(ValueError, match="--json: cannot write"):
        check_file("json", tmp_path / "b.json", (".json",))


def test_every_step_is_tried_and_the_first_error_is_raised():
    done = []
    with pytest.raises(OSError, match="first"):
        deliver(lambda: fail("first"), lambda: done.append(1), lambda: fail("second"))
    assert done == [1]


def fail(words):
    raise OSError(words)


@pytest.mark.parametrize(("read", "written"), [("prompt_file", "log"), ("corpus", "log"), ("ngram_table", "json")])
def test_no_output_takes_the_place_of_an_input(read, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a.log" if written == "log" else "a.json"
    Path(name).write_text("precious\n")
    command = ["prompts"] if written == "log" else []
    message = refusal(*command, f"--{read}", name, f"--{written}", f"./{name}", "--drafter=ngram")
    assert "name one file" in message and Path(name).read_text("utf-8") == "precious\n"
    assert refusal("replay", "a.jsonl", "--trace", "a.jsonl").startswith(
        "--trace and FILE name one file, a.jsonl: give"
    )


@needs_links
def test_one_file_under_two_names_and_a_link_to_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink("a.json", "a.jsonl")
    assert "name one file" in refusal("--trace", "a.jsonl", "--json", "a.json", *FEW)
    os.symlink("b.json", "b.json")
    assert "--json: cannot write b.json (" in refusal("--json", "b.json", *FEW)


@needs_links
def test_a_new_file_takes_nothing_else_along(tmp_path, monkeypatch):
    """Another file with a similar name, a link to the file, and who may read it."""
    monkeypatch.chdir(tmp_path)
    Path("t.html.part").write_text("precious")
    Path("far.html").write_text("old")
    Path("far.html").chmod(0o600)
    Path("t.html").symlink_to("far.html")
    assert run_here(*FEW, "--trace", "t.html").returncode == 0
    assert Path("t.html.part").read_text("utf-8") == "precious" and Path("t.html").is_symlink()
    assert "<html" in Path("far.html").read_text("utf-8") and Path("far.html").stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 3


@needs_any_name
def test_a_name_as_long_as_a_name_can_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = 250 * "a" + ".json"
    assert run_here(*FEW, "--json", name).returncode == 0 and json.loads(Path(name).read_text("utf-8"))["finished"]
    assert "File name too long" in refusal(*FEW, "--json", "a" + name)
