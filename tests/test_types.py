"""What an editor shows in a user's file: pyright in basic mode, with these packages installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT

import gpt2np
import speculative
from speculative import testing

pytestmark = pytest.mark.peers
USES = (ROOT / "tests" / "shared" / "users_file.py").read_text(encoding="utf-8")
MISTAKES = {  # a line, or a few, with one mistake -> a part of the message
    'SpeculativeSampler(target, ModelDrafter(draft_model), K="four")': '"K"',
    'fast.generate("Once upon a time", 10)': '"prompt"',
    'target("Once upon a time")': '"tokens"',
    'tokenizer.decode("Once upon a time")': '"tokens"',
    'fast.generate(tokens, 10, stop="the end")': '"stop"',
    "fast.generate(tokens, 1).stats.acceptence": '"acceptence"',
    'AutoregressiveSampler(gpt2np.load("tiny-target"))': '"tuple[GPT2, Tokenizer]"',
    "SpeculativeSampler(target, ModelDrafter)": '"drafter"',
    "TreeDrafter(TableModel.random(3), Shape.widths(2))": '"TreeModel"',
    'TreeDrafter(target, Shape.widths(2), siblings="best")': '"siblings"',
    "from speculative import ModelDraftr": '"ModelDraftr"',
    """
class Lists:
    def propose(self, tokens: list[int], K: int, rng: RandomSource) -> list[int]:
        return tokens[-1:]

SpeculativeSampler(target, Lists())
""": '"Drafter"',
    """
def two_parameters(draft: Draft, target_probs: np.ndarray) -> Verdict:
    return Verdict(0, int(target_probs[0].argmax()))

check_verifier(two_parameters)
""": '"Verifier"',
}
ARRAY = "ndarray[tuple[Any, ...], dtype[Any]]"
TYPES = {
    'gpt2np.load("tiny-target")': "tuple[GPT2, Tokenizer]",
    "target(tokens)": ARRAY,
    "target.n_vocab": "int",
    "target.n_ctx": "int",
    "tokenizer.end_of_text": "int | None",
    "fast.generate(tokens, 1)": "Generation",
    "fast.generate(tokens, 1).stats": "Stats",
    "next(fast.rounds(tokens, 1))": "Round",
    "next(fast.rounds(tokens, 1)).target_probs": f"{ARRAY} | Any",  # None without keep_probs
    "fast.target": "LanguageModel",
    "fast.drafter": "Drafter",
    "together[0]": "Generation | Any",  # or an exception
    "found": "dict[Any, float]",
    "check_verifier(rejection)": "str",
}


def messages(programs, folder):
    """For each of these programs the (severity, message) of pyright, which finds the packages as if installed."""
    pytest.importorskip("pyright", reason="pip install -e '.[peers]'")
    packages = folder / "installed" / ("Lib" if os.name == "nt" else f"lib/python3.{sys.version_info.minor}")
    (packages / "site-packages").mkdir(parents=True)
    paths = f"{ROOT}\n{Path(np.__file__).parents[1]}\n"  # NumPy may be in a folder with other packages
    (packages / "site-packages" / "paths.pth").write_text(paths, encoding="utf-8")
    settings = {"typeCheckingMode": "basic", "venvPath": ".", "venv": "installed"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    for i, program in enumerate(programs):
        (folder / f"program_{i}.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(folder)]
    report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert report["summary"]["filesAnalyzed"] == len(programs)
    found = [[] for _ in programs]
    for entry in report["generalDiagnostics"]:
        found[int(Path(entry["file"]).stem.removeprefix("program_"))].append((entry["severity"], entry["message"]))
    return found


def test_documented_uses_have_no_error_and_each_mistake_has_one(tmp_path):
    right, *wrong = messages([USES, *(f"{USES}\n{mistake}\n" for mistake in MISTAKES)], tmp_path)
    assert right == []
    for (mistake, part), found in zip(MISTAKES.items(), wrong, strict=True):
        errors = [message for severity, message in found if severity == "error"]
        assert len(errors) == 1 and part in errors[0], (mistake, errors)


def test_results_have_types(tmp_path):
    [found] = messages([USES + "".join(f"reveal_type({expression})\n" for expression in TYPES)], tmp_path)
    assert [message for _, message in found] == [f'Type of "{code}" is "{kind}"' for code, kind in TYPES.items()]


def test_the_uses_have_the_whole_public_face():
    for package in (gpt2np, speculative, testing):
        assert [name for name in package.__all__ if not re.search(rf"\b{name}\b", USES)] == []
