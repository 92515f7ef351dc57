"""The same prompts by the target alone and by each of several settings, in turn: speedup, tokens per call, acceptance.

Most options may be lists: --K 1,2,4 or --K 1-8 or --drafter all. Each combination is a setting, and a row of the table.
Settings that do not work are left out, and an option that a drafter does not use does not multiply its rows.
"""

import os
from dataclasses import dataclass
from functools import partial
from textwrap import shorten

from gpt2np.files.writing import replacing
from speculative.measuring.lossy import check_rule, loss_of, sums_along_text
from speculative.measuring.plot import plot
from speculative.measuring.rows import drafts_K_tokens, expected, numbers_of
from speculative.measuring.runs import N_LAPS, race, race_together, under
from speculative.measuring.table import OF_THE_TEXT, in_words, page_of, write_csv

from .. import options as shared
from ..drafters import LENGTHS, kind_of, rule_of
from ..effects import needs
from ..files import say
from ..journal import Journal, load_average
from ..models import Models
from ..options import DRAFTING, ENDS, FILES, PAIR, PROMPTS, SAMPLING, all_entries, option
from ..prompts import prompts_of
from ..settings import alone, settings_of, with_draft
from ..values import Choice, Written, inches, whole

TAKES = PAIR + DRAFTING + SAMPLING + ENDS + PROMPTS + FILES
LISTS = (PAIR + DRAFTING + SAMPLING + "prompts n_lanes").split()
DEFAULTS = {"n_tokens_to_generate": 64}
LOSS = {"": "tv", "_low": "low", "_high": "high", "_after": "after"}
SHOWN = ("drafter", "K", "verifier", "temperature", "n_tokens_to_generate", "prompts")  # above the table, unless in it
N_LOSS_POSITIONS = 16  # the positions of each text at which the loss of a LOSSY rule is measured
EXAMPLES = (
    "--K 1-10 --temperature 0,1 --plot gamma.png",
    "--drafter all --K 1,2,4,8 --best K --prompts tales,repeating",
    "--drafter model,heads --tree 0,4,8,16 --json trees.jsonl",
    "--target_model_size 355M,774M --drafter model,eagle",
    "--prompt_file questions.jsonl --by category --csv table.csv",
    "--n_lanes 1,2,4,8,16,32 --n_prompts 32 --K 1,3 --plot lanes.png",
    "--drafter mine.py:MyDrafter,ngram --verifier rejection,mine.py:my_rule",
)


def has_one_value(options):
    return "" if options.best in options.lists else f"--{options.best} has one value"


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    n_lanes: int = option(0, "N", whole(0, 1024),
        "N texts at once, for the target alone as well; times include prefill. 0: one by one")
    by: str = option("", "B", Choice(("prompt", "category")),
        "also a row for each prompt, or each category of them", is_aside=True)
    best: str = option("", "NAME", Choice(LISTS),
        "show only this option's fastest value (a maximum: optimistic)", no_effect=has_one_value, is_aside=True)
    csv: str = option("", "FILE.csv", Written((".csv",)),
        "also write the table, a row for each setting", is_aside=True)
    plot: str = option("", "FILE.png", Written((".png", ".pdf", ".svg")),
        "also draw the table; .pdf or .svg for print; needs matplotlib", is_aside=True)
    plot_size: tuple | None = option(None, "WxH", inches,
        "width and height of the plot in inches (5 x 4 for each panel)", no_effect=needs("plot"), is_aside=True)


# fmt: on
def run(options):
    settings, problems = settings_of(options)
    check_lanes(options, settings)
    with Journal(options.json, options, [setting for setting, _ in settings]) as journal:
        races = races_of(settings, journal, problems)
        rows = rows_of(races, [label for _, label in settings], options.by)
        if not rows:
            raise ValueError(next(iter(problems)))
        for problem, label in problems.items():
            say(f"left out {in_words(label) or 'this'}: {problem}")
        show(rows, options, fixed_in(settings, options), journal)


def most_lanes(options):
    """The largest number of texts at once; 0 if all are generated one by one."""
    return max([options.n_lanes, *options.lists.get("n_lanes", {}).values()])


def check_lanes(options, settings):
    lanes = most_lanes(options)
    if any(setting.n_tokens_to_generate == 1 for setting, _ in settings):
        raise ValueError("--n_tokens_to_generate: expected 2 or more, as nothing is drafted for one token, got 1")
    if lanes and options.by:
        raise ValueError("--by separates prompts, but --n_lanes generates them together: leave one of them out")
    if lanes > options.n_prompts and not options.prompt_file:
        raise ValueError(f"--n_lanes {lanes} needs as many prompts: give --n_prompts {lanes}")


# ------------------------------------------------------------------------------------------------ the runs


@dataclass(frozen=True)
class Race:
    """The runs of settings with the same text of the target alone."""

    prompts: list  # of Prompt
    settings: list  # of (Options, label, description of the drafter)
    alone: list  # of Run
    runs: list  # for each setting, a list of Run
    losses: list  # for each setting the sums of `sums_along_text` for each prompt, or None
    decode: object


def races_of(settings, journal, problems):
    """A `Race` for each group of settings that have the same texts of the target alone."""
    groups, races, models = {}, [], None
    for one, label in settings:
        decides = [rule_of(one).one_text, *(getattr(one, name) for name in sorted(OF_THE_TEXT))]
        groups.setdefault(str(decides), []).append((one, label))
    by_target = sorted(groups.values(), key=lambda group: group[0][0].target_model_size)
    for number, group in enumerate(by_target, 1):
        first = group[0][0]
        if not models or models.options.target_model_size != first.target_model_size:
            models = Models(first)  # the models of the previous target are freed
        prompts = prompts_of(first, *models.target())
        n_parts = sum(N_LAPS if some[0][0].n_lanes else len(prompts) for some in groups.values())
        journal.expect(n_parts + len(prompts) * sum(is_lossy(one) for one, _ in group))
        races.append(race_of(f"group {number}", group, prompts, models, journal, problems))
    return [*filter(None, races)]


def race_of(name, settings, prompts, models, journal, problems):
    """The `Race` of a group of settings, read from the journal as far as it is there; None if no setting works."""
    first = settings[0][0]
    tokens, entrants, racing = [prompt.tokens for prompt in prompts], {"alone": alone(first, models)}, {}
    for i, (one, label) in enumerate(settings, 1):
        try:
            key = f"{name}, setting {i}"
            entrants[key], about = with_draft(one, models, tokens[0], under(key, journal.keep))
            racing[key] = one, label, about
        except ValueError as error:
            problems.setdefault(str(error), label)
    if not racing:
        return None
    journal.keep(name, lambda: described(racing, prompts))
    runs = runs_of(entrants, first, tokens, models, under(name, timed(journal)))
    losses = [
        losses_of(entrants[key], tokens, first.seed, under(key, journal.keep)) if is_lossy(racing[key][0]) else None
        for key in racing
    ]
    return Race(prompts, [*racing.values()], runs.pop("alone"), [*runs.values()], losses, models.target()[1].decode)


def described(racing, prompts):
    """The part of a journal about a race: what was measured on which prompts."""
    labels = [label for _, label, _ in racing.values()]
    abouts = [about for _, _, about in racing.values()]
    return {
        "target": abouts[0]["target"]["name"],
        "prompts": [[prompt.question_id, prompt.category, prompt.text] for prompt in prompts],
        "settings": labels,
    }


def timed(journal):
    """A `keep` that records the load of the machine with each part."""

    def keep(name, measure):
        return journal.keep(name, lambda: {"load": load_average(), "runs": measure()})["runs"]

    return keep


def runs_of(entrants, options, tokens, models, keep):
    """dict name -> list of Run: one for each prompt, or with --n_lanes one for each lap over all of them."""
    n_tokens, seed, n_lanes = options.n_tokens_to_generate, options.seed, options.n_lanes
    if not n_lanes:
        return race(entrants, tokens, n_tokens, seed=seed, caches=models.all(), keep=keep)
    seeds = [seed + i for i in range(len(tokens))]
    each = {name: partial(entrants[name].as_they_end, tokens, n_tokens, seeds, n_lanes) for name in entrants}
    return race_together(each, len(tokens), keep=keep)


def is_lossy(options):
    """Whether the loss of a setting's rule is measured: it is LOSSY, and the drafts are chains."""
    return rule_of(options).exactness == "LOSSY" and not options.tree and not kind_of(options).branches


def losses_of(entrant, prompts, seed, keep):
    """The results of `sums_along_text`, one for each prompt."""

    def loss(i):
        sampler = entrant.sampler(len(prompts[i]))
        check_rule(sampler.verifier)
        parts = sampler.target, sampler.drafter, sampler.verifier
        return {"sums": sums_along_text(*parts, prompts[i], N_LOSS_POSITIONS, sampler.sampling, seed + i)}

    return [keep(f"loss {i + 1}", partial(loss, i))["sums"] for i in range(len(prompts))]


# ------------------------------------------------------------------------------------------------ the rows


def rows_of(races, labels, by):
    """The rows of all races, in the order of the settings' labels."""
    rows = []
    for each in races:
        has_lanes = bool(each.settings[0][0].n_lanes)
        for name, numbers in [("all", range(len(each.alone)))] if has_lanes else parts_of(each.prompts, by):
            rows += [row_of(each, i, numbers, name if by else "", by == "prompt") for i in range(len(each.runs))]
    return sorted(rows, key=lambda row: labels.index(row["setting"]))


def parts_of(prompts, by):
    """[(name, numbers of the prompts)] of each prompt or category, if requested, and of all prompts."""
    starts = [f"{prompt.question_id} {shorten(prompt.text, 30, placeholder='...')}" for prompt in prompts]
    names = [prompt.category or "(none)" for prompt in prompts] if by == "category" else starts
    parts = {name: [i for i, other in enumerate(names) if other == name] for name in names} if by else {}
    return [*parts.items(), ("all", [*range(len(prompts))])]


def row_of(race, i, numbers, by, has_texts):
    """The row of setting number i over some of the prompts."""
    options, label, about = race.settings[i]
    before, runs = ([some[n] for n in numbers] for some in (race.alone, race.runs[i]))
    row = {"setting": label, "by": by, **about, **numbers_of(before, runs)}
    is_chain = not (options.K in LENGTHS or options.tree or options.n_lanes or kind_of(options).branches)
    is_full = is_chain and drafts_K_tokens(runs, options.K, options.n_tokens_to_generate)
    row |= expected(row, options.K if is_full else None)
    row["exactness"] = rule_of(options).exactness
    row |= {"c": None} if options.n_lanes else {}  # because a pass serves several texts
    losses = race.losses[i]
    loss = loss_of(losses if options.n_lanes else [losses[n] for n in numbers]) if losses else None
    row |= {f"loss{suffix}": loss and getattr(loss, name) for suffix, name in LOSS.items()}
    row["is_one_text"] = options.temperature == 0 or rule_of(options).one_text
    if has_texts and len(numbers) == 1:
        row["texts"] = [race.decode(some[0].tokens) for some in (before, runs)]
    return row


def best_of(rows, axis):
    """The fastest of the rows that differ in one option."""
    best = {}
    for row in rows:
        key = str((row["by"], {**row["setting"], axis: ""}))
        best[key] = max(best.get(key, row), row, key=lambda row: row["speedup"])
    return [*best.values()]


# ------------------------------------------------------------------------------------------------ the page


def fixed_in(settings, options):
    """dict name -> text of the options that may be lists and have one value in all settings."""
    texts = {}
    for name in [name for name in all_entries(options) if name in LISTS and name not in options.lists]:
        values = [getattr(one, name) for one, _ in settings]
        acts = name in options.given and getattr(options, name) in values
        texts[name] = options.given[name] if acts else str(values[0])
    return texts | ({"prompts": options.prompt_file} if options.prompt_file else {})


def show(rows, options, fixed, journal):
    """Write the table as CSV and as a plot, if asked for, and print it."""
    rows = best_of(rows, options.best) if options.best else rows
    load = max((part.get("load", 0.0) for part in journal.parts.values()), default=0.0)
    busy = f"BUSY: load average {load:.1f} at the start" if load > (os.cpu_count() or 1) else ""
    if options.csv:
        with replacing(options.csv) as path, open(path, "w", encoding="utf-8", errors="replace", newline="") as file:
            write_csv(file, rows, fixed)
    if options.plot:
        with replacing(options.plot) as path:
            plot(path, options.plot.rpartition(".")[2], rows, options.plot_size, busy)
    shown = {name: text for name, text in fixed.items() if name in SHOWN or name in {*options.given} - {*PAIR.split()}}
    where = journal.head["machine"] + (f"; {busy}" if busy else "")
    journal.finish({"rows": rows}, page_of(rows, shown, where, most_lanes(options)))
