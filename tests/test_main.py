"""The command line from outside: every test runs `python main.py` as a process."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from conftest import ROOT

FEW = ("--n_tokens_to_generate", "12")


def run(*arguments, **options):
    command = [sys.executable, ROOT / "main.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, **options)


def report(*arguments):
    result = run("--json", *arguments)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return json.loads(result.stdout)


def texts(output):
    """The two generated texts of a printed page."""
    blocks = output.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    return re.findall(r"(?:^|\n\n)(?:autoregressive|speculative)\n(.*?)\n\d+ tokens in", blocks, re.S)


def test_the_page_and_the_json_say_the_same():
    page, data = run(), report()
    assert page.returncode == 0 and page.stderr == "" and "\033" not in page.stdout
    assert texts(page.stdout) == [data["prompt"] + data[name]["text"] for name in ("autoregressive", "speculative")]
    result = data["speculative"]
    assert (
        f"target calls  {result['target_calls']} instead of 120, {120 / result['target_calls']:.2f} tokens per call"
        in page.stdout
    )
    assert f"accepted      {result['accepted']} of {result['drafted']} drafted tokens" in page.stdout
    assert f"by position   1: {result['acceptance_by_position'][0]:.0%}  2: " in page.stdout
    assert "same text     yes, all 120 tokens" in page.stdout
    assert len(re.findall(r"120 tokens in \d+\.\d\d s, \d+\.\d tokens per second", page.stdout)) == 2
    assert re.search(r"^speedup       \d+\.\d\d$", page.stdout, re.M)


def test_the_figures_of_the_json_fit_together():
    data = report("--K", "3")
    ordinary, result = data["autoregressive"], data["speculative"]
    assert data["same_tokens"] is True and ordinary["tokens"] == result["tokens"] and len(result["tokens"]) == 120
    assert ordinary["target_calls"] == 120 and ordinary["drafted"] == 0 and set(ordinary["origins"]) == {"plain"}
    assert result["accepted"] == result["origins"].count("accepted") == sum(result["accepted_by_position"])
    assert result["target_calls"] == 120 - result["accepted"] and len(result["drafted_by_position"]) == 3
    assert result["drafted"] == sum(result["drafted_by_position"])
    assert data["speedup"] == ordinary["seconds"] / result["seconds"]
    assert sum(result["seconds_by_part"].values()) <= result["seconds"]
    assert result["tokens_per_second"] == 120 / result["seconds"]
    assert (data["K"], data["exactness"], data["target"]["name"]) == (3, "exact", "tiny-target")


def test_one_seed_one_text():
    a, b, c = (report("--temperature", "1", "--seed", seed, *FEW) for seed in ("1", "1", "2"))
    assert a["speculative"]["tokens"] == b["speculative"]["tokens"] != c["speculative"]["tokens"]
    assert a["autoregressive"]["tokens"] == b["autoregressive"]["tokens"] != c["autoregressive"]["tokens"]
    assert "same text" not in run("--temperature", "1", *FEW).stdout


@pytest.mark.parametrize(
    "prompt", ["2010-10-10", "007", "1e3", "[1, 2]", "None", "True", "{}", "1_000", "'quoted'", "a,b"]
)
def test_a_prompt_stays_text(prompt):
    assert report("--prompt", prompt, *FEW)["prompt"] == prompt
    assert texts(run("--prompt", prompt, *FEW).stdout)[0].startswith(prompt)


def test_a_prompt_that_begins_with_a_hyphen():
    assert report("--prompt=--K 4", *FEW)["prompt"] == "--K 4"


def test_an_empty_prompt_starts_from_end_of_text():
    assert report("--prompt", "", *FEW)["prompt_tokens"] == 1
    assert texts(run("--prompt", "", *FEW).stdout)[1].startswith("<|endoftext|>")


def test_a_prompt_of_bytes_that_are_no_text():
    result = run("--prompt", b"caf\xe9", *FEW)
    assert result.returncode == 0 and result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--K", "0"], "--K: expected a whole number of 1 or more, got 0"),
        (["--K", "2.5"], "--K: expected a whole number of 1 or more, got 2.5"),
        (["--K", "four"], "--K: expected a whole number of 1 or more, got 'four'"),
        (["--K"], "--K: expected a whole number of 1 or more, got True"),
        (["--temperature", "-0.1"], "--temperature: expected a number of 0 or more, got -0.1"),
        (["--temperature", "1e999"], "--temperature: expected a number of 0 or more, got inf"),
        (["--n_tokens_to_generate", "0"], "--n_tokens_to_generate: expected a whole number of 1 or more, got 0"),
        (["--seed", "-1"], "--seed: expected a whole number of 0 or more, got -1"),
        (
            ["--verifier", "[1]"],
            "--verifier: expected one of rejection, block, exact_match, gumbel, lenient, typical, got '[1]'",
        ),
        (["museum", "--K", "3"], "unknown option --K"),
        (["museum", "block"], "unexpected 'block'"),
        (["--json=yes"], "--json takes no value, got 'yes'"),
        (["--n_tokens_to_generate", "510"], "n_ctx is 512: generate at most 499 or shorten the prompt"),
        (["--prompt", "word " * 600], "n_ctx is 512: shorten the prompt"),
        (["--prompt"], "--prompt needs a value"),
        (["--prompt", "--K", "4"], "--prompt needs a value"),
        (["--target_model_size", "125M"], "unknown model '125M': expected tiny-target, tiny-draft, 124M"),
        (["--target_model_size", "tests"], "tests lacks config.json and model.safetensors"),
        (["--target_model_size", "tests/golden"], "tests/golden lacks vocab.json with merges.txt"),
        (
            ["--draft_model_size", "124M", "--target_model_size", "355M", "--K", "4"],
            "the model 355M is not here yet: put",
        ),
        (["--temprature", "1"], "unknown option --temprature: python main.py --help lists the options"),
        (["Once", "upon"], "unexpected 'Once': options are --name value"),
    ],
)
def test_bad_input_ends_in_one_sentence(arguments, message):
    result = run(*arguments, cwd=ROOT)
    assert result.returncode == 2 and result.stdout == ""
    assert message in result.stderr and result.stderr.count("\n") == 1 and result.stderr.startswith("main.py: ")


def test_two_models_without_a_common_vocabulary(tmp_path):
    """A pair of folders, told apart by nothing but two tokens that are swapped."""
    from gpt2np.load import find_folder

    source = find_folder("tiny-draft", None)
    for name in ("config.json", "merges.txt", "model.safetensors"):
        (tmp_path / name).symlink_to(source / name)
    vocabulary = json.loads((source / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["!"], vocabulary['"'] = vocabulary['"'], vocabulary["!"]
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    result = run("--draft_model_size", tmp_path)
    assert result.returncode == 2
    assert f"tiny-target and {tmp_path} have no common vocabulary" in result.stderr


@pytest.mark.parametrize("verifier", ["rejection", "block", "exact_match", "gumbel", "lenient", "typical"])
def test_every_verifier_gives_the_greedy_text_at_temperature_0(verifier):
    data = report("--verifier", verifier, *FEW)
    assert data["same_tokens"] is True and data["verifier"] == verifier
    assert data["exactness"] == ("LOSSY" if verifier in ("lenient", "typical") else "exact")


def test_gumbel_gives_one_text_at_any_temperature():
    first, second = (run("--verifier", "gumbel", "--temperature", "0.8", "--seed", seed, *FEW).stdout for seed in "12")
    for page in (first, second):
        assert texts(page)[0] == texts(page)[1] and "same text     yes, all 12 tokens" in page
    assert texts(first) != texts(second)


def test_a_lossy_rule_says_so():
    assert "law           LOSSY" in run("--verifier", "typical", "--temperature", "1", *FEW).stdout
    assert "LOSSY" not in run("--temperature", "1", *FEW).stdout


def test_the_museum():
    page, data = run("museum"), json.loads(run("museum", "--json").stdout)
    assert page.returncode == 0 and page.stderr == "" and len(data) >= 20
    for row in data:
        line = next(line for line in page.stdout.splitlines() if line.startswith(row["mistake"] + "  "))
        assert line.split()[-2:] == [f"{row['law_error']:.2g}", row["check"]]
        assert row["what"] in page.stdout and row["seen"] in page.stdout and row["message"]
    assert "NOT CAUGHT" not in page.stdout


def test_help_explains_every_option():
    import inspect

    import main

    page = run("--help")
    assert page.returncode == 0 and page.stderr == ""
    for name, parameter in inspect.signature(main.compare).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            line = re.search(rf"^--{name} .*(?:\n +.*)*", page.stdout, re.M).group()
            default = "" if name in ("prompt", "json") else f"({parameter.default})"
            assert default in line, line


def terminal(*arguments, **environment):
    """What `python main.py` writes to a terminal."""
    main_end, process_end = pty.openpty()
    command = [sys.executable, ROOT / "main.py", *arguments]
    environment = {**os.environ, "TERM": "xterm", **environment}
    with subprocess.Popen(command, stdout=process_end, stderr=process_end, env=environment):
        os.close(process_end)
        written = b""
        try:
            while chunk := os.read(main_end, 4096):
                written += chunk
        except OSError:  # the other end is closed
            pass
    os.close(main_end)
    return written.decode().replace("\r\n", "\n")


def test_on_a_terminal_the_text_is_coloured_by_origin():
    data = report("--temperature", "1", *FEW)
    output = terminal("--temperature", "1", *FEW)
    colours = {"accepted": "32", "correction": "31", "bonus": "34"}
    painted = re.findall(r"\033\[(3[124])m", output.split("\nspeculative (")[1].split("\n", 1)[1])
    expected = [colours[origin] for origin in data["speculative"]["origins"] if origin != "plain"]
    assert painted == expected and set(expected) >= {"31", "32"}
    assert re.sub(r"\033\[\d+m", "", output).count(data["speculative"]["text"]) == 1


def test_no_colours_where_they_are_not_wanted():
    assert "\033" not in terminal(*FEW, NO_COLOR="1") and "\033" not in terminal(*FEW, TERM="dumb")


def test_the_reader_may_leave_early():
    command = f"{sys.executable} {ROOT / 'main.py'} | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert result.stdout.startswith("target ") and result.stderr == ""


def test_a_terminal_without_the_characters():
    result = run("--prompt", "naïve 世界", *FEW, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0 and "na?ve ??" in result.stdout
