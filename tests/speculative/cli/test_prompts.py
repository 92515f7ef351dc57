"""`prompts`: native against assisted, prompt by prompt."""

import json
import re

import pytest
from command import PAIR, refusal, report_of, run_here, words

from speculative import Costs
from speculative.cli.commands.prompts import about_texts, table
from speculative.cli.inputs import KNOWN
from speculative.cli.report import Saved
from speculative.cli.tables import tree_line


def test_the_page(small):
    report, page, _ = small("prompts")
    assert [row["prompt"] for row in report["rows"]] == list(KNOWN) and len(KNOWN) == 7
    rows = re.findall(r"^(.{40}) +(\d+\.\d\d) +\d+ +(\d+\.\d\d) +\d+ +\d+\.\d\d +\d\.\d\d  (yes|7 of 7)$", page, re.M)
    assert [row[0].rstrip() for row in rows] == [*(row["beginning"] for row in report["rows"]), "all 7"]
    assert report["all"]["seconds"] == pytest.approx(sum(row["seconds"] for row in report["rows"]))


def test_tokens_per_second_of_all_prompts_count_the_tokens_of_all():
    total = {
        "native_seconds": 2.0, "seconds": 1.0, "speedup": 2.0, "tokens_per_call": 3.0, "same_texts": 2, "low": 1.5,
        "high": 2.5,
    }  # fmt: skip
    row = {**total, "native_seconds": 1.0, "seconds": 0.5, "beginning": "Once", "same_text": True}
    page = words(table({
        "target": {"name": "t"}, "draft": {"name": "d"}, "machine": "any", "all": total, "rows": [row, row],
        "n_tokens": 10, "K": 3, "temperature": 0, "verifier": "rejection", "exactness": "exact", "tree": "",
        "costs": None, "measured_tree": None, "categories": [], "spec_bench": "", "with_prefill": total,
    }))  # fmt: skip
    assert page.count("Once 1.00 10 0.50 20 2.00 3.00 yes") == 2 and "all 2 2.00 10 1.00 20 2.00 3.00 2 of 2" in page


def test_both_texts_of_every_prompt_in_the_log(tmp_path):
    (tmp_path / "prompts").write_text("Once upon a time\nThere was\n", encoding="utf-8")
    small = ("--temperature=1", "--n_tokens_to_generate=9", *PAIR, "--json")
    result = run_here("prompts", "--prompt_file", tmp_path / "prompts", "--log", tmp_path / "a.txt", *small)
    report, log = json.loads(result.stdout), (tmp_path / "a.txt").read_text(encoding="utf-8")
    for i, row in enumerate(report["rows"], 1):
        same = "the same text" if row["same_text"] else "another text"
        assert f"=== {i}\n{row['prompt']}\n\n--- native, {row['native_seconds']:.3f} s\n{row['native']}\n" in log
        assert f"--- assisted, {row['seconds']:.3f} s, {same}\n{row['assisted']}\n" in log
    assert "parts" not in report and report["command"] == "prompts"


@pytest.mark.parametrize(
    ("temperature", "rule", "exactness", "sentence"),
    [
        (0, "rejection", "exact", "both texts should be the same"),
        (1, "gumbel", "exact", "both texts should be the same"),
        (1, "rejection", "exact", "both texts have one distribution but may differ"),
        (1, "typical", "LOSSY", "LOSSY: the texts do not even have the same distribution"),
    ],
)
def test_what_to_expect_of_the_texts(temperature, rule, exactness, sentence):
    assert sentence in about_texts({"temperature": temperature, "verifier": rule, "exactness": exactness})


@pytest.mark.parametrize("option", ["tree", "K"])
def test_a_run_that_resumes_goes_on_with_the_tree_and_the_costs_that_it_found(option, tmp_path, monkeypatch, quick):
    found = iter([Costs(0.001, 0.05, tuple(1 + 0.01 * k for k in range(17))), Costs(0.001, 0.2, (1.0,) + (1.5,) * 16)])
    monkeypatch.setattr("speculative.measure_costs", lambda *_, **options: next(found))
    keep, path = Saved.keep, tmp_path / "a.json"
    words = ("prompts", "--prompts=tales", "--n_prompts=3", "--n_tokens_to_generate=4", f"--{option}=auto")

    def interrupted(saved, name, measure):
        if saved.parts:
            raise KeyboardInterrupt
        return keep(saved, name, measure)

    with monkeypatch.context() as patch:
        patch.setattr(Saved, "keep", interrupted)
        assert run_here(*words, "--json", path).returncode == 130
    notes = json.loads(path.read_text("utf-8"))["notes"]
    page, report = run_here(*words, "--json", path).stdout, json.loads(path.read_text("utf-8"))
    assert len(notes) == 1 and report["notes"] == notes
    if option == "tree":
        assert report["measured_tree"] == notes["tree"] and report["tree_nodes"] == notes["tree"]["nodes"]
        assert f"\n{tree_line(report)}\n" in page and " nodes, depth " in page
    else:
        assert (
            report["costs"] == notes["costs"]
            and "\ncosts   an autoregressive step 1.00 ms, c = 0.050, v(1..17)" in page
        )


def test_as_many_of_the_known_prompts_as_are_asked_for():
    report = report_of("prompts", *PAIR, "--n_prompts=3", "--n_tokens_to_generate=2")
    assert [row["beginning"][:4] for row in report["rows"]] == ["Name", "Give", "Gene"]


# ------------------------------------------------------------------------------------------------ benchmarks

QUESTIONS = [  # as in Spec-Bench, as in SPEED-Bench, and plain ones
    {"question_id": 81, "category": "writing", "turns": ["Once upon a time\nthere was\n" * 9, "And then?"]},
    {"question_id": 82, "category": "writing", "turns": ["The king"], "reference": ["a king"]},
    {"question_id": "b2", "category": "rag", "turns": ["The queen said", "Why?", "And?"]},
    {"category": "rag", "prompt": 'A fox said: "I'},
    {"question_id": 90, "category": "rag", "prompt": "In the wood"},
    {"question_id": 91, "category": "rag", "prompt": "so long " * 300},
]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """(folder, report, what was printed, what was noted) of these questions, with the files of answers."""
    folder = tmp_path_factory.mktemp("benchmark")
    (folder / "question.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")
    names = ("--spec_bench", folder / "a.jsonl", "--json", folder / "a.json", "--plot", folder / "a.png")
    result = run_here("prompts", "--prompt_file", folder / "question.jsonl", "--n_tokens_to_generate=16", *names)
    assert result.returncode == 0, result.stderr
    return folder, json.loads((folder / "a.json").read_text("utf-8")), result.stdout, result.stderr


def test_questions_of_a_benchmark_by_category(benchmark):
    _, report, page, notes = benchmark
    rows = report["rows"]
    assert [row["prompt"] for row in rows] == [
        "Once upon a time\nthere was\n" * 9, "The king", "The queen said", 'A fox said: "I', "In the wood"
    ]  # fmt: skip
    assert [row["question_id"] for row in rows] == [81, 82, "b2", 4, 90]
    assert "note: left out: 1 of 6 prompts, too long for n_ctx 512 with 16 new tokens\n" in notes
    assert "note: left out: 3 further turns, which only a model with a chat template can answer\n" in notes
    for found, name, some in zip(report["categories"], ("writing", "rag", "all"), (rows[:2], rows[2:], rows)):
        assert (found["beginning"], found["n_texts"]) == (name, len(some))
        per_call = 16 * len(some) / sum(len(row["lengths"]) for row in some)
        speedup = sum(row["native_seconds"] for row in some) / sum(row["seconds"] for row in some)
        assert (found["tokens_per_call"], found["speedup"]) == pytest.approx((per_call, speedup))
        calls, times = (
            f"{found[low]:.2f} to {found[high]:.2f}" for low, high in (("calls_low", "calls_high"), ("low", "high"))
        )
        line = f"{name} {len(some)} {per_call:.2f} {calls} {speedup:.2f} {times} {len(some)}"
        assert line in words(page)


def speed_py(answers, alone, count):
    """(mean accepted tokens, speedup) as Spec-Bench's evaluation/speed.py computes them."""
    choices = [
        [json.loads(line)["choices"][0] for line in path.read_text("utf-8").splitlines()] for path in (answers, alone)
    ]
    lengths = [length for choice in choices[0] for length in choice["accept_lengths"]]
    speeds = [sum(choice["new_tokens"]) / sum(choice["wall_time"]) for choice in choices[0]]
    speeds_alone = [
        sum(count(turn) - 1 for turn in choice["turns"]) / sum(choice["wall_time"]) for choice in choices[1]
    ]
    return sum(lengths) / len(lengths), sum(speeds) / len(speeds) / (sum(speeds_alone) / len(speeds_alone))


def test_the_answers_are_those_that_spec_bench_reads(benchmark, tiny_pair):
    folder, report, page, _ = benchmark
    files = folder / "a.jsonl", folder / "a-baseline.jsonl"
    for path, model_id in zip(files, ("tiny-target with tiny-draft", "tiny-target")):
        for line, row in zip(path.read_text("utf-8").splitlines(), report["rows"], strict=True):
            answer = json.loads(line)
            (choice,) = answer.pop("choices")
            assert answer.keys() == {"question_id", "category", "answer_id", "model_id", "tstamp"}
            assert [answer[name] for name in ("question_id", "category")] == [row["question_id"], row["category"]]
            assert answer["model_id"] == model_id and choice["index"] == 0 and choice["turns"] == [row["native"]]
            assert choice["new_tokens"] == [sum(choice["accept_lengths"])] == [16]
            assert choice["decoding_steps"] == [len(choice["accept_lengths"])]
            assert choice["wall_time"][0] >= row["seconds" if path == files[0] else "native_seconds"]
    assert set(choice["accept_lengths"]) == {1}
    accepted, speedup = speed_py(*files, lambda text: len(tiny_pair[2].encode(text)))
    assert f"\nmean accepted tokens {accepted:.2f} over all calls (Spec-Bench; tokens per call)\n" in page
    assert report["mean_speedup"] == pytest.approx(speedup * 15 / 16)  # Vicuna's BOS
    assert f"{report['mean_speedup']:.2f} ratio of the mean tokens per second (Spec-Bench)" in words(page)
    assert f"speedup {report['with_prefill']['speedup']:.2f} ratio of the total times, with prefill" in words(page)
    assert f"--file-path {files[0].resolve()} --base-path {files[1].resolve()} --tokenizer-path " in page
    assert "its speedup is 1.067 times as large" in page


def test_prefill_is_timed_beside_the_rest(benchmark):
    _, report, page, _ = benchmark
    with_prefill = report["with_prefill"]
    native, assisted = (
        sum(row[f"{prefix}seconds"] + row[f"{prefix}prefill_seconds"] for row in report["rows"])
        for prefix in ("native_", "")
    )
    assert native > report["all"]["native_seconds"] and with_prefill["speedup"] == pytest.approx(native / assisted)
    interval = f"{with_prefill['low']:.2f} to {with_prefill['high']:.2f}"
    assert f"With prefill, the speedup of all is {with_prefill['speedup']:.2f} ({interval}).\n" in page


@pytest.mark.parametrize(
    "line", ["Once", "[]", '{"text": "a"}', '{"turns": []}', '{"turns": "a"}', '{"prompt": 3}', '{"turns": [["a"]]}']
)
def test_a_line_that_is_no_question(line, tmp_path):
    (tmp_path / "a.jsonl").write_text(f'{{"prompt": "a"}}\n{line}\n', encoding="utf-8")
    message = refusal("prompts", "--prompt_file", tmp_path / "a.jsonl")
    assert message.startswith('--prompt_file: expected {"prompt": TEXT} or {"turns": [TEXT, ...]}, "category"')
    assert f"in line 2 of {tmp_path / 'a.jsonl'}, got {line!r}" in message


def test_questions_that_are_all_too_long(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(QUESTIONS[-1]), encoding="utf-8")
    assert "prompt 1 of 1: prompt has 601 tokens" in refusal("prompts", "--prompt_file", tmp_path / "a.jsonl")


def test_a_template_around_every_prompt(tmp_path):
    (tmp_path / "a.txt").write_text("Who?\nWhy?\n", encoding="utf-8")
    template, few = "--prompt_template=A: {prompt}\\nB:", "--n_tokens_to_generate=2"
    report = report_of("prompts", *PAIR, few, "--prompt_file", tmp_path / "a.txt", template)
    assert [row["prompt"] for row in report["rows"]] == ["A: Who?\nB:", "A: Why?\nB:"] and report["categories"] == []
    report = report_of("prompts", *PAIR, few, "--n_prompts=3", template)
    assert [row["prompt"] for row in report["rows"]] == [f"A: {prompt}\nB:" for prompt in KNOWN[:3]]
    assert report_of(*PAIR, few, template, "--prompt", "a\nb")["prompt"] == "A: a\nb\nB:"


def test_a_template_needs_a_place_for_the_prompt():
    message = refusal("--prompt_template", "### Human:")
    assert message.startswith(
        "--prompt_template: expected a text with {prompt} where the prompt goes, such as '### Hum"
    )
    assert message.endswith("got '### Human:'")
    message = refusal("prompts", "--prompts=tales", "--prompt_template={prompt}")
    assert message == "--prompt_template is for --prompt_file and --prompts known: leave --prompt_template out"
