"""The words of a command line: what is understood, and what ends in one sentence and exit code 2."""

import re

import pytest
from command import refusal, run, run_here
from helpers import ROOT
from systems import needs_any_bytes, opening_a_folder, slashes

import gpt2np
import speculative
from speculative.cli.main import main

FEW = ("--n_tokens_to_generate", "3", "--json")
MANY = "1" + 400 * "0"  # a whole number beyond all floats


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
        (["gama_table"], "unknown command 'gama_table': did you mean gamma_table?"),
        (["gamma-table"], "unknown command 'gamma-table': did you mean gamma_table?"),
        ([""], "unknown command '': expected one of alpha_table, audit, batch_table, bench, "),
        (["Once", "upon"], "unknown command 'Once': expected one of alpha_table, "),
        (["--temprature", "1"], "unknown option --temprature for generate: did you mean --temperature?"),
        (["--k", "1"], "unknown option --k for generate: did you mean --K?"),
        (["--noprompt"], "unknown option --noprompt for generate: did you mean --prompt?"),
        (["calibrate", "--verifer", "block"], "unknown option --verifer for calibrate: "),
        (["museum", "--K", "3"], "unknown option --K for museum: see museum --help"),
        (
            ["--dr", "ngram"],
            "--dr may be --draft_model_size, --draft_temperature, --draft_tokenizer or --drafter: ",
        ),
        (["--", "--interactive"], "unexpected '--': a command comes first, options are --name value"),
        (["--K", "3", "--", "--completion"], "unexpected '--'"),
        (["--K", "3", "-", "foo"], "unexpected '-'"),
        (["-K", "3"], "unexpected '-K'"),
        (["---K", "3"], "unexpected '---K'"),
        (["--K", "3", "prompts"], "unexpected 'prompts': a command comes first"),
        (["audit", "block"], "unexpected 'block': a command comes first, options are --name value"),
        (["--K"], "--K needs a value; write one that starts with a hyphen as --K='-...'"),
        (["--prompt", "--K", "4"], "--prompt needs a value"),
        (["replay"], "replay takes a file: replay t.jsonl"),
        (["--drafter", "n-gram"], "--drafter: there is no 'n-gram': did you mean ngram?"),
        (["--top_p", MANY], "--top_p: expected a number, got a number beyond 1.8e308"),
        (["--seed", "9" * 5000], "--seed: expected a whole number of 0 or more, got inf"),
        (["--json="], "--json: expected a name that ends in .json, got ''"),
        (["--json", "x" * 5000 + ".json"], "--json: cannot write xxx"),
        (["x" * 5000], "unknown command 'xxxx"),
        (["a\033[31m\u202e"], r"unknown command 'a\x1b[31m\u202e'"),
        (["--target_model_size", "a\033[31m\nb"], r"--target_model_size: unknown model 'a\x1b[31m\nb'"),
        (["--drafter", "early_exit", "--exit_layer", "99"], "expected an exit after 1 to "),
        (
            ["--drafter", "heads", "--target_model_size", "tiny-draft"],
            "--drafter heads: tiny-draft has no heads: expected",
        ),
        (
            ["--drafter", "ngram", "--n_max", "9"],
            "--n_max and --corpus: expected n from 1 to 5 for 2048 tokens, so that",
        ),
        (["--drafter", "suffix", "--corpus", "tests"], f"--corpus: cannot read tests ({opening_a_folder()})"),
        (["--drafter", "ngram", "--ngram_table", "README.md"], "README.md is not a table of n-grams"),
        (["--drafter", "ngram", "--ngram_table", "tests"], f"--ngram_table: cannot read tests ({opening_a_folder()})"),
        (["--n_tokens_to_generate", "510"], "n_ctx is 512: generate at most 498 or shorten the prompt"),
        (["--prompt", "word " * 600], "n_ctx is 512: shorten the prompt"),
    ],
)
def test_a_wrong_word_ends_in_one_sentence(words, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert slashes(message) in slashes(refusal(*words))


@pytest.mark.parametrize(("message", "end"), [("", "nothing is kept"), ("half is in a.json", "half is in a.json")])
def test_an_interruption_says_what_is_kept(message, end, monkeypatch, capsys):
    def stopped(*_):
        raise KeyboardInterrupt(*filter(None, [message]))

    monkeypatch.setattr("speculative.cli.main.call", stopped)
    assert main(["museum"]) == 130 and capsys.readouterr().err.endswith(f": interrupted; {end}\n")


def test_the_version_is_one():
    assert run_here("--version").stdout == f"speculative-decoding-numpy {gpt2np.__version__}\n"
    assert gpt2np.__version__ == speculative.__version__ and gpt2np.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'speculative' has no attribute '__versions__'"):
        _ = speculative.__versions__


@needs_any_bytes
def test_a_prompt_of_bytes_that_are_no_text():
    result = run("--prompt", b"caf\xe9", *FEW[:2])
    assert result.returncode == 0 and result.stderr == "" and re.search("^same text", result.stdout, re.M)
