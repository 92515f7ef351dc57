"""Files that options name: what can be written, and that nothing else is touched. Journals: test_journal.py."""

import os
import re
import shutil
from pathlib import Path

import pytest
from command import refusal, run_here
from systems import needs_any_name, needs_full_device, needs_links, needs_proc

from gpt2np.files.loading import find_folder

SMALL, NGRAM = "--target_model_size=tiny-draft", "--drafter=ngram"
FEW = (SMALL, "--drafter=prompt_lookup", "--n_tokens_to_generate=4")


@needs_proc
@needs_full_device
@needs_links
def test_a_folder_that_cannot_be_written_is_seen_before_anything_is_measured():
    Path("full.jsonl").symlink_to("/dev/full")
    Path("b.jsonl").mkdir()
    for name in ("full.jsonl", "b.jsonl"):
        assert f"--json: cannot write {name} (it is not a regular file): name a" in refusal(*FEW, "--json", name)
    assert "--json: cannot write /proc/self/a.jsonl (" in refusal(*FEW, "--json", "/proc/self/a.jsonl")
    assert "--plot: cannot write /proc/a.png (" in refusal("compare", "--plot", "/proc/a.png")
    Path("closed").mkdir(mode=0o555)
    if os.access("closed", os.W_OK):
        pytest.skip("this user may write into every folder")
    assert "closed/a.jsonl (Permission denied)" in refusal(*FEW, "--json", "closed/a.jsonl")


def contents():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file() and path.suffix != ".pyc"}


@needs_links
def test_no_output_takes_the_place_of_an_input_behind_a_link():
    shutil.copytree(find_folder("tiny-draft", None), "td")
    for name in ("a.py", "b.py"):
        Path(name).write_text("from speculative import rejection as right\n")
    for link, name in {"in.jsonl": "far.html", "link.csv": "b.py", "merges.csv": "td/merges.txt"}.items():
        Path(link).symlink_to(name)
    before = contents()
    for line in (
        "compare --csv=link.csv --verifier=a.py:right,b.py:right",
        "compare --csv=merges.csv --draft_model_size=td",
        "--json=in.jsonl --trace=far.html",
    ):
        assert re.search(" name the same file, .*give the output a different name$", refusal(*line.split()))
        assert contents() == before


@needs_links
def test_a_new_file_takes_nothing_else_along():
    """Another file with a similar name, a link to the file, and who may read it."""
    Path("t.html.part").write_text("precious")
    Path("far.html").write_text("old")
    Path("far.html").chmod(0o600)
    Path("t.html").symlink_to("far.html")
    assert run_here(*FEW, "--trace", "t.html").returncode == 0
    assert Path("t.html.part").read_text("utf-8") == "precious" and Path("t.html").is_symlink()
    assert "<html" in Path("far.html").read_text("utf-8") and Path("far.html").stat().st_mode & 0o777 == 0o600
    assert len(list(Path().iterdir())) == 3


@needs_any_name
def test_a_name_as_long_as_a_name_can_be():
    name = 249 * "a" + ".jsonl"
    assert run_here(*FEW, "--json", name).returncode == 0 and Path(name).stat().st_size
    assert "File name too long" in refusal(*FEW, "--json", "a" + name)
