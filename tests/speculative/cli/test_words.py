"""The words of a command line, its options and its help: what is understood, and what ends in one sentence."""

import json
import re
import sys
from types import ModuleType

import pytest
from command import refusal, run, run_here
from helpers import ROOT
from systems import needs_any_bytes, opening_a_folder, slashes

import gpt2np
import speculative
from speculative.cli import commands
from speculative.cli.commands import compare, generate
from speculative.cli.drafters import DRAFTERS, RULES
from speculative.cli.main import main
from speculative.cli.options import SHARED, Choice, Option, Written, flag, inches, number, tree, whole

FEW = ("--n_tokens_to_generate", "3", "--json")
NAMES = ["audit", "batch_table", "bench", "calibrate", "compare", "explore", "generate", "museum", "replay", "widths"]


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    "words",
    [
        ("--n-tokens-to-generate", "3", "--json"),
        ("--n_tokens_to_generate=3", "--json"),
        ("--n_t", "3", "--js"),  # the beginning of a name that no other name has
        ("generate", "--n_t", "3", "--json", "True"),
    ],
)
def test_names_of_options(words):
    assert run_here(*words).stdout.count('"n_tokens": 3') == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["calibrat"], "unknown command 'calibrat': did you mean calibrate?"),
        (["batch-table"], "unknown command 'batch-table': did you mean batch_table?"),
        ([""], "unknown command '': see --help for the commands"),
        (["Once", "upon", "a", "time"], "unknown command 'Once': did you mean --prompt \"Once upon a time\"?"),
        (["--temprature", "1"], "unknown option --temprature for generate: did you mean --temperature?"),
        (["--k", "1"], "unknown option --k for generate: did you mean --K?"),
        (["--noprompt"], "--prompt: expected a value"),
        (["calibrate", "--verifer", "block"], "unknown option --verifer for calibrate: "),
        (["museum", "--K", "3"], "unknown option --K for museum: see museum --help"),
        (["--dr", "ngram"], "--dr may be --draft_model_size or --drafter or --draft_temperature or --draft_tokenizer"),
        (["--K", "3", "prompts"], "unexpected 'prompts': options are --name value"),
        (["audit", "block"], "unexpected 'block': options are --name value, and a text of several words needs quotes"),
        (["museum", "a", "b"], "unexpected 'b'"),
        (["--K"], "--K: expected a value; write one that starts with a hyphen as --K='-...'"),
        (["--prompt", "--K", "4"], "--prompt: expected a value"),
        (["replay"], "replay: which file? Give one that --trace FILE.jsonl has written"),
        (["--drafter", "n-gram"], "--drafter: there is no 'n-gram': did you mean ngram?"),
        (["--top_p", "1" + 400 * "0"], "--top_p: expected a number, got '1000"),
        (["--seed", "9" * 5000], "--seed: expected a whole number of 0 or more, got '999"),
        (["--timings", "3"], "--timings: expected no value, got '3'"),
        (["--json="], "--json: expected a name that ends in .json, got ''"),
        (["--json", "x" * 5000 + ".json"], "--json: cannot write xxx"),
        (["x" * 5000], "unknown command 'xxxx"),
        (["a\033[31m\u202e"], r"unknown command 'a\x1b[31m\u202e'"),
        (["--target_model_size", "a\033[31m\nb"], r"--target_model_size: unknown model 'a\x1b[31m\nb'"),
        (["--drafter", "early_exit", "--exit_layer", "99"], "expected an exit after 1 to "),
        (["--drafter", "heads", "--target_model_size", "tiny-draft"], "--drafter heads: tiny-draft has no heads"),
        (["--drafter", "ngram", "--n_max", "9"], "--n_max and --corpus: expected n from 1 to 5 for 2048 tokens, so"),
        (["--drafter", "suffix", "--corpus", "tests"], f"--corpus: cannot read tests ({opening_a_folder()})"),
        (["--drafter", "eagle", "--frequent", "9999"], "--frequent: the target has 2048 tokens, got 9999"),
        (["--n_tokens_to_generate", "510"], "n_ctx is 512: generate at most 498 or shorten the prompt"),
        (["--prompt", "word " * 600], "n_ctx is 512: shorten the prompt"),
        (["--prompt_template", "### Human"], "--prompt_template: expected a text with {prompt} where the prompt goes"),
        (["--K=confidence", "--drafter=suffix"], "--K confidence needs a drafter with probabilities, got suffix: try"),
        (["--tree=2x2x2x2"], "this --tree has 4 levels: give --K 4, the depth limit"),
        (["--tree=4", "--verifier=block"], "--tree needs a verifier for trees (rejection, traversal, exact_match, gum"),
        (["--drafter=heads", "--verifier=block"], "--drafter heads needs a verifier for trees (rejection, traversal"),
        (["--tree=4", "--K=auto"], "--K auto chooses the length of a chain: for a tree give a number"),
        (["--tree=4", "--drafter=prompt_lookup"], "--tree is not for --drafter prompt_lookup"),
        (["--tree=auto", "--drafter=suffix"], "--tree: expected a number of nodes for --drafter suffix"),
        (["--drafter=forced"], "--drafter forced drafts nothing without --grammar"),
        (["--top_p=-1"], "expected a top_p above 0 and at most 1, got -1"),
        (["--min_p=2"], "expected a min_p from 0 to 1, got 2"),
        (["--repetition_penalty=0"], "expected a repetition_penalty above 0, got 0"),
        (["--corpus=README.md"], "--corpus: --drafter model counts --frequent tokens in it: give --frequent N as well"),
        (["--drafter=suffix", "--draft_temperature=0"], "--draft_temperature is for --drafter model or ngram or early"),
        (["--siblings=top"], "--siblings is for --tree: leave --siblings out"),
        (["--prompt=a", "--prompt_file=b"], "--prompt is for prompts without --prompt_file: leave --prompt out"),
    ],
)
def test_a_wrong_word_ends_in_one_sentence(words, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert slashes(message) in slashes(refusal(*words))


@pytest.mark.parametrize(("message", "end"), [("", "nothing is kept"), ("half is in a.json", "half is in a.json")])
def test_an_interruption_says_what_is_kept(message, end, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt(*filter(None, [message]))

    monkeypatch.setattr("speculative.cli.commands.museum.run", stopped)
    result = run_here("museum")
    assert result.returncode == 130 and result.stderr == f"main.py: interrupted; {end}\n"


def test_the_version_is_one():
    assert run_here("--version").stdout == f"speculative-decoding-numpy {gpt2np.__version__}\n"
    assert gpt2np.__version__ == speculative.__version__ and gpt2np.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'speculative' has no attribute '__versions__'"):
        _ = speculative.__versions__


@needs_any_bytes
def test_a_prompt_of_bytes_that_are_no_text():
    result = run("--prompt", b"caf\xe9", *FEW[:2])
    assert result.returncode == 0 and result.stderr == "" and re.search("^same text", result.stdout, re.M)


# ------------------------------------------------------------------------------------------------ options


def test_a_text_stays_a_text():
    for prompt in ("2010-10-10", "1e3", "[1, 2]", "None", "{}", "'quoted'", "a,b", "--K 4", "=", "a\nb", "-"):
        report = json.loads(run_here(f"--prompt={prompt}", "--n_tokens_to_generate=1", "--stop=1e3", "--json").stdout)
        assert (report["prompt"], report["stop"]) == (prompt, "1e3")
    assert "--corpus: cannot read 1e3 (" in refusal("--drafter=suffix", "--corpus=1e3")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (number(), "1e3", 1000.0), (number(), "0", 0), (whole(), "007", 7), (whole(1, words=("auto",)), "auto", "auto"),
        (flag, "True", True), (Written((".json",), or_none=True), "False", False), (Choice(("a", "b")), "a", "a"),
        (Written((".txt",)), "a.txt", "a.txt"), (tree, "0", 0), (tree, "12", 12), (tree, "auto", "auto"),
        (tree, "2x2x1", speculative.Shape.widths(2, 2, 1)), (inches, "3.3x2.5", (3.3, 2.5)),
    ],
)  # fmt: skip
def test_the_value_of_a_text(read, text, value):
    assert read(text) == value and type(read(text)) is type(value)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (whole(1), "0", "expected a whole number of 1 or more, got '0'"),
        (whole(1, 9), "10", "expected a whole number from 1 to 9, got '10'"),
        (whole(1, words=("auto", "some")), "four", "expected a whole number of 1 or more, or auto or some, got 'four'"),
        (whole(), "2.5", "expected a whole number of 0 or more, got '2.5'"),
        (number(least=0), "inf", "expected a number of 0 or more, got 'inf'"),
        (number(), "nan", "expected a number, got 'nan'"),
        (Choice(("hub", "openai")), "HUB", "there is no 'HUB': did you mean hub?"),
        (Choice(("hub", "openai")), "ftp", "expected one of hub, openai, got 'ftp'"),
        (Written((".png", ".pdf")), "a.gif", "expected a name that ends in .png or .pdf, got 'a.gif'"),
        (Written((".html",)), "nowhere/t.html", "cannot write nowhere/t.html (No such file or directory): name a file"),
        (tree, "2x0", "expected a number of nodes up to 256 (0: no tree), the number of children at each depth"),
        (tree, "16x16", "got '16x16'"), (tree, "-1", "got '-1'"), (tree, "2,2", "got '2,2'"), (tree, "", "got ''"),
        (inches, "0x3", "expected width and height in inches, from 1 to 50, such as 3.3x2.5, got '0x3'"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_value(read, text, message):
    with pytest.raises(ValueError) as caught:
        read(text)
    assert message in slashes(str(caught.value))


def test_plots_need_matplotlib(monkeypatch):
    monkeypatch.setattr("speculative.cli.options.find_spec", lambda name: None)
    assert refusal("compare", "--plot", "a.png") == (
        "--plot: a plot needs matplotlib, which is not installed: pip install matplotlib"
    )


# ------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_command(name):
    """Each option is explained, or named where the page of the program explains it; with its default; in 80 columns."""
    page = run_here(name, "--help").stdout
    module = sys.modules[f"speculative.cli.commands.{name}"]
    shown = dict(re.findall(r"^--(\w+)((?: .*)?(?:\n +.*)*)", page, re.M))
    also = set(re.findall(r"--(\w+)", page.partition("Also takes")[2].partition("\nSee")[0]))
    assert shown.keys() | also == module.OPTIONS.keys() and also <= generate.OPTIONS.keys()
    for option, text in shown.items():
        default = module.OPTIONS[option].default
        assert default in ("", None) or default is False or f"({default})" in " ".join(text.split())
    assert name == "compare" or max(map(len, page.splitlines())) <= 80
    assert run_here("help", name).stdout == page


def test_the_page_of_the_program_starts_with_ten_options_and_lists_the_commands():
    page = run_here("--help").stdout
    first = page.split("The ten to know first\n")[1].split("\n\n")[0]
    assert len(re.findall(r"^--", first, re.M)) == 10 and max(map(len, page.splitlines())) <= 80
    assert re.findall(r"^([a-z_]+) ", page.partition("\nCommands\n")[2], re.M)[: len(NAMES)] == NAMES
    for name, kind in (*DRAFTERS.items(), *RULES.items()):
        assert f" {name:14}{kind.help}" in re.sub(r"\n {20}(?! )", " ", page)
    assert "\n      2x2x1         the number of children at each depth\n" in page
    for words in (["help"], ["-h"], ["--K", "3", "--help"]):
        assert run_here(*words).stdout == page
    assert refusal("help", "calibrat") == "unknown command 'calibrat': did you mean calibrate?"


def test_the_program_is_called_as_it_was_started(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["speculative-decoding"])
    assert main(["replay", "--help"]) == 0
    text = capsys.readouterr().out
    assert "    speculative-decoding replay FILE.jsonl\n" in text and "main.py" not in text


def test_every_example_is_a_command_line(monkeypatch):
    """Of compare: its options can be read; the measuring itself is test_compare.py's."""
    monkeypatch.setattr("speculative.cli.options.brought", lambda given: given)
    monkeypatch.setattr("speculative.cli.options.check_writable", lambda given, suffixes: given)
    monkeypatch.setattr(compare, "run", lambda options, report: print("read"))
    monkeypatch.setattr("speculative.cli.main.Report.__init__", lambda *_: None)
    monkeypatch.setattr("speculative.cli.main.Report.__exit__", lambda *_: None)
    for example in compare.EXAMPLES:
        result = run_here("compare", *example.split())
        assert (result.stdout, result.stderr) == ("read\n", ""), example


# ------------------------------------------------------------------------------------------------ to add one


def test_a_command_is_a_file(monkeypatch):
    """As in CONTRIBUTING.md: a module in the folder is in the help, and runs; an option is an entry."""
    module = ModuleType("speculative.cli.commands.count", "How many prompts there are.")
    shout = Option("hi", "TEXT", Choice(("hi", "ho")), "what to shout")
    module.OPTIONS = {"shout": shout, "n_prompts": SHARED["n_prompts"], "json": SHARED["json"]}

    def run(options, report):
        n = report.keep("n", lambda: options.n_prompts)
        report.finish({"n": n}, f"{options.shout.upper()} {n} prompts on {report.where}\n")

    module.run = run
    found = [type("Found", (), {"name": name}) for name in (*NAMES, "count")]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(commands, "count", module, raising=False)
    monkeypatch.setattr("speculative.cli.main.iter_modules", lambda path: found)
    assert run_here("count").stdout.startswith("HI 12 prompts on ")
    assert run_here("count", "--n_prompts=7", "--sh", "ho").stdout.startswith("HO 7 prompts on ")
    assert refusal("count", "--shout=Hoo") == "--shout: there is no 'Hoo': did you mean ho?"
    page = run_here("count", "--help").stdout
    assert page.startswith("How many prompts there are.\n\n    python main.py count\n")
    assert "--shout TEXT            what to shout (hi)\n" in page and "--K" not in page
    assert "\ncount                   How many prompts there are.\n" in run_here("--help").stdout
