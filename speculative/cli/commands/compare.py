"""The same prompts by the target alone and by each of several settings, in turn: speedup, tokens per call, acceptance.

Most options may be lists: --K 1,2,4 or --K 1-8 or --drafter all. Each combination is a setting, and a row of the table.
Settings that do not work are left out, and an option that a drafter does not use does not multiply its rows.
"""

import csv
from functools import partial
from itertools import accumulate, product
from textwrap import shorten

import numpy as np

from speculative.measuring.intervals import share
from speculative.measuring.lossy import check_rule, loss_of, sums_along_text
from speculative.measuring.runs import N_LAPS, compared, gain_of, race, race_together, repetition, total, under
from speculative.theory import expected_tokens, speedup

from ..drafters import LENGTHS, OF_SOME, kind_of, rule_of
from ..files import replacing, say
from ..models import Models, described
from ..options import DRAFTING, ENDS, FILES, PAIR, PROMPTS, SAMPLING, Choice, Option, Written, pick, whole
from ..page import over, table, with_interval
from ..plot import plot
from ..prompts import prompts_of
from ..settings import alone, check_together, check_used, with_draft

OPTIONS = pick(PAIR + DRAFTING + SAMPLING + ENDS + PROMPTS + FILES + "plot plot_size", n_tokens_to_generate=64)
OPTIONS["n_lanes"] = Option(
    0, "N", whole(0, 1024), "N texts at once, for the target alone as well; times include prefill. 0: one by one"
)
LISTS = [*pick(PAIR + DRAFTING + SAMPLING + "prompts"), "n_lanes"]
OPTIONS["by"] = Option("", "B", Choice(("prompt", "category")), "also a row for each prompt, or each category of them")
OPTIONS["best"] = Option("", "NAME", Choice(LISTS), "show only this option's fastest value (a maximum: optimistic)")
OPTIONS["csv"] = Option("", "FILE.csv", Written((".csv",)), "also write the table, a row for each setting")
# the options that affect the text and the time of the target alone
OF_THE_TARGET = [*pick("target_model_size prompts " + SAMPLING + ENDS), "n_lanes"]
LOSS = {"": "tv", "_low": "low", "_high": "high", "_after": "after"}
N_LOSS_POSITIONS = 16  # the positions of each text at which the loss of a LOSSY rule is measured
SHOWN = ("drafter", "K", "verifier", "temperature", "n_tokens_to_generate", "prompts")  # above the table, unless in it
NOT_TIDY = {"setting", "target", "draft", "costs", "texts", "is_one_text"}  # not for --csv
EXAMPLES = (
    "--K 1-10 --temperature 0,1 --plot gamma.png",
    "--drafter all --K 1,2,4,8 --best K --prompts tales,repeating",
    "--drafter model,heads --tree 0,4,8,16 --json trees.json",
    "--target_model_size 355M,774M --drafter model,eagle",
    "--prompt_file questions.jsonl --by category --csv table.csv",
    "--n_lanes 1,2,4,8,16,32 --n_prompts 32 --K 1,3 --plot lanes.png",
    "--drafter mine.py:MyDrafter,ngram --verifier rejection,mine.py:my_rule",
)


def run(options, report):
    check_used(options, options.drafter, tree=[*options.tree] != ["0"])
    if 1 in options.n_tokens_to_generate.values():
        raise ValueError("--n_tokens_to_generate: expected 2 or more, as nothing is drafted for one token, got 1")
    lanes = max(options.n_lanes.values())
    if lanes and options.by:
        raise ValueError("--by separates prompts, but --n_lanes generates them together: leave one of them out")
    if lanes > options.n_prompts and not options.prompt_file:
        raise ValueError(f"--n_lanes {lanes} needs as many prompts: give --n_prompts {lanes}")
    problems = {}  # sentence -> the label of the setting that it describes
    rows = measure(settings_of(options, problems), options.by, report, problems)
    if not rows:
        raise ValueError(next(iter(problems)))
    for problem, label in problems.items():
        say(f"left out {in_words(label) or 'this'}: {problem}")
    rows = best_of(rows, options.best) if options.best else rows
    if options.csv:
        write_csv(rows, options)
    if options.plot:
        plot(rows, options, report.busy)
    report.finish({"rows": rows}, page_of(rows, options, report.where))


def settings_of(options, problems):
    """[(Options, dict axis -> text)] of all combinations that fit; an unused option has its default value."""
    names = sorted(LISTS, key=lambda name: len(getattr(options, name)))  # the axis with the most values changes fastest
    settings, axes = {}, [name for name in names if len(getattr(options, name)) > 1]
    for combination in product(*(getattr(options, name).items() for name in names)):
        texts, values = ({name: pair[i] for name, pair in zip(names, combination)} for i in (0, 1))
        one = options.but(**values)
        unused = OF_SOME - {*kind_of(one).options} | (set() if one.tree else {"siblings"})
        one = one.but(**{name: OPTIONS[name].default for name in unused & {*axes}})
        label = {name: "" if name in unused else texts[name] for name in axes}
        _ = one.sampling  # runs its checks
        try:
            check_together(one)
            settings.setdefault(str(label), (one, label))
        except ValueError as error:
            problems.setdefault(str(error), label)
    return [*settings.values()]


def measure(settings, by, report, problems):
    """The rows of all settings: a race for each group of settings with the same texts of the target alone."""
    groups, rows, models = {}, [], None
    for setting in settings:
        own_noise = rule_of(setting[0]).one_text
        groups.setdefault(str([own_noise, *(getattr(setting[0], name) for name in OF_THE_TARGET)]), []).append(setting)
    by_target = sorted(groups.values(), key=lambda group: group[0][0].target_model_size)
    for number, group in enumerate(by_target, 1):
        first = group[0][0]
        if not models or models.options.target_model_size != first.target_model_size:
            models = Models(first, report)  # the models of the previous target are freed
        prompts = prompts_of(first, *models.target())
        texts = [[prompt.question_id, prompt.category, prompt.text] for prompt in prompts]
        report.same(f"prompts of group {number}", texts)
        n_parts = sum(N_LAPS if some[0][0].n_lanes else len(prompts) for some in groups.values())
        report.expect(n_parts + len(prompts) * sum(map(is_lossy, group)))
        rows += race_of(group, prompts, models, by, f"group {number}", problems)
    order = [label for _, label in settings]
    return sorted(rows, key=lambda row: order.index(row["setting"]))


def race_of(group, prompts, models, by, name, problems):
    """The rows of a group of settings, from one race with the target alone; `name` is the name of its parts."""
    (first, _), tokens, abouts = group[0], [prompt.tokens for prompt in prompts], {}
    keep = under(name, models.report.keep)
    entrants = {None: alone(first, models)}
    for i, (options, label) in enumerate(group):
        try:
            entrants[i], abouts[i] = with_draft(options, models, tokens[0], under(f"setting {i + 1}", keep))
        except ValueError as error:
            problems.setdefault(str(error), label)
    if not abouts:
        return []
    models.report.same(f"settings of {name}", [group[i][1] for i in abouts])
    n_tokens, seed = first.n_tokens_to_generate, first.seed
    if n_lanes := first.n_lanes:
        seeds = [seed + i for i in range(len(tokens))]
        each = {i: partial(entrants[i].as_they_end, tokens, n_tokens, seeds, n_lanes) for i in entrants}
        runs = race_together(each, len(tokens), keep=keep)
    else:
        runs = race(entrants, tokens, n_tokens, seed=seed, caches=models.all(), keep=keep)
    losses = {i: losses_of(entrants[i], tokens, seed, under(f"setting {i + 1}", keep))
              for i in abouts if is_lossy(group[i])}  # fmt: skip
    parts = {"all": range(len(runs[None]))} if n_lanes else parts_of(prompts, by)
    decode, rows = models.target()[1].decode, []
    for name, numbers in parts.items():
        for i, about in abouts.items():
            options, label = group[i]
            before, after = ([some[n] for n in numbers] for some in (runs[None], runs[i]))
            row = {"setting": label, "by": name if by else "", **about, **numbers_of(before, after)}
            row |= expected(row, options, after)
            row["exactness"] = rule_of(options).exactness
            row |= {"c": None} if n_lanes else {}  # because a pass serves several texts
            loss = loss_of(losses[i] if n_lanes else [losses[i][n] for n in numbers]) if i in losses else None
            row |= {f"loss{suffix}": loss and getattr(loss, name) for suffix, name in LOSS.items()}
            row["is_one_text"] = options.temperature == 0 or rule_of(options).one_text
            if by == "prompt" and len(numbers) == 1:
                row["texts"] = [decode(some[0].tokens) for some in (before, after)]
            rows.append(row)
    return rows


def is_lossy(setting):
    """Whether the rule of a setting (Options, label) is LOSSY, and its drafts are chains."""
    return rule_of(setting[0]).exactness == "LOSSY" and not setting[0].tree and not kind_of(setting[0]).branches


def losses_of(entrant, prompts, seed, keep):
    """The results of `sums_along_text`, one for each prompt."""

    def loss(i):
        sampler = entrant.sampler(len(prompts[i]))
        check_rule(sampler.verifier)
        parts = sampler.target, sampler.drafter, sampler.verifier
        return sums_along_text(*parts, prompts[i], N_LOSS_POSITIONS, sampler.sampling, seed + i)

    return [keep(f"loss {i + 1}", lambda i=i: loss(i)) for i in range(len(prompts))]


def parts_of(prompts, by):
    """dict name -> the numbers of its prompts, for each prompt or category, if requested, and for all prompts."""
    starts = [f"{prompt.question_id} {shorten(prompt.text, 30, placeholder='...')}" for prompt in prompts]
    names = [prompt.category or "(none)" for prompt in prompts] if by == "category" else starts
    parts = {name: [i for i, other in enumerate(names) if other == name] for name in names} if by else {}
    return parts | {"all": [*range(len(prompts))]}


def numbers_of(alone, runs):
    """A summary of two lists of `Run`s on the same prompts."""
    before, after = total(alone), total(runs)
    accepted, rejected = np.array([(run.accepted, run.rejected) for run in runs]).T
    step, alpha = before.seconds / len(before.tokens), share(accepted, accepted + rejected, counted=True)
    return {
        **compared(alone, runs), "with_prefill": gain_of(alone, runs, prefill=True)["speedup"],
        **dict(zip(("alpha", "alpha_low", "alpha_high"), alpha)),
        "c": after.draft_seconds / after.drafted / step if after.drafted else None,
        "seconds": after.seconds, "alone_seconds": before.seconds,
        "tokens_per_second": len(after.tokens) / after.seconds, "alone_tokens_per_second": 1 / step,
        "n_tokens": len(after.tokens), "target_calls": after.target_calls,
        "drafted": after.drafted, "accepted": after.accepted, "rejected": after.rejected,
        "repetition": sum(repetition(run.tokens) for run in alone) / len(alone),
    }  # fmt: skip


def expected(row, options, runs):
    """The speedup and the tokens per call that follow from a row's alpha and c; None unless all drafts have K tokens.

    The formulas are those of arXiv:2211.17192 (theory/expected.py), where verification takes an autoregressive step.
    """
    if row["alpha"] is None or not drafts_K_tokens(options, runs):
        return {"expected_speedup": None, "expected_tokens_per_call": None}
    return {
        "expected_speedup": speedup(row["alpha"], options.K, row["c"]),
        "expected_tokens_per_call": expected_tokens(row["alpha"], options.K),
    }


def drafts_K_tokens(options, runs):
    """Whether every draft is a chain of K tokens, or at the end of the text of as many as can be accepted."""
    if options.K in LENGTHS or options.tree or options.n_lanes or kind_of(options).branches:
        return False
    starts = [start for run in runs for start in accumulate([0, *run.lengths[:-1]])]  # of each round, in its text
    longest = [min(options.K, options.n_tokens_to_generate - start - 1) for start in starts]
    return sum(longest) == sum(run.drafted for run in runs)


# ------------------------------------------------------------------------------------------------ what is shown


def best_of(rows, axis):
    """The fastest of the rows that differ in one option."""
    best = {}
    for row in rows:
        key = str((row["by"], {**row["setting"], axis: ""}))
        best[key] = max(best.get(key, row), row, key=lambda row: row["speedup"])
    return [*best.values()]


def page_of(rows, options, machine):
    models = {f"{role:8} {described(row[role])}": None for row in rows for role in ("target", "draft")}
    fixed = {name: next(iter(getattr(options, name))) for name in LISTS if len(getattr(options, name)) == 1}
    fixed = {name: text for name, text in fixed.items() if name in SHOWN or name in {*options.given} - {*PAIR.split()}}
    fixed |= {"prompts": options.prompt_file} if options.prompt_file else {}
    head = [*sorted(models, reverse=True), f"with     {in_words(fixed)}", f"on       {machine}"]
    notes = f"""\
speedup   over the target alone, {counted_times(options, rows)}
calls     tokens {"of a text " * has_lanes(options)}per call of the target, which is the speedup in calls
interval  {over(max(row["n_texts"] for row in rows), "laps over all prompts" if has_lanes(options) else "prompts")}
alpha     accepted / (accepted + rejected) draft tokens; c: the time to draft one over that of an autoregressive step
tok/s     tokens per second with the draft; same: how many texts are the target's own, where all should be
"""
    has_expected = any(row["expected_speedup"] for row in rows) and "K" in rows[0]["setting"]
    if has_expected:
        notes += """\
expected  from alpha and c, if each draft token is accepted with probability alpha, and verifying K + 1 tokens takes an
          autoregressive step; where it takes longer, the measured speedup is lower
"""
    has_loss = any(row["loss"] is not None for row in rows)
    if has_loss:
        notes += """\
loss      of a LOSSY rule along the target's own text: 0.16 says that of 100 tokens at best 16 differ from the target's
          (total variation); after: the same, of the tokens after an accepted draft token
"""
    if any(row["exactness"] == "checked" for row in rows):
        notes += "checked   check_verifier found no mistake; the rule itself does not say whether it is exact\n"
    measured = table([cells(row, has_expected, has_loss) for row in rows])
    blocks = ["\n".join(head), measured, "\n".join(fastest(rows)), notes]
    return "\n\n".join(filter(None, blocks))


def has_lanes(options):
    return bool(max(options.n_lanes.values()))


def counted_times(options, rows):
    if has_lanes(options):
        return "which also generates --n_lanes texts at once; times include prefill"
    return f"without prefill ({rows[-1]['with_prefill']:.2f} with it in the last row)"


def in_words(label):
    return ", ".join(f"{name} {text}" for name, text in label.items() if text)


def digits(value, n):
    return "-" if value is None else f"{value:.{n}f}"


def cells(row, has_expected, has_loss):
    """A row of the table, as texts."""
    loss = "-" if row["loss"] is None else with_interval(row, "loss", "loss_")
    loss += f", after {row['loss_after']:.2f}" if (row["loss_after"] or 0) > 1e-9 else ""  # less is rounding
    seconds = {"alone, s": f"{row['alone_seconds']:.2f}", "draft, s": f"{row['seconds']:.2f}"}
    same = f"same {row['same_texts']}/{row['n_texts']}"
    return {
        **({"": row["by"]} if row["by"] else {}),
        **{name: text or "-" for name, text in row["setting"].items()},
        "speedup": with_interval(row, "speedup"),
        **({"expected": digits(row["expected_speedup"], 2)} if has_expected else {}),
        "calls": with_interval(row, "tokens_per_call", "calls_"),
        **({"expected calls": digits(row["expected_tokens_per_call"], 2)} if has_expected else {}),
        "alpha": digits(row["alpha"], 3),
        "c": digits(row["c"], 3),
        **(seconds if row["by"] else {}),
        **({"alone, tok/s": f"{row['alone_tokens_per_second']:.1f}"} if row["setting"].get("n_lanes") else {}),
        "tok/s": f"{row['tokens_per_second']:.1f}",
        **({"loss": loss} if has_loss else {}),
        "text": f"{row['exactness']}, {same}" if row["is_one_text"] else row["exactness"],
    }


def fastest(rows):
    """Lines: the fastest exact setting for each text of the target, and whether the intervals separate it."""
    groups = {}
    for row in [row for row in rows if row["exactness"] != "LOSSY" and row["by"] in ("", "all")]:
        group = {name: text for name, text in row["setting"].items() if name in OF_THE_TARGET}
        groups.setdefault(in_words(group), []).append(row)
    for name, some in groups.items():
        best, *others = sorted(some, key=lambda row: -row["speedup"])
        label = in_words({axis: text for axis, text in best["setting"].items() if axis not in OF_THE_TARGET})
        what = ": ".join(filter(None, (name, label))) or "with the draft"
        if others:
            equal = sum(best["low"] is None or row["high"] >= best["low"] for row in others)
            told = f"on these prompts it is indistinguishable from {equal} of the {len(others)} others"
            told = told if equal else "its interval is above all others"
            yield f"Fastest of the exact, {what}, {with_interval(best, 'speedup')}; {told}."
        if best["speedup"] < 1:
            yield f"The target alone is faster{f' ({name})' if name else ''}: no setting reaches a speedup of 1."


def write_csv(rows, options):
    """Write a row for each setting: the options that vary, the numbers, and the other options that may be lists."""
    fixed = {name: next(iter(getattr(options, name))) for name in LISTS if len(getattr(options, name)) == 1}
    fixed |= {"prompt_file": options.prompt_file} | ({"prompts": ""} if options.prompt_file else {})
    unknown = {name for name in map("loss{}".format, LOSS) if all(row[name] is None for row in rows)}
    numbers = [name for name in rows[0] if name not in NOT_TIDY | unknown]
    with replacing(options.csv) as path, open(path, "w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        new = {name: f"speedup_{name}" for name in ("low", "high", "with_prefill")} | {"c": "cost_coefficient"}
        writer.writerow([*rows[0]["setting"], *(new.get(name, name) for name in numbers), *fixed])
        for row in rows:
            row = row | ({} if row["is_one_text"] else {"same_texts": ""})  # otherwise the texts may differ
            values = [*row["setting"].values(), *(row[name] for name in numbers), *fixed.values()]
            writer.writerow(["" if value == "None" else value for value in values])
