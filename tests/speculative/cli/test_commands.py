"""calibrate, bench, batch_table, widths, museum, audit, replay, explore: each from its words to its page."""

import json
import re
import sys

import pytest
from command import refusal, report_of, run_here
from helpers import ROOT

from speculative import trace
from speculative.cli.commands import audit, calibrate, museum
from speculative.museum import EXHIBITS, TREE_EXHIBITS
from speculative.theory.roofline import ACCELERATORS, LLAMA_1B, LLAMA_8B, batch_best_K

# ------------------------------------------------------------------------------------------------ calibrate

ROWS = [
    {
        "K": K, "expected_tokens_per_call": 1.5, "tokens_per_call": 1.4, "speedup_from_alpha": 1.2,
        "expected_speedup": 1.1, "speedup": K, "low": K - 0.5, "high": 2.5,
    }
    for K in (1, 2)
]  # fmt: skip
REPORT = {
    "target": {"name": "some model"}, "draft": {"name": "some model"}, "alpha": 0.5, "alpha_low": 0.4444,
    "alpha_high": 0.6, "n_texts": 7, "n_timed": 3, "n_tokens": 9, "best_K": 2, "rows": ROWS,
    "costs": {"step": 0.002, "c": 0.1, "v": [1, 1.5, 2], "spread": 0.1},
}  # fmt: skip


def test_calibrate_predicts_and_measures(tmp_path):
    small = ("--drafter=ngram", "--n_prompts=6", "--n_tokens_to_generate=4", "--json", tmp_path / "a.json")
    page = run_here("calibrate", *small, "--plot", tmp_path / "a.png").stdout
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert [row["K"] for row in data["rows"]] == list(range(1, 9)) and data["costs"]["v"][0] == 1
    assert (data["n_texts"], data["n_timed"], data["n_tokens"]) == (4, 2, 4) and 0 < data["alpha"] < 1
    gains = [1, *(row["expected_speedup"] for row in data["rows"])]
    assert data["best_K"] == gains.index(max(gains)) and (tmp_path / "a.png").stat().st_size > 5000
    assert list(data["parts"]) == ["text 1", "text 2", "text 3", "text 4", "costs", "prompt 1", "prompt 2"]
    assert len(re.findall(r"^\d( +\d+\.\d\d){5} \(\d+\.\d\d to \d+\.\d\d\)$", page, re.M)) == 8


def test_the_page_of_calibrate_by_hand():
    page = calibrate.page_of(REPORT, "any")
    assert "alpha   0.500, 95 % interval 0.444 to 0.600\n" in page and "WARNING" not in page
    assert "an autoregressive step 2.00 ms, c = 0.100, v(1..3) = 1.00 1.50 2.00" in page
    assert [line.split() for line in page.splitlines() if line.startswith("2 ")] == [
        ["2", "1.50", "1.40", "1.20", "1.10", "2.00", "(1.50", "to", "2.50)"]
    ]
    assert "at most 45.0% apart, at K = 2" in page  # 1.1 / 2 - 1
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
    assert len(re.findall(r"^(panels|rows|plain)(?: \*)? +\d+\.\d\d ± ", result.stdout, re.M)) == 6
    assert run_here(*arguments).stdout == result.stdout


def test_a_row_of_batch_table_is_that_of_the_formulas():
    options = ("--accelerator=A100", "--alpha=0.9", "--context=300", "--batch_sizes=3,200")
    for row in report_of("batch_table", *options)["rows"]:
        K, speedup = batch_best_K(ACCELERATORS["A100"], LLAMA_8B, LLAMA_1B, 0.9, row["batch"], 300)
        assert (row["K"], row["speedup"]) == (K, speedup)
    found = report_of("batch_table", "--n_accelerators=2", "--flops=400", "--bytes=1", "--draft_params=0")
    assert (found["flops"], found["bandwidth"]) == (8e14, 6.7e12)
    page = run_here("batch_table", "--flops=400", "--draft_params=0").stdout
    assert "; flops: as given)" in page and "draft   costs nothing\n" in page


def test_batch_table_says_where_speculation_stops_paying():
    sizes = "--context=100", "--batch_sizes=275,276,100000"
    found = report_of("batch_table", *sizes)
    assert [row["K"] > 0 for row in found["rows"]] == [True, False, False]
    assert [row["fits"] for row in found["rows"]] == [True, True, False]
    page = run_here("batch_table", *sizes).stdout
    assert "up to a batch size of 275 (not at 276)" in page and "100000  memory is full" in page
    assert "up to a batch size of 375 (the memory is full)" in run_here("batch_table").stdout
    assert "up to a batch size of 4 (the last tried)" in run_here("batch_table", "--batch_sizes=4").stdout
    assert "Speculation pays at no batch size up to 375." in run_here("batch_table", "--alpha=0.1").stdout
    heavy = "--draft_params=7.5", "--draft_shape=1,1,1,1", "--context=8000"
    assert "Speculation pays from a batch size of " in run_here("batch_table", *heavy).stdout


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["calibrate", "--drafter=eagle"], "calibrate needs a drafter with probabilities along a given text (model, n"),
        (["calibrate", "--n_tokens_to_generate=1"], "calibrate needs 3 prompts or more, a third of them to measure on"),
        (["calibrate", "--n_prompts=2"], "calibrate needs 3 prompts or more"),
        (["calibrate", "--n_tokens_to_generate=500"], "prompt 1 of 36: prompt has 32 tokens and n_tokens is 500, but"),
        (["calibrate", "--target_model_size=124M"], "there is no smaller model to draft for 124M"),
        (["calibrate", "--drafter=ngram", "--draft_model_size=124M"], "--draft_model_size is for --drafter model, not"),
        (["bench", "--sizes", "5"], "--sizes: unknown model '5': expected "),
        (["bench", "--strategies", "panels,fast"], "--strategies: expected one of panels, rows, plain"),
        (["bench", "--rows", "100000"], "--rows: expected a whole number from 2 to 1023, got '100000'"),
        (["bench", "--sizes", "tiny-draft", "--context", "600"], "tiny-draft has room for 512 tokens, got 609: give"),
        (["batch_table", "--flops=990e12"], "--flops: expected a number from 0.001 to 1000000, got '990e12'"),
        (["batch_table", "--target_shape=32,128"], "--target_shape: expected layers, heads, KV heads and size"),
        (["batch_table", "--target_params=70"], "142.5 GB of weights and a sequence of 1,000 tokens do not fit"),
        (["batch_table", "--accelerator=H10"], "--accelerator: there is no 'H10': did you mean H100?"),
        (["batch_table", "--batch_sizes=0"], "--batch_sizes: expected a whole number from 1 to 100000, got '0'"),
        (["widths", "--n_tokens_to_generate=9"], "--n_tokens_to_generate: expected 33 or more, got 9"),
        (["widths", "--K=auto"], "--K: expected a whole number of 1 or more, got 'auto'"),
        (["museum", "zzz"], "museum: no mistake is about 'zzz'"),
        (["replay", "README.md"], "README.md, line 1: expected a trace"),
        (["replay", "1e3"], "replay: cannot read 1e3 (No such file or directory)? Give one that --trace"),
        (["explore", "--html", "a.txt"], "--html: expected a name that ends in .html, got 'a.txt'"),
    ],
)  # fmt: skip
def test_what_the_commands_refuse(words, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert message in refusal(*words)


# ------------------------------------------------------------------------------------------------ museum, audit, widths


def test_the_mistakes_about_a_word():
    name = next(iter(TREE_EXHIBITS))
    page = run_here("museum", name.upper()).stdout
    assert f"\nVerifiers, of trees\n===================\n\n{name}\n" in page and page.count("\n  seen: ") == 1
    assert not any(museum.has(one, "of trees") for one in EXHIBITS.values() if "of trees" not in one.what)


def test_audit_needs_transformers(monkeypatch):
    monkeypatch.setattr(audit, "find_spec", lambda name: None)
    assert refusal("audit").startswith("audit needs PyTorch and transformers, which are missing: ")


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({}, ""),
        (
            {"verdict": "NOT LOSSLESS", "impossible": 0.125},
            "top_k 2: the tokens [0, 1] have probability 0.5000 with the draft, 0.2500 without\n"
            "         and 0.1250 is for texts that are impossible without\n",
        ),
        ({"verdict": "fails", "message": "ValueError: no"}, "top_k 2: generate() fails: ValueError: no\n"),
    ],
)
def test_the_remarks_of_audit(changes, remark):
    worst = {"tokens": [0, 1], "alone": 0.25, "with_draft": 0.5}
    assert (
        audit.remark({"setting": "top_k 2", "impossible": 0, "worst": worst, "verdict": "lossless"} | changes) == remark
    )


def test_the_rows_of_the_bundled_pair_are_bitwise_identical():
    report = report_of("widths", "--n_tokens_to_generate=34", "--n_prompts=1")
    assert [row["m"] for row in report["widths"]] == list(range(2, 10))
    assert all(row["largest"] == row["flips"] == 0 for row in report["widths"])
    assert report["differences"] == [None] and report["verdict"].startswith("bitwise identical")


# ------------------------------------------------------------------------------------------------ replay


def test_a_trace_is_kept_and_replayed_without_a_model(tmp_path, monkeypatch):
    kept, made = tmp_path / "t.jsonl", tmp_path / "t.html"
    result = run_here("--show=rounds", "--trace", kept, "--temperature=1", "--n_tokens_to_generate=12")
    assert result.returncode == 0 and result.stderr == "" and f"\ntrace         {kept}\n" in result.stdout
    lines = re.findall(r"^ +\d+  \d/\d accepted  \|.*$", result.stdout, re.M)
    assert len(lines) == len(kept.read_text("utf-8").splitlines()) - 1 > 2 and "[" in "".join(lines)
    monkeypatch.setattr("gpt2np.load", lambda *_: 1 / 0)
    again = run_here("replay", kept, "--trace", made)
    assert again.returncode == 0 and again.stderr == "" and "\n".join(lines) in again.stdout
    counts = re.search(r"accepted      .*\nby position   .*", result.stdout).group()
    about = trace.Trace.load(kept).about
    assert counts in again.stdout and about["K"] == 3
    assert len(about["alone"]["texts"]) == len(about["alone"]["seconds"]) == 12 and min(about["alone"]["seconds"]) > 0
    assert made.read_text(encoding="utf-8") == trace.page(trace.Trace.load(kept))


@pytest.mark.parametrize(
    "damage", [{"drafted": 5}, {"drafted": [{}]}, {"tokens": None}, {"origins": {}}, {"texts": [1]}]
)
def test_a_damaged_round_is_one_sentence(damage, tmp_path):
    file = tmp_path / "t.jsonl"
    run_here("--trace", file, "--n_tokens_to_generate=8")
    header, first, *rest = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([header, json.dumps(json.loads(first) | damage), *rest]), encoding="utf-8")
    assert "t.jsonl, line 2: expected a trace" in refusal("replay", file)


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
