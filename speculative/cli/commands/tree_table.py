"""Trees of several sizes against chains: acceptance by the number of candidates, tokens per call, speedup.

More tokens per call need not be faster: the table has both, and says whether a tree pays.
"""

from dataclasses import asdict
from itertools import accumulate, cycle

from speculative.drafters.model_tree import RULES as SIBLINGS

from .. import experiments
from ..inputs import prompts_of
from ..plots import COLOURS, break_even, most, panels, points, sample
from ..registry import DRAFTERS
from ..tables import Columns, calls_interval, counted, described, interval, over, where
from . import LISTS, ONE_SIZE, experiment, open_target, two_tokens

CHOICES = (1, 2, 3, 4, 6, 8)


def measure(options, saved):
    context, about = open_target(options, saved)
    some = prompts_of(options, context.tokenizer, context.target)
    kinds = [DRAFTERS[name] for name in options.listed("tree_drafters") if DRAFTERS[name].suits(context)]
    if not kinds:
        lacks = " or ".join(DRAFTERS[name].needs for name in options.listed("tree_drafters"))
        raise ValueError(
            f"--tree_drafters: {options.tree_drafters} has no drafter for {options.target_model_size}, which has no "
            f"{lacks}: add another drafter, or choose another --target_model_size"
        )
    saved.expect(len(some) * (1 + len(kinds)))
    makers, by_siblings = {}, {}
    for kind in kinds:
        setting = kind.build(context)
        makers[kind.name] = maker(setting, options.sampling)
        for siblings in SIBLINGS if kind.draws else ():
            by_siblings[f"{kind.name}, {siblings}"] = maker(setting, options.sampling, siblings=siblings)
    common = {"sampling": options.sampling, "seed": options.seed, "keep": saved.keep}
    n_tokens = options.n_tokens_to_generate
    acceptance = experiments.acceptance_table({**makers, **by_siblings}, some, n_tokens, **common)
    rows = experiments.tree_table(
        context.target, makers, acceptance, some, n_tokens, max_depth=options.max_depth,
        sizes=[int(n) for n in options.listed("tree_sizes")], **common,
    )  # fmt: skip
    return {
        **about, "n_prompts": len(some), **asdict(options.sampling), "siblings": options.siblings,
        "acceptance": {name: w for name, w in acceptance.items() if name in by_siblings or not DRAFTERS[name].draws},
        "rows": rows,
    }  # fmt: skip


def maker(setting, sampling, **options):
    """Shape -> (target, drafter)"""
    return lambda shape: (setting.target, setting.tree(sampling, shape, **options))


def table(report):
    ranks = Columns(("candidates a position", "<24"), *((str(k), ">7") for k in CHOICES))
    accepted = [
        [name, *(f"{list(accumulate(w))[k - 1]:.3f}" for k in CHOICES)] for name, w in report["acceptance"].items()
    ]
    columns = Columns(
        ("", "<11", "{kind}"),
        ("nodes", ">6", "{nodes}"),
        ("levels", ">7", "{levels}"),
        ("calls", ">7", "{tokens_per_call:.2f}"),
        ("95 % interval", ">15", calls_interval),
        ("expected", ">9", "{expected:.2f}"),
        ("time", ">7", "{speedup:.2f}"),
        ("95 % interval", ">15", interval),
        ("   calls over the chain", "<24", over_the_chain),
        ("same text", ">9", "{same_texts} of {n_texts}"),
    )
    blocks = []
    for name in dict.fromkeys(row["drafter"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["drafter"] == name]
        blocks.append(f"{name}\n{columns.page(rows)}\n\n{verdict(rows)}\n")
    texts = f"{counted(report['n_prompts'], 'prompt')}, {report['n_tokens']} tokens each"
    same = ": every text should be the same as the target's own" if report["temperature"] == 0 else ""
    return f"""target  {described(report["target"])}; temperature {report["temperature"]}; {texts}
{where(report)}

The probability that one of k candidates is accepted
{ranks.page(accepted)}

{chr(10).join(blocks)}
calls     tokens per call of the target; time: the speedup in seconds over the target alone
expected  tokens per call, if candidates were accepted in all places as often as on average
interval  {over(report["n_prompts"])}
chain     in the column "calls over the chain": the chain with as many levels

All rows are exact{same}.
"""


def over_the_chain(row):
    return "" if row["over_chain"] is None else f"   {row['over_chain']:.2f}, {interval(row, 'over_')}"


def in_words(row):
    speed, calls = f"{row['speedup']:.2f}", f"{row['tokens_per_call']:.2f}"
    return f"{counted(row['nodes'])}: {speed} times as fast as the target alone, with {calls} tokens per call"


def verdict(rows):
    """Whether a tree pays: the fastest tree against the fastest chain, and each against the target alone."""
    chain, tree = (
        max((r for r in rows if r["kind"] == kind), key=lambda r: r["speedup"]) for kind in ("chain", "tree")
    )
    found = f"The fastest tree has {in_words(tree)};\nthe fastest chain has {in_words(chain)}."
    if tree["low"] is None:
        return f"{found} One prompt tells nothing about the difference."
    if tree["low"] > max(1, chain["high"]):
        return f"{found} Here a tree pays."
    if tree["high"] < max(1, chain["low"]):
        calls = ", though it has more tokens per call" if tree["tokens_per_call"] > chain["tokens_per_call"] else ""
        return f"{found} Here a tree does not pay{calls}: its nodes cost more time than they save."
    return f"{found} These prompts do not tell the two apart."


def plot(report):
    """By the number of nodes: tokens per call, measured and expected, and the speedup in time."""
    figure, both = panels(1, 2, 9.6, 5)
    figure.suptitle("Tokens per call and speedup by the size of the draft", x=0.01, ha="left", fontsize=11)
    names = dict.fromkeys(row["drafter"] for row in report["rows"])
    for axes, what in zip(both, ("tokens_per_call", "speedup")):
        end = most(report["rows"], what)
        for i, (name, colour) in enumerate(zip(names, cycle(COLOURS))):
            for kind, line, marker in (("tree", "-", "o"), ("chain", "--", "s")):
                rows = [row for row in report["rows"] if (row["drafter"], row["kind"]) == (name, kind)]
                nodes = [row["nodes"] for row in rows]
                shifted = [n * 1.04 ** (2 * i + (kind == "chain") - len(names)) for n in nodes]
                look = {"color": colour, "markersize": 4, "elinewidth": 0.7, "label": f"{name}, {kind}"}
                points(axes, shifted, rows, what, end=end, marker=marker, **look)
                expected = [row["expected"] if what == "tokens_per_call" else row["speedup"] for row in rows]
                axes.plot(nodes, expected, line, color=colour, linewidth=1)
        break_even(axes)
        axes.set_xscale("log", base=2)
        ticks = sorted({row["nodes"] for row in report["rows"]})
        axes.set_xticks(ticks, ticks)
        axes.set(xlabel="nodes of the draft", ylim=(0, end))
    both[0].set_ylabel("tokens per call of the target (lines: expected)")
    both[1].set_ylabel("speedup in time (times the target alone)")
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, title=sample(report["n_prompts"]), loc="outside lower left", ncols=3, alignment="left")
    return figure


COMMAND = experiment(
    "tree_table",
    "trees of several sizes against chains: acceptance by the number of candidates, tokens per call, speedup, and "
    "whether a tree pays",
    measure,
    table,
    plot=plot,
    options=ONE_SIZE | LISTS | {"siblings", "tree_drafters", "tree_sizes", "max_depth"},
    defaults={"n_tokens_to_generate": 64, "n_prompts": 6},
    checks=(two_tokens,),
    example="--tree_drafters heads,recycling --tree_sizes 8,16",
)
