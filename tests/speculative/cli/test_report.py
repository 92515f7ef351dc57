"""Reports in files: whole after every part, resumed by the same command only, and never taken for another's."""

import io
import json
import shutil
import sys

import pytest
from command import refusal, run_here
from helpers import ROOT

from gpt2np.files.loading import find_folder
from speculative.cli import report
from speculative.cli.commands import audit, bench
from speculative.cli.options import Options
from speculative.cli.report import Saved, load_average, settings_of

TINY = ("--target_model_size=tiny-draft", "--drafter=prompt_lookup", "--n_tokens_to_generate=4")


def interrupt_after(n, monkeypatch):
    """Interrupt the first run after n parts; later runs are as they are."""
    keep, runs = Saved.keep, []

    def interrupted(self, name, measure):
        if len(self.parts) == n and runs in ([], [self]):
            runs.append(self)
            raise KeyboardInterrupt
        return keep(self, name, measure)

    monkeypatch.setattr(Saved, "keep", interrupted)


def test_an_interrupted_run_resumes_from_its_file(tmp_path, monkeypatch, quick):
    path = tmp_path / "gamma.json"
    words = ["gamma_table", "--temperatures=0", "--max_K=2", "--drafter=ngram", "--n_prompts=3", TINY[0], TINY[2]]
    interrupt_after(2, monkeypatch)
    result = run_here(*words, "--json", path)
    kept = f"interrupted; 2 of 3 parts are in {path}, and the same command resumes from there\n"
    assert result.returncode == 130 and result.stderr.endswith(kept) and not result.stdout
    before = json.loads(path.read_text("utf-8"))
    assert len(before["parts"]) == 2 and before["finished"] is False
    result = run_here(*words, "--json", path)
    after = json.loads(path.read_text("utf-8"))
    assert result.returncode == 0 and "alpha = " in result.stdout
    assert after["finished"] is True and len(after["parts"]) == 3 and after["parts"].items() >= before["parts"].items()
    assert [file.name for file in tmp_path.iterdir()] == ["gamma.json"]


def test_the_file_is_whole_after_every_part(tmp_path):
    path = tmp_path / "report.json"
    saved = Saved(str(path), "some", {"seed": 1})
    for i in range(3):
        measured = {"seconds": 0.1 * i, "text": 'a "quoted"\nline'}
        assert saved.keep(f"part {i}", lambda measured=measured: measured) == measured
        assert json.loads(path.read_text("utf-8"))["parts"].keys() == {f"part {j}" for j in range(i + 1)}
    again = Saved(str(path), "some", {"seed": 1})
    assert again.keep("part 2", lambda: 1 / 0) == saved.parts["part 2"]
    saved.finish({"rows": [1]})
    assert saved.whole({"rows": [1]})["rows"] == json.loads(path.read_text("utf-8"))["rows"] == [1]


@pytest.mark.parametrize(
    ("command", "settings", "where", "message"),
    [
        ("other", {"seed": 1}, "here", "holds a report of some, expected one of other: name another file"),
        ("some", {"seed": 2}, "here", "was made with --seed 1, not 2: name another file"),
        ("some", {"seed": 1, "K": 3}, "here", "was made with --K None, not 3: name another file"),
        ("some", {"seed": 1}, "there", "was made on here, and this is there: name another file"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, monkeypatch, command, settings, where, message):
    monkeypatch.setattr(report, "machine", lambda: "here")
    Saved(str(tmp_path / "a.json"), "some", {"seed": 1}).finish({})
    monkeypatch.setattr(report, "machine", lambda: where)
    with pytest.raises(ValueError, match=message):
        Saved(str(tmp_path / "a.json"), command, settings)


def test_a_report_with_other_engines_or_threads_is_not_continued(tmp_path, monkeypatch):
    path, found = str(tmp_path / "a.json"), {"torch": "2.13.0", "transformers": "5.0.0"}
    monkeypatch.setattr(report.metadata, "version", lambda name: found[name])
    Saved(path, "audit", {}, found).finish({})
    Saved(path, "audit", {}, found)
    found["transformers"] = "5.1.0"
    with pytest.raises(
        ValueError, match=r"made by version .*, transformers 5\.0\.0, and this is .*transformers 5\.1\.0"
    ):
        Saved(path, "audit", {}, found)
    assert audit.COMMAND.engines == bench.COMMAND.engines == ("transformers", "torch")
    found["transformers"] = "5.0.0"
    monkeypatch.setenv("GPT2NP_THREADS", "7")
    with pytest.raises(ValueError, match=r"was made on .*, and this is .*, GPT2NP_THREADS=7: name another file"):
        Saved(path, "audit", {}, found)


def change(**changes):
    return lambda found: {**found, **changes}


@pytest.mark.parametrize(
    "changed",
    [
        change(settings=[]), change(parts=["one"]), change(parts={"one": None}), change(parts=5), change(strategy=7),
        change(files=None), change(checksum={}), change(command=["some"]), lambda found: [found],
        lambda found: {**found, "parts": {**found["parts"], "one": 2}},
    ],
)  # fmt: skip
def test_a_report_in_form_only_is_refused_and_left_alone(tmp_path, changed):
    path = tmp_path / "a.json"
    saved = Saved(str(path), "some", {})
    saved.keep("one", lambda: 1)
    path.write_text(json.dumps(changed(json.loads(path.read_text("utf-8")))))
    not_a_report(path)


@pytest.mark.parametrize("text", [b"", b"{}", b"no JSON", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_not_a_report_is_refused_and_left_alone(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text)
    not_a_report(tmp_path / "a.json")


def not_a_report(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"a.json is not a report that this program wrote: name another"):
        Saved(str(path), "some", {})
    assert path.read_bytes() == before


def test_a_text_that_has_changed_is_another_setting(tmp_path):
    file, names = tmp_path / "prompts", {"prompt_file", "corpus", "json"}
    file.write_text("Once\n\nupon a time\n", encoding="utf-8")
    options = Options(prompt_file=str(file))
    first = settings_of(options, names)
    assert settings_of(options, names) == first and first.keys() == {"prompt_file", "corpus"} and first["corpus"] == ""
    file.write_text("Once\n", encoding="utf-8")
    assert first["prompt_file"] != settings_of(options, names)["prompt_file"]


def test_a_report_of_other_weights_is_not_continued(tmp_path):
    folder, path = tmp_path / "m", tmp_path / "a.json"
    words = (f"--target_model_size={folder}", *TINY[1:], "--json", path)
    shutil.copytree(find_folder("tiny-draft", None), folder)
    assert run_here(*words).returncode == 0 and run_here(*words).returncode == 0
    config = folder / "config.json"
    config.write_text(config.read_text("utf-8") + " ")
    before = path.read_bytes()
    assert f"a.json was made with other contents of {folder}: name another" in refusal(*words)
    assert path.read_bytes() == before


def test_a_report_of_another_table_or_version_is_not_continued(tmp_path, monkeypatch):
    table, path = tmp_path / "table", tmp_path / "a.json"
    words = ["--drafter=ngram", "--ngram_table", table, TINY[2]]
    assert [run_here(*words, "--json", path).returncode for _ in range(2)] == [0, 0]  # counted and written, then read
    table.unlink()
    assert run_here(*words, "--corpus", ROOT / "README.md").returncode == 0
    other = run_here(*words, "--json", path)  # the page has been printed by then
    assert other.returncode == 2 and "a.json was made with other contents of ngram_table" in other.stderr
    monkeypatch.setattr(report, "library", lambda: "0.2.0, sources 01234567")
    assert "and this is 0.2.0, sources 01234567: name another file, or" in refusal(*words, "--json", path)


def test_the_load_average_is_that_of_the_runs_that_measured(tmp_path, monkeypatch):
    found, path = [], tmp_path / "a.json"
    for load, name in ((1.0, "one"), (9.0, "two"), (0.5, "three"), (99.0, "three")):
        monkeypatch.setattr(report, "load_average", lambda load=load: load)
        saved = Saved(str(path), "some", {"seed": 1})
        saved.keep(name, lambda: 1)
        saved.finish({})
        found.append((saved.whole({})["load_average"], json.loads(path.read_text("utf-8"))["load_average"]))
    assert found == [(1, 1), (9, 9), (9, 9), (9, 9)]


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_a_system_that_does_not_say_its_load(error, monkeypatch):
    def unobtainable():
        raise error

    monkeypatch.setattr("os.getloadavg", unobtainable, raising=False)
    assert load_average() == 0


def test_a_progress_bar_is_there_for_parts_alone_and_does_not_stay(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = []
    for n_parts in (0, 4):
        monkeypatch.setattr(sys, "stderr", Terminal())
        with Saved(False, "some", {}) as saved:
            if n_parts:
                saved.expect(n_parts)
        shown.append(sys.stderr.getvalue())
    assert shown[0] == "" and "0/4" in shown[1] and shown[1].endswith(" \r")
