"""calibrate, bench, batch_table, widths, museum, audit, replay, explore: what they find. Their pages are in pages/."""

import json
import sys

import pytest
from command import refusal, report_of, run_here
from helpers import ROOT

from speculative import trace
from speculative.cli.commands import audit, calibrate, museum
from speculative.museum import EXHIBITS, TREE_EXHIBITS
from speculative.theory.roofline import ACCELERATORS, LLAMA_1B, LLAMA_8B, batch_best_K

# ------------------------------------------------------------------------------------------------ calibrate

ROWS = [{"K": K, "expected_speedup": 1.1, "speedup": K, "low": K - 0.5, "high": 2.5} for K in (1, 2)]


def test_calibrate_predicts_and_measures(tmp_path):
    small = ("--drafter=ngram", "--n_prompts=6", "--n_tokens_to_generate=4", "--json", tmp_path / "a.json")
    run_here("calibrate", *small, "--plot", tmp_path / "a.png")
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert [row["K"] for row in data["rows"]] == list(range(1, 9)) and data["costs"]["v"][0] == 1
    assert (data["n_texts"], data["n_timed"], data["n_tokens"]) == (4, 2, 4) and 0 < data["alpha"] < 1
    gains = [1, *(row["expected_speedup"] for row in data["rows"])]
    assert data["best_K"] == gains.index(max(gains)) and (tmp_path / "a.png").stat().st_size > 5000
    assert list(data["parts"]) == ["text 1", "text 2", "text 3", "text 4", "costs", "prompt 1", "prompt 2"]


def test_costs_that_contradict_themselves_have_a_warning():
    assert calibrate.warning({"v": [1, 1.1], "spread": 0.1}) == ""
    for v, spread in (([1, 0.7], 0), ([1, 1.1], 0.42)):
        assert "WARNING: do not rely on these times" in calibrate.warning({"v": v, "spread": spread})


@pytest.mark.parametrize(
    ("best_K", "interval", "verdict"),
    [
        (2, (1.5, 2.5), "Yes: K = 2 is expected to be the fastest, 1.10 times as fast as the target alone, and was "),
        (2, (0.5, 2.5), "Unclear: K = 2 is"),
        (2, (0.5, 0.9), "No: K = 2 is"),
        (2, (None, None), "Unclear: K = 2 is"),
        (0, (0.5, 2.5), "No: every K is expected to be slower than the target alone."),
        (0, (1.5, 2.5), "Unclear: every K is expected to be slower than the target alone, but K = 2 was measured at 2"),
        (0, (None, None), "No: every K is"),
    ],
)
def test_whether_it_pays(best_K, interval, verdict):
    first, second = ROWS
    rows = [first, {**second, "low": interval[0], "high": interval[1]}]
    assert calibrate.does_it_pay({"best_K": best_K, "rows": rows}).startswith(verdict)


# ------------------------------------------------------------------------------------------------ bench, batch_table


def test_bench_measures_each_strategy_and_says_the_same_when_it_is_shown_again(tmp_path):
    few = ("--rows=3", "--context=5", "--prompt_tokens=5", "--repeats=1", "--strategies=panels,rows,plain")
    arguments = (
        "bench",
        "--sizes=tiny-draft,tiny-target",
        *few,
        "--json",
        tmp_path / "a.json",
        "--plot",
        tmp_path / "a.png",
    )
    result, data = run_here(*arguments), json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert result.returncode == 0 and [model["name"] for model in data["models"]] == ["tiny-draft", "tiny-target"]
    for model in data["models"]:
        assert list(model["strategies"]) == ["panels", "rows", "plain"] and model["chosen"] in model["strategies"]
        for entry in model["strategies"].values():
            assert list(entry["seconds"]) == ["1", "2", "3", "prompt"] and list(entry["v"]) == ["1", "2", "3"]
            assert all(0 < low <= middle <= high for low, middle, high in entry["seconds"].values())
            one = entry["seconds"]["1"][1]
            assert entry["v"]["3"] == entry["seconds"]["3"][1] / one and one >= model["limit"]  # nothing beats it
    assert run_here(*arguments).stdout == result.stdout


def test_a_row_of_batch_table_is_that_of_the_formulas():
    options = ("--accelerator=A100", "--alpha=0.9", "--context=300", "--batch_sizes=3,200")
    for row in report_of("batch_table", *options)["rows"]:
        K, speedup = batch_best_K(ACCELERATORS["A100"], LLAMA_8B, LLAMA_1B, 0.9, row["batch"], 300)
        assert (row["K"], row["speedup"]) == (K, speedup)
    found = report_of("batch_table", "--n_accelerators=2", "--flops=400", "--bytes=1", "--draft_params=0")
    assert (found["flops"], found["bandwidth"]) == (8e14, 6.7e12)
    rows = report_of("batch_table", "--context=100", "--batch_sizes=275,276,100000")["rows"]
    assert [(row["K"] > 0, row["fits"]) for row in rows] == [(True, True), (False, True), (False, False)]


# ------------------------------------------------------------------------------------------------ museum, audit, widths


def test_the_mistakes_about_a_word_are_in_a_section_of_their_own():
    assert not any(museum.has(one, "of trees") for one in EXHIBITS.values() if "of trees" not in one.what)
    assert all(museum.has(one, "OF TREES") for one in TREE_EXHIBITS.values())


def test_audit_needs_transformers(monkeypatch):
    monkeypatch.setattr(audit, "find_spec", lambda name: None)
    assert refusal("audit").startswith("audit needs PyTorch and transformers, which are missing: ")


def test_the_rows_of_the_bundled_pair_are_bitwise_identical():
    report = report_of("widths", "--n_tokens_to_generate=34", "--n_prompts=1")
    assert [row["m"] for row in report["widths"]] == list(range(2, 10))
    assert all(row["largest"] == row["flips"] == 0 for row in report["widths"])
    assert report["differences"] == [None] and report["verdict"].startswith("bitwise identical")


# ------------------------------------------------------------------------------------------------ replay


def test_a_trace_is_replayed_without_a_model(tmp_path, monkeypatch):
    kept, made = tmp_path / "t.jsonl", tmp_path / "t.html"
    assert run_here("--trace", kept, "--temperature=1", "--n_tokens_to_generate=12").returncode == 0
    monkeypatch.setattr("gpt2np.load", lambda *_: 1 / 0)
    assert run_here("replay", kept, "--trace", made).returncode == 0
    found = trace.Trace.load(kept)
    alone = found.about["alone"]
    assert found.about["K"] == 3 and made.read_text(encoding="utf-8") == trace.page(found)
    assert len(alone["texts"]) == len(alone["seconds"]) == 12 and min(alone["seconds"]) > 0


# ------------------------------------------------------------------------------------------------ explore

PAGE = ROOT / "speculative" / "pages" / "explore.html"


def raised(error):
    raise error


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The addresses that the browser was asked for; there is one."""
    addresses = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
    return addresses


def test_the_page_is_written_and_opened(opened, tmp_path, monkeypatch):
    for _ in range(2):
        result = run_here("explore")
        assert result.returncode == 0 and result.stdout == "explore.html is written\n"
    assert opened == [(tmp_path / "explore.html").as_uri()] * 2
    assert (tmp_path / "explore.html").read_bytes() == PAGE.read_bytes()
    assert run_here("explore", "--html", "a.html").stdout == "a.html is written: open it in a browser\n"
    assert len(opened) == 2 and (tmp_path / "a.html").read_bytes() == PAGE.read_bytes()
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert run_here("explore").stdout == "explore.html is written: open it in a browser\n"


@pytest.mark.parametrize("answer", ["", "n", "y", None, EOFError])
def test_a_file_of_ones_own_is_overwritten_only_where_one_says_so(answer, opened, tmp_path, monkeypatch):
    (tmp_path / "explore.html").write_text("precious")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: answer is not None, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: raised(answer) if answer is EOFError else answer)
    if answer == "y":
        assert run_here("explore").returncode == 0 and (tmp_path / "explore.html").read_bytes() == PAGE.read_bytes()
    else:
        assert refusal("explore").startswith("explore.html is another file, and stays as it is: name one with --html")
        assert (tmp_path / "explore.html").read_text("utf-8") == "precious"
