"""The comparison of one text: its gain, its colours. What it prints and reports is in pages/generate.txt."""

import io
import re
import shutil
from pathlib import Path

import pytest
from command import row_of, run_here

import gpt2np
from gpt2np.files.loading import find_folder
from speculative import ModelDrafter, RecyclingDrafter, Sampling, Shape, SpeculativeSampler
from speculative.cli.drafters import DRAFTERS, RULES
from speculative.cli.options import Options
from speculative.measuring.page import same_text

FEW = ("--n_tokens_to_generate", "12")


@pytest.mark.parametrize(
    ("option", "name"),
    [*(("drafter", name) for name in DRAFTERS if name != "forced"), *(("verifier", name) for name in RULES)],
)
def test_every_drafter_and_every_rule_gives_the_targets_greedy_text(option, name):
    row = row_of(f"--{option}={name}", *FEW)
    assert row["same_texts"] == row["n_texts"] and len(row["tokens"][1]) == 12
    of_a_model = option == "verifier" or name in ("model", "heads", "eagle", "parallel")
    assert ("parameters" in row["draft"]) == of_a_model and row["exactness"] == RULES[
        name if option == "verifier" else "rejection"
    ].exactness


def test_where_two_texts_differ():
    assert same_text([5, 6, 7], [5, 7, 7]) == "no, they differ from token 2 of 3 on"


def test_what_a_drafter_learns_while_a_comparison_warms_up_is_not_in_its_counts():
    """The prompt goes on as the target does after its first token, and so as the tokens of a warm-up might."""
    prompt = "Once upon a time a man who had a daughter, and had a daughter, and a daughter, who was a daughter, and"
    row = row_of("--prompt", prompt, "--drafter", "recycling", "--n_tokens_to_generate", "30")
    target, tokenizer = gpt2np.load("tiny-target")
    drafter = RecyclingDrafter(target.n_vocab, Shape.chain(3))
    sampler = SpeculativeSampler(target, drafter, K=3, sampling=Sampling(0))
    stats = sampler.generate(tokenizer.encode(prompt), 30, 0).stats
    assert (row["drafted"], row["accepted"]) == (stats.drafted, stats.accepted)


# ------------------------------------------------------------------------------------------------ the terminal


@pytest.fixture
def terminal(monkeypatch):
    """A function: what a command writes to a terminal."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def written(*arguments):
        result = run_here("--temperature=1", *FEW, *arguments)
        assert result.stderr == ""  # no progress bar in the text
        return result.stdout

    monkeypatch.setattr(io, "StringIO", Terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return written


def test_on_a_terminal_the_text_is_coloured_by_origin(terminal, monkeypatch):
    (target, tokenizer), (draft, _) = gpt2np.load("tiny-target"), gpt2np.load("tiny-draft")
    sampler = SpeculativeSampler(target, ModelDrafter(draft), K=3)
    generation, output = sampler.generate(tokenizer.encode(Options.prompt[0]), 12, 0), terminal()
    colours = {"accepted": "32", "correction": "31", "bonus": "34"}
    painted = re.findall(r"\033\[(3[124])m", output.partition("\nspeculative")[2].split("\n", 1)[1])
    expected = [colours[origin] for r in generation.rounds for origin in r.origins if origin != "plain"]
    assert painted == expected and set(expected) >= {"31", "32"}
    assert re.sub(r"\033\[\d+m", "", output).count(tokenizer.decode(generation.tokens)) == 1
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert "\033" not in terminal()


def test_the_rounds_on_a_terminal(terminal):
    output = terminal("--show=rounds")
    assert "accepted\033[0m, \033[9;31mrejected\033[0m, \033[31mcorrection" in output
    rounds = re.findall(r"^ +\d+  (\d)/(\d) accepted  \|(.*)$", output, re.M)
    assert sum(int(accepted) + 1 for accepted, _, _ in rounds) == 12
    for accepted, drafted, line in rounds:
        assert line.count("\033[32m") == int(accepted) and line.count("9;31m") == (accepted < drafted)


def test_a_special_token_is_not_text():
    """A comma as a special token: it ends a text as a whole, and no stop text and no grammar contains it."""
    shutil.copytree(find_folder("tiny-target", None), "chat")
    Path("chat/special_tokens_map.json").write_text('{"pad_token": ","}')

    def text(*options):
        words = ("--target_model_size=chat", "--drafter=prompt_lookup", "--prompt=Once upon a time", *FEW)
        return row_of(*words, *options)["texts"][1]

    whole = text()
    assert whole.count(", ") == 1 and text("--stop", ", ") == whole
    assert text("--stop", ",") == whole.split(",")[0]
    assert "," not in text("--grammar", "[^b]+")
