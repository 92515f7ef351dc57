"""The same prompts by the target alone and by each of several settings, in turn: speedup, tokens per call, acceptance.

Most options may be lists: --K 1,2,4 or --K 1-8 or --drafter all. Each combination is a setting, and a row of the table.
Settings that do not work are left out, and an option that a drafter does not use does not multiply its rows.
"""

import os
from dataclasses import dataclass

from gpt2np.files.writing import replacing
from speculative.measuring.plot import plot
from speculative.measuring.rows import rows_of
from speculative.measuring.table import csv_of, in_words, page_of

from .. import options as shared
from ..experiments import experiments_of, results_of
from ..files import say
from ..journal import Journal
from ..options import DRAFTING, ENDS, FILES, PAIR, PROMPTS, SAMPLING, all_entries, option
from ..settings import settings_of
from ..values import Choice, Written, inches, whole

TAKES = PAIR + DRAFTING + SAMPLING + ENDS + PROMPTS + FILES
LISTS = (PAIR + DRAFTING + SAMPLING + "prompts n_lanes").split()
DEFAULTS = {"n_tokens_to_generate": 64, "prompts": "tales"}
SHOWN = ("drafter", "K", "verifier", "temperature", "n_tokens_to_generate", "prompts")  # above the table, unless in it
EXAMPLES = (
    "--K 1-10 --temperature 0,1 --plot gamma.png",
    "--drafter all --K 1,2,4,8 --best K --prompts tales,repeating",
    "--drafter model,heads --tree 0,4,8,16 --json trees.jsonl",
    "--target_model_size 355M,774M --drafter model,eagle",
    "--prompt_file questions.jsonl --by category --csv table.csv",
    "--n_lanes 1,2,4,8,16,32 --n_prompts 32 --K 1,3 --plot lanes.png",
    "--drafter mine.py:MyDrafter,ngram --verifier rejection,mine.py:my_rule",
)


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    n_lanes: int = option(0, "N", whole(0, 1024),
        "N texts at once, for the target alone as well; times include prefill. 0: one by one")
    by: str = option("", "B", Choice(("prompt", "category")),
        "also a row for each prompt, or each category of them", unless="n_lanes", is_aside=True)
    best: str = option("", "NAME", Choice(LISTS),
        "show only this option's fastest value (a maximum: optimistic)", is_aside=True)
    csv: str = option("", "FILE.csv", Written((".csv",)),
        "also write the table, a row for each setting", is_aside=True)
    plot: str = option("", "FILE.png", Written((".png", ".pdf", ".svg")),
        "also draw the table; .pdf or .svg for print; needs matplotlib", is_aside=True)
    plot_size: tuple | None = option(None, "WxH", inches,
        "width and height of the plot in inches (5 x 4 for each panel)", needs="plot", is_aside=True)


# fmt: on
def run(options):
    settings, problems = settings_of(options)
    with Journal(options.json, options) as journal:
        results = []
        for experiment in experiments_of(settings, problems):
            journal.expect(1 + experiment.n_runs * len(experiment.samplers))
            results += results_of(experiment, experiment.run(journal.keep))
        labels = [label for _, label in settings]
        results.sort(key=lambda result: labels.index(result.about["setting"]))
        if not results:
            raise ValueError(next(iter(problems)))
        for problem, label in problems.items():
            say(f"left out {in_words(label) or 'this'}: {problem}")
        show(results, settings, options, journal)


def show(results, settings, options, journal):
    """Print the table, and write it as CSV and as a plot, if asked for."""
    fixed = fixed_in(settings, options)
    shown = {name: text for name, text in fixed.items() if name in SHOWN or name in {*options.given} - {*PAIR.split()}}
    rows = rows_of(results, options.by, options.best)
    load = max(run.load for result in results for run in (*result.alone, *result.runs))
    busy = f"BUSY: load average {load:.1f} at the start" if load > (os.cpu_count() or 1) else ""
    where = journal.head["machine"] + (f"; {busy}" if busy else "")
    page = page_of(rows, shown, where, has_lanes=any(setting.n_lanes for setting, _ in settings))
    if options.csv:
        with replacing(options.csv) as path:
            path.write_bytes(csv_of(rows).encode(errors="replace"))
    if options.plot:
        with replacing(options.plot) as path:
            plot(path, options.plot.rpartition(".")[2], rows, options.plot_size, busy)
    journal.finish(lambda: {"rows": rows}, page)


def fixed_in(settings, options):
    """dict name -> text of the options that may be lists and have one value in all settings."""
    texts = {}
    for name in [name for name in all_entries(options) if name in LISTS and name not in options.lists]:
        values = [getattr(setting, name) for setting, _ in settings]
        acts = name in options.given and getattr(options, name) in values
        texts[name] = options.given[name] if acts else str(values[0])
    return texts | ({"prompts": options.prompt_file} if options.prompt_file else {})
