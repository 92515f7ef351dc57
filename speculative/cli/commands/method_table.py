"""Drafters and verifiers on tales, dialogue, repetitive text and known prompts: tokens per call, speedup, exact or not.

A sentence claims no more than the intervals do: where they overlap, it says so.
"""

from dataclasses import asdict
from itertools import chain, cycle
from statistics import median

from .. import experiments, inputs
from ..inputs import KNOWN, check_prompts, dialogue_prompts, held_out_prompts, repeating_prompts
from ..plots import COLOURS, GREY, MARKERS, OFFSET, break_even, most, one_panel, points, sample
from ..registry import DRAFTERS, RULES, drafter_entries
from ..tables import Columns, calls_interval, described, interval, where
from . import ONE_SIZE, experiment, one_length, open_target, trees_fit, two_tokens

BLOCK = "block      accepts at least as many tokens as rejection in expectation: a smaller number above is chance\n"


def measure(options, saved):
    context, about = open_target(options, saved)
    target, tokenizer = context.target, context.tokenizer
    n_prompts, n_tokens = options.n_prompts, options.n_tokens_to_generate
    tales, dialogue = held_out_prompts(tokenizer, n_prompts), dialogue_prompts(tokenizer, n_prompts)
    known = [tokenizer.encode(prompt) for prompt in KNOWN[:n_prompts]]
    check_prompts(known, n_tokens, target)
    check_prompts(tales, n_tokens, target, inputs.N_AHEAD)
    entries = drafter_entries(options.listed("drafters"), context)
    saved.expect(n_prompts + len(entries) * (3 * n_prompts + len(known)))
    repeating = repeating_prompts(target, tales, saved.keep)
    rules = [RULES[name] for name in options.listed("verifiers")]
    rows = experiments.method_table(
        target, entries, {rule.name: rule.verifier for rule in rules},
        {"tales": tales, "dialogue": dialogue, "repeating": repeating, "known": known}, n_tokens, K=options.K,
        sampling=options.sampling, shared_noise={rule.name for rule in rules if rule.one_text},
        trees={name for name in entries if DRAFTERS[name].branches}, seed=options.seed,
        keep=saved.keep,
    )  # fmt: skip
    return {**about, "n_prompts": n_prompts, "K": options.K, **asdict(options.sampling), "rows": rows}


def table(report):
    rows, temperature = report["rows"], report["temperature"]
    *kinds, _ = rows[0]["kinds"]
    names = ("drafter", "<14", "{drafter}"), ("verifier", "<13", "{verifier}")
    together = Columns(
        *names,
        ("calls", ">5", "{tokens_per_call:.2f}"),
        ("95 % interval", ">15", calls_interval),
        ("time", ">8", "{speedup:.2f}"),
        ("95 % interval", ">15", interval),
        ("   output", "<9", lambda row: f"   {output(row, temperature)}"),
    )
    by_kind = list(names)
    for kind in kinds:
        calls, time = (f"{{kinds[{kind}][{what}]:.2f}}" for what in ("tokens_per_call", "speedup"))
        by_kind += [("calls", ">5", calls, kind), ("time", ">7", time), ("", "<3")]
    widths = chain(*([*half_widths([row["kinds"][kind] for row in rows]), ""] for kind in kinds))
    return f"""target  {described(report["target"])}; K = {report["K"]}, temperature {temperature}
{where(report)}

all kinds of text, {rows[0]["kinds"]["all"]["n_texts"]} prompts, {report["n_tokens"]} tokens each
{together.page([{**row, **row["kinds"]["all"]} for row in rows])}

{best_of(rows, "tokens_per_call", "calls_low", "calls_high", "Most tokens per call")}\
{best_of(rows, "speedup", "low", "high", "Largest speedup")}
by kind, up to {report["n_prompts"]} prompts each
{Columns(*by_kind).page([*rows, ["interval, ±", "median row", *widths]])}

calls      tokens per call of the target, which is the speedup in calls; time: the speedup in seconds
interval   95 %, Student's t over the prompts
tales      prefixes of tales; dialogue: places with quotation marks
repeating  the tales some greedy tokens later, where the target's text repeats itself
known      the first of the prompts of the experiment `prompts`
{BLOCK if any(row["verifier"] == "block" for row in rows) else ""}"""


def half_widths(cells):
    """Half of the interval over the value, for calls and time: the median over the rows of the table."""
    for what, prefix in (("tokens_per_call", "calls_"), ("speedup", "")):
        some = [(c[prefix + "high"] - c[prefix + "low"]) / 2 / c[what] for c in cells if c[prefix + "low"] is not None]
        yield f"{median(some):.0%}" if some else "-"


def output(row, temperature):
    """Whether the rule keeps the distribution of the text; at temperature 0 also how many texts are the target's."""
    if temperature > 0:
        return row["exactness"]
    cell = row["kinds"]["all"]
    name = "exact for greedy" if row["exactness"] == "LOSSY" else row["exactness"]
    return f"{name}, same text {cell['same_texts']} of {cell['n_texts']}"


def best_of(rows, what, low, high, name):
    """Which of the exact methods has the most of `what` over all kinds of text, and whether the intervals tell."""
    exact = [row for row in rows if row["exactness"] == "exact"]
    cells = {f"{row['drafter']} with {row['verifier']}": row["kinds"]["all"] for row in exact}
    if len(cells) < 2:
        return ""
    best = max(cells, key=lambda method: cells[method][what])
    least = cells[best][low]
    others = [method for method in cells if method != best]
    equal = others if least is None else [method for method in others if cells[method][high] >= least]
    value = f"{name} of the exact methods: {best}, {cells[best][what]:.2f}."
    if not equal:
        return f"{value} Its interval is above all others.\n"
    of = f"{len(equal)} of the {len(others)} others" if len(equal) < len(others) else f"any of the {len(others)} others"
    of = "the other" if len(others) == 1 else of
    return f"{value} These prompts do not tell it apart from {of}: the intervals overlap.\n"


def plot(report):
    figure, axes = one_panel("Speedup and tokens per call, by drafter and verifier", width=8, height=5)
    drafters, verifiers = (list(dict.fromkeys(row[what] for row in report["rows"])) for what in ("drafter", "verifier"))
    lossy = {row["verifier"] for row in report["rows"] if row["exactness"] == "LOSSY"}
    colours, markers = dict(zip(drafters, cycle(COLOURS))), dict(zip(verifiers, cycle(MARKERS)))
    cells = [row["kinds"]["all"] for row in report["rows"]]
    for row, cell in zip(report["rows"], cells):
        colour = colours[row["drafter"]]
        look = {"color": colour, "markerfacecolor": "none" if row["verifier"] in lossy else colour, "markersize": 7}
        look |= {"marker": markers[row["verifier"]], "elinewidth": 0.5, "capsize": 0}
        points(axes, [cell["tokens_per_call"]], [cell], end=most(cells), **look)
        points(axes, [cell["speedup"]], [cell], "tokens_per_call", True, most(cells, "tokens_per_call"), **look)
    most_calls, most_speed = (1.05 * max(cell[what] for cell in cells) for what in ("tokens_per_call", "speedup"))
    for cost in (1, 1.5, 2, 3):
        end = min(most_calls, cost * most_speed)
        axes.plot([0, end], [0, end / cost], color=GREY, linewidth=0.8, zorder=1)
        axes.annotate(f"{cost:g}", (end, end / cost), (3, 2), color=GREY, fontsize=8, **OFFSET)
    break_even(axes)
    axes.set(xlim=(0.8, most(cells, "tokens_per_call")), ylim=(0, most(cells)))
    axes.set_ylabel("speedup (times the target alone)")
    axes.set_xlabel(f"tokens per call of the target, all kinds of text\n({sample(cells[0]['n_texts'])})")
    axes.plot([], [], color=GREY, linewidth=0.8, label="a call with its draft\ncosts 1, 1.5, ... steps")
    for name in drafters:
        axes.plot([], [], "o", color=colours[name], label=name)
    for name in verifiers:
        face, label = ("none", f"{name}, LOSSY") if name in lossy else (GREY, name)
        axes.plot([], [], markers[name], color=GREY, markerfacecolor=face, label=label)
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0)
    return figure


COMMAND = experiment(
    "method_table",
    "drafters and verifiers on tales, dialogue, repetitive text and known prompts: tokens per call, speedup, output",
    measure,
    table,
    plot=plot,
    options=ONE_SIZE | {"drafters", "verifiers", "K"},
    defaults={"n_tokens_to_generate": 48, "n_prompts": 3, "temperature": 0.5},  # where the rules differ
    checks=(one_length, trees_fit, two_tokens),
    example="--drafters model,suffix --temperature 1",
)
