"""Every drafter: alpha along the target's own text, at each temperature, for each target."""

from dataclasses import replace
from itertools import chain, cycle

from speculative import measuring

from .. import experiments
from ..inputs import prompts_of
from ..plots import COLOURS, MARKERS, panels, points, sample
from ..registry import DRAFTERS
from ..tables import Columns, counted, described, interval, where
from . import LISTS, SIZES, experiment, open_target, samplings


def measure(options, saved):
    names, found = options.listed("target_sizes"), {}
    for target_name in names:
        options = replace(options, target_model_size=target_name)
        context, about = open_target(options, saved)
        some = prompts_of(options, context.tokenizer, context.target)
        saved.expect(len(some) * len(names) * len(options.listed("temperatures")))
        last = sorted(DRAFTERS.values(), key=lambda kind: kind.name == "model")  # the draft model below the others
        settings = {row: setting for kind in last for row, setting in kind.rows(context).items()}
        by_temperature = {
            name: experiments.alpha_table(
                context.target, {row: setting.drafter(sampling) for row, setting in settings.items()}, some,
                options.n_tokens_to_generate, sampling=sampling, seed=options.seed,
                keep=measuring.under(f"{target_name}, {name}", saved.keep),
            )
            for name, sampling in samplings(options).items()
        }  # fmt: skip
        found[target_name] = {**about, "n_prompts": len(some), "temperatures": by_temperature}
    return {"targets": found}


def table(report):
    blocks = [f"{where(report)}\n"]
    for found in report["targets"].values():
        tables = found["temperatures"]
        columns = [("drafter", "<18")]
        for name in tables:
            columns += [("alpha", "<7", "", name), ("95 % interval", "<15"), ("drafts", ">7"), ("", "<4")]
        rows = [[row[0]["drafter"], *chain(*map(cells, row))] for row in zip(*(t["rows"] for t in tables.values()))]
        repeated = chain(*([f"{found['repetition']:.0%}", "", "", ""] for found in tables.values()))
        texts, tokens = counted(found["n_prompts"], "text"), counted(found["n_tokens"], "token")
        head = f"target  {described(found['target'])}; {texts} of {tokens}"
        blocks.append(f"{head}\n{Columns(*columns).page([*rows, ['repetition', *repeated]])}\n")
    blocks.append(f"""\
alpha       the mean of sum min(p, q) along the target's own text, over the places where the drafter drafts a token
drafts      the share of the places where it does
interval    {over_texts(found["n_prompts"])}
repetition  the share of the text's 4-grams that occurred earlier in it
""")
    return "\n".join(blocks)


def over_texts(n_texts):
    """The meaning of alpha's interval: a drafter that copies may draft in some of the texts only."""
    if n_texts == 1:
        return "none: there is one text"
    texts = f"95 %, Student's t over those of the {n_texts} texts in which it drafts, and none over a single one;"
    return f"{texts}\n            at temperature 0 at least Wilson's over the positions"


def cells(row):
    if row["alpha"] is None:
        return ["-", "", "", ""]
    return [f"{row['alpha']:.3f}", interval(row), f"{row['drafted']:.0%}", ""]


def plot(report):
    targets = report["targets"]
    counts = [len(next(iter(found["temperatures"].values()))["rows"]) for found in targets.values()]
    height = 1.2 + 0.36 * sum(counts) + 0.5 * len(counts)
    figure, axes_of = panels(len(targets), 1, 6.4, height, sharex=True, squeeze=False, height_ratios=counts)
    figure.suptitle("How often is a draft token accepted, by drafter?", x=0.01, ha="left", fontsize=11)
    for axes, (target, found) in zip(axes_of[:, 0], targets.items()):
        tables = found["temperatures"]
        for k, ((name, one), colour, marker) in enumerate(zip(tables.items(), cycle(COLOURS), cycle(MARKERS))):
            shift = 0.2 * k - 0.1 * (len(tables) - 1)
            rows = [(i + shift, row) for i, row in enumerate(one["rows"]) if row["alpha"] is not None]
            some = [row for _, row in rows]
            points(
                axes, [y for y, _ in rows], some, "alpha", True, marker=marker, color=colour, markersize=5, label=name
            )
            for y, row in rows:
                if row["drafted"] < 1:
                    look = {"color": colour, "fontsize": 7, "va": "center", "annotation_clip": False}
                    axes.annotate(f"{row['drafted']:.0%}", (1.01, y), **look)
        names = [row["drafter"] for row in next(iter(tables.values()))["rows"]]
        axes.set(title=f"target {target}", xlim=(0, 1), yticks=range(len(names)), yticklabels=names)
        axes.invert_yaxis()
    n_prompts = next(iter(targets.values()))["n_prompts"]
    axes.set_xlabel(
        f"α, the probability that a draft token is accepted\n({sample(n_prompts, 'text')}; "
        "at the right the share of positions with a draft)",
        fontsize=9,
    )
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


COMMAND = experiment(
    "alpha_table",
    "every drafter: alpha at each temperature, for each target",
    measure,
    table,
    plot=plot,
    options=SIZES | LISTS | {"temperatures"},
    defaults={"n_tokens_to_generate": 64, "n_prompts": 12},
    example="--target_sizes 124M,355M --temperatures 0,0.7,1",
)
