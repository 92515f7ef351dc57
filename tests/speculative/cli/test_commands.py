"""calibrate, bench, museum, audit, widths, replay, explore: what they find. Their pages are in pages/."""

import json
import sys

import pytest
from command import refusal, report_of, run_here
from helpers import ROOT

from speculative import trace
from speculative.cli.commands import calibrate, museum
from speculative.museum import EXHIBITS, TREE_EXHIBITS

# ------------------------------------------------------------------------------------------------ calibrate


def test_calibrate_keeps_each_text_the_costs_and_each_prompt(tmp_path):
    few = ("--target_model_size=tiny-draft", "--drafter=ngram", "--n_prompts=3", "--n_tokens_to_generate=2")
    assert run_here("calibrate", *few, "--json", tmp_path / "a.json").returncode == 0
    assert [*json.loads((tmp_path / "a.json").read_text("utf-8"))["parts"]] == ["text 1", "text 2", "costs", "prompt 1"]


def test_costs_that_contradict_themselves_have_a_warning():
    assert calibrate.warning({"v": [1, 1.1], "spread": 0.1}) == ""
    for v, spread in (([1, 0.7], 0), ([1, 1.1], 0.42)):
        assert "WARNING: do not rely on these times" in calibrate.warning({"v": v, "spread": spread})


@pytest.mark.parametrize(
    ("best_K", "low", "high", "verdict"),
    [
        (2, 1.5, 2.5, "Yes: K = 2 is expected to be the fastest, 1.10 times as fast as the target alone, and was "),
        (2, 0.5, 2.5, "Unclear: K = 2 is"),
        (2, 0.5, 0.9, "No: K = 2 is"),
        (2, None, None, "Unclear: K = 2 is"),
        (0, 0.5, 2.5, "No: every K is expected to be slower than the target alone."),
        (0, 1.5, 2.5, "Unclear: every K is expected to be slower than the target alone, but K = 2 was measured at 2"),
        (0, None, None, "No: every K is"),
    ],
)
def test_whether_it_pays(best_K, low, high, verdict):
    rows = [{"K": K, "expected_speedup": 1.1, "speedup": K, "low": K - 0.5, "high": 2.5} for K in (1, 2)]
    rows[1] |= {"low": low, "high": high}
    assert calibrate.does_it_pay({"best_K": best_K, "rows": rows}).startswith(verdict)


# ------------------------------------------------------------------------------------------------ bench, widths, museum


def test_bench_measures_each_strategy_and_says_the_same_when_it_is_shown_again(tmp_path):
    few = ("--rows=3", "--context=5", "--prompt_tokens=5", "--repeats=1", "--strategies=panels,rows,plain")
    arguments = ("bench", "--sizes=tiny-draft", *few, "--json", tmp_path / "a.json")
    page = run_here(*arguments).stdout
    (model,) = json.loads((tmp_path / "a.json").read_text("utf-8"))["models"]
    assert model["name"] == "tiny-draft" and [*model["strategies"]] == ["panels", "rows", "plain"]
    assert model["chosen"] in model["strategies"]
    for entry in model["strategies"].values():
        assert list(entry["seconds"]) == ["1", "2", "3", "prompt"] and list(entry["v"]) == ["1", "2", "3"]
        assert all(0 < low <= middle <= high for low, middle, high in entry["seconds"].values())
        one = entry["seconds"]["1"][1]
        assert entry["v"]["3"] == entry["seconds"]["3"][1] / one and one >= model["limit"]  # nothing beats it
    assert run_here(*arguments).stdout == page


def test_the_rows_of_a_bundled_model_are_bitwise_identical():
    small = ("--target_model_size=tiny-draft", "--draft_model_size=tiny-draft")
    report = report_of("widths", *small, "--n_tokens_to_generate=33", "--n_prompts=1")
    assert [row["m"] for row in report["widths"]] == list(range(2, 10))
    assert all(row["largest"] == row["flips"] == 0 for row in report["widths"])
    assert report["differences"] == [None] and report["verdict"].startswith("bitwise identical")


def test_the_mistakes_about_a_word_are_in_a_section_of_their_own():
    assert not any(museum.has(one, "of trees") for one in EXHIBITS.values() if "of trees" not in one.what)
    assert all(museum.has(one, "OF TREES") for one in TREE_EXHIBITS.values())


# ------------------------------------------------------------------------------------------------ replay, explore


def test_a_trace_is_replayed_without_a_model(tmp_path, monkeypatch):
    kept, made = tmp_path / "t.jsonl", tmp_path / "t.html"
    assert run_here("--trace", kept, "--temperature=1", "--n_tokens_to_generate=12").returncode == 0
    monkeypatch.setattr("gpt2np.load", lambda *_: 1 / 0)
    assert run_here("replay", kept, "--trace", made).returncode == 0
    found = trace.Trace.load(kept)
    alone = found.about["alone"]
    assert found.about["K"] == 3 and made.read_text(encoding="utf-8") == trace.page(found)
    assert len(alone["texts"]) == len(alone["seconds"]) == 12 and min(alone["seconds"]) > 0


@pytest.mark.parametrize("answer", ["", "n", "y", None, EOFError])
def test_the_page_is_written_and_opened_and_a_file_of_ones_own_stays_unless_one_says_so(answer, tmp_path, monkeypatch):
    def asked(question):
        if answer is EOFError:
            raise EOFError
        return answer

    addresses, page, made = [], ROOT / "speculative" / "pages" / "explore.html", tmp_path / "explore.html"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", addresses.append)  # and returns that it did not
    monkeypatch.setattr(sys.stdin, "isatty", lambda: answer is not None, raising=False)
    monkeypatch.setattr("builtins.input", asked)
    for name, words in (("explore.html", []), ("explore.html", []), ("a.html", ["--html=a.html"])):
        assert run_here("explore", *words).stdout == f"{name} is written: open it in a browser\n"
        assert (tmp_path / name).read_bytes() == page.read_bytes()
    made.write_text("precious")
    if answer == "y":
        assert run_here("explore").returncode == 0 and made.read_bytes() == page.read_bytes()
    else:
        assert refusal("explore").startswith("explore.html is a different file, and stays as it is: name one with")
        assert made.read_text("utf-8") == "precious"
    assert addresses == [made.as_uri()] * (3 if answer == "y" else 2)
