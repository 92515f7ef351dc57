"""What all commands share: reports, plots, refusals before anything is measured, and that a file makes a command."""

import sys
from dataclasses import fields, make_dataclass
from types import ModuleType

import pytest
from command import EXPERIMENTS, refusal, run_here

from speculative.cli import commands, help
from speculative.cli.commands import Command, experiment, find_commands
from speculative.cli.options import ENTRIES, Choice, Options, entry
from speculative.cli.report import Saved

COMMANDS = find_commands()


def test_every_experiment_is_tried():
    assert EXPERIMENTS.keys() == {command.name for command in COMMANDS.values() if "plot" in command.options}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_report_says_what_was_asked_for(small, name):
    report, page, _ = small(name)
    assert report["command"] == name and report["finished"] is True and report["parts"]
    assert "json" not in report["settings"] and report["machine"] in page


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
    "bench": ("models", ("1", "2", "3")),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_number_of_the_table_is_in_the_plot(small, name):
    plt = pytest.importorskip("matplotlib.pyplot")
    (report, _, path), (part, names) = small(name), PLOTTED[name]
    some = [row["kinds"]["all"] for row in report["rows"]] if part == "all" else report[part]
    figure = sys.modules[f"speculative.cli.commands.{name}"].plot(report)
    drawn = [line.get_xydata().ravel() for axes in figure.axes for line in axes.lines]
    drawn += [[bar.get_width()] for axes in figure.axes for bar in axes.patches]
    texts = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    plt.close(figure)
    drawn, wanted = {round(float(x), 9) for xs in drawn for x in xs}, numbers_of(some, names)
    absent = [x for x in wanted if round(x, 9) not in drawn and f"{x:.2f} times as fast" not in texts]
    assert len(wanted) >= 4 and not absent
    assert min(plt.imread(path).shape[:2]) > 300


FEW = ("--n_prompts=3", "--n_tokens_to_generate=4")
ONE = ("--n_tokens_to_generate=1",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gamma_table", "--drafter=suffix"], "gamma_table needs a drafter with probabilities along a given text (mo"),
        (["calibrate", "--drafter=eagle"], "calibrate needs a drafter with probabilities along a given text (model, n"),
        (["method_table", "--K=auto"], "method_table needs one draft length for all, got --K auto: give a number"),
        *(
            ([name, *ONE], "--n_tokens_to_generate: expected a whole number of 2 or more, got 1")
            for name in ("calibrate", "drafters", "prompts", "method_table", "tree_table", "compare_sizes")
        ),
        (["calibrate", "--n_prompts=2"], "--n_prompts: expected a whole number of 3 or more, got 2"),
        (["calibrate", "--n_tokens_to_generate=500"], "prompt 1 of 36: prompt has 32 tokens and n_tokens is 500, but"),
        (["drafters", "--n_tokens_to_generate=300"], "n_ctx is 512: generate at most 280"),
        (
            ["compare_sizes", "--drafters=ngram,heads", "--verifier=block"],
            "drafter heads needs a verifier that",
        ),
        (
            ["method_table", "--drafters=ngram,heads", "--verifiers=block"],
            "drafter heads needs a verifier that",
        ),
        (["compare_sizes", "--draft_model_size=no"], "--draft_model_size: unknown model 'no'"),
        (["alpha_table", "--target_sizes=tiny-target,nowhere"], "--target_sizes: unknown model 'nowhere'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(arguments, message, monkeypatch):
    monkeypatch.setattr(Saved, "keep", lambda *_: 1 / 0)
    assert message in refusal(*arguments)


def test_plots_need_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setattr("speculative.cli.options.find_spec", lambda name: None)
    assert refusal("drafters", "--plot", tmp_path / "a.png").startswith(
        "--plot needs matplotlib, which is not installed"
    )


def test_a_command_is_a_file(monkeypatch, capsys):
    """As in CONTRIBUTING.md: a module with a COMMAND in the folder is in the help, and runs."""
    module = ModuleType("speculative.cli.commands.count")
    module.COMMAND = experiment(
        "count",
        "how many prompts there are",
        lambda options, saved: {"n": saved.keep("n", lambda: options.n_prompts)},
        lambda report: f"{report['n']} prompts on {report['machine']}\n",
        options={"n_prompts", "json"},
        defaults={"n_prompts": 5},
        example="--n_prompts 7",
    )
    found = type("Found", (), {"name": "count"})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(commands, "iter_modules", lambda path: [found])
    assert "5 prompts on " in run_here("count").stdout and "7 prompts on " in run_here("count", "--n_prompts=7").stdout
    page = run_here("count", "--help").stdout
    assert page.startswith("How many prompts there are.\n\n    python main.py count\n    python main.py count --n_prom")
    assert "--n_prompts N" in page and "(5)" in page and "--K" not in page


def test_an_option_is_an_entry(monkeypatch):
    """As in CONTRIBUTING.md: reading, checking and help follow from it."""
    shout = entry("hi", "TEXT", Choice(("hi", "ho")), "what to shout")
    with_shout = make_dataclass("WithShout", [("shout", str, shout)], bases=(Options,), frozen=True)
    monkeypatch.setitem(ENTRIES, "shout", fields(with_shout)[-1])
    monkeypatch.setattr(commands, "Options", with_shout)
    monkeypatch.setattr(help, "Options", with_shout)
    toy = Command("toy", "shouts", lambda options, saved: print(options.shout.upper()), {"shout"})
    monkeypatch.setattr("speculative.cli.main.find_commands", lambda: {**COMMANDS, "toy": toy})
    assert run_here("toy").stdout == "HI\n" and run_here("toy", "--sh", "ho").stdout == "HO\n"
    assert refusal("toy", "--shout=Hoo") == "--shout: there is no 'Hoo': did you mean ho?"
    assert "--shout TEXT            what to shout (hi)\n" in run_here("toy", "--help").stdout
