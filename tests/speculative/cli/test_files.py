"""Files that options name: what can be written, that nothing else is touched, and reports that resume."""

import json
import os
import shutil
import signal
from pathlib import Path
from time import sleep

import pytest
from command import process, refusal, run_here
from systems import needs_any_name, needs_ctrl_c, needs_full_device, needs_links, needs_proc

import gpt2np
from gpt2np.files.loading import find_folder
from speculative.cli import brought, report
from speculative.cli.report import Report

FEW = ("--target_model_size=tiny-draft", "--drafter=prompt_lookup", "--n_tokens_to_generate=4")


@needs_proc
@needs_full_device
@needs_links
def test_a_folder_that_cannot_be_written_is_seen_before_anything_is_measured(tmp_path):
    assert "--json: cannot write /proc/self/a.json (" in refusal(*FEW, "--json", "/proc/self/a.json")
    assert "--plot: cannot write /proc/a.png (" in refusal("compare", "--plot", "/proc/a.png")
    (tmp_path / "full.json").symlink_to("/dev/full")
    assert "full.json (it is not a regular file): name a" in refusal(*FEW, "--json", tmp_path / "full.json")
    (tmp_path / "b.json").mkdir()
    assert "b.json (it is not a regular file): name a" in refusal(*FEW, "--json", tmp_path / "b.json")
    (tmp_path / "closed").mkdir(mode=0o555)
    if os.access(tmp_path / "closed", os.W_OK):
        pytest.skip("this user may write into every folder")
    assert "closed/a.json (Permission denied)" in refusal(*FEW, "--json", tmp_path / "closed" / "a.json")


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--prompt_file=in.csv", "--csv=./in.csv"],
        ["compare", "--drafter=suffix", "--corpus=in.csv,b", "--csv=in.csv"],
        ["--grammar=in.jsonl", "--trace=in.jsonl"], ["--prompt_file=in.jsonl", "--trace=in.jsonl"],
        ["compare", "--json=a.json", "--prompt_file=a.json"], ["replay", "in.jsonl", "--trace", "in.jsonl"],
        ["compare", "--csv=in.csv", "--prompt_file=link"],
        ["compare", "--csv=link.csv", "--verifier=a.py:right,b.py:right"],
        ["compare", "--csv=merges.csv", "--draft_model_size=td"], ["--json=in.jsonl.json", "--trace=far.jsonl"],
    ],
    ids=" ".join,
)  # fmt: skip
@needs_links
def test_no_output_takes_the_place_of_an_input(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(find_folder("tiny-draft", None), "td")
    for name in ("in.csv", "in.jsonl", "a.json", "b", "a.py", "b.py"):
        Path(name).write_text("from speculative import rejection as right\n")
    links = {"link": "in.csv", "in.jsonl.json": "far.jsonl", "link.csv": "b.py", "merges.csv": "td/merges.txt"}
    for link, name in links.items():
        Path(link).symlink_to(name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert " name one file, " in refusal(*words) and refusal(*words).endswith("give the output a name of its own")
    assert {
        path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"
    } == before


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


# ------------------------------------------------------------------------------------------------ reports


def interrupt_after(n, monkeypatch):
    keep = Report.keep

    def interrupted(self, name, measure):
        if len(self.parts) == n:
            raise KeyboardInterrupt
        return keep(self, name, measure)

    monkeypatch.setattr(Report, "keep", interrupted)


COUNTED = ("setting", "tokens_per_call", "calls_low", "calls_high", "drafted", "accepted", "rejected", "same_texts")


def counts_in(path):
    found = json.loads(path.read_text("utf-8"))
    return [[row[name] for name in COUNTED] for row in found["rows"]]


def test_an_interrupted_run_resumes_from_its_file(tmp_path, monkeypatch):
    path, other = tmp_path / "r.json", tmp_path / "whole.json"
    words = ("compare", "--n_prompts=3", "--n_tokens_to_generate=6", "--K=1,2", "--temperature=0,1")
    with monkeypatch.context() as patch:
        interrupt_after(4, patch)
        result = run_here(*words, "--json", path)
    sentence = f"main.py: interrupted; 4 parts in {path}: the same command resumes from there\n"
    assert result.returncode == 130 and result.stderr == sentence and not result.stdout
    before = json.loads(path.read_text("utf-8"))
    assert len(before["parts"]) == 4 and before["finished"] is False
    assert run_here(*words, "--json", path).returncode == run_here(*words, "--json", other).returncode == 0
    after = json.loads(path.read_text("utf-8"))
    assert after["finished"] is True and after["parts"].items() >= before["parts"].items() and len(after["parts"]) == 6
    assert counts_in(path) == counts_in(other)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.json", "whole.json"]
    with monkeypatch.context() as patch:
        interrupt_after(1, patch)
        assert "what was measured is lost: --json FILE.json keeps each part" in run_here(*words).stderr


@pytest.mark.parametrize("option", ["tree", "K"])
def test_a_run_that_resumes_goes_on_with_the_tree_and_the_costs_that_it_found(option, tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    words = ("compare", "--n_prompts=2", "--n_tokens_to_generate=4", f"--{option}=auto", "--json", path)
    with monkeypatch.context() as patch:
        interrupt_after(1, patch)
        assert run_here(*words).returncode == 130
    ((name, found),) = json.loads(path.read_text("utf-8"))["parts"].items()
    assert name == f"group 1, setting 1, {'tree' if option == 'tree' else 'costs'}"
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: 1 / 0)
    assert run_here(*words).returncode == 0
    assert found in (json.loads(path.read_text("utf-8"))["rows"][0][name] for name in ("measured_tree", "costs"))


@needs_ctrl_c
def test_the_sentence_at_ctrl_c_is_true(tmp_path):
    path = tmp_path / "a.json"
    with process("compare", "--K=1-8", "--json", path) as child:
        while not path.exists() or not path.stat().st_size:
            sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    n = len(json.loads(path.read_text("utf-8"))["parts"])
    parts = f"{n} part{'s' * (n != 1)} in {path}"
    assert child.returncode == 130 and errors == f"main.py: interrupted; {parts}: the same command resumes from there\n"


def test_the_file_is_whole_after_every_part(tmp_path):
    path = tmp_path / "report.json"
    with Report(str(path), "some", {"seed": "1"}) as found:
        for i in range(3):
            part = {"seconds": 0.1 * i, "text": 'a "quoted"\nline'}
            assert found.keep(f"part {i}", lambda part=part: part) == part
            assert json.loads(path.read_text("utf-8"))["parts"].keys() == {f"part {j}" for j in range(i + 1)}
    again = Report(str(path), "some", {"seed": "1"})
    assert again.keep("part 2", lambda: 1 / 0) == found.parts["part 2"]


@pytest.mark.parametrize(
    ("command", "texts", "where", "message"),
    [
        ("other", {"seed": "1"}, "here", "was made with command some, and this is other: name another file"),
        ("some", {"seed": "2"}, "here", "was made with --seed 1, and this is 2: name another file"),
        ("some", {"seed": "1", "K": "3"}, "here", "was made with --K none, and this is 3: name another file"),
        ("some", {}, "here", "was made with --seed 1, and this is none: name another file"),
        ("some", {"seed": "1"}, "there", "was made with machine here, and this is there: name another file"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, monkeypatch, command, texts, where, message):
    monkeypatch.setattr(report, "machine", lambda: "here")
    Report(str(tmp_path / "a.json"), "some", {"seed": "1"}).finish({}, "")
    monkeypatch.setattr(report, "machine", lambda: where)
    with pytest.raises(ValueError, match=message):
        Report(str(tmp_path / "a.json"), command, texts)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"no JSON", b"\xff\xfe", b"[" * 100_000, b'"seed": "1"', b'"parts": {"a": 2}', b"[1]"]
)
def test_a_file_that_is_not_a_report_is_refused_and_left_alone(tmp_path, text):
    """Also one that was changed by hand."""
    path = tmp_path / "a.json"
    if text.startswith(b'"'):
        Report(str(path), "some", {"seed": "2"}).keep("a", lambda: 1)
        name = text.split(b":")[0]
        before = path.read_bytes()
        text = before.replace(b'"a": 1', b'"a": 2') if name == b'"parts"' else before.replace(b"--seed", b"--feed")
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"a.json is not a report of this program .*: name another file, or delete it"):
        Report(str(path), "some", {"seed": "2"})
    assert path.read_bytes() == text


def test_a_report_of_other_weights_or_of_another_text_is_not_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(gpt2np, "load", gpt2np.files.loading.load)
    folder, path = tmp_path / "m", tmp_path / "a.json"
    words = (f"--target_model_size={folder}", *FEW[1:], "--json", path)
    shutil.copytree(find_folder("tiny-draft", None), folder)
    assert run_here(*words).returncode == 0 and run_here(*words).returncode == 0
    other = find_folder("tiny-target", None)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((other / name).read_bytes())
    before = path.read_bytes()
    assert f"a.json was made with other contents of {folder}: name another" in refusal(*words)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (["--drafter=suffix,model", "--corpus={}"], "Once upon", "There was"),
        (["--prompt_file={}"], "Once upon", "There was"),
        (["--grammar={}"], "[a-z ]{3,8}", "[0-9]{2,4}"),
        (["--verifier={}:rule"], "from speculative import rejection as rule", "from speculative import block as rule"),
        (["--target_model_size=td", "--drafter=heads,ngram"], "heads", ""),
    ],
    ids=lambda value: str(value).split("=")[0],
)
def test_a_run_whose_files_have_changed_does_not_resume(words, before, after, tmp_path, monkeypatch):
    """With other contents, or where a setting that worked no longer does."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(find_folder("tiny-target", None), "td")
    words = ["compare", "--n_tokens_to_generate=4", *(word.format("f.py") for word in words), "--json=r.json"]
    Path("f.py").write_text(before)
    assert run_here(*words).returncode == 0 and run_here(*words).returncode == 0
    if after:
        Path("f.py").write_text(after)
        for cached in (brought.loaded, brought.brought, brought.graded_verifier):
            cached.cache_clear()
    else:
        Path("td/heads.safetensors").unlink()
    result = run_here(*words)
    assert result.returncode == 2 and "--json: r.json was made with other " in result.stderr


def test_the_load_average_is_that_of_the_runs_that_measured(tmp_path, monkeypatch):
    found, path = [], tmp_path / "a.json"
    for load, name in ((1.0, "one"), (9.0, "two"), (0.5, "three"), (99.0, "three")):
        monkeypatch.setattr(report, "load_average", lambda load=load: load)
        saved = Report(str(path), "some", {})
        saved.keep(name, lambda: 1)
        found.append((saved.load, json.loads(path.read_text("utf-8"))["load_average"]))
    assert found == [(1, 1), (9, 9), (9, 9), (9, 9)]
