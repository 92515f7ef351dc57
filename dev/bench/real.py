"""The table of the papers with GPT-2's own sizes: time and target calls by draft length, greedy and sampled.

    python dev/bench/real.py real.jsonl                   355M, 774M and 1558M with 124M, K = 1 to 10: an evening
    python dev/bench/real.py real.jsonl --estimate        how long it will take; nothing else runs
    python dev/bench/real.py real.jsonl --table           what is finished, as a table, at any time
    python dev/bench/real.py real.jsonl --prompt_file alpaca.jsonl --n_prompts 100

Other options are those of `compare`; --plot and --csv draw the table. The last command is as large as LMFlow's table,
and takes days. That table is at temperature 0 alone, with the speedup in time and in target calls, and on different
prompts of Alpaca. All targets keep step, so the table of an unfinished file has all of them. After an interruption or a
kill, the same command resumes, and at most one text is lost; it refuses if models, prompts, settings, sources or the
machine have changed. Each greedy text with a draft is compared with that of the target alone, and the latter with
transformers, if it is installed.
"""

import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import fire
import numpy as np
from tqdm import tqdm

from gpt2np.files.loading import find_folder, model_to_find
from gpt2np.files.model_files import find_on_disk
from speculative.cli.commands import compare
from speculative.cli.drafters import rule_of
from speculative.cli.experiments import experiments_of, name_of
from speculative.cli.journal import Journal, machine
from speculative.cli.models import ENGINES
from speculative.cli.settings import settings_of
from speculative.cli.words import read
from speculative.measuring import Run
from speculative.measuring.plot import plot as draw
from speculative.measuring.rows import Result, rows_of
from speculative.measuring.table import csv_of, page_of

USUAL = {
    "target_model_size": "355M,774M,1558M", "draft_model_size": "124M", "K": "1-10", "temperature": "0,1",
    "n_tokens_to_generate": "512",
}  # fmt: skip
N_PROMPTS, N_TRY = 3, 16  # an evening's; the tokens of each text for the estimate
GIGABYTES = {"124M": 0.5, "355M": 1.5, "774M": 3.2, "1558M": 6.4}  # to download


@fire.decorators.SetParseFn(str)
def main(file, n_prompts=str(N_PROMPTS), estimate="", table="", plot="", csv="", **texts):
    if table:
        show(Path(file), plot, csv)
        return
    n_prompts = compare.whole(1)(n_prompts)
    options = read(compare, "compare", (), USUAL | texts).but(n_prompts=n_prompts)
    settings, _ = settings_of(options)
    announce_downloads(settings, estimate)
    about = {"n_prompts": n_prompts, "times on": machine()}
    with Journal(file, options, about=about) as journal:
        journal.keep("settings", lambda: {"settings": [described(one, label) for one, label in settings]})
        pairs = {}  # the settings of each target
        for one, label in settings:
            pairs.setdefault(one.target_model_size, []).append((one, label))
        seconds = [estimated(pair, journal) for pair in pairs.values()]
        print(f"together about {tqdm.format_interval(sum(seconds))}", flush=True)
        if estimate:
            return
        journal.expect(sum(len(parts_of(pair, 1)) for pair in pairs.values()) * n_prompts)
        for n in (1, *range(10, n_prompts + 10, 10)):
            for pair in pairs.values():
                run(pair, min(n, n_prompts), journal)
    show(Path(file), plot, csv)


def announce_downloads(settings, estimate):
    """Say which models are not on this disk; ValueError if they are wanted for an estimate alone."""
    named = {(name, one.models_dir) for one, _ in settings for name in (one.target_model_size, one.draft_model_size)}
    missing = [
        name for name, folder in sorted(named) if model_to_find(name, folder) and not find_on_disk(name, Path(folder))
    ]
    if missing and estimate:
        raise ValueError(f"--estimate runs models on this disk: {', '.join(missing)} would have to be downloaded first")
    if missing:
        print(f"to download: {', '.join(missing)}, {sum(map(GIGABYTES.get, missing)):.1f} GB", flush=True)


def described(one, label):
    """What the table needs of a setting, in plain JSON."""
    exactness, names = rule_of(one).exactness, (one.target_model_size, one.draft_model_size)
    return {"names": names, "temperature": one.temperature, "K": one.K, "label": label, "exactness": exactness}


def part_of(target, temperature, i, label):
    """The name of a text in the journal: with the setting's label, or None for the target alone."""
    name = name_of(label) if label is not None else "alone"
    return f"{target}, temperature {temperature:g}, prompt {i}, lap 1, {name}"


def parts_of(pair, i):
    """The names of a prompt's texts."""
    keys = [(options.temperature, label) for options, label in pair]
    keys = [*((temperature, None) for temperature in dict.fromkeys(temperature for temperature, _ in keys)), *keys]
    return [part_of(pair[0][0].target_model_size, temperature, i, label) for temperature, label in keys]


def experiments(pair, n):
    """An `Experiment` on the first n prompts for each temperature."""
    for experiment in experiments_of(pair, problems := {}):
        if problems:
            raise ValueError(next(iter(problems)))
        options = experiment.samplers["alone"].options
        name = f"{options.target_model_size}, temperature {options.temperature:g}"
        yield replace(experiment, prompts=experiment.prompts[:n], name=name)


def estimated(pair, journal):
    """The seconds that a pair will take, from the first tokens of the first prompt."""
    options = pair[0][0]

    def measure():
        seconds, scale = 0.0, options.n_tokens_to_generate / N_TRY
        for experiment in experiments(pair, 1):
            for [run] in replace(experiment, n_tokens=N_TRY).run().values():
                seconds += scale * run.seconds + 2 * run.prefill_seconds
        return {"seconds": seconds, "bytes": 4 * sum(model.n_params for model in experiment.caches)}

    part = journal.keep(f"{options.target_model_size}, estimate", measure)
    seconds = part["seconds"] * options.n_prompts
    about = f"about {tqdm.format_interval(seconds)}, {part['bytes'] / 1e9:.1f} GB of memory"
    print(f"{options.target_model_size}: {about}", flush=True)
    return seconds


def run(pair, n, journal):
    """The texts of a pair for its first n prompts, as far as they are missing; then those of transformers."""
    options = pair[0][0]
    checks = [f"{options.target_model_size}, transformers, prompt {i}" for i in range(1, n + 1)]
    if not {*parts_of(pair, n), checks[-1]} <= journal.parts.keys():
        for experiment in experiments(pair, n):
            experiment.run(journal.keep)
        prompts = experiment.prompts
        del experiment  # transformers loads its own copy
        names = [part_of(options.target_model_size, 0, i + 1, None) for i in range(len(prompts))]
        compare_with_transformers(options, checks, prompts, [*map(journal.parts.get, names)], journal)


def compare_with_transformers(one, checks, prompts, texts, journal):
    """Compare greedy texts with transformers, in one pass each: the largest logit is that of the text's next token."""
    new = [i for i, name in enumerate(checks) if name not in journal.parts and texts[i]]
    folder = find_folder(one.target_model_size, Path(one.models_dir))
    if not (new and find_spec("transformers") and find_spec("torch") and (folder / "config.json").exists()):
        return
    model, _ = ENGINES["transformers_float32"].load(str(folder), one)
    for i in new:
        tokens = texts[i]["tokens"]
        rows = model([*prompts[i].tokens, *tokens[:-1]], n_last=len(tokens))  # [n, n_vocab]
        gaps = rows.max(axis=1) - rows[np.arange(len(tokens)), tokens]
        journal.keep(checks[i], lambda gaps=gaps: {"other": int((gaps > 0).sum()), "gap": float(gaps.max())})


# ------------------------------------------------------------------------------------------------ the table


def show(path, plot="", csv=""):
    """Print the table of the prompts that all settings of a target have finished."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    head, *parts = map(json.loads, lines)
    parts, options = {part.pop("part"): part for part in parts}, head["options"]
    settings, raced = parts["settings"]["settings"], []
    for one in settings:
        target, draft = one["names"]
        keys = [(each["temperature"], each["label"]) for each in settings if each["names"][0] == target]
        keys += [(temperature, None) for temperature, _ in keys]
        numbers = range(1, head["n_prompts"] + 1)
        finished = [i for i in numbers if all(part_of(target, t, i, label) in parts for t, label in keys)]
        alone, runs = (
            [Run(**parts[part_of(target, one["temperature"], i, label)]) for i in finished]
            for label in (None, one["label"])
        )
        about = {"setting": one["label"], "target": {"name": target}, "draft": {"name": draft}, "costs": None}
        is_one_text, n_tokens = one["temperature"] == 0, int(options["--n_tokens_to_generate"])
        if finished:
            raced.append(Result(about, one["exactness"], is_one_text, one["K"], n_tokens, [], alone, runs))
    if not raced:
        raise ValueError(f"{path} has no prompt yet that is finished with every setting")
    rows, fixed = rows_of(raced), {"prompts": options.get("--prompt_file", "tales")}
    print(page_of(rows, fixed, head["machine"]))
    for target in dict.fromkeys(row["target"]["name"] for row in rows):
        checks = [part for name, part in parts.items() if name.startswith(f"{target}, transformers")]
        if checks:
            same = sum(part["other"] == 0 for part in checks)
            print(f"{target}: {same} of {len(checks)} greedy texts are transformers' own")
    if csv:
        Path(csv).write_text(csv_of(rows), encoding="utf-8")
    if plot:
        draw(plot, plot.rpartition(".")[2], rows)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        fire.Fire(main)
    except KeyboardInterrupt as error:
        sys.exit(f"\ninterrupted; {error}")
    except (ValueError, OSError) as error:
        sys.exit(f"real.py: {error}")
