"""Seconds for the same work by targets of several sizes, natively and with each drafter."""

from dataclasses import replace

from speculative import measuring

from .. import experiments
from ..inputs import draft_name, prompts_of
from ..plots import BLUE, GREY, beside, in_words, name_bars, one_panel
from ..registry import DRAFTERS, drafter_entries, fitting
from ..tables import Columns, counted, described_rule, interval, over, where
from . import LISTS, SIZES, experiment, one_length, open_target, rule_arguments, rule_in_report, trees_fit, two_tokens


def measure(options, saved):
    names, found = options.listed("target_sizes"), {}
    check_suits(options, saved)
    for name in names:
        options = replace(options, target_model_size=name)
        context, about = open_target(options, saved)
        some = prompts_of(options, context.tokenizer, context.target)
        saved.expect(len(some) * len(names))
        listed = fitting(options.listed("drafters"), context)
        kinds = [kind for kind in listed if kind != "model" or draft_name(options) not in ("", name)]
        entries = drafter_entries(kinds, context)
        runs, rows = experiments.native_and_assisted(
            context.target, entries, some, options.n_tokens_to_generate, K=options.K,
            keep=measuring.under(name, saved.keep), **rule_arguments(options),
        )  # fmt: skip
        found[name] = {
            **about,
            "draft": draft_name(options),
            "native_seconds": measuring.total(runs["native"]).seconds,
            "drafters": rows,
        }
    about = {"n_prompts": len(some), "n_tokens": options.n_tokens_to_generate}
    return {**about, **rule_in_report(options), "targets": found}


def check_suits(options, saved):
    """ValueError where a target lacks something that a drafter needs; "all" leaves such drafters out."""
    listed = options.listed("drafters")
    choosy = [DRAFTERS[name] for name in listed if DRAFTERS[name].needs and name != "model"]
    choosy = [] if listed == list(DRAFTERS) else choosy
    for name in options.listed("target_sizes") if choosy else ():
        context, _ = open_target(replace(options, target_model_size=name), saved)
        for kind in choosy:
            if not kind.suits(context):
                lacks = f"{kind.name} needs {kind.needs}, which {name} does not have"
                raise ValueError(f"--drafters: {lacks}: leave one of the two out")


def table(report):
    columns = Columns(
        ("target", "<16"), ("parameters", ">10"), ("native", ">10"), ("   draft", "<17"), ("assisted", ">10"),
        ("speedup", ">10"), ("95 % interval", ">15"), ("tokens per call", ">17"),
    )  # fmt: skip
    rows = []
    for name, found in report["targets"].items():
        first = [name, f"{found['target']['parameters'] / 1e6:.1f} M", f"{found['native_seconds']:.2f} s"]
        if not found["drafters"]:
            rows.append([*first, "   -", "", "", "", ""])
        for kind, row in found["drafters"].items():
            draft = found["draft"] if kind == "model" else kind
            rows.append([
                *first, f"   {draft}", f"{row['seconds']:.2f} s", f"{row['speedup']:.2f}", interval(row),
                f"{row['tokens_per_call']:.2f}",
            ])  # fmt: skip
            first = ["", "", ""]
    return f"""{counted(report["n_prompts"], "prompt")}, {report["n_tokens"]} tokens each; {described_rule(report)}
{where(report)}

{columns.page(rows)}

Seconds are those of the new tokens of all prompts. Interval: {over(report["n_prompts"])}.
"""


def plot(report):
    bars = []  # (label, seconds, row of the table)
    for name, found in report["targets"].items():
        bars.append((name, found["native_seconds"], None))
        for kind, row in found["drafters"].items():
            draft = found["draft"] if kind == "model" else kind
            bars.append((f"with {draft}", row["seconds"], row))
    title, height = "Seconds for the same work, alone and with each draft", 1.2 + 0.4 * len(bars)
    figure, axes = one_panel(title, width=7, height=height)
    for i, (_, seconds, row) in enumerate(bars):
        axes.barh(i, seconds, 0.7, color=BLUE if row else GREY)
        beside(axes, in_words(row) if row else "alone", seconds, i)
    work = f"{report['n_prompts']} times {report['n_tokens']} tokens"
    axes.set_xlabel(f"seconds for {work} (in brackets the 95 % interval of the speedup)", fontsize=9)
    name_bars(axes, [label for label, *_ in bars])
    axes.set_xlim(0, 1.5 * max(seconds for _, seconds, _ in bars))  # room for the texts
    return figure


COMMAND = experiment(
    "compare_sizes",
    "seconds of targets of several sizes, natively and with each drafter",
    measure,
    table,
    plot=plot,
    options=SIZES | LISTS | {"temperature", "drafters", "K", "verifier"},
    defaults={"n_prompts": 8, "drafters": "model,ngram"},
    checks=(one_length, trees_fit, two_tokens),
    example="--target_sizes 124M,355M --drafters ngram",
)
