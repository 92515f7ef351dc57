"""The experiments as commands: pages, plots and reports in files, mostly without a process of their own."""

import contextlib
import io
import itertools
import json
import re
import sys
from dataclasses import replace
from functools import lru_cache

import pytest
from helpers import ROOT

import gpt2np
from command_line import audit, saved, tables
from command_line import options as options_module
from command_line.bench import check_room, generation_lines
from command_line.builders import Context
from command_line.commands import COMMANDS, EXPERIMENTS
from command_line.files import check_file
from command_line.main import main
from command_line.options import Options
from command_line.page_parts import where
from command_line.registry import DRAFTERS
from command_line.saved import Saved, settings_of
from command_line.texts import KNOWN, TALES, check_prompts, dialogue_prompts, prompts_of
from command_line.tree_table import verdict
from command_line.verdicts import load_average
from command_line.views import tree_line
from speculative import Costs, Sampling, SpeculativeSampler, exact_match

FEW = {"n_prompts": 3, "n_tokens_to_generate": 4}
SMALL = {"target_model_size": "tiny-draft", "exit_layer": 1}
FAST = {
    "prompts": SMALL,
    "calibrate": {**SMALL, "drafter": "ngram", "n_prompts": 6},
    "drafters": SMALL,
    "gamma_table": {**SMALL, "max_K": 3},
    "alpha_table": {"target_sizes": "tiny-draft,tiny-target"},
    "method_table": {**SMALL, "drafters": "model,suffix", "verifiers": "rejection,gumbel,typical"},
    "tree_table": {
        **SMALL,
        "draft_model_size": "tiny-draft",
        "tree_sizes": "3,5",
        "max_depth": 2,
        "tree_drafters": "model,recycling",
    },
    "compare_sizes": {},
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Every experiment once, with few tokens and a small model: dict name -> (report, page, plot)."""
    found, folder = {}, tmp_path_factory.mktemp("reports")
    (folder / "tales.txt").write_text(TALES.read_text(encoding="utf-8")[:40_000], encoding="utf-8")
    costs = Costs(0.001, 0.1, (1.0,) * 9)
    for name, options in FAST.items():
        paths = {"json": str(folder / f"{name}.json"), "plot": str(folder / f"{name}.png")}
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as page:
            patch.setattr("command_line.texts.TALES", folder / "tales.txt")
            for module in ("texts", "measure"):
                patch.setattr(f"command_line.{module}.N_AHEAD", 12)
            patch.setattr("speculative.measuring.runs.N_WARM", 1)
            patch.setattr("speculative.measuring.calibration.measure_costs", lambda *_, **options: costs)
            patch.setattr("gpt2np.load", lru_cache(gpt2np.load))
            COMMANDS[name](**{**FEW, **options, **paths})
        found[name] = json.loads((folder / f"{name}.json").read_text("utf-8")), page.getvalue(), folder / f"{name}.png"
    return found


def test_every_experiment_is_tried():
    assert FAST.keys() == {command.name for command in EXPERIMENTS}


@pytest.mark.parametrize("name", FAST)
def test_the_report_says_what_was_asked_for(reports, name):
    report, page, _ = reports[name]
    assert report["command"] == name and report["finished"] is True and report["parts"]
    assert (
        report["settings"]["n_prompts"] == FAST[name].get("n_prompts", 3)
        and "json" not in report["settings"]
        and report["machine"] in page
    )


def numbers_of(value, names):
    """All numbers under these names in a part of a report."""
    if isinstance(value, list):
        return [number for each in value for number in numbers_of(each, names)]
    if isinstance(value, dict):
        found = [value[name] for name in names if isinstance(value.get(name), (int, float))]
        return found + numbers_of(list(value.values()), names)
    return []


PLOTTED = {  # what of a report is drawn: each of these numbers is the place of a point, or the length of a bar
    "prompts": ("rows", ("seconds", "native_seconds")),
    "calibrate": ("rows", ("speedup", "expected_speedup")),
    "drafters": ("rows", ("speedup",)),
    "gamma_table": ("temperatures", ("speedup", "tokens_per_call", "theory_speedup", "theory_tokens_per_call")),
    "alpha_table": ("targets", ("alpha",)),
    "method_table": ("all", ("speedup", "tokens_per_call")),
    "tree_table": ("rows", ("expected", "tokens_per_call")),
    "compare_sizes": ("targets", ("seconds", "speedup")),
}


@pytest.mark.parametrize("name", FAST)
def test_every_number_of_the_table_is_in_the_plot(reports, name):
    plots = pytest.importorskip("command_line.plots")
    report, (part, names) = reports[name][0], PLOTTED[name]
    some = [row["kinds"]["all"] for row in report["rows"]] if part == "all" else report[part]
    figure = plots.PLOTS[name](report)
    drawn = [line.get_xydata().ravel() for axes in figure.axes for line in axes.lines]
    drawn += [[bar.get_width()] for axes in figure.axes for bar in axes.patches]
    texts = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    plots.plt.close(figure)
    drawn, wanted = {round(float(x), 9) for xs in drawn for x in xs}, numbers_of(some, names)
    absent = [x for x in wanted if round(x, 9) not in drawn and f"{x:.2f} times as fast" not in texts]
    assert len(wanted) >= 4 and not absent
    assert min(plots.plt.imread(reports[name][2]).shape[:2]) > 300


def test_the_page_of_prompts(reports):
    report, page, _ = reports["prompts"]
    assert [row["prompt"] for row in report["rows"]] == list(KNOWN) and len(KNOWN) == 7
    rows = re.findall(r"^(.{40}) +(\d+\.\d\d) +\d+ +(\d+\.\d\d) +\d+ +\d+\.\d\d +\d\.\d\d  (yes|7 of 7)$", page, re.M)
    assert [row[0].rstrip() for row in rows] == [*(row["beginning"] for row in report["rows"]), "all 7"]
    assert report["all"]["seconds"] == pytest.approx(sum(row["seconds"] for row in report["rows"]))


def test_the_page_of_drafters(reports):
    page = reports["drafters"][1]
    for kind in ("tales", "repeating"):
        table = page.split(f"\n{kind}: ")[1].split("\n\n")[0].splitlines()[2:]
        assert [line.split("  ")[1] for line in table] == [
            *(kind for kind in DRAFTERS if kind != "heads"),
            "noisy (0.2)",
            "oracle",
        ]
        assert all(line.endswith("exact") for line in table)


def test_the_page_of_the_gamma_table(reports):
    report, page, _ = reports["gamma_table"]
    for name, table in report["temperatures"].items():
        assert f"{name}: alpha = {table['alpha']:.3f}, c = {table['c']:.3f}" in page
        assert [row["K"] for row in table["rows"]] == [1, 2, 3]
    assert list(report["temperatures"]) == ["temperature 0", "temperature 1"]
    assert len(re.findall(r"^ +\d( +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d){2}( +-?\d+\.\d+){4}$", page, re.M)) == 6


def test_the_page_of_the_alpha_table(reports):
    report, page, _ = reports["alpha_table"]
    names = [row["drafter"] for row in report["targets"]["tiny-target"]["temperatures"]["temperature 1"]["rows"]]
    assert names == [
        "unigram", "bigram", "trigram", "prompt lookup", "suffix", "2 of 9 layers", "4 of 9 layers", "8 of 9 layers",
        "tiny-draft",
    ]  # fmt: skip
    assert all(re.search(rf"^{name} +(\d\.\d\d\d|-)", page, re.M) for name in names)
    assert "1 of 2 layers" in page and page.count("tiny-draft   ") == 1  # not as its own draft


def test_the_page_of_the_method_table(reports):
    report, page, _ = reports["method_table"]
    rows = re.findall(r"^(model|suffix) +(\w+) +(?:\d+\.\d\d +\d+\.\d\d to \d+\.\d\d +){2}(\w+)$", page, re.M)
    output = {"rejection": "exact", "gumbel": "exact", "typical": "LOSSY"}
    methods = list(itertools.product(("model", "suffix"), output))
    assert rows == [(drafter, rule, output[rule]) for drafter, rule in methods]
    assert re.findall(r"^(model|suffix) +(\w+)(?: +\d+\.\d\d +\d+\.\d\d){4}$", page, re.M) == methods
    assert re.search(r"^interval, ± +median row( +\d+%){8}$", page, re.M)
    assert list(report["rows"][0]["kinds"]) == ["tales", "dialogue", "repeating", "known", "all"]
    assert report["rows"][0]["kinds"]["all"]["n_texts"] == 12


def test_the_page_of_compare_sizes(reports):
    report, page, _ = reports["compare_sizes"]
    alone = {**report, "targets": {"alone": {**report["targets"]["tiny-draft"], "drafters": {}}}}
    assert re.search(r"^alone +0\.7 M +\d+\.\d\d s   -$", tables.compare_sizes(alone), re.M)
    assert {name: list(found["drafters"]) for name, found in report["targets"].items()} == {
        "tiny-draft": ["ngram"],
        "tiny-target": ["model", "ngram"],
    }
    assert (
        len(re.findall(r" (tiny-draft|ngram) +\d+\.\d\d s +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d +\d\.\d\d$", page, re.M))
        == 3
    )


def test_the_files_of_the_command_line_stay_small_and_import_each_other_by_relative_names():
    """So that the folder can be installed under another name."""
    for path in (ROOT / "command_line").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"^ *(from|import) command_line", source, re.M) and source.count("\n") <= 260, path


# ------------------------------------------------------------------------------------------------ files


def test_an_interrupted_run_resumes_from_its_file(tmp_path, monkeypatch, capsys):
    options = {
        "temperatures": "0",
        "max_K": 2,
        "drafter": "ngram",
        **FEW,
        **SMALL,
        "json": str(tmp_path / "gamma.json"),
    }
    keep, n_measured = Saved.keep, 0

    def interrupted(self, name, measure):
        if len(self.parts) == 2 and n_measured == 0:
            raise KeyboardInterrupt
        return keep(self, name, measure)

    monkeypatch.setattr(Saved, "keep", interrupted)
    arguments = ["gamma_table", *(f"--{name}={value}" for name, value in options.items())]
    assert main(arguments) == 130
    written = capsys.readouterr()
    kept = f"interrupted; 2 of 3 parts are in {options['json']}, and the same command resumes from there\n"
    assert written.err.endswith(kept) and not written.out
    before = json.loads((tmp_path / "gamma.json").read_text("utf-8"))
    assert len(before["parts"]) == 2 and before["finished"] is False
    n_measured = 1
    assert main(arguments) == 0
    after = json.loads((tmp_path / "gamma.json").read_text("utf-8"))
    assert after["finished"] is True and len(after["parts"]) == 3 and "alpha = " in capsys.readouterr().out
    assert {name: after["parts"][name] for name in before["parts"]} == before["parts"]
    assert [path.name for path in tmp_path.iterdir()] == ["gamma.json"]


def test_the_file_is_whole_after_every_part(tmp_path):
    path = tmp_path / "report.json"
    parts = Saved(str(path), "some", {"seed": 1})
    for i in range(3):
        assert (
            parts.keep(f"part {i}", lambda i=i: {"seconds": 0.1 * i, "text": 'a "quoted"\nline'})["seconds"] == 0.1 * i
        )
        assert json.loads(path.read_text("utf-8"))["parts"].keys() == {f"part {j}" for j in range(i + 1)}
    again = Saved(str(path), "some", {"seed": 1})
    assert again.keep("part 2", lambda: 1 / 0) == parts.parts["part 2"]
    parts.finish({"rows": [1]})
    assert parts.whole({"rows": [1]})["rows"] == json.loads(path.read_text("utf-8"))["rows"] == [1]


@pytest.mark.parametrize(
    ("command", "settings", "where", "message"),
    [
        ("other", {"seed": 1}, "here", "holds a report of some, expected one of other: name another file"),
        ("some", {"seed": 2}, "here", "was made with --seed 1, not 2: name another file"),
        ("some", {"seed": 1, "K": 3}, "here", "was made with --K None, not 3: name another file"),
        ("some", {"seed": 1}, "there", "was made on here, and this is there: name another file"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, monkeypatch, command, settings, where, message):
    monkeypatch.setattr(saved, "machine", lambda: "here")
    Saved(str(tmp_path / "a.json"), "some", {"seed": 1}).finish({})
    monkeypatch.setattr(saved, "machine", lambda: where)
    with pytest.raises(ValueError, match=message):
        Saved(str(tmp_path / "a.json"), command, settings)


@pytest.mark.parametrize("text", ["", "{}", "[]", "no JSON", '{"command": "some", "parts": {}}', b"\xff\xfe"])
def test_a_file_that_is_not_a_report_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"a.json is not a report that this program wrote: name another"):
        Saved(str(path), "some", {})
    assert path.read_bytes() == before


def test_a_text_that_has_changed_is_another_setting(tmp_path):
    file = tmp_path / "prompts"
    file.write_text("Once\n\nupon a time\n", encoding="utf-8")
    request = Options(prompt_file=str(file))
    first = settings_of(request, {"prompt_file", "corpus", "json"})
    assert settings_of(request, {"prompt_file", "corpus", "json"}) == first
    file.write_text("Once\n", encoding="utf-8")
    assert first["prompt_file"] != settings_of(request, {"prompt_file", "corpus"})["prompt_file"]
    assert first.keys() == {"prompt_file", "corpus"} and first["corpus"] == ""


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompts": "some"}, "--prompts: expected one of tales, known, got 'some'"),
        ({"temperatures": "0,hot"}, "--temperatures: expected a number of 0 or more, got 'hot'"),
        ({"temperatures": "-1"}, "--temperatures: expected a number of 0 or more, got -1"),
        ({"max_K": 1}, "--max_K: expected a whole number from 2 to 100, got 1"),
        ({"drafters": "model,oracle"}, "--drafters: expected one of model, ngram, "),
        ({"verifiers": "any"}, "--verifiers: expected one of rejection, block, "),
        ({"json": "a.txt"}, "--json: expected a name that ends in .json, got 'a.txt'"),
        ({"json": "nowhere/a.json"}, "--json: cannot write nowhere"),
        ({"plot": "a.gif"}, "--plot: expected a name that ends in .png or .pdf or .svg, got 'a.gif'"),
        ({"log": "nowhere/a.txt"}, "--log: cannot write nowhere"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(options, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        Options(**options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gamma_table", {"drafter": "suffix"}, "gamma_table needs a drafter with probabilities"),
        ("method_table", {"K": "auto"}, "method_table needs one draft length for all, got --K auto: give a number"),
        (
            "gamma_table",
            {"n_tokens_to_generate": 1, "n_prompts": 3, "max_K": 2, **SMALL},
            "nothing was drafted in these texts",
        ),
        *(
            (name, {"n_tokens_to_generate": 1}, "--n_tokens_to_generate: expected a whole number of 2 or more, got 1")
            for name in ("drafters", "prompts", "method_table", "tree_table", "compare_sizes")
        ),
        ("compare_sizes", {"verifiers": "block"}, "unknown option --verifiers"),
        (
            "compare_sizes",
            {"drafters": "ngram,heads", **FEW},
            "--drafters: heads needs heads, which tiny-draft does not have: leave one of the two out",
        ),
        (
            "compare_sizes",
            {"drafters": "early_exit", **FEW},
            "--drafters: early_exit needs layers after those of --exit_layer, which tiny-draft does not",
        ),
        (
            "tree_table",
            {"tree_drafters": "heads", "target_model_size": "tiny-draft", **FEW},
            "--tree_drafters: heads has no drafter for tiny-draft, which has no heads: add another drafter, or choose",
        ),
        ("prompts", {"n_tokens_to_generate": 500}, "prompt 1 of 7: prompt has"),
    ],
)
def test_what_a_command_cannot_do(name, options, message, monkeypatch):
    """And it says so before anything is measured."""
    if "nothing was drafted" not in message:
        monkeypatch.setattr(Saved, "keep", lambda *_: 1 / 0)
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        COMMANDS[name](**options)


def test_the_audit_needs_transformers(monkeypatch):
    monkeypatch.setattr(audit, "HAS_TRANSFORMERS", False)
    with pytest.raises(ValueError, match=r"^audit needs PyTorch and transformers, which are missing: "):
        COMMANDS["audit"]()


def test_plots_need_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setattr(options_module, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=re.escape("--plot needs matplotlib, which is not installed: pip install matplotlib")
    ):
        Options(plot=str(tmp_path / "a.png"))


def test_a_name_of_a_file_is_checked(tmp_path):
    check_file("json", tmp_path / "a.json", (".json",))
    with pytest.raises(ValueError, match="--json: cannot write"):
        (tmp_path / "b.json").mkdir()
        check_file("json", tmp_path / "b.json", (".json",))


# ------------------------------------------------------------------------------------------------ prompts


def test_prompts_from_a_file_are_its_lines(tmp_path, tiny_pair):
    _, _, tokenizer = tiny_pair
    (tmp_path / "file").write_text("Once upon a time\n\n  there was \n", encoding="utf-8")
    found = prompts_of(Options(prompt_file=str(tmp_path / "file")), tokenizer)
    assert [tokenizer.decode(tokens) for tokens in found] == ["Once upon a time", "  there was "]
    (tmp_path / "file").write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="file is empty: write one prompt per line"):
        prompts_of(Options(prompt_file=str(tmp_path / "file")), tokenizer)


def test_places_in_dialogue_have_quotation_marks(tiny_pair):
    target, _, tokenizer = tiny_pair
    found = dialogue_prompts(tokenizer, 5)
    assert len({tuple(tokens) for tokens in found}) == 5
    assert all(len(tokens) == 32 and tokenizer.decode(tokens).count('"') >= 4 for tokens in found)
    with pytest.raises(ValueError, match=r"^prompt 2 of 2: prompt has 500 tokens and n_tokens is 20, but n_ctx is 512"):
        check_prompts([[0], [0] * 500], 20, target)


def test_both_texts_of_every_prompt_in_the_log(tmp_path, capsys):
    (tmp_path / "prompts").write_text("Once upon a time\nThere was\n", encoding="utf-8")
    COMMANDS["prompts"](
        prompt_file=str(tmp_path / "prompts"), log=str(tmp_path / "a.txt"), json=True, temperature=1,
        n_tokens_to_generate=9, **SMALL,
    )  # fmt: skip
    report, log = json.loads(capsys.readouterr().out), (tmp_path / "a.txt").read_text(encoding="utf-8")
    for i, row in enumerate(report["rows"], 1):
        same = "the same text" if row["same_text"] else "another text"
        assert f"=== {i}\n{row['prompt']}\n\n--- native, {row['native_seconds']:.3f} s\n{row['native']}\n" in log
        assert f"--- assisted, {row['seconds']:.3f} s, {same}\n{row['assisted']}\n" in log
    assert "parts" not in report and report["command"] == "prompts"


def test_drafters_of_trees_need_a_verifier_that_takes_trees():
    message = "drafter recycling needs a verifier that takes trees .*rejection.*, got block"
    for command, rules in (("method_table", {"verifiers": "block"}), ("compare_sizes", {"verifier": "block"})):
        with pytest.raises(ValueError, match=message):
            COMMANDS[command](drafters="ngram,recycling", **rules, **FEW)


def test_the_page_says_what_to_expect_of_the_texts(monkeypatch, capsys):
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    for options, words in (
        ({"temperature": 1}, "both texts have one distribution but may differ"),
        ({"temperature": 1, "verifier": "gumbel"}, "both texts should be the same"),
        ({"temperature": 1, "verifier": "typical"}, "LOSSY: the texts do not even have the same distribution"),
    ):
        COMMANDS["prompts"](prompts="tales", **FEW, **SMALL, **options)
        page = capsys.readouterr().out
        assert words in page and ("3 of 3" in page or options.get("verifier") != "gumbel")


@pytest.mark.parametrize("drafter", [name for name, kind in DRAFTERS.items() if kind.draws])
def test_a_draft_with_a_temperature_of_its_own(drafter, capsys, tiny_pair):
    """A greedy draft of a target at temperature 1, as llama.cpp has it: the tokens of the loop with that drafter."""
    target, _, tokenizer = tiny_pair
    options = {"drafter": drafter, "temperature": 1, "n_tokens_to_generate": 12, "seed": 3}
    COMMANDS[""](json=True, draft_temperature=0, verifier="exact_match", **options)
    report = json.loads(capsys.readouterr().out)
    setting = DRAFTERS[drafter].build(Context(Options(**options), Saved(True, "", {}), target, tokenizer))
    draft = setting.drafter(Sampling(0))
    assert draft.sampling == Sampling(0)
    sampler = SpeculativeSampler(setting.target, draft, verifier=exact_match, K=3)
    generation = sampler.generate(tokenizer.encode(report["prompt"]), 12, 3)
    assert report["speculative"]["tokens"] == generation.tokens.tolist()
    assert report["speculative"]["accepted"] == generation.stats.accepted
    assert (report["temperature"], report["draft_temperature"]) == (1, 0)


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ({"tree": "6"}, 6),
        ({"tree": "2,1"}, 4),
        ({"tree": "5", "drafter": "ngram", "temperature": 1}, 5),
        ({"tree": "auto", "drafter": "recycling"}, 16),
        ({"tree": "auto", "drafter": "heads"}, 16),
        ({"tree": "2,1,1", "drafter": "heads"}, 6),
        ({"drafter": "recycling", "verifier": "gumbel", "temperature": 1}, 16),
        ({"tree": "7", "drafter": "suffix"}, 7),
    ],
)
def test_trees_of_the_comparison(options, nodes, capsys, monkeypatch):
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    costs = Costs(0.001, 0.1, tuple(1 + 0.01 * k for k in range(17)))
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: costs)
    COMMANDS[""](json=True, n_tokens_to_generate=8, **options)
    report = json.loads(capsys.readouterr().out)
    assert report["same_tokens"] or (options.get("temperature") == 1 and options.get("verifier") != "gumbel")
    assert report["speculative"]["drafted"] <= nodes * report["speculative"]["target_calls"]
    if report["measured_tree"]:
        assert report["measured_tree"]["nodes"] <= 16 and len(report["measured_tree"]["acceptance_by_rank"]) <= 8


def test_the_best_tree_is_that_of_the_rule(capsys, monkeypatch):
    """A draft that is drawn rarely equals the target's own draw, so exact_match accepts less than rejection."""
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    costs, first = Costs(0.001, 0.1, tuple(1 + 0.01 * k for k in range(17))), {}
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: costs)
    for rule in ("rejection", "exact_match", "gumbel"):
        COMMANDS[""](json=True, n_tokens_to_generate=4, tree="auto", temperature=1, verifier=rule)
        first[rule] = json.loads(capsys.readouterr().out)["measured_tree"]["acceptance_by_rank"][0]
    assert first["exact_match"] < 0.5 < min(first["rejection"], first["gumbel"])


def test_the_best_tree_of_drawn_siblings(capsys, monkeypatch):
    """A single child is a plain draw, accepted as often as in a chain, whatever the first of eight would be."""
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    costs = Costs(0.001, 0.1, tuple(1 + 0.01 * k for k in range(17)))
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: costs)
    COMMANDS[""](json=True, n_tokens_to_generate=4, tree="auto", temperature=1, siblings="drawn")
    found = json.loads(capsys.readouterr().out)["measured_tree"]
    assert found["acceptance_by_rank"][0] > 0.6 and found["levels"] > 2


def test_a_tree_has_no_more_levels_than_there_are_heads(capsys, monkeypatch):
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    costs = Costs(0.001, 0.001, (1.0,) * 17)
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: costs)
    COMMANDS[""](json=True, n_tokens_to_generate=4, tree="auto", drafter="heads", K=8)
    assert json.loads(capsys.readouterr().out)["measured_tree"]["levels"] == 3
    COMMANDS["tree_table"](**FEW, tree_drafters="heads", tree_sizes="5", max_depth=5, json=True)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["kind"], row["levels"]) for row in rows] == [("chain", 1), ("chain", 2), ("chain", 3), ("tree", 3)]


def test_the_page_says_which_tree_was_found(capsys, monkeypatch):
    costs = Costs(0.001, 0.1, tuple(1 + 0.2 * k for k in range(17)))
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: costs)
    COMMANDS[""](n_tokens_to_generate=4, tree="auto")
    page = capsys.readouterr().out
    assert re.search(r"tree    \d+ nodes on \d levels: expected speedup \d\.\d\d by measured costs", page)
    assert tree_line({"tree": "auto", "measured_tree": {"nodes": 0, "levels": 0, "expected_speedup": 1.0}}) == (
        "tree    none pays: expected speedup 1.00 by measured costs and acceptance"
    )
    for nodes, line in ((6, "tree    12: 6 nodes"), (12, "tree    12"), (None, "tree    12")):
        assert tree_line({"tree": "12", "tree_nodes": nodes, "measured_tree": None}) == line


@pytest.mark.parametrize(
    ("tree", "chain", "words"),
    [
        ((1.5, 1.4, 1.6), (1.2, 1.1, 1.3), "Here a tree pays."),
        ((0.8, 0.7, 0.9), (1.2, 1.1, 1.3), "Here a tree does not pay, though it has more tokens per call: its nodes"),
        ((1.2, 1.0, 1.4), (1.2, 1.1, 1.3), "These prompts do not tell the two apart."),
        ((1.2, None, None), (1.2, None, None), "One prompt tells nothing about the difference."),
    ],
)
def test_whether_a_tree_pays(tree, chain, words):
    found = [
        {"kind": kind, "nodes": n, "tokens_per_call": 2.0 + n / 4, **dict(zip(("speedup", "low", "high"), times))}
        for kind, n, times in (("tree", 8, tree), ("chain", 2, chain))
    ]
    assert words in verdict(found) and "The fastest tree has 8 nodes" in verdict(found)
    for row in found:
        row["tokens_per_call"] = 2.0
    assert words.replace(", though it has more tokens per call", "") in verdict(found)


def test_the_drafts_temperature_is_on_the_page(capsys):
    COMMANDS[""](draft_temperature=0, temperature=1, n_tokens_to_generate=3)
    assert "K = 3, temperature 1 (of the draft 0), seed 0" in capsys.readouterr().out
    for report in ({"settings": {"draft_temperature": 0.5}}, {"settings": {}}):
        page = where({"machine": "one core", "load_average": 0.0, **report})
        assert ("drafts  at temperature 0.5" in page) == bool(report["settings"])


def test_the_comparison_and_the_museum_write_reports_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    COMMANDS[""](n_tokens_to_generate=5, json=str(tmp_path / "a.json"))
    assert (
        json.loads((tmp_path / "a.json").read_text("utf-8"))["same_tokens"] is True
        and "speedup" in capsys.readouterr().out
    )
    with pytest.raises(ValueError, match="was made with --n_tokens_to_generate 5, not 6"):
        COMMANDS[""](n_tokens_to_generate=6, json=str(tmp_path / "a.json"))


def test_a_progress_bar_is_there_for_parts_alone_and_does_not_stay(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = []
    for n_parts in (0, 4):
        monkeypatch.setattr(sys, "stderr", Terminal())
        with Saved(False, "some", {}) as parts:
            if n_parts:
                parts.expect(n_parts)
        shown.append(sys.stderr.getvalue())
    assert shown[0] == "" and "0/4" in shown[1] and shown[1].endswith(" \r")


def test_bench_shows_the_speedups_of_single_texts():
    seconds = {"ours, alone": [2.0, 3.0], "transformers, alone": [4.0, 2.5]}
    found = {"seconds": seconds, "n_prompts": 2, "same_text": {"ours, alone": 2, "transformers, alone": 1}}
    assert [" ".join(line.split()) for line in generation_lines(found).splitlines()] == [
        "seconds speedup of a text same text",
        "ours, alone 5.00 1.00 1.00 to 1.00 2 of 2",
        "transformers, alone 6.50 0.77 0.50 to 1.20 1 of 2",
    ]


def test_bench_looks_for_room_in_the_draft_model_too(monkeypatch):
    monkeypatch.setattr("command_line.options.HAS_TRANSFORMERS", True)
    monkeypatch.setattr("command_line.bench.n_ctx_of", lambda name, request: {"tiny-draft": 64}.get(name, 512))
    request = Options(sizes="tiny-target", strategies="rows,transformers", n_tokens_to_generate=33, prompt_tokens=0)
    with pytest.raises(ValueError, match="tiny-draft has room for 64 tokens, got 65"):
        check_room(request)
    check_room(replace(request, n_tokens_to_generate=32))


# ------------------------------------------------------------------------------------------------ what a file keeps


def interrupted_after(n, monkeypatch):
    """Interrupt the first run after n parts; later runs are as they are."""
    keep, runs = Saved.keep, []

    def interrupted(self, name, measure):
        if len(self.parts) == n and runs in ([], [self]):
            runs.append(self)
            raise KeyboardInterrupt
        return keep(self, name, measure)

    monkeypatch.setattr(Saved, "keep", interrupted)


@pytest.mark.parametrize("option", [{"tree": "auto"}, {"K": "auto"}], ids=["tree", "K"])
def test_a_run_that_resumes_goes_on_with_the_tree_and_the_costs_that_it_found(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    found = iter([Costs(0.001, 0.05, tuple(1 + 0.01 * k for k in range(17))), Costs(0.001, 0.2, (1.0,) + (1.5,) * 16)])
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: next(found))
    interrupted_after(1, monkeypatch)
    path = tmp_path / "a.json"
    with pytest.raises(KeyboardInterrupt):
        COMMANDS["prompts"](**FEW, prompts="tales", **option, json=str(path))
    notes = json.loads(path.read_text("utf-8"))["notes"]
    COMMANDS["prompts"](**FEW, prompts="tales", **option, json=str(path))
    report, page = json.loads(path.read_text("utf-8")), capsys.readouterr().out
    assert len(notes) == 1 and report["notes"] == notes
    if "tree" in option:
        assert report["measured_tree"] == notes["tree"] and report["tree_nodes"] == notes["tree"]["nodes"]
        assert f"\n{tree_line(report)}\n" in page and "nodes on" in page
    else:
        assert report["costs"] == notes["costs"] and "\ncosts   a plain step 1.00 ms, c = 0.050, v(1..17)" in page


def test_the_load_average_is_that_of_the_runs_that_measured(tmp_path, monkeypatch):
    found, path = [], tmp_path / "a.json"
    for load, name in ((1.0, "one"), (9.0, "two"), (0.5, "three"), (99.0, "three")):
        monkeypatch.setattr("command_line.saved.load_average", lambda load=load: load)
        parts = Saved(str(path), "some", {"seed": 1})
        parts.keep(name, lambda: 1)
        parts.finish({})
        found.append((parts.whole({})["load_average"], json.loads(path.read_text("utf-8"))["load_average"]))
    assert found == [(1, 1), (9, 9), (9, 9), (9, 9)]


def test_a_finished_bench_says_the_same_when_it_is_shown_again(tmp_path, capsys):
    few = {"rows": 1, "context": 5, "prompt_tokens": 0, "repeats": 1, "strategies": "rows", "sizes": "tiny-draft"}
    pages = []
    for _ in range(2):
        COMMANDS["bench"](**few, json=str(tmp_path / "a.json"))
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1] != ""


def test_a_comparison_that_is_measured_again_has_the_load_average_of_its_own(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    for load in (9.0, 1.0):
        monkeypatch.setattr("command_line.saved.load_average", lambda load=load: load)
        COMMANDS[""](n_tokens_to_generate=3, target_model_size="tiny-draft", drafter="suffix", json=str(path))
        assert json.loads(path.read_text("utf-8"))["load_average"] == load


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_a_system_that_does_not_say_its_load(error, monkeypatch):
    def unobtainable():
        raise error

    monkeypatch.setattr("os.getloadavg", unobtainable, raising=False)
    assert load_average() == 0


def test_all_drafters_are_those_that_suit_each_target(capsys, monkeypatch):
    monkeypatch.setattr("gpt2np.load", lru_cache(gpt2np.load))
    COMMANDS["compare_sizes"](**FEW, drafters=",".join(DRAFTERS), target_sizes="tiny-target,tiny-draft", json=True)
    found = json.loads(capsys.readouterr().out)["targets"]
    assert list(found["tiny-target"]["drafters"]) == list(DRAFTERS)
    assert {*DRAFTERS} - {*found["tiny-draft"]["drafters"]} == {"model", "early_exit", "heads"}
