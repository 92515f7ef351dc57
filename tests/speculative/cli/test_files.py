"""Files that options name: what can be written, that nothing else is touched, and reports that resume."""

import io
import json
import os
import re
import shutil
import signal
from importlib import import_module
from pathlib import Path
from time import sleep

import pytest
from command import process, refusal, run_here, timeless
from systems import needs_any_name, needs_ctrl_c, needs_full_device, needs_links, needs_proc

import gpt2np
from gpt2np.files.loading import find_folder
from speculative.cli import brought, report
from speculative.cli.report import Report

SMALL, NGRAM = "--target_model_size=tiny-draft", "--drafter=ngram"
FEW = (SMALL, "--drafter=prompt_lookup", "--n_tokens_to_generate=4")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@needs_proc
@needs_full_device
@needs_links
def test_a_folder_that_cannot_be_written_is_seen_before_anything_is_measured():
    Path("full.json").symlink_to("/dev/full")
    Path("b.json").mkdir()
    for name in ("full.json", "b.json"):
        assert f"--json: cannot write {name} (it is not a regular file): name a" in refusal(*FEW, "--json", name)
    assert "--json: cannot write /proc/self/a.json (" in refusal(*FEW, "--json", "/proc/self/a.json")
    assert "--plot: cannot write /proc/a.png (" in refusal("compare", "--plot", "/proc/a.png")
    Path("closed").mkdir(mode=0o555)
    if os.access("closed", os.W_OK):
        pytest.skip("this user may write into every folder")
    assert "closed/a.json (Permission denied)" in refusal(*FEW, "--json", "closed/a.json")


def contents():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file() and path.suffix != ".pyc"}


@needs_links
def test_no_output_takes_the_place_of_an_input_behind_a_link():
    shutil.copytree(find_folder("tiny-draft", None), "td")
    for name in ("in.csv", "a.py", "b.py"):
        Path(name).write_text("from speculative import rejection as right\n")
    links = {"link": "in.csv", "in.jsonl.json": "far.jsonl", "link.csv": "b.py", "merges.csv": "td/merges.txt"}
    for link, name in links.items():
        Path(link).symlink_to(name)
    before = contents()
    for line in (
        "compare --csv=in.csv --prompt_file=link",
        "compare --csv=link.csv --verifier=a.py:right,b.py:right",
        "compare --csv=merges.csv --draft_model_size=td",
        "--json=in.jsonl.json --trace=far.jsonl",
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
    name = 250 * "a" + ".json"
    assert run_here(*FEW, "--json", name).returncode == 0 and told(name, "finished")
    assert "File name too long" in refusal(*FEW, "--json", "a" + name)


# ------------------------------------------------------------------------------------------------ reports


def told(path, what="parts"):
    return json.loads(Path(path).read_text("utf-8"))[what]


def interrupted_after(n, words, monkeypatch):
    """The result of a command that is interrupted after n parts."""
    keep = Report.keep

    def interrupted(self, name, measure):
        if len(self.parts) == n:
            raise KeyboardInterrupt
        return keep(self, name, measure)

    with monkeypatch.context() as patch:
        patch.setattr(Report, "keep", interrupted)
        result = run_here(*words)
    assert result.returncode == 130 and not result.stdout
    return result


def test_an_interrupted_run_resumes_from_its_file(monkeypatch):
    few = ("compare", SMALL, NGRAM, "--n_prompts=3", "--n_tokens_to_generate=6", "--temperature=0,1")
    result = interrupted_after(4, [*few, "--json=r.json"], monkeypatch)
    assert result.stderr == "main.py: interrupted; 4 parts in r.json: the same command resumes from there\n"
    before = told("r.json")
    assert len(before) == 4 and told("r.json", "finished") is False
    for name in ("r.json", "whole.json"):
        assert run_here(*few, "--json", name).returncode == 0
    assert told("r.json", "finished") is True and told("r.json").items() >= before.items() and len(told("r.json")) == 6
    assert timeless(told("r.json")) == timeless(told("whole.json"))
    assert sorted(os.listdir()) == ["r.json", "whole.json"]
    result = interrupted_after(1, few, monkeypatch)
    assert "the measurements are lost: --json FILE.json keeps each part" in result.stderr


def test_a_run_that_resumes_goes_on_with_the_costs_that_it_found(monkeypatch):
    words = ("compare", SMALL, NGRAM, "--n_prompts=2", "--n_tokens_to_generate=4", "--K=auto", "--json=a.json")
    interrupted_after(1, words, monkeypatch)
    found = told("a.json")
    assert [*found] == ["group 1, setting 1, costs"]
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: 1 / 0)
    assert run_here(*words).returncode == 0 and [told("a.json", "rows")[0]["costs"]] == [*found.values()]


@needs_ctrl_c
def test_the_sentence_at_ctrl_c_is_true(tmp_path):
    path = tmp_path / "a.json"
    with process("compare", SMALL, NGRAM, "--K=1-8", "--json", path) as child:
        while not path.exists() or not path.stat().st_size:
            sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    n = len(told(path))
    parts = f"{n} part{'s' * (n != 1)} in {path}"
    assert child.returncode == 130 and errors == f"main.py: interrupted; {parts}: the same command resumes from there\n"


def test_the_file_is_whole_after_every_part_and_replaced_in_one_step(monkeypatch):
    """Who has the file open reads on in the one from before; an interruption in the middle of a write costs nothing."""
    path, write = Path("report.json"), Path.write_text
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
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "write_text", interrupted)
        found.keep("part 3", lambda: 3)
    assert contents() == {path: before} and os.listdir() == ["report.json"]
    again = Report(str(path), "some", {"seed": "1"})
    assert again.keep("part 2", lambda: 1 / 0) == found.parts["part 2"]


COMMANDS = ("generate", "compare", "museum", "audit")
OUTPUTS = {"json", "csv", "plot", "plot_size", "by", "best", "trace", "show", "timings"}
VALUES = {
    "draft_model_size": "tiny-target", "target_model_size": "tiny-draft", "drafter": "ngram", "verifier": "block",
    "siblings": "top", "draft_tokenizer": "text", "corpus": "text", "prompt_file": "text",
    "prompt_template": "a {prompt}", "prompts": "known", "source": "openai", "by": "prompt", "best": "K",
    "csv": "t.csv", "plot": "t.svg", "plot_size": "2x2", "trace": "t.html", "show": "rounds", "min_p": "1",
    "timings": "True", "output": "t.jsonl",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_report_is_resumed_by_the_same_command_with_the_same_options_here_alone(command, monkeypatch):
    """Another value of an option is refused, unless it only says how the measurements are shown."""
    module = import_module(f"speculative.cli.commands.{command}")
    monkeypatch.setattr(module, "run", lambda options, report: report.finish({}, ""))
    monkeypatch.setattr(report, "machine", lambda: "here")
    Path("text").write_text("Once")
    assert run_here(command, "--json=a.json").returncode == 0
    start = "--json: {}.json was made with {} {}, and this is {}: name a different file"
    for name in module.OPTIONS.keys() - {"json"}:
        value = VALUES.get(name, "7")
        option = f"--{name}={value}"
        if name in OUTPUTS:
            assert run_here(command, "--json=a.json", option).returncode == 0
            continue
        assert run_here(command, "--json=b.json", option).returncode == 0
        assert refusal(command, "--json=a.json", option).startswith(start.format("a", f"--{name}", "none", value))
        assert refusal(command, "--json=b.json").startswith(start.format("b", f"--{name}", value, "none"))
        Path("b.json").unlink()
    other = next(name for name in COMMANDS if name != command)
    assert refusal(other, "--json=a.json").startswith(start.format("a", "command", command, other))
    monkeypatch.setattr(report, "machine", lambda: "there")
    assert refusal(command, "--json=a.json").startswith(start.format("a", "machine", "here", "there"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((b".*", text) for text in (b"", b"{}", b"no JSON", b"\xff\xfe", b"[" * 100_000, b"[1]")),
        (b"--seed", b"--feed"),
        (b'"a": 1', b'"a": 2'),
    ],
    ids=lambda text: str(text[:9]),
)
def test_a_file_that_is_not_a_report_is_refused_and_left_alone(old, new):
    """Also one that was changed by hand."""
    path = Path("a.json")
    Report(str(path), "some", {"seed": "2"}).keep("a", lambda: 1)
    path.write_bytes(re.sub(old, lambda found: new, path.read_bytes(), count=1, flags=re.S))
    text = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"a.json is not a report of this program .*: name a different file, or delete it"
    ):
        Report(str(path), "some", {"seed": "2"})
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (f"{SMALL} --n_prompts=1 --drafter=suffix,ngram --corpus=f.py", "Once upon", "There was"),
        (f"{SMALL} {NGRAM} --prompt_file=f.py", "Once upon", "There was"),
        (f"{SMALL} --n_prompts=1 {NGRAM} --grammar=f.py", "[a-z ]{3,8}", "[0-9]{2,4}"),
        (f"{SMALL} --n_prompts=1 {NGRAM} --verifier=f.py:rule", "from speculative import rejection as rule",
         "from speculative import block as rule"),
        ("--target_model_size=td --n_prompts=1 --drafter=heads,ngram", "heads", ""),
        ("--target_model_size=td --n_prompts=1 --drafter=ngram", "weights", ""),
    ],
    ids=["corpus", "prompts", "grammar", "rule", "heads", "weights"],
)  # fmt: skip
def test_a_run_whose_files_have_changed_does_not_resume(line, before, after, monkeypatch):
    """With other contents, or where a setting that worked no longer does."""
    if not after:
        shutil.copytree(find_folder("tiny-target", None), "td")
        monkeypatch.setattr(gpt2np, "load", gpt2np.files.loading.load)
    words = ["compare", "--n_tokens_to_generate=4", "--json=r.json", *line.split()]
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
            shutil.copy(find_folder("tiny-draft", None) / name, "td")
    kept = Path("r.json").read_bytes()
    assert "--json: r.json was made with different " in run_here(*words).stderr
    assert run_here(*words).returncode == 2 and Path("r.json").read_bytes() == kept


def test_the_load_average_is_that_of_the_runs_that_measured(monkeypatch):
    found = []
    for load, name in ((1.0, "one"), (9.0, "two"), (0.5, "three"), (99.0, "three")):
        monkeypatch.setattr(report, "load_average", lambda load=load: load)
        saved = Report("a.json", "some", {})
        saved.keep(name, lambda: 1)
        found.append((saved.load, told("a.json", "load_average")))
    assert found == [(1, 1), (9, 9), (9, 9), (9, 9)]
