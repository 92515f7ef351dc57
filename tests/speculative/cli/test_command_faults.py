"""What can go wrong around a command: closed and full outputs, files that cannot be written or are something else,
misspelled words, Ctrl-C. Never a traceback, one sentence for each, and nothing that was measured is lost.
"""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import run
from helpers import ROOT
from systems import (
    hears_ctrl_c,
    needs_any_name,
    needs_ctrl_c,
    needs_full_device,
    needs_links,
    needs_proc,
    needs_shell,
    opening_a_folder,
)

from command_line import saved
from command_line.commands import COMMANDS
from command_line.main import main
from command_line.options import Options
from gpt2np.files.loading import find_folder
from speculative.museum import EXHIBITS, TREE_EXHIBITS

FEW = ("--n_tokens_to_generate", "12")
MANY = "1" + 400 * "0"  # a whole number beyond all floats
TINY = ("--target_model_size", "tiny-draft", "--drafter", "prompt_lookup")


def process(*arguments, **options):
    """`python main.py` as a process of its own, whose Ctrl-C is not ignored, wherever these tests run."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, ROOT / "main.py", *arguments], **hears_ctrl_c() | pipes | options)


def shell(command, **options):
    command = command.replace("M", f"{sys.executable} {ROOT / 'main.py'}", 1)
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, **options)


def refused(result):
    """The one sentence of a command that was refused."""
    assert result.returncode == 2 and result.stdout == "" and "Traceback" not in result.stderr
    assert result.stderr.startswith("main.py: ") and result.stderr.count("\n") == 1 and len(result.stderr) < 500
    return result.stderr.removeprefix("main.py: ").rstrip("\n")


@pytest.fixture
def at_once(capsys, monkeypatch):
    """A function of arguments that gives the same, without a process."""
    monkeypatch.setattr(sys, "argv", ["main.py"])

    def refused_at_once(arguments):
        code = main([str(argument) for argument in arguments])
        return refused(subprocess.CompletedProcess(arguments, code, *capsys.readouterr()))

    return refused_at_once


# ------------------------------------------------------------------------------------------------ outputs


@needs_shell
@pytest.mark.parametrize("command", ["M --help | head -n 1", "M --n_tokens_to_generate 12 | head -n 1"])
def test_the_reader_may_leave_early(command):
    result = shell(f"set -o pipefail; {command}")
    assert result.stdout.count("\n") == 1 and result.stderr == "" and result.returncode == 0


@needs_shell
@needs_full_device
@pytest.mark.parametrize("command", ["M --help", "M --n_tokens_to_generate 12"])
def test_a_full_output_is_one_sentence(command):
    result = shell(f"{command} > /dev/full")
    assert result.stderr == "main.py: cannot write to standard output (No space left on device)\n"
    assert result.returncode == 2


@needs_shell
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_outputs_may_be_closed(closed, tmp_path):
    result = shell(f"M --n_tokens_to_generate 12 --json a.json {closed}", cwd=tmp_path)
    assert result.stdout == result.stderr == "" and result.returncode == 0
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["finished"] is True


@needs_shell
@needs_full_device
def test_a_full_log_does_not_stop_a_measurement(tmp_path):
    few = "--target_sizes tiny-draft --exit_layer 1 --n_prompts 3 --n_tokens_to_generate 3"
    result = shell(f"M alpha_table {few} --json a.json 2> /dev/full", cwd=tmp_path)
    assert result.returncode == 0 and json.loads((tmp_path / "a.json").read_text("utf-8"))["finished"] is True


@needs_shell
@needs_full_device
def test_what_was_measured_is_kept_when_nobody_can_read_the_page(tmp_path):
    result = shell("M --n_tokens_to_generate 12 --json a.json --trace t.html > /dev/full", cwd=tmp_path)
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["finished"] is True
    assert (tmp_path / "t.html").read_text("utf-8").startswith("<!")


@needs_shell
@pytest.mark.parametrize("output", ["--trace t.html", "--json t.json"])
def test_a_full_disk_costs_no_more_than_its_file(tmp_path, output):
    """A limit of the size of files is met as a full disk is: while the file is written."""

    resource = pytest.importorskip("resource", reason="this system has no limits of a process")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    (tmp_path / output.split()[1]).write_text("")
    (tmp_path / "t.json").unlink(missing_ok=True)
    result = shell(f"M --n_tokens_to_generate 12 {output}", cwd=tmp_path, preexec_fn=limited)
    option, name = output.split()
    assert result.returncode == 2 and "same text     yes, all 12 tokens" in result.stdout
    assert result.stderr == (
        f"main.py: {option}: cannot write {name} (File too large): the previous file is unchanged\n"
    )
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} in ({"t.html": ""}, {})


@needs_proc
@needs_full_device
@needs_links
def test_a_folder_that_cannot_be_written_is_seen_before_anything_is_measured(tmp_path):
    assert "--json: cannot write /proc/self/a.json (" in refused(run(*FEW, "--json", "/proc/self/a.json"))
    assert "--plot: cannot write /proc/a.png (" in refused(run("alpha_table", "--plot", "/proc/a.png"))
    (tmp_path / "full.json").symlink_to("/dev/full")
    assert "full.json (it is not a regular file): name a" in refused(run(*FEW, "--json", tmp_path / "full.json"))
    (tmp_path / "closed").mkdir(mode=0o555)
    if os.access(tmp_path / "closed", os.W_OK):
        pytest.skip("this user may write into every folder")
    assert "closed/a.json (Permission denied)" in refused(run(*FEW, "--json", tmp_path / "closed" / "a.json"))


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["gama_table"],
            "unknown command 'gama_table' (did you mean gamma_table?): expected one of calibrate, drafters",
        ),
        (["gamma-table"], "unknown command 'gamma-table' (did you mean gamma_table?): expected one of calibrate"),
        (["help"], "unknown command 'help': expected one of calibrate, drafters, prompts, "),
        ([""], "unknown command '': expected one of calibrate, drafters, prompts, "),
        (["--temprature", "1"], "unknown option --temprature (did you mean --temperature?): expected one of corpus"),
        (["--k", "1"], "unknown option --k (did you mean --K?)"),
        (["calibrate", "--verifer", "block"], "unknown option --verifer for calibrate"),
        (["--noprompt"], "unknown option --noprompt (did you mean --prompt?)"),
        (["--", "--interactive"], "unexpected '--': a command comes first, options are --name value"),
        (["--K", "3", "--", "--completion"], "unexpected '--'"),
        (["--K", "3", "-", "foo"], "unexpected '-'"),
        (["-K", "3"], "unexpected '-K'"),
        (["---K", "3"], "unexpected '---K'"),
        (["--K", "3", "prompts"], "unexpected 'prompts': a command comes first"),
        (["--source", "HUB"], "--source: expected one of hub, openai, got 'HUB'"),
        (["--source", ""], "--source: expected one of hub, openai, got ''"),
        (["--drafter", "prompt_lookup", "--n_max", "9" * 23], "--n_max: expected a whole number from 1 to 1024, got 9"),
        (["--seed", "9" * 5000], "--seed: expected a whole number of 0 or more, got inf"),
        (["gamma_table", "--max_K", "100000000"], "--max_K: expected a whole number from 2 to 100, got 100000000"),
        (["prompts", "--n_prompts", "1000000000"], "--n_prompts: expected a whole number from 1 to 10000, got 1"),
        (["calibrate", "--n_prompts", "2"], "--n_prompts: expected a whole number of 3 or more, got 2"),
        (["bench", "--rows", "100000"], "--rows: expected a whole number from 1 to 1023, got 100000"),
        (["bench", "--sizes", ","], "--sizes: expected values separated by commas, got ','"),
        (
            ["bench", "--sizes", "124M,tiny-draft", "--context", "600"],
            "--context and --rows: tiny-draft has room for 512",
        ),
        (
            ["bench", "--sizes", "124M,tiny-draft", "--prompt_tokens", "600"],
            "--prompt_tokens: tiny-draft has room for 512",
        ),
        (["calibrate", "--n_tokens_to_generate", "1"], "--n_tokens_to_generate: expected a whole number of 2 or more"),
        (["--top_p", "-1"], "expected a top_p above 0 and at most 1, got -1"),
        (["--top_p", MANY], "--top_p: expected a number, got a number beyond 1.8e308"),
        (
            ["--draft_temperature", MANY],
            "--draft_temperature: expected a number of 0 or more, got a number beyond",
        ),
        (
            ["--K", MANY],
            "--K: expected a whole number of 1 or more, or auto, heuristic or confidence, got a number beyond",
        ),
        (["--repetition_penalty", "-1"], "expected a repetition_penalty above 0, got -1"),
        (["--json="], "--json: expected a name that ends in .json, got ''"),
        (["--prompt", "a", "--prompt_file", "b"], "expected one of --prompt and --prompt_file, got both"),
        (
            ["prompts", "--n_prompts", "3", "--prompt_file", "b"],
            "--n_prompts: every line of --prompt_file is a prompt",
        ),
        (
            ["--drafter", "ngram", "--n_max", "6"],
            "--n_max and --corpus: expected n from 1 to 5 for 2048 tokens, so that",
        ),
        (
            ["replay", "a.jsonl", "--trace", "a.jsonl"],
            "--trace and FILE name one file, a.jsonl: give the output a name",
        ),
        (["alpha_table", "--target_sizes", "tiny-target,nowhere"], "--target_sizes: unknown model 'nowhere'"),
        (["alpha_table", "--target_sizes", "tiny-draft,tests"], "--target_sizes: tests lacks config.json"),
        (["compare_sizes", "--target_sizes", "tiny-draft", "--draft_model_size", "no"], "--draft_model_size: unknown"),
        (["method_table", "--drafters", "suffix,oracle"], "--drafters: expected one of model, ngram, "),
        (
            ["replay", "nowhere.jsonl"],
            "replay: cannot read nowhere.jsonl (No such file or directory): give a file written by",
        ),
        (["--target_model_size", "a\033[31m\nb"], r"--target_model_size: unknown model 'a\x1b[31m\nb'"),
        (["a\033[31m\u202e"], r"unknown command 'a\x1b[31m\u202e'"),
        (["x" * 5000], "unknown command 'xxxx"),
        (["--json", "x" * 5000 + ".json"], "--json: cannot write xxx"),
        (["--ngram_table", "tests", "--drafter", "ngram"], f"--ngram_table: cannot read tests ({opening_a_folder()})"),
    ],
)
def test_a_wrong_word_is_named_before_anything_runs(arguments, message, at_once, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert message in at_once(arguments)


@pytest.mark.parametrize(("message", "end"), [("", "nothing is kept"), ("half is in a.json", "half is in a.json")])
def test_an_interruption_says_what_is_kept(message, end, monkeypatch, capsys):
    def stopped(**options):
        raise KeyboardInterrupt(*filter(None, [message]))

    monkeypatch.setattr("command_line.main.call", lambda *_: stopped())
    assert main(["museum"]) == 130 and capsys.readouterr().err.endswith(f": interrupted; {end}\n")


def test_a_folder_that_may_not_be_read_is_named(at_once, monkeypatch, tmp_path):
    def forbidden(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", forbidden)
    refusal = at_once(["--target_model_size", tmp_path])
    assert refusal.startswith("--target_model_size: cannot read ") and refusal.endswith(
        " (Permission denied): name a folder that you may read"
    )


def test_one_number_of_nodes_however_it_is_spelled():
    assert [Options(tree=text).grown_nodes for text in ("8", " 8", "+8", "0_8", "2,2", "auto")] == [8, 8, 8, 8, 0, 0]


@needs_proc
@needs_links
def test_an_unreadable_model_is_named(tmp_path):
    source = find_folder("tiny-draft", None)
    for name in ("config.json", "model.safetensors", "vocab.json"):
        (tmp_path / name).symlink_to(source / name)
    (tmp_path / "merges.txt").symlink_to("/proc/self/mem")  # a file that cannot be read, whoever asks
    assert " cannot be read (Input/output error)" in refused(run("--target_model_size", tmp_path, *FEW))


def test_hyphens_and_underscores_are_the_same():
    assert run("--n-tokens-to-generate", "3", "--json").stdout.count('"n_tokens": 3') == 1


# ------------------------------------------------------------------------------------------------ prompts, characters


def test_the_prompt_from_a_file_or_from_standard_input(tmp_path, monkeypatch, capsys):
    (tmp_path / "prompt").write_text("Once upon a time\n", encoding="utf-8")
    expected = json.loads(run("--prompt", "Once upon a time", "--json", *FEW).stdout)["speculative"]["tokens"]
    found = json.loads(run("--prompt_file", tmp_path / "prompt", "--json", *FEW).stdout)
    assert found["speculative"]["tokens"] == expected and found["prompt"] == "Once upon a time"
    command = [sys.executable, ROOT / "main.py", "--prompt_file", "-", "--json", *FEW]
    piped = subprocess.run(command, input="Once upon a time\n", capture_output=True, text=True, timeout=120)
    assert json.loads(piped.stdout)["speculative"]["tokens"] == expected and piped.stderr == ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One\n\nTwo\n")))
    assert main(["prompts", "--prompt_file", "-", "--n_tokens_to_generate", "3", "--drafter", "suffix"]) == 0
    assert re.search(r"^One .*\nTwo .*\nall 2 ", capsys.readouterr().out, re.M)


def test_a_prompt_that_cannot_be_read(tmp_path, at_once):
    file = tmp_path / "prompts"
    for text, message in (
        (b"a\nb\n", "prompts has 2 prompts, one per line, and a comparison takes one"),
        (b"\n", "prompts is empty: write one prompt per line"),
        (b"\xff\xfe", "prompts is not one"),
    ):
        file.write_bytes(text)
        assert message in at_once(["--prompt_file", file])
    file.unlink()
    assert "prompts (No such file or directory): give a text" in at_once(["gamma_table", "--prompt_file", file])


@needs_shell
def test_a_prompt_from_a_standard_input_that_is_closed():
    assert refused(shell("M --prompt_file - <&-")).startswith("--prompt_file -: standard input is closed: give a file")


@needs_links
@needs_any_name
def test_control_characters_of_texts_and_names_do_not_reach_the_terminal(tmp_path):
    """A model whose full stop is an escape character, in a folder with another in its name."""
    source, folder = find_folder("tiny-draft", None), tmp_path / "m\033[31m"
    folder.mkdir()
    for name in ("config.json", "merges.txt", "model.safetensors"):
        (folder / name).symlink_to(source / name)
    vocabulary = json.loads((source / "vocab.json").read_text(encoding="utf-8"))
    escape = "\u011b"  # the byte 27, as vocabularies write it
    for name in (".", ","):
        vocabulary[name], vocabulary[escape] = vocabulary[escape], vocabulary[name]
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        result = run(
            "--target_model_size", folder, *TINY[2:], "--prompt", "a\033[2Jb\u202e", "--n_tokens_to_generate", "60"
        )
        assert result.returncode == 0 and "\033" not in result.stdout and "\u202e" not in result.stdout
        assert "a\u241b[2Jb\\u202e" in result.stdout and "m\u241b[31m" in result.stdout
    assert result.stdout.count("\u241b") > 4


# ------------------------------------------------------------------------------------------------ what goes on


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "a.json"
    COMMANDS["alpha_table"](
        n_prompts=3, n_tokens_to_generate=3, target_sizes="tiny-draft", exit_layer=1, json=str(path)
    )
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda found: {**found, "settings": []},
        lambda found: {**found, "parts": list(found["parts"])},
        lambda found: {**found, "parts": dict.fromkeys(found["parts"])},
        lambda found: {**found, "parts": 5},
        lambda found: {**found, "strategy": 7},
        lambda found: {**found, "files": None},
        lambda found: {**found, "checksum": {}},
        lambda found: {**found, "command": ["alpha_table"]},
        lambda found: [found],
        lambda found: {**found, "parts": {**found["parts"], next(iter(found["parts"])): {"overlap": [1.0]}}},
    ],
)
def test_a_report_in_form_only_is_refused(report, tmp_path, at_once, change):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(change(json.loads(report.read_text("utf-8")))))
    before = path.read_bytes()
    options = ("--n_prompts", "3", "--n_tokens_to_generate", "3", "--target_sizes", "tiny-draft", "--exit_layer", "1")
    assert "is not a report that this program wrote" in at_once(["alpha_table", *options, "--json", path])
    assert before == path.read_bytes()
    path.write_text("[" * 100_000)
    assert "is not a report that this program wrote" in at_once(["alpha_table", *options, "--json", path])


def test_a_report_of_other_weights_is_not_continued(tmp_path):
    folder, path = tmp_path / "m", tmp_path / "a.json"
    options = ("--target_model_size", folder, "--drafter", "prompt_lookup", *FEW, "--json", path)
    shutil.copytree(find_folder("tiny-draft", None), folder)
    assert run(*options).returncode == 0 and run(*options).returncode == 0
    shutil.rmtree(folder)
    shutil.copytree(find_folder("tiny-target", None), folder)
    before = path.read_bytes()
    assert f"a.json was made with other contents of {folder}: name another" in refused(run(*options))
    assert path.read_bytes() == before


def test_a_report_of_another_table_or_version_is_not_continued(tmp_path, monkeypatch, capsys):
    table, path = tmp_path / "table", tmp_path / "a.json"
    options = ["--drafter", "ngram", "--ngram_table", str(table), "--n_tokens_to_generate", "5", "--json", str(path)]
    assert main(options) == 0 and main(options) == 0  # counted and written, then read
    table.unlink()
    assert main([*options[:-2], "--corpus", str(ROOT / "README.md")]) == 0
    assert main(options) == 2
    assert "a.json was made with other contents of ngram_table" in capsys.readouterr().err
    monkeypatch.setattr(saved, "library", lambda: "0.2.0, sources 01234567")
    assert main(options) == 2
    assert "and this is 0.2.0, sources 01234567: name another file, or delete it" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ interruptions


@needs_ctrl_c
@pytest.mark.parametrize("module", ["command_line", "numpy", "fire"])
def test_ctrl_c_during_the_imports_leaves_no_traceback(module):
    command = [sys.executable, "-X", "importtime", ROOT / "main.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, **hears_ctrl_c()) as child:
        seen = next(line for line in child.stderr if re.search(rf"\| +{module}(\.\w+)?$", line))
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
    assert seen and child.returncode == -signal.SIGINT and "Traceback" not in rest


def interrupted(*arguments, after):
    """(exit code, what was written to standard error) of a command that is interrupted after so many parts."""
    with process(*arguments) as child:
        lines = [child.stderr.readline() for _ in range(after)]
        child.send_signal(signal.SIGINT)
        _, rest = child.communicate(timeout=120)
    return child.returncode, "".join(lines) + rest


@needs_ctrl_c
def test_the_sentence_at_ctrl_c_is_true(tmp_path):
    few = ("museum", "--json", tmp_path / "a.json")
    code, errors = interrupted(*few, after=3)
    n = len(json.loads((tmp_path / "a.json").read_text("utf-8"))["parts"])
    parts = f"{n} of {len(EXHIBITS) + len(TREE_EXHIBITS)} parts are in {tmp_path}/a.json"
    kept = f"main.py: interrupted; {parts}, and the same command resumes from there"
    assert code == 130 and errors.splitlines()[-1] == kept and n >= 3 and "Traceback" not in errors
    code, errors = interrupted("museum", after=2)
    lost = "main.py: interrupted; what was measured is lost: --json FILE.json keeps each part as soon as it is finished"
    assert code == 130 and errors.splitlines()[-1] == lost


# ------------------------------------------------------------------------------------------------ files of the user


@pytest.mark.parametrize(("read", "written"), [("prompt_file", "log"), ("corpus", "log"), ("ngram_table", "json")])
def test_no_output_takes_the_place_of_an_input(read, written, tmp_path, at_once, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a.log" if written == "log" else "a.json"
    Path(name).write_text("precious\n")
    words = ["prompts"] if written == "log" else []
    message = at_once([*words, f"--{read}", name, f"--{written}", f"./{name}", *FEW])
    assert "name one file" in message and Path(name).read_text("utf-8") == "precious\n"


@needs_links
def test_one_file_under_two_names(tmp_path, at_once, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink("a.json", "a.jsonl")
    assert "name one file" in at_once(["--trace", "a.jsonl", "--json", "a.json", *FEW])


@needs_links
def test_a_link_to_itself(tmp_path, at_once, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink("a.json", "a.json")
    assert "--json: cannot write a.json (" in at_once(["--json", "a.json", *FEW])


@needs_links
def test_a_new_file_takes_nothing_else_along(tmp_path):
    """Another file with a similar name, a link to the file, and who may read it."""
    (tmp_path / "t.html.part").write_text("precious")
    (tmp_path / "far.html").write_text("old")
    (tmp_path / "far.html").chmod(0o600)
    (tmp_path / "t.html").symlink_to("far.html")
    assert run(*TINY, *FEW, "--trace", "t.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "t.html.part").read_text("utf-8") == "precious" and (tmp_path / "t.html").is_symlink()
    assert (
        "<html" in (tmp_path / "far.html").read_text("utf-8")
        and (tmp_path / "far.html").stat().st_mode & 0o777 == 0o600
    )
    assert len(list(tmp_path.iterdir())) == 3


@needs_any_name
def test_a_name_as_long_as_a_name_can_be(tmp_path):
    name = 250 * "a" + ".json"
    assert run(*TINY, *FEW, "--json", name, cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / name).read_text("utf-8"))["finished"]
    assert "File name too long" in refused(run(*TINY, *FEW, "--json", "a" + name, cwd=tmp_path))


@needs_shell
def test_a_text_from_a_pipe_is_read_once(tmp_path):
    tale = ROOT / "gpt2np/tiny/held_out.txt"
    arguments = f"--drafter suffix --n_tokens_to_generate 20 --corpus {tale}"
    from_pipe = arguments.replace(str(tale), f"<(cat {tale})")
    calls = [shell(f"M {words} | grep calls", cwd=tmp_path).stdout for words in (arguments, from_pipe)]
    assert calls[0] == calls[1] != ""
    shown = shell(f"M {' '.join(TINY + FEW)} --prompt_file <(printf 'hi there')", cwd=tmp_path)
    assert "hi there" in shown.stdout, shown.stderr


def test_a_text_of_windows(tmp_path):
    (tmp_path / "p.txt").write_bytes("\ufeffOnce upon\u2028a time\r\n".encode())
    report = json.loads(run(*TINY, *FEW, "--prompt_file", "p.txt", "--json", cwd=tmp_path).stdout)
    assert report["prompt"] == "Once upon\u2028a time"


# ------------------------------------------------------------------------------------------------ what may not suit


@pytest.mark.parametrize("tree", ["4,2", "3,3", "24"])
def test_trees_with_statistics(tree, tmp_path):
    result = run(*FEW, "--tree", tree, "--timings", cwd=tmp_path)
    assert result.returncode == 0 and result.stderr == "" and "same text" in result.stdout


def test_trees_on_common_random_numbers_at_a_low_temperature(tmp_path):
    result = run("--verifier", "gumbel", "--temperature", "0.01", "--tree", "8", "--n_tokens_to_generate", "40")
    assert result.returncode == 0 and result.stderr == "" and "yes, all 40 tokens" in result.stdout


def test_a_target_of_two_layers(tmp_path):
    small = ("--target_model_size", "tiny-draft", *FEW, "--n_prompts", "3")
    assert "early_exit" not in run("drafters", *small).stdout
    assert "--exit_layer: expected an exit after 1 to 1" in refused(run(*small[:-2], "--drafter", "early_exit"))
    assert "has no drafter for tiny-draft" in refused(run("tree_table", "--tree_drafters", "heads", *small))


def test_a_checkout_that_is_not_installed(tmp_path):
    code = f"""
import importlib.metadata, sys
def version(name):
    raise importlib.metadata.PackageNotFoundError(name)
importlib.metadata.version = version
sys.path.insert(0, {str(ROOT)!r})
from command_line.main import main
sys.exit(main({[*TINY, *FEW]!r}) or main(["--version"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0 and result.stdout.endswith("(not installed)\n"), result.stderr
