"""The documented uses have types that an editor accepts: pyright in basic mode finds no error in them."""

import json
import subprocess
import sys

import pytest
from helpers import ROOT

pytestmark = pytest.mark.peers
USES = """
import numpy as np

import gpt2np
from speculative import (
    AutoregressiveSampler, Draft, Drafter, Gumbel, Heuristic, LanguageModel, ModelDrafter, Sampler, Sampling,
    Shape, SpeculativeSampler, StopText, TreeDrafter, Typical, Verdict, Verifier, block, exact_distribution,
    exact_match, rejection,
)
from speculative.testing import TableModel, check_verifier

target, tokenizer = gpt2np.load("tiny-target")
draft_model, _ = gpt2np.load("tiny-draft")
model: LanguageModel = target
drafter: Drafter = ModelDrafter(draft_model)
exact: Verifier = rejection
lossy: Verifier = Typical()


def sampling(logits: np.ndarray, tokens: list[int]) -> np.ndarray:
    return Sampling(0.5)(logits)


def my_verifier(draft: Draft, target_probs: np.ndarray, rng) -> Verdict:
    return Verdict(len(draft.tokens), int(rng.choice(3, p=target_probs[-1])))


sampler: Sampler = SpeculativeSampler(target, drafter, K=Heuristic(1, 8), sampling=sampling, verifier=block)
SpeculativeSampler(target, TreeDrafter(draft_model, Shape.best(4, [0.6, 0.3])), K=2, verifier=exact_match)
generation = SpeculativeSampler(target, drafter, K=4).generate(
    tokenizer.encode("Once"), 10, rng=0, stop_tokens={0}, stop=StopText("x", tokenizer.decode)
)
print(generation.stats.acceptance, generation.rounds[0].draft.parents[0], generation.tokens.tolist())
AutoregressiveSampler(target, sampling=Sampling(0)).generate([1, 2], 3, np.random.default_rng(0))
SpeculativeSampler(TableModel.random(3), drafter, verifier=exact_match).generate([1], 3, Gumbel(1))
check_verifier(my_verifier)
exact_distribution(lambda rng: rng.random() < 0.5)
"""


def errors_of(source, folder):
    (folder / "uses.py").write_text(source, encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "basic", "extraPaths": [str(ROOT)]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    return [found["message"] for found in report["generalDiagnostics"] if found["severity"] == "error"]


def test_documented_uses_have_types(tmp_path):
    pytest.importorskip("pyright", reason="pip install -e '.[peers]'")
    assert errors_of(USES, tmp_path) == []
    [error] = errors_of(USES.replace("K=4", 'K="four"'), tmp_path)
    assert '"K"' in error
