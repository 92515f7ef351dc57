"""From a report of `compare` to Spec-Bench's files of answers, with the metrics of Spec-Bench and SPEED-Bench:

    python main.py compare --prompt_file question.jsonl --json report.jsonl
    python dev/bench/spec_bench.py report.jsonl answers.jsonl [SETTING]

Writes the answers of a setting, by its number (1), to answers.jsonl and those of the target alone to
answers-baseline.jsonl, as Spec-Bench's evaluation/speed.py reads them; neither may exist. Benchmarks give the same
names to different averages. Here all are computed from one list per question: the number of tokens that each target
call added, including the correction or bonus. Sources: Spec-Bench (Xia et al., arXiv:2401.07851), evaluation/eval.py
and speed.py; SPEED-Bench (arXiv:2604.09557) for the rates.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from time import time

import numpy as np

from speculative.cli.models import ENGINES
from speculative.cli.options import Options

OF_A_MODEL = ("target_model_size", "engine", "models_dir", "source")


def acceptance_lengths(lengths):
    """A dict of metrics. For each question, `lengths` contains a list: the number of tokens that each call added.

    >>> metrics = acceptance_lengths([[3, 1], [2, 2, 2, 2]])
    >>> round(metrics["mean accepted tokens"], 2), metrics["average AL"], metrics["calls by length"]
    (2.0, 2.0, {1: 1, 2: 4, 3: 1})
    >>> metrics["joint rate"], metrics["conditional rate"]
    ({2: 0.83, 3: 0.17}, {2: 0.83, 3: 0.2})
    """
    calls = [length for question in lengths for length in question]
    joint = {k: sum(length >= k for length in calls) / len(calls) for k in range(1, max(calls) + 1)}
    return {
        "mean accepted tokens": float(np.mean(calls)),  # over all calls (Spec-Bench): our tokens per call
        "average AL": float(
            np.mean([np.mean(question) for question in lengths])
        ),  # of each question's mean (SPEED-Bench)
        "calls by length": dict(sorted(Counter(calls).items())),
        "joint rate": {k: round(share, 2) for k, share in joint.items() if k > 1},  # SPEED-Bench: P(length >= k)
        "conditional rate": {k: round(share / joint[k - 1], 2) for k, share in joint.items() if k > 1},
    }


def mean_speed(runs):
    """Spec-Bench's tokens per second: the mean over the questions, including prefill.

    The ratio of two such means is not the ratio of the total times, in which a slow question counts for more.
    """
    return float(np.mean([len(run["tokens"]) / (run["seconds"] + run["prefill_seconds"]) for run in runs]))


def lengths_of(run):
    """The number of tokens that each call added."""
    return [call[0] for call in run["calls"]]


def answers(questions, runs, decode, model_id):
    """The lines of Spec-Bench's file of answers."""
    for (question_id, category, _), run in zip(questions, runs):
        choice = {
            "index": 0, "turns": [decode(run["tokens"])], "decoding_steps": [len(run["calls"])],
            "new_tokens": [len(run["tokens"])], "wall_time": [run["seconds"] + run["prefill_seconds"]],
            "accept_lengths": lengths_of(run),
        }  # fmt: skip
        about = {"question_id": question_id, "category": category, "model_id": model_id, "tstamp": time()}
        yield json.dumps({**about, "answer_id": f"{model_id}, {question_id}", "choices": [choice]})


def main(report, path, setting="1"):
    if not setting.isdecimal():
        raise ValueError(f"expected the number of a setting, got {setting}")
    head, *lines = map(json.loads, Path(report).read_text("utf-8").splitlines())
    parts = {line["part"]: line for line in lines}
    path = Path(path)
    n = int(setting)
    baseline = path.with_stem(f"{path.stem}-baseline")
    if existing := [str(file) for file in (path, baseline) if file.exists()]:
        raise ValueError(f"{' and '.join(existing)} would be overwritten: name a different file")
    if "group 2" in parts:
        raise ValueError("expected a report on one text of the target alone, got one with several: leave out lists")
    questions, (_, *labels) = parts["group 1"]["prompts"], parts["group 1"]["settled"]
    if not 1 <= n <= len(labels):
        raise ValueError(f"expected a setting from 1 to {len(labels)}, got {n}")
    label, numbers = labels[n - 1], range(1, len(questions) + 1)
    alone, runs = ([parts[f"group 1, prompt {i}, lap 1, {name}"] for i in numbers] for name in ("alone", label))
    options = Options(**{name: head["options"].get(f"--{name}", getattr(Options, name)) for name in OF_A_MODEL})
    target = options.target_model_size
    decode = ENGINES[options.engine].load(target, options)[1].decode
    for file, answered, name in ((path, runs, f"{target} with {label}"), (baseline, alone, target)):
        file.write_text("\n".join(answers(questions, answered, decode, name)) + "\n", encoding="utf-8")
    print(f"{'answers of':22}{target} with {label}")
    for name, value in acceptance_lengths([*map(lengths_of, runs)]).items():
        print(f"{name:22}{value:.2f}" if isinstance(value, float) else f"{name:22}{value}")
    print(f"{'speedup':22}{mean_speed(runs) / mean_speed(alone):.2f} ratio of the mean tokens per second (Spec-Bench)")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    try:
        main(*sys.argv[1:])
    except KeyError:
        raise SystemExit(f"spec_bench.py: {sys.argv[1]} is not a finished report of compare") from None
    except (ValueError, OSError) as error:
        raise SystemExit(f"spec_bench.py: {error}") from None
