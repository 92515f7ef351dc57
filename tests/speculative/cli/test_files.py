"""Files that options name: what can be written, that nothing else is touched, and reports that resume."""

import io
import json
import os
import shutil
import signal
from importlib import import_module
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


def told(path, what="parts"):
    return json.loads(path.read_text("utf-8"))[what]


def test_an_interrupted_run_resumes_from_its_file(tmp_path, monkeypatch, timeless):
    path, other = tmp_path / "r.json", tmp_path / "whole.json"
    words = ("compare", "--n_prompts=3", "--n_tokens_to_generate=6", "--K=1,2", "--temperature=0,1")
    with monkeypatch.context() as patch:
        interrupt_after(4, patch)
        result = run_here(*words, "--json", path)
    sentence = f"main.py: interrupted; 4 parts in {path}: the same command resumes from there\n"
    assert result.returncode == 130 and result.stderr == sentence and not result.stdout
    before = told(path)
    assert len(before) == 4 and told(path, "finished") is False
    assert run_here(*words, "--json", path).returncode == run_here(*words, "--json", other).returncode == 0
    assert told(path, "finished") is True and told(path).items() >= before.items() and len(told(path)) == 6
    assert timeless(told(path)) == timeless(told(other))
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
    ((name, found),) = told(path).items()
    assert name == f"group 1, setting 1, {'tree' if option == 'tree' else 'costs'}"
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: 1 / 0)
    assert run_here(*words).returncode == 0
    assert found in (told(path, "rows")[0][name] for name in ("measured_tree", "costs"))


@needs_ctrl_c
def test_the_sentence_at_ctrl_c_is_true(tmp_path):
    path = tmp_path / "a.json"
    with process("compare", "--K=1-8", "--json", path) as child:
        while not path.exists() or not path.stat().st_size:
            sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    n = len(told(path))
    parts = f"{n} part{'s' * (n != 1)} in {path}"
    assert child.returncode == 130 and errors == f"main.py: interrupted; {parts}: the same command resumes from there\n"


def test_the_file_is_whole_after_every_part_and_replaced_in_one_step(tmp_path, monkeypatch):
    """Who has the file open reads on in the one from before; an interruption in the middle of a write costs nothing."""
    path, write = tmp_path / "report.json", Path.write_text
    with Report(str(path), "some", {"seed": "1"}) as found:
        for i in range(3):
            reader = path.open(encoding="utf-8") if path.exists() else io.StringIO()
            before = path.read_text("utf-8") if path.exists() else ""
            part = {"seconds": 0.1 * i, "text": 'a "quoted"\nline'}
            assert found.keep(f"part {i}", lambda part=part: part) == part
            assert told(path).keys() == {f"part {j}" for j in range(i + 1)}
            with reader:
                assert reader.read() == before != path.read_text("utf-8")

    def interrupted(self, text, **how):
        write(self, text[: len(text) // 2], **how)
        raise KeyboardInterrupt

    before = path.read_bytes()
    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.keep("part 3", lambda: 3)
    monkeypatch.undo()
    assert path.read_bytes() == before and [*tmp_path.iterdir()] == [path]
    again = Report(str(path), "some", {"seed": "1"})
    assert again.keep("part 2", lambda: 1 / 0) == found.parts["part 2"]


MODULES = {name: import_module(f"speculative.cli.commands.{name}") for name in (
    "generate", "compare", "calibrate", "bench", "batch_table", "widths", "museum", "audit")}  # fmt: skip
OUTPUTS = {"json", "csv", "plot", "plot_size", "by", "best", "trace", "show", "timings"}
VALUES = {
    "draft_model_size": "tiny-target", "target_model_size": "tiny-draft", "sizes": "tiny-draft", "drafter": "ngram",
    "verifier": "block", "siblings": "top", "draft_tokenizer": "text", "corpus": "text", "prompt_file": "text",
    "prompt_template": "a {prompt}", "prompts": "known", "source": "openai", "strategies": "rows", "by": "prompt",
    "best": "K", "csv": "t.csv", "plot": "t.svg", "plot_size": "2x2", "trace": "t.html", "show": "rounds", "min_p": "1",
    "timings": "True", "accelerator": "A100", "target_shape": "1,1,1,1", "draft_shape": "1,1,1,1", "alpha": "1",
}  # fmt: skip


@pytest.mark.parametrize("command", MODULES)
def test_a_report_is_resumed_with_the_same_options_alone(command, tmp_path, monkeypatch):
    """Another value of an option is refused, unless it only says how the measurements are shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MODULES[command], "run", lambda options, report: report.finish({}, ""))
    Path("text").write_text("Once")
    assert run_here(command, "--json=a.json").returncode == 0
    for name in MODULES[command].OPTIONS.keys() - {"json"}:
        option = f"--{name}={VALUES.get(name, '7')}"
        if name in OUTPUTS:
            assert run_here(command, "--json=a.json", option).returncode == 0
            continue
        assert run_here(command, "--json=b.json", option).returncode == 0
        start, value = "--json: {}.json was made with --{} {}, and this is {}: name another", VALUES.get(name, "7")
        assert refusal(command, "--json=a.json", option).startswith(start.format("a", name, "none", value))
        assert refusal(command, "--json=b.json").startswith(start.format("b", name, value, "none"))
        Path("b.json").unlink()


@pytest.mark.parametrize(
    ("command", "where", "message"),
    [("other", "here", "command some, and this is other"), ("some", "there", "machine here, and this is there")],
)
def test_a_report_of_another_command_or_machine_is_refused(command, where, message, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "machine", lambda: "here")
    Report(str(tmp_path / "a.json"), "some", {"seed": "1"}).finish({}, "")
    monkeypatch.setattr(report, "machine", lambda: where)
    with pytest.raises(ValueError, match=f"was made with {message}: name another file"):
        Report(str(tmp_path / "a.json"), command, {"seed": "1"})


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


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (["--drafter=suffix,model", "--corpus={}"], "Once upon", "There was"),
        (["--prompt_file={}"], "Once upon", "There was"),
        (["--grammar={}"], "[a-z ]{3,8}", "[0-9]{2,4}"),
        (["--verifier={}:rule"], "from speculative import rejection as rule", "from speculative import block as rule"),
        (["--target_model_size=td", "--drafter=heads,ngram"], "heads", ""),
        (["--target_model_size=td", "--drafter=ngram"], "weights", ""),
    ],
    ids=lambda value: str(value).split("=")[0],
)
def test_a_run_whose_files_have_changed_does_not_resume(words, before, after, tmp_path, monkeypatch):
    """With other contents, or where a setting that worked no longer does."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(find_folder("tiny-target", None), "td")
    monkeypatch.setattr(gpt2np, "load", gpt2np.files.loading.load)
    words = ["compare", "--n_tokens_to_generate=4", *(word.format("f.py") for word in words), "--json=r.json"]
    Path("f.py").write_text(before)
    assert run_here(*words).returncode == 0 and run_here(*words).returncode == 0
    if after:
        Path("f.py").write_text(after)
        for cached in (brought.loaded, brought.brought, brought.graded_verifier):
            cached.cache_clear()
    elif before == "heads":
        Path("td/heads.safetensors").unlink()
    else:
        for name in ("config.json", "model.safetensors"):
            Path("td", name).write_bytes((find_folder("tiny-draft", None) / name).read_bytes())
    kept = Path("r.json").read_bytes()
    result = run_here(*words)
    assert result.returncode == 2 and "--json: r.json was made with other " in result.stderr
    assert Path("r.json").read_bytes() == kept


def test_the_load_average_is_that_of_the_runs_that_measured(tmp_path, monkeypatch):
    found, path = [], tmp_path / "a.json"
    for load, name in ((1.0, "one"), (9.0, "two"), (0.5, "three"), (99.0, "three")):
        monkeypatch.setattr(report, "load_average", lambda load=load: load)
        saved = Report(str(path), "some", {})
        saved.keep(name, lambda: 1)
        found.append((saved.load, json.loads(path.read_text("utf-8"))["load_average"]))
    assert found == [(1, 1), (9, 9), (9, 9), (9, 9)]
