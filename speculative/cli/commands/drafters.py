"""Every drafter in a table, on tales and on text that repeats itself: alpha, c, tokens per call, speedup."""

from dataclasses import asdict

from speculative import NoisyDrafter, OracleDrafter, measuring

from .. import experiments, inputs
from ..inputs import check_prompts, held_out_prompts, repeating_prompts
from ..plots import COLOURS, MARKERS, OFFSET, break_even, most, one_panel, points, sample
from ..registry import DRAFTERS, drafter_entries
from ..tables import Columns, described, interval, number, over, where
from . import ONE_SIZE, experiment, open_target, two_tokens


def measure(options, saved):
    context, about = open_target(options, saved)
    target, entries = context.target, drafter_entries(DRAFTERS, context)
    entries["noisy (0.2)"] = target, NoisyDrafter(target, 0.2, sampling=options.sampling)
    entries["oracle"] = target, OracleDrafter(target, sampling=options.sampling)
    n_prompts, n_tokens = options.n_prompts, options.n_tokens_to_generate
    beginnings = held_out_prompts(context.tokenizer, n_prompts)
    check_prompts(beginnings, n_tokens, target, inputs.N_AHEAD)
    saved.expect(3 * n_prompts)
    prompts = {"tales": beginnings, "repeating": repeating_prompts(target, beginnings, saved.keep)}
    rows = {
        kind: experiments.compare_drafters(
            target, entries, some, n_tokens, sampling=options.sampling, seed=options.seed,
            keep=measuring.under(kind, saved.keep),
        )
        for kind, some in prompts.items()
    }  # fmt: skip
    kinds = {
        "tales": f"{n_prompts} prefixes of tales, {n_tokens} tokens each",
        "repeating": f"the same {inputs.N_AHEAD} greedy tokens later, where greedy text repeats itself",
    }
    return {**about, **asdict(options.sampling), "kinds": kinds, "rows": rows}


def table(report):
    columns = Columns(
        ("  drafter", "<17", "  {drafter}"),
        ("alpha", "<7", number("alpha", 3)),
        ("95 % interval", "<17", lambda row: interval(row, "alpha_")),
        ("c", "<8", number("c", 3)),
        ("best K", ">6", "{K}"),
        ("tokens per call", ">17", "{tokens_per_call:.2f}"),
        ("speedup", ">9", "{speedup:.2f}"),
        ("  95 % interval", "<17", lambda row: f"  {interval(row)}"),
        ("output", "<3", "{exactness}"),
    )
    blocks = [f"target  {described(report['target'])}; temperature {report['temperature']}\n{where(report)}\n"]
    for kind, rows in report["rows"].items():
        blocks.append(f"{kind}: {report['kinds'][kind]}\n{columns.page(rows)}\n")
    blocks.append(f"""\
alpha     accepted / (accepted + rejected) draft tokens, over all K tried
c         the time to draft a token, over that of an autoregressive step
best K    the fastest of the K tried, and so its speedup looks a little too good
interval  {over(report["settings"]["n_prompts"])}; of alpha at least Wilson's over the tokens tested with
          one K, on average, and none where tokens were drafted for one prompt alone
""")
    return "\n".join(blocks)


def plot(report):
    names = [row["drafter"] for row in next(iter(report["rows"].values()))]
    figure, axes = one_panel("Speedup by drafter and kind of text", height=1.8 + 0.5 * len(names))
    end = most([row for rows in report["rows"].values() for row in rows])
    for (kind, rows), shift, below, colour, marker in zip(
        report["rows"].items(), (-0.12, 0.12), (5, -10), COLOURS, MARKERS
    ):
        heights = [i + shift for i in range(len(rows))]
        points(axes, heights, rows, sideways=True, end=end, marker=marker, color=colour, label=kind)
        for row, height in zip(rows, heights):
            axes.annotate(f"K = {row['K']}", (row["speedup"], height), (0, below), color=colour, fontsize=7, **OFFSET)
    break_even(axes, upright=True)
    axes.set_xlabel(f"speedup over the target alone, at the fastest K\n({sample(report['settings']['n_prompts'])})")
    axes.set_xlim(0, end)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    figure.legend(loc="outside lower left", ncols=2)
    return figure


COMMAND = experiment(
    "drafters",
    "every drafter in a table: alpha, c, tokens per call, speedup",
    measure,
    table,
    plot=plot,
    options=ONE_SIZE,
    defaults={"n_tokens_to_generate": 64, "n_prompts": 4},
    checks=(two_tokens,),
    example="--temperature 1 --json drafters.json",
)
