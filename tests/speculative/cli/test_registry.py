"""The registries of drafters and rules: what is added there is an option, a line of the help, a row of the tables."""

import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

import gpt2np
from command_line import tables
from command_line.builders import copying
from command_line.commands import COMMANDS
from command_line.help import help_text
from command_line.registry import DRAFTERS, RULES, DrafterKind, Rule
from command_line.texts import TALES
from speculative import Draft, Verdict

FEW = {"n_prompts": 3, "n_tokens_to_generate": 4}
SMALL = {"target_model_size": "tiny-draft", "exit_layer": 1}
load = lru_cache(gpt2np.load)


@dataclass
class Stutter:
    """Drafts the last token again."""

    n_vocab: int

    def propose(self, tokens, K, rng):
        probs = np.zeros((K, self.n_vocab))
        probs[:, tokens[-1]] = 1
        return Draft(np.full(K, tokens[-1]), probs)


def reject_all(draft, target_probs, rng):
    return Verdict(0, int(np.argmax(target_probs[0])))


@pytest.fixture
def with_a_drafter_and_a_rule(monkeypatch, tmp_path):
    build = lambda context: copying(context, Stutter(context.target.n_vocab), "the last token")  # noqa: E731
    monkeypatch.setitem(DRAFTERS, "stutter", DrafterKind("stutter", build, "the last token again", draws=False))
    monkeypatch.setitem(RULES, "reject_all", Rule("reject_all", reject_all, "accepts nothing"))
    monkeypatch.setattr("gpt2np.load", load)
    (tmp_path / "tales").write_text(TALES.read_text(encoding="utf-8")[:40_000], encoding="utf-8")
    monkeypatch.setattr("command_line.texts.TALES", tmp_path / "tales")


def test_a_new_drafter_and_a_new_rule_are_options_and_in_the_help(with_a_drafter_and_a_rule, capsys):
    COMMANDS[""](drafter="stutter", verifier="reject_all", n_tokens_to_generate=6)
    page = capsys.readouterr().out
    assert "draft   the last token\n" in page and "verifier reject_all (not declared)" in page
    assert "accepted      0 of " in page and "same text     yes, all 6 tokens" in page
    text = help_text("python main.py")
    assert "stutter        the last token again\n" in text and f"({','.join(DRAFTERS)})" in text
    assert "reject_all     accepts nothing\n" in text
    with pytest.raises(ValueError, match="calibrate needs a drafter with probabilities"):
        COMMANDS["calibrate"](drafter="stutter")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("drafters", SMALL),
        ("alpha_table", {"target_sizes": "tiny-draft", "temperatures": "0", "exit_layer": 1}),
        ("method_table", {**SMALL, "drafters": "model,stutter", "verifiers": "rejection,reject_all"}),
        ("compare_sizes", {"target_sizes": "tiny-draft", "drafters": "stutter"}),
        ("prompts", {**SMALL, "drafter": "stutter", "verifier": "reject_all"}),
    ],
)
def test_a_new_drafter_is_in_the_tables(with_a_drafter_and_a_rule, tmp_path, capsys, monkeypatch, name, options):
    monkeypatch.setattr("command_line.measure.N_AHEAD", 12)
    monkeypatch.setattr("command_line.texts.N_AHEAD", 12)
    path, plot = tmp_path / "report.json", tmp_path / "plot.svg"
    COMMANDS[name](**FEW, **options, json=str(path), plot=str(plot))
    page, report = capsys.readouterr().out, json.loads(path.read_text("utf-8"))
    assert page == getattr(tables, name)(report)
    if name == "prompts":
        assert "verifier reject_all (not declared)" in page and report["draft"] == {"name": "the last token"}
    else:
        assert "\n  stutter  " in page or "\nstutter  " in page or " stutter  " in page
    if name == "method_table":
        assert {row["exactness"] for row in report["rows"]} == {"exact", "not declared"}
    assert plot.read_text("utf-8").startswith("<?xml")
