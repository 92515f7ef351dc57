"""Two thousand command lines, right and wrong, as a script would try them; and every long command interrupted.

A wrong one ends with exit code 2 in one sentence, and before anything is measured. Nothing here downloads.
"""

import itertools
import json
import signal
import subprocess
import sys
from time import sleep

import pytest
from command import process, refused, run
from systems import needs_ctrl_c

from speculative.cli.commands import find_commands
from speculative.cli.main import main
from speculative.cli.options import ENTRIES, FLAGS, Choice, Number, Several, Written
from speculative.cli.registry import DRAFTERS, RULES

COMMANDS = find_commands()
EXPERIMENTS = [command.name for command in COMMANDS.values() if "plot" in command.options]

pytestmark = pytest.mark.slow
SMALL = ("--target_model_size", "tiny-draft", "--n_tokens_to_generate", "4")
NUMBERS = ("", "some", "nan", "inf", "-1", "1e999", "None", "[1]", "True", "0x10", "1,2", "\u0663x", "\033[31m")
WHOLE = (*NUMBERS, "2.5", "-0", "9" * 4400)
NAMED = ("", "some", "1", "model,nothing", "\033[31m", "Model", ",", "x" * 300)
FILES = ("a", "a.gif", "nowhere/a.json", "/proc/a.json", "/", "..", "", "x" * 300 + ".json", "\033/a.json")


def nonsense(name):
    """Values that an option can never have."""
    kind = ENTRIES[name].metadata["kind"]
    listed, kind = isinstance(kind, Several), getattr(kind, "each", kind)
    if name == "K":
        return (*WHOLE, "0", "Auto")
    if name == "json":
        return FILES
    if isinstance(kind, Written):
        return [value for value in FILES if value]
    if isinstance(kind, Choice) or name in ("target_sizes", "sizes"):
        return NAMED
    if isinstance(kind, Number) and kind.kind is int:
        at_zero = (str(kind.least - 1),)
        too_much = () if kind.most == float("inf") else (str(kind.most + 1),)
        allowed = ["-0"] * (kind.least == 0) + ["1,2"] * listed
        return [value for value in (*WHOLE, *at_zero, *too_much) if value not in allowed]
    if name in ("top_p", "repetition_penalty"):
        return (*NUMBERS, "0")
    if name in ("temperature", "temperatures", "min_p"):
        return [value for value in NUMBERS if name != "temperatures" or value != "1,2"]
    return ()


PAIRS = [
    pytest.param(command.name, name, nonsense(name), id=f"{command.name} --{name}")
    for command, name in itertools.product(COMMANDS.values(), ENTRIES)
    if name in command.options and nonsense(name)
]


@pytest.mark.parametrize(("command", "name", "wrong"), PAIRS)
def test_nonsense_for_every_option(command, name, wrong, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["main.py"])
    word = [command, "t.jsonl"] if command == "replay" else [command]
    for value in [f"={value}" for value in wrong] + [""] * (name not in FLAGS):
        code = main([*word, f"--{name}{value}"])
        refused(subprocess.CompletedProcess(value, code, *capsys.readouterr()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in ENTRIES if not nonsense(name) and name != "file"])
def test_any_text_for_a_text(name, tmp_path):
    """A text may be right: then there is a page, and no traceback in any case."""
    for value in ("", "1", "nan", "--", "-", "None", "é世\u202e", "\033[31m", "a\nb", "x" * 3000, ".", "nowhere"):
        for drafter in ("ngram", "suffix") if name in ("corpus", "ngram_table") else ("prompt_lookup",):
            result = run(*SMALL, "--drafter", drafter, f"--{name}={value}", cwd=tmp_path)
            if result.returncode == 0:
                assert result.stderr == "" and "speedup" in result.stdout and "\033" not in result.stdout
            else:
                refused(result)


FIT = [pair for pair in itertools.product(DRAFTERS, RULES) if RULES[pair[1]].trees or not DRAFTERS[pair[0]].branches]
RIGHT = [
    *([f"--drafter={drafter}", f"--verifier={rule}"] for drafter, rule in FIT),
    *([f"--K={K}", "--temperature", T] for K, T in itertools.product((1, 7, 200, "auto", "heuristic"), ("0", "0.7"))),
    ["--top_k", "5"], ["--top-k", "5", "--top-p", "0.5"], ["--min_p", "0.2", "--temperature=1"], ["--seed", "9" * 30],
    ["--repetition_penalty", "1.3"], ["--show", "rounds"], ["--stop", "a"], ["--json"], ["--trace", "t.html"],
    ["--trace", "t.jsonl", "--json", "c.json"], ["--prompt="], ["--prompt", "-1"], ["--prompt", "[1, 2]"],
    ["--drafter", "ngram", "--n_max", "5"], ["--drafter", "prompt_lookup", "--n_max", "1024"], ["--source", "openai"],
    ["--temperature", "1e-300"], ["--temperature", "1e300"], ["--K", "1_0"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", RIGHT, ids=" ".join)
def test_right_options_of_a_comparison(arguments, tmp_path):
    target = "tiny-target" if "--drafter=heads" in arguments else "tiny-draft"
    exits = ["--exit_layer=1"] * ("--drafter=early_exit" in arguments)
    result = run(*SMALL[2:], "--target_model_size", target, *arguments, *exits, cwd=tmp_path)
    assert result.returncode == 0 and result.stderr == "" and len(result.stdout) > 200


@pytest.mark.parametrize(("drafter", "rule"), sorted(set(itertools.product(DRAFTERS, RULES)) - set(FIT)))
def test_a_tree_needs_a_rule_for_trees(drafter, rule, tmp_path):
    result = run(*SMALL[2:], "--drafter", drafter, "--verifier", rule, cwd=tmp_path)
    refused(result)
    assert f"--drafter {drafter} needs a verifier that takes trees" in result.stderr


@pytest.mark.parametrize("command", EXPERIMENTS)
@pytest.mark.parametrize(
    "more", [[], ["--json"], ["--json", "a.json", "--plot", "a.svg"], ["--top_k", "3", "--seed", "1"]]
)
def test_right_options_of_the_experiments(command, more, tmp_path):
    small = [f"--{name}={value}" for name, value in small_options(command).items()]
    result = run(command, *small, *more, cwd=tmp_path)
    assert result.returncode == 0 and "Traceback" not in result.stderr and len(result.stdout) > 200
    assert len(list(tmp_path.iterdir())) == (2 if "a.json" in more else 0)


def small_options(command):
    """The fewest of everything, for a command."""
    options = {"target_model_size": "tiny-draft", "n_tokens_to_generate": "4", "n_prompts": "3", "max_K": "2"}
    options |= {"target_sizes": "tiny-draft", "exit_layer": "1", "prompts": "tales", "sizes": "tiny-draft,tiny-target"}
    options |= {"repeats": "1", "rows": "2", "strategies": "panels,rows", "tree_drafters": "model,recycling"}
    unused = {"bench": ("target_model_size", "n_prompts", "n_tokens_to_generate")}.get(command, ())
    if not {"drafters", "alpha_table", "method_table"} & {command}:
        unused = (*unused, "exit_layer")
    return {name: value for name, value in options.items() if name in COMMANDS[command].options and name not in unused}


# ------------------------------------------------------------------------------------------------ interruptions


def timeless(value):
    """A report without what a clock has measured."""
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items()}
    if isinstance(value, list):
        return [timeless(each) for each in value]
    return None if isinstance(value, float) else value


LONG = [*EXPERIMENTS, "museum", "bench"]


@needs_ctrl_c
@pytest.mark.parametrize("command", LONG)
def test_an_interrupted_command_resumes_to_the_same_result(command, tmp_path):
    """After one part, two, four, ...: what the sentence says is in the file, and the end is that of an unbroken run."""
    small = [f"--{name}={value}" for name, value in small_options(command).items()]
    path, whole = tmp_path / "a.json", tmp_path / "whole.json"
    assert run(command, *small, "--json", whole).returncode == 0
    expected, n_interrupted = json.loads(whole.read_text("utf-8")), 0
    for n_new in (1, 2, 4, 8, 16):
        before = json.loads(path.read_text("utf-8"))["parts"] if path.exists() else {}
        with process(command, *small, "--json", path, cwd=tmp_path) as child:
            lines = [child.stderr.readline() for _ in range(n_new)]
            child.send_signal(signal.SIGINT)
            _, rest = child.communicate(timeout=120)
        found, sentence = (
            json.loads(path.read_text("utf-8")),
            ("".join(lines) + rest).rpartition("main.py: interrupted; ")[2],
        )
        assert "Traceback" not in rest and found["parts"].items() >= before.items()
        if found["finished"]:
            assert child.returncode == 0 or sentence == f"all was measured, and the whole report is in {path}\n"
            break
        n, total = len(found["parts"]), len(expected["parts"])
        kept = f"{n} of {total} parts are in {path}, and the same command resumes from there\n"
        assert child.returncode == 130 and sentence == kept and n >= len(before) + n_new
        n_interrupted += 1
    before = json.loads(path.read_text("utf-8"))["parts"]
    result = run(command, *small, "--json", path)
    found = json.loads(path.read_text("utf-8"))
    assert result.returncode == 0 and n_interrupted >= 1 and found["parts"].items() >= before.items()
    assert list(found["parts"]) == list(expected["parts"]) and timeless(found["parts"]) == timeless(expected["parts"])
    if command in ("alpha_table", "museum"):  # these have no clock
        changing = {"checksum": 0, "load_average": 0}
        assert {**found, **changing} == {**expected, **changing}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json", "whole.json"]


@needs_ctrl_c
@pytest.mark.parametrize("command", [*LONG, "generate"])
@pytest.mark.parametrize("n_parts", [0, 1])
def test_without_a_file_the_sentence_says_that_all_is_lost(command, n_parts, tmp_path):
    if command == "generate" and n_parts:
        pytest.skip("a comparison has no parts")
    small = [f"--{name}={value}" for name, value in small_options(command).items()]
    with process(command, *small, cwd=tmp_path) as child:
        if n_parts:
            child.stderr.readline()
        elif command != "generate":
            sleep(1.2)
        else:
            child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    sentences = {
        "what was measured is lost: --json FILE.json keeps each part as soon as it is finished",
        "nothing was finished, so nothing is kept",
        "all was measured, and --json FILE.json would have kept the report",
    }
    last = errors.splitlines()[-1] if errors else ""
    assert "Traceback" not in errors and list(tmp_path.iterdir()) == []
    assert child.returncode in (0, -signal.SIGINT) or last.removeprefix("main.py: interrupted; ") in sentences
    if n_parts and child.returncode == 130:
        assert "nothing was finished" not in last
