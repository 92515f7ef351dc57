"""`bench`: how long a pass takes."""

import json
import re
from dataclasses import replace

import pytest
from command import refusal, run_here, words

from gpt2np import HParams
from speculative.cli.commands.bench import check_room, generation_lines
from speculative.cli.options import Options

FEW = ("--rows=3", "--context=5", "--prompt_tokens=5", "--repeats=1", "--strategies=panels,rows,plain")


def test_it_measures_each_strategy_and_says_the_same_when_it_is_shown_again(tmp_path):
    arguments = ("bench", "--sizes=tiny-draft,tiny-target", *FEW, "--json", tmp_path / "report.json")
    result, data = run_here(*arguments), json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert result.returncode == 0 and result.stderr.count("\n") == 2
    draft, target = data["models"]
    assert (draft["name"], target["name"]) == ("tiny-draft", "tiny-target") and draft["weights"] == "trained"
    for model in data["models"]:
        assert list(model["strategies"]) == ["panels", "rows", "plain"]
        assert model["bytes"] == 4 * model["parameters"]
        for entry in model["strategies"].values():
            assert list(entry["seconds"]) == ["1", "2", "3", "prompt"] and list(entry["v"]) == ["1", "2", "3"]
            assert all(0 < low <= middle <= high for low, middle, high in entry["seconds"].values())
            one = entry["seconds"]["1"][1]
            assert entry["v"]["3"] == entry["seconds"]["3"][1] / one and entry["v"]["1"] == 1
            assert entry["over_limit"] == one / model["limit_seconds"][0] >= 1  # nothing beats the limit
            assert entry["threads"] >= 1
    seconds = [model["strategies"][model["strategy"]]["seconds"]["1"][1] for model in (draft, target)]
    assert data["c"] == seconds[0] / seconds[1] and "generation" not in data
    sharing = f"; sharing costs {1e3 * data['hand_over_seconds']:.2f} ms a product here, up to four times a layer\n"
    assert data["hand_over_seconds"] > 0 and (sharing in result.stdout) == (data["matmul"]["n_threads"] > 1)
    assert len(re.findall(r"^(panels|rows|plain) +\d+ +\d+\.\d\d ± ", result.stdout, re.M)) == 6
    assert run_here(*arguments).stdout == result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sizes", "5"), "unknown model '5': expected "),
        (("--sizes", ","), "--sizes: expected values separated by commas, got ','"),
        (
            ("--strategies", "panels,fast"),
            "--strategies: expected one of panels, rows, plain, transformers, got",
        ),
        (("--rows", "100000"), "--rows: expected a whole number from 1 to 1023, got 100000"),
        (
            ("--sizes", "124M,tiny-draft", "--context", "600"),
            "--context and --rows: tiny-draft has room for 512 tokens",
        ),
        (
            ("--sizes", "tiny-draft", "--prompt_tokens", "600"),
            "--prompt_tokens: tiny-draft has room for 512 tokens, got",
        ),
        (("--colour", "red"), "unknown option --colour for bench: see bench --help"),
    ],
)
def test_what_cannot_be_measured(arguments, message):
    assert message in refusal("bench", *arguments)


def test_the_speedups_of_single_texts():
    seconds = {"ours, alone": [2.0, 3.0], "transformers, alone": [4.0, 2.5]}
    found = {"seconds": seconds, "n_prompts": 2, "same_text": {"ours, alone": 2, "transformers, alone": 1}}
    assert words(generation_lines(found)) == [
        "seconds speedup of a text same text",
        "ours, alone 5.00 1.00 1.00 to 1.00 2 of 2",
        "transformers, alone 6.50 0.77 0.50 to 1.20 1 of 2",
    ]


def test_the_draft_model_needs_room_too(monkeypatch):
    monkeypatch.setattr("speculative.cli.options.HAS_TRANSFORMERS", True)
    shape = lambda name, options: HParams(2048, {"tiny-draft": 64}.get(name, 512), 64, 4, 2)  # noqa: E731
    for module in ("inputs", "commands.bench"):
        monkeypatch.setattr(f"speculative.cli.{module}.hparams_of", shape)
    options = Options(sizes="tiny-target", strategies="rows,transformers", n_tokens_to_generate=33, prompt_tokens=0)
    with pytest.raises(ValueError, match="tiny-draft has room for 64 tokens, got 65"):
        check_room(options)
    check_room(replace(options, n_tokens_to_generate=32))
