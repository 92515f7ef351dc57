"""Journals: --json FILE and --output resume the run that wrote them, and nothing else."""

import contextlib
import json
import re
import shutil
import signal
from importlib import import_module
from pathlib import Path
from time import sleep

import pytest
from command import AGAIN, process, refusal, run_here, timeless
from systems import needs_ctrl_c

import gpt2np
from gpt2np.files.loading import find_folder
from speculative.cli import brought, journal
from speculative.cli.journal import Journal
from speculative.cli.options import entries_of

SMALL = ("--target_model_size=tiny-draft", "--drafter=ngram", "--n_tokens_to_generate=6")
RESUMES = "the same command resumes from there\n"
TEXTS = (*SMALL, "--prompt_file=prompts", "--output=a.jsonl", "--n_lanes=2", "--temperature=1", "--grammar=g")
ROWS = ("compare", *SMALL, "--n_prompts=3", "--temperature=0,1", "--json=a.jsonl")
PATH = Path("a.jsonl")


@pytest.fixture(autouse=True)
def files(in_a_folder):
    Path("prompts").write_text("The king\nA fox\nIn a wood\nOnce\n")
    Path("g").write_text("[a-z ,.]+")


def lines(content):
    return [json.loads(line) for line in content.splitlines()]


def whole_of(words):
    """The bytes of the undisturbed run's file, which is removed."""
    assert run_here(*words).returncode == 0
    content = PATH.read_bytes()
    PATH.unlink()
    return content


def interrupted_after(n, words, monkeypatch):
    """The result of a command that is interrupted after n parts."""
    keep = Journal.keep

    def interrupted(self, name, measure):
        if len(self.parts) == n:
            raise KeyboardInterrupt
        return keep(self, name, measure)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", interrupted)
        result = run_here(*words)
    assert result.returncode == 130 and not result.stdout
    return result


# ------------------------------------------------------------------------------------------------ it resumes


def test_what_is_in_the_file():
    head, *parts = lines(whole_of(TEXTS))
    assert (head["journal"], head["command"]) == (1, "generate")
    assert head["options"] == {
        f"--{word.removeprefix('--').partition('=')[0]}": word.partition("=")[2]
        for word in TEXTS
        if not word.startswith(("--output", "--n_lanes"))
    }
    assert {"machine", "version", "matmul"} <= head.keys()
    assert [*head["contents"]] == ["tiny-draft", "g", "prompts"]
    assert [part["part"] for part in parts] == [f"text {i}" for i in (1, 2, 3, 4)]
    assert [part["prompt"] for part in parts] == Path("prompts").read_text().split("\n")[:-1]


def test_cut_anywhere_and_resumed_it_is_the_same_file():
    whole = whole_of(TEXTS)
    ends = [match.end() for match in re.finditer(b"\n", whole)]
    for cut in [0, ends[0] - 5, *(end + more for end in ends[:-1] for more in (0, 1, 9, 25)), ends[-1] - 1, ends[-1]]:
        PATH.write_bytes(whole[:cut])
        assert run_here(*TEXTS).returncode == 0 and PATH.read_bytes() == whole, cut


@pytest.mark.parametrize(("words", "n"), [(TEXTS, 2), (ROWS, 3)], ids=["texts", "rows"])
def test_an_interrupted_run_resumes(words, n, monkeypatch):
    whole = whole_of(words)
    result = interrupted_after(n, words, monkeypatch)
    assert result.stderr == f"main.py: interrupted; {n} parts in a.jsonl: {RESUMES}"
    before, page = PATH.read_bytes(), run_here(*words).stdout
    assert before.count(b"\n") == n + 1 and ("4 texts in a.jsonl (2 were there)" in page) == (words is TEXTS)
    assert PATH.read_bytes().startswith(before) and timeless(lines(PATH.read_bytes())) == timeless(lines(whole))


def test_an_interruption_says_what_is_lost(monkeypatch):
    assert interrupted_after(0, ROWS, monkeypatch).stderr == "main.py: interrupted; nothing is kept\n"
    result = interrupted_after(1, ROWS[:-1], monkeypatch)
    assert "the measurements are lost: --json FILE.jsonl keeps each part" in result.stderr


def test_a_run_that_resumes_goes_on_with_the_costs_and_the_strategy_that_it_found(monkeypatch):
    words = ("compare", *SMALL, "--n_prompts=2", "--K=auto", "--json=a.jsonl")
    interrupted_after(1, words, monkeypatch)
    head, group = lines(PATH.read_bytes())
    assert group["part"] == "group 1" and group["settled"]["with the draft"]["c"] >= 0
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: 1 / 0)
    PATH.write_text(PATH.read_text().replace(f'"matmul": "{head["matmul"]}"', '"matmul": "panels"'))
    used = []
    monkeypatch.setattr(journal.matmul, "use", used.append)
    assert run_here(*words).returncode == 0 and used == ["panels"]


def test_a_finished_comparison_of_one_text_is_shown_again():
    words = (*SMALL, "--json=a.jsonl")
    first, again = run_here(*words), run_here(*words, "--timings")
    assert again.stdout.startswith(first.stdout.rstrip("\n")) and "n_predict = 6" in again.stdout
    assert "has this comparison, but not its rounds" in run_here(*words, "--trace=t.html").stderr


@needs_ctrl_c
@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_a_second_run_is_refused_and_a_killed_one_resumes(name):
    words = [*TEXTS, "--n_lanes=1", "--n_tokens_to_generate=400"]
    words = [word for word in words if word not in ("--n_lanes=2", "--n_tokens_to_generate=6")]
    whole = whole_of(words)
    with process(*words) as child:
        while not PATH.exists() or PATH.read_bytes().count(b"\n") < 2:
            sleep(0.01)
        assert refusal(*words) == "another run is writing a.jsonl: wait for it, or name a different file"
        child.send_signal(getattr(signal, name))
        _, errors = child.communicate(timeout=120)
    assert child.returncode and (name == "SIGKILL" or errors.endswith(f" in a.jsonl: {RESUMES}"))
    assert run_here(*words).returncode == 0 and PATH.read_bytes() == whole


# ------------------------------------------------------------------------------------------------ it is refused


VALUES = {  # where none of the values below may be given
    "draft_model_size": "tiny-target", "target_model_size": "tiny-draft", "drafter": "ngram", "verifier": "block",
    "siblings": "top", "draft_tokenizer": "text", "engine": "numpy", "template": "a {prompt}", "prompts": "known",
    "source": "openai", "by": "prompt", "best": "K", "csv": "t.csv", "plot": "t.svg", "plot_size": "2x2",
    "show": "rounds", "timings": "True", "output": "t.jsonl",
}  # fmt: skip


def value_of(name, entry):
    """A value that the option may have."""
    for value in [VALUES[name]] if name in VALUES else ["7", "0.5", "g", "t.html", "t.jsonl"]:
        with contextlib.suppress(ValueError, OSError):
            entry.read(value)
            return value
    raise AssertionError(f"--{name}: add a value to VALUES")


@pytest.mark.parametrize("command", ["generate", "compare", "museum"])
def test_another_value_of_an_option_is_refused_unless_it_decides_no_result(command, monkeypatch):
    module = import_module(f"speculative.cli.commands.{command}")

    def run(options):
        with Journal(options.json, options) as kept:
            kept.keep("a", lambda: {})

    monkeypatch.setattr(module, "run", run)
    assert run_here(command, "--json=a.jsonl").returncode == 0
    for name, entry in entries_of(module).items():
        words = command, "--json=a.jsonl", f"--{name}={value_of(name, entry)}"
        if name == "json" or entry.is_aside:
            assert name == "json" or run_here(*words).returncode == 0
        else:
            assert refusal(*words).startswith(f"a.jsonl was made with --{name} none, and this is ")
    other = "generate" if command == "museum" else "museum"
    assert refusal(other, "--json=a.jsonl").startswith(f"a.jsonl was made with command {command}, and this is {other}")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "version", lambda: "another")
        assert "a.jsonl was made with version " in refusal(command, "--json=a.jsonl")
    monkeypatch.setattr(journal, "machine", lambda: "there")
    assert "goes on on there" in run_here(command, "--json=a.jsonl").stderr


@pytest.mark.parametrize(
    ("file", "name", "drafter"),
    [
        ("g", "g", "prompt_lookup"),
        ("prompts", "prompts", "prompt_lookup"),
        ("text", "text", "ngram"),
        ("mine.py", "mine.py:Again", "mine.py:Again"),
        ("td/merges.txt", "td", "prompt_lookup"),
        ("td/model.safetensors", "td", "prompt_lookup"),
        ("td/heads.safetensors", "td", "heads"),
    ],
)
def test_a_file_that_was_edited_is_refused_by_its_name(file, name, drafter, monkeypatch):
    shutil.copytree(find_folder("tiny-target", None), "td")
    monkeypatch.setattr(gpt2np, "load", gpt2np.files.loading.load)
    Path("text").write_text("the queen and the king had a garden. " * 9)
    Path("mine.py").write_text(AGAIN)
    words = ["--target_model_size=td", "--prompt_file=prompts", "--grammar=g", "--n_tokens_to_generate=4"]
    words += [f"--drafter={drafter}", "--output=a.jsonl", *["--corpus=text"] * (drafter == "ngram")]
    assert run_here(*words).returncode == 0
    before, content = PATH.read_bytes(), Path(file).read_bytes()
    changed = bytes([content[-1] ^ 1]) if file.endswith(".safetensors") else b"\n# x"
    Path(file).write_bytes(content[:-1] + changed)
    for cached in (brought.loaded, brought.brought, brought.graded_drafter):
        cached.cache_clear()
    assert re.search(rf"a.jsonl was made with other contents of .*{re.escape(name)}: name a", refusal(*words))
    assert PATH.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"{", b"\n", b"\xff\x00", b'{"journal": 2, "x": 1}\n', b'{"journal": 1, "command": 3}\nmine']
)
def test_a_file_of_ones_own_is_never_touched(content):
    PATH.write_bytes(content)
    assert "a.jsonl" in refusal(*TEXTS) and PATH.read_bytes() == content


def test_a_damaged_line_is_refused():
    whole = whole_of(TEXTS)
    PATH.write_bytes(damaged := whole.replace(b'"part": "text 2"', b'"part": "text 2'))
    assert refusal(*TEXTS).startswith("a.jsonl: line 3 is damaged: ") and PATH.read_bytes() == damaged


def test_a_full_disk_costs_no_more_than_a_part():
    """A limit on the size of files is met as a full disk is: while the file is written."""
    resource = pytest.importorskip("resource", reason="this system has no limits of a process")
    whole = whole_of(TEXTS)
    size = len(whole) // 2
    with process(*TEXTS, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))) as child:
        _, errors = child.communicate(timeout=120)
    assert child.returncode == 2 and errors.count("\n") == 1 and "cannot write a.jsonl" in errors
    left = PATH.read_bytes()
    assert whole.startswith(left) and (not left or left.endswith(b"\n"))
    assert run_here(*TEXTS).returncode == 0 and PATH.read_bytes() == whole
