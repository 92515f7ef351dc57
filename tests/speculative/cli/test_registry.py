"""The registries of drafters and rules: what is added there is an option, a line of the help, a row of the tables."""

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from command import PAIR, refusal, report_of, run_here

from speculative import Draft, Sampling, SpeculativeSampler, Verdict, exact_match
from speculative.cli.options import Options
from speculative.cli.registry import DRAFTERS, RULES, Context, DrafterKind, Rule, copying
from speculative.cli.report import Saved

FEW = ("--n_prompts=3", "--n_tokens_to_generate=4")
SMALL = ("--target_model_size=tiny-draft",)


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
def with_a_drafter_and_a_rule(monkeypatch, quick):
    """As in CONTRIBUTING.md: an entry in each registry."""
    build = lambda context: copying(context, Stutter(context.target.n_vocab), "the last token")  # noqa: E731
    monkeypatch.setitem(DRAFTERS, "stutter", DrafterKind("stutter", build, "the last token again", draws=False))
    monkeypatch.setitem(RULES, "reject_all", Rule("reject_all", reject_all, "accepts nothing"))


def test_a_new_drafter_and_a_new_rule_are_options_and_in_the_help(with_a_drafter_and_a_rule):
    page = run_here("--drafter=stutter", "--verifier=reject_all", "--n_tokens_to_generate=6").stdout
    assert "draft   the last token\n" in page and "verifier reject_all (not declared)" in page
    assert "accepted      0 of " in page and "same text     yes, all 6 tokens" in page
    text = run_here("--help").stdout
    assert "stutter       the last token again\n" in text and "reject_all    accepts nothing\n" in text
    assert "calibrate needs a drafter with probabilities" in refusal("calibrate", "--drafter=stutter")
    assert refusal("--drafter=Stuter").endswith("did you mean stutter?")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("alpha_table", ("--target_sizes=tiny-draft", "--temperatures=0", "--exit_layer=1")),
        (
            "method_table",
            (*PAIR, "--drafters=model,stutter", "--verifiers=rejection,reject_all"),
        ),
        ("compare_sizes", ("--target_sizes=tiny-draft", "--drafters=stutter")),
        ("prompts", (*SMALL, "--prompts=tales", "--drafter=stutter", "--verifier=reject_all")),
    ],
)
def test_a_new_drafter_is_in_the_tables(with_a_drafter_and_a_rule, tmp_path, name, words):
    path = tmp_path / "report.json"
    page = run_here(name, *FEW, *words, "--json", path).stdout
    report = json.loads(path.read_text("utf-8"))
    assert page == sys.modules[f"speculative.cli.commands.{name}"].table(report)
    if name == "prompts":
        assert "verifier reject_all (not declared)" in page and report["draft"] == {"name": "the last token"}
    else:
        assert " stutter  " in page or "\nstutter  " in page
    if name == "method_table":
        assert {row["exactness"] for row in report["rows"]} == {"exact", "not declared"}


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_drafter_gives_the_targets_text(drafter):
    data = report_of("--drafter", drafter, "--n_tokens_to_generate", "16")
    assert data["same_tokens"] is True and data["drafter"] == drafter and len(data["speculative"]["tokens"]) == 16
    assert ("parameters" in data["draft"]) == (drafter in ("model", "heads", "eagle"))


@pytest.mark.parametrize("verifier", RULES)
def test_every_verifier_gives_the_greedy_text_at_temperature_0(verifier):
    data = report_of("--verifier", verifier, "--n_tokens_to_generate", "12")
    assert data["same_tokens"] is True and data["exactness"] == RULES[verifier].exactness


@pytest.mark.parametrize("drafter", [name for name, kind in DRAFTERS.items() if kind.draws])
def test_a_draft_with_a_temperature_of_its_own(drafter, tiny_pair):
    """A greedy draft of a target at temperature 1, as llama.cpp has it: the tokens of the loop with that drafter."""
    target, _, tokenizer = tiny_pair
    options = {"drafter": drafter, "temperature": 1, "n_tokens_to_generate": 12, "seed": 3}
    words = [f"--{name}={value}" for name, value in options.items()]
    report = report_of(*words, "--draft_temperature=0", "--verifier=exact_match")
    setting = DRAFTERS[drafter].build(Context(Options(**options), Saved(True, "", {}), target, tokenizer))
    draft = setting.drafter(Sampling(0))
    assert draft.sampling == Sampling(0)
    sampler = SpeculativeSampler(setting.target, draft, verifier=exact_match, K=3)
    generation = sampler.generate(tokenizer.encode(report["prompt"]), 12, 3)
    assert report["speculative"]["tokens"] == generation.tokens.tolist()
    assert report["speculative"]["accepted"] == generation.stats.accepted
    assert (report["temperature"], report["draft_temperature"]) == (1, 0)


@pytest.mark.parametrize(("K", "W", "N"), [(1, 1, 2), (3, 2, 3), (7, 5, 4), (20, 5, 4)])
def test_lookahead_fits_into_K(K, W, N, tiny_pair):
    """So that its comb, of W + N - 2 levels, is drafted."""
    target, _, tokenizer = tiny_pair
    context = Context(Options(drafter="lookahead", K=K), Saved(True, "", {}), target, tokenizer)
    drafter = DRAFTERS["lookahead"].build(context).drafter(Sampling(0))
    assert (drafter.W, drafter.N) == (W, N) and W + N - 2 <= K


def test_lookahead_is_accepted_where_text_repeats_itself():
    words = ("--drafter=lookahead", "--K=5", "--n_tokens_to_generate=60", "--temperature=1", "--top_k=2")
    data = report_of(
        *words, "--verifier=traversal", "--prompt", "the king and the queen and the king and the queen and"
    )
    assert data["speculative"]["accepted"] > 0 and data["exactness"] == "exact"


def test_ngrams_of_a_text_of_ones_own_are_kept_in_a_table(tmp_path):
    (tmp_path / "tale").write_text("Once upon a time there was a king who had three daughters. " * 5, encoding="utf-8")
    words = ("--drafter=ngram", "--n_max=2", "--ngram_table", tmp_path / "table", "--n_tokens_to_generate=12")
    first = report_of(*words, "--corpus", tmp_path / "tale")
    assert (tmp_path / "table").exists() and first["draft"]["name"] == "n-grams up to 2 tokens"
    assert refusal(*words, "--n_max=3") == (
        f"--ngram_table: {tmp_path / 'table'} has n-grams up to 2 tokens, and --n_max is 3: give --n_max 2, or name "
        "another table"
    )
    assert report_of(*words, "--corpus", "not read")["speculative"]["drafted"] == first["speculative"]["drafted"]


def test_the_suffix_drafter_copies_from_a_corpus(tmp_path):
    data = report_of("--n_tokens_to_generate=12")
    (tmp_path / "tale").write_text(data["prompt"] + data["autoregressive"]["text"], encoding="utf-8")
    again = report_of("--drafter=suffix", "--corpus", tmp_path / "tale", "--n_tokens_to_generate=12")
    assert again["speculative"]["accepted"] >= 8
