"""K = 1 to 10: the speedup in time and in target calls, and the one alpha and c that fit all rows best.

The literature's table of gamma, the draft length, which is K here.
"""

from itertools import cycle

from speculative import measuring

from .. import experiments
from ..inputs import prompts_of
from ..plots import COLOURS, MARKERS, break_even, most, panels, points, sample
from ..registry import DRAFTERS
from ..tables import Columns, calls_interval, counted, heads, interval, number, over
from . import COMMON, LISTS, experiment, open_target, samplings, with_probabilities


def measure(options, saved):
    context, about = open_target(options, saved)
    setting, found = DRAFTERS[options.drafter].build(context), {}
    some = prompts_of(options, context.tokenizer, context.target)
    saved.expect(len(some) * len(options.listed("temperatures")))
    for name, sampling in samplings(options).items():
        found[name] = experiments.gamma_table(
            setting.target, setting.drafter(sampling), some, options.n_tokens_to_generate, sampling=sampling,
            lengths=range(1, options.max_K + 1), seed=options.seed, keep=measuring.under(name, saved.keep),
        )  # fmt: skip
    return {**about, "draft": setting.about, "n_prompts": len(some), "temperatures": found}


def table(report):
    columns = Columns(
        ("K", ">4", "{K}"),
        ("in time", ">9", "{speedup:.2f}", "speedup"),
        ("95 % interval", ">15", interval),
        ("in calls", ">10", "{tokens_per_call:.2f}"),
        ("95 % interval", ">15", calls_interval),
        ("alpha", ">8", number("alpha", 3), "of the row alone"),
        ("c", ">7", number("c", 3)),
        ("in time", ">13", "{theory_speedup:.2f}", "speedup, theory"),
        ("in calls", ">10", "{theory_tokens_per_call:.2f}"),
    )
    blocks = [f"{heads(report)}\n{counted(report['n_prompts'], 'prompt')}, {report['n_tokens']} tokens each\n"]
    for name, found in report["temperatures"].items():
        gap = max(abs(row["theory_speedup"] / row["speedup"] - 1) for row in found["rows"])
        fitted = f"alpha = {found['alpha']:.3f}, c = {found['c']:.3f}, of which drafting is {found['c_draft']:.3f}"
        repeated = f"{found['repetition']:.0%} of the text's 4-grams occurred earlier in it."
        blocks.append(f"""{name}: {fitted}
{columns.page(found["rows"])}
Theory and measured speedup in time differ by at most {gap:.1%}. {repeated}
""")
    blocks.append(f"""\
speedup   over the target alone: seconds over seconds; target calls over target calls, which is tokens per call
interval  {over(report["n_prompts"])}
theory    one alpha and one c for all rows, by least squares: alpha from the calls, c from the times. A call with k
          draft tokens takes 1 + c k autoregressive steps, so c is the cost of a draft token, to draft and to check it
""")
    return "\n".join(blocks)


def plot(report):
    figure, both = panels(1, 2, 9.6, 5)
    tables = report["temperatures"]
    figure.suptitle(
        "Speedup by draft length: measured, and theory with one α and one c for all K", x=0.01, ha="left", fontsize=11
    )
    rows = [row for found in tables.values() for row in found["rows"]]
    for axes, what in zip(both, ("tokens_per_call", "speedup")):
        for i, ((name, found), colour, marker) in enumerate(zip(tables.items(), cycle(COLOURS), cycle(MARKERS))):
            lengths = [row["K"] for row in found["rows"]]
            shifted = [K + 0.16 * i - 0.08 * (len(tables) - 1) for K in lengths]  # so that the intervals are apart
            label = f"{name}: {found['repetition']:.0%} repeated, α = {found['alpha']:.2f}, c = {found['c']:.2f}"
            line = ("-", "--", "-.", ":")[i % 4]  # where one line hides another, both can be seen
            axes.plot(lengths, [row[f"theory_{what}"] for row in found["rows"]], line, color=colour, linewidth=1.2)
            points(axes, shifted, found["rows"], what, end=most(rows, what), marker=marker, color=colour, label=label)
        break_even(axes)
        axes.set(xlabel="draft length K (tokens)", xticks=lengths, ylim=(0, most(rows, what)))
    both[0].set_ylabel("speedup in target calls (tokens per call)")
    both[1].set_ylabel("speedup in time (times the target alone)")
    title = f"points: measured, {sample(report['n_prompts'])}; lines: theory"
    figure.legend(*axes.get_legend_handles_labels(), title=title, alignment="left", loc="outside lower left")
    return figure


COMMAND = experiment(
    "gamma_table",
    "K = 1 to 10: speedup in time and in target calls, and the alpha and c that fit",
    measure,
    table,
    plot=plot,
    options=COMMON | LISTS | {"target_model_size", "drafter", "temperatures", "max_K"},
    defaults={"n_tokens_to_generate": 100, "n_prompts": 12},
    checks=(with_probabilities,),
    example="--temperatures 0,0.5,1 --max_K 6 --plot gamma.png",
)
