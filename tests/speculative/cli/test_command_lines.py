"""Thousands of command lines, right and wrong, as a script would try them.

A wrong one ends with exit code 2 in one sentence, and before anything is measured. Nothing here downloads.
"""

import os
import random
import re
import sys
from importlib import import_module
from pkgutil import iter_modules
from subprocess import CompletedProcess

import pytest
from command import refused, run_here

from speculative.cli import commands
from speculative.cli.drafters import DRAFTERS, RULES
from speculative.cli.main import main
from speculative.cli.options import entries_of
from speculative.cli.values import Choice, Written

pytestmark = pytest.mark.slow
MODULES = {found.name: import_module(f"{commands.__name__}.{found.name}") for found in iter_modules(commands.__path__)}
TEXTS = """some nan inf -1 1e999 None [1] True 0x10 1,2 \u0663x \033[31m 2.5 -0 0 Auto model,nothing Model , a a.gif
nowhere/a.jsonl /proc/a.jsonl / .. \033/a.jsonl a.py:b .py: - -- é世\u202e 1- 2x {}"""
NONSENSE = [*TEXTS.split(), "", "a\nb", "9" * 4400, "x" * 300, "x" * 300 + ".json"]
NEVER = {
    Choice: {"", "some", "x" * 300, "model,nothing", "\033[31m"},
    Written: {"", "a", "a.gif", "nowhere/a.jsonl", ".."},
}
PAIRS = [(command, name) for command, module in MODULES.items() for name in entries_of(module)]


@pytest.mark.parametrize(("command", "name"), PAIRS)
def test_nonsense_for_every_option(command, name, monkeypatch, capsys):
    """What can be read is a value; for all else there is a sentence, and no file is left."""
    monkeypatch.setattr(sys, "argv", ["main.py"])
    monkeypatch.setattr(MODULES[command], "run", lambda options: None)
    refusals = set()
    for value in NONSENSE:
        code = main([command, f"--{name}={value}"])
        result = CompletedProcess(value, code, *capsys.readouterr())
        assert code in (0, 2) and (code == 2 or result.stderr == ""), result
        if code == 2:
            assert refused(result).startswith(f"--{name}") or name == "json"
            refusals.add(value)
    assert os.listdir() == []
    assert NEVER.get(type(entries_of(MODULES[command])[name].read), set()) <= refusals


SOME = """
K=1|2,7|200|auto|heuristic|confidence|1-3 temperature=0|0.7|0,1|1e-300|1e300 tree=0|4|2x1|0,3 siblings=drawn|top
draft_temperature=0|2 n_max=1|5|99 exit_layer=1|9 frequent=0|500 draft_tokenizer=shared|text top_k=1|5 top_p=0.5
min_p=0.2 repetition_penalty=1.3 presence_penalty=1 no_repeat_ngram_size=1|2 min_tokens=2 grammar=[a-z]{2,9}|(|a{3}
stop=a|the prompts=known|repeating n_prompts=1|2 seed=999999999999999999999 by=prompt best=K show=rounds
json=True|a.jsonl csv=t.csv plot=t.svg trace=t.html|t.jsonl timings=True target_model_size=tiny-draft
draft_model_size=tiny-target|tiny-draft
"""


def random_line(rng):
    """The words of a command line of a few options, of which most are valid by themselves."""
    some = {name: values.split("|") for name, values in (line.split("=") for line in SOME.split())}
    some |= {
        "prompt": ["", "-1", "[1, 2]", "word " * 600],
        "drafter": [*DRAFTERS, "all"],
        "verifier": [*RULES, "block,gumbel"],
    }
    command = rng.choice(["compare", "generate"])
    fewest = ["--n_prompts=2"] if command == "compare" else []
    names = [name for name in some if name in entries_of(MODULES[command]) and f"--{name}=2" not in fewest]
    chosen = rng.sample(names, rng.randint(0, 4))
    return [command, "--n_tokens_to_generate=4", *fewest, *(f"--{name}={rng.choice(some[name])}" for name in chosen)]


@pytest.mark.parametrize("seed", range(12))
def test_random_lines_end_in_a_page_or_in_one_sentence(seed):
    rng = random.Random(seed)
    for _ in range(15):
        for file in os.listdir():
            os.unlink(file)
        result = run_here(*random_line(rng))
        notes = [
            line for line in result.stderr.splitlines() if not re.match("note: left out|note: .* has no effect", line)
        ]
        assert result.returncode in (0, 2) and len(notes) == (result.returncode == 2), result
        assert "Traceback" not in result.stderr and (result.returncode == 2 or len(result.stdout) > 200), result
