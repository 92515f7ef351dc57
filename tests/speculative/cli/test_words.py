"""The words of a command line, its options and its help. What is refused is in refusals.txt."""

import re
from importlib import import_module

import pytest
from command import refusal, report_of, row_of, run_here

import gpt2np
import speculative
from speculative.cli import words as read_words
from speculative.cli.commands import compare, generate
from speculative.cli.options import defaults_of, entries_of

NAMES = ["compare", "explore", "generate", "museum", "train"]


@pytest.mark.parametrize(
    "line",
    [
        "--n-tokens-to-generate 3 --json",
        "--n_tokens_to_generate=3 --json --temp=0",
        "--n_tokens_to_g 3 --js",  # without the end of the last word
        "generate --max-new-tokens 3 --json True",
    ],
)
def test_names_of_options(line):
    assert run_here(*line.split()).stdout.count('"n_tokens": 3') == 1


def test_the_version_is_one():
    assert run_here("--version").stdout == f"speculative-decoding-numpy {gpt2np.__version__}\n"
    assert gpt2np.__version__ == speculative.__version__ and gpt2np.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'speculative' has no attribute '__versions__'"):
        _ = speculative.__versions__


def test_a_text_stays_a_text():
    """Also bytes that are no text, which arrive as surrogates; they can be printed."""
    texts = ("2010-10-10", "1e3", "[1, 2]", "None", "{}", "'quoted'", "a,b", "--K 4", "=", "a\nb", "-", "caf\udce9")
    few = ("--n_tokens_to_generate=1", "--target_model_size=tiny-draft", "--drafter=prompt_lookup")
    for prompt in texts:
        report = report_of(f"--prompt={prompt}", "--stop=1e3", *few)
        assert (report["rows"][0]["prompt"], report["options"]["--stop"]) == (prompt, ["1e3"])
    assert b"\nsame text" in run_here(f"--prompt={prompt}", "--json=False", *few).stdout.encode("utf-8")


def test_what_needs_a_package_says_so(monkeypatch):
    monkeypatch.setattr("speculative.cli.values.find_spec", lambda name: None)
    need = "--plot: a plot needs matplotlib, which is not installed: pip install matplotlib"
    assert refusal("compare", "--plot", "a.png") == need


def test_every_word_of_another_program_is_known_once():
    """And a command with all those that change nothing runs, with one line about them."""
    entries = entries_of(generate)
    names = [*(read_words.plain(name) for entry in entries.values() for name in entry.also), *read_words.SPELLED]
    assert len(names) == len({*names}) and not {*names} & entries.keys()
    words = [f"--{name}=0" for name in read_words.SPELLED]
    result = run_here(*words, "--max-new-tokens", "3", "--drafter=prompt_lookup")
    assert result.returncode == 0 and result.stderr.count("\n") == 1
    assert "-t, --do_sample: no effect here; the temperature is --temperature" in result.stderr


def test_a_prompt_as_llama_cpp_reads_it():
    few = ("-n", "2", "--drafter=prompt_lookup")
    for words in (("-p", r"a\nb"), ("--prompt", r"a\nb", "-e")):
        assert row_of(*words, *few)["prompt"] == "a\nb"
    assert row_of("--prompt", r"a\nb", *few)["prompt"] == r"a\nb"


# ------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_command(name):
    """Each option is explained, or named where the page of the program explains it; with its default; in 80 columns."""
    words = ["--help", "all"] if name == "generate" else [name, "--help"]
    page, module = run_here(*words).stdout, import_module(f"speculative.cli.commands.{name}")
    options, explained = entries_of(module), page.partition("\nNames in other programs\n")[0]
    shown = dict(re.findall(r"^--(\w+)((?: .*)?(?:\n +.*)*)", explained, re.M))
    also = set(re.findall(r"--(\w+)", page.partition("Also takes")[2].partition("\nSee")[0]))
    assert shown.keys() | also == options.keys() and also <= entries_of(generate).keys()
    for shown_name, text in shown.items():
        default = getattr(defaults_of(module), shown_name)
        default = default[0] if isinstance(default, tuple) and default else default
        assert default in ("", None, ()) or default is False or f"({default})" in " ".join(text.split())
    assert name == "compare" or max(map(len, page.splitlines())) <= 80
    assert run_here("help", "all" if name == "generate" else name).stdout == page


def test_the_first_page_fits_on_a_screen():
    page = run_here("--help").stdout
    assert page.count("\n") <= 30 and max(map(len, page.splitlines())) <= 80 and "--help all" in page
    assert len(re.findall(r"^--", page, re.M)) == 10


def test_other_ways_to_ask_for_the_page_of_the_program():
    for words in (["help"], ["-h"], ["--K", "3", "--help"]):
        assert run_here(*words).stdout == run_here("--help").stdout


def test_every_example_is_a_command_line(monkeypatch):
    """Of compare: its options can be read; the measuring itself is test_compare.py's."""
    monkeypatch.setattr("speculative.cli.values.brought", lambda given: given)
    monkeypatch.setattr("speculative.cli.values.check_writable", lambda given, suffixes: given)
    monkeypatch.setattr(compare, "run", lambda options: print("read"))
    for example in compare.EXAMPLES:
        result = run_here("compare", *example.split())
        assert (result.stdout, result.stderr) == ("read\n", ""), example


def test_an_option_that_may_be_given_twice():
    assert row_of("--stop=queen", "--stop", ",", "--n_tokens_to_generate=9")["texts"][1] == ","
    page = run_here("--prompt=a b", "c d", "--n_tokens_to_generate=3", "--drafter=prompt_lookup").stdout
    assert page.count("\na b") == page.count("\nc d") == 2 and "same text     2 of 2 texts" in page
    first, second, both = report_of("--prompt=a b", "c d", "--n_tokens_to_generate=3")["rows"]
    assert (first["by"], second["prompt"], both["by"], both["n_texts"]) == ("1 a b", "c d", "all", 2)
    with_trace = ("--prompt=a", "--prompt=b", "--trace=t.html", "--drafter=prompt_lookup")
    assert refusal(*with_trace) == "--trace is for one prompt, got 2"
