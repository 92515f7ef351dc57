"""Native against assisted, prompt by prompt, on the prompts of a published comparison."""

from speculative import measuring

from ..files import replacing
from ..inputs import prompts_of
from ..plots import BLUE, GREY, beside, in_words, name_bars, one_panel
from ..registry import DRAFTERS, RULES, draft_length, drafter_of, size_of
from ..tables import Columns, costs_line, described_rule, heads, interval, over, tree_line
from . import COMMON, LISTS, ONE_DRAFTER, experiment, open_target, rule_arguments, rule_in_report, two_tokens


def measure(options, saved):
    context, about = open_target(options, saved)
    setting, tokenizer = DRAFTERS[options.drafter].build(context), context.tokenizer
    some = prompts_of(options, tokenizer, context.target)
    saved.expect(len(some))
    drafter, measured_tree = drafter_of(options, setting, some[0], options.sampling, saved.note)
    entries = {"assisted": (setting.target, drafter)}
    K, costs = draft_length(options, setting, drafter, some[0], saved.note)
    runs, rows = measuring.native_and_assisted(
        context.target, entries, some, options.n_tokens_to_generate, K=K, keep=saved.keep, **rule_arguments(options)
    )
    per_prompt = []
    for tokens, native, assisted in zip(some, runs["native"], runs["assisted"]):
        per_prompt.append({
            "prompt": tokenizer.decode(tokens), "beginning": beginning(tokens, tokenizer),
            "native": tokenizer.decode(native.tokens), "assisted": tokenizer.decode(assisted.tokens),
            "native_seconds": native.seconds, "seconds": assisted.seconds,
            "speedup": native.seconds / assisted.seconds, "tokens_per_call": assisted.tokens_per_call,
            "same_text": native.tokens == assisted.tokens,
        })  # fmt: skip
    tree = {"tree": options.tree, **size_of(drafter, options), "measured_tree": measured_tree, "costs": costs}
    measured = {"rows": per_prompt, "all": rows["assisted"]}
    return {**about, "draft": setting.about, **rule_in_report(options), **tree, **measured}


def beginning(tokens, tokenizer, length=40):
    """The text of the tokens on one line, shortened to a length."""
    text = " ".join(tokenizer.decode(tokens).split())
    return text if len(text) <= length else text[: length - 3] + "..."


def table(report):
    total, n, n_tokens = report["all"], len(report["rows"]), report["n_tokens"]
    columns = Columns(
        ("", "<41", "{beginning}"),
        ("seconds", ">8", "{native_seconds:.2f}", "native"),
        ("tok./s", ">8", lambda row: f"{row['n'] / row['native_seconds']:.0f}"),
        ("seconds", ">9", "{seconds:.2f}", "assisted"),
        ("tok./s", ">8", lambda row: f"{row['n'] / row['seconds']:.0f}"),
        ("", ">9", "{speedup:.2f}", "speedup"),
        ("per call", ">10", "{tokens_per_call:.2f}", "tokens"),
        ("  text", "<6", "  {same}", "same"),
    )
    rows = [{**row, "n": n_tokens, "same": "yes" if row["same_text"] else "no"} for row in report["rows"]]
    rows.append({**total, "beginning": f"all {n}", "n": n * n_tokens, "same": f"{total['same_texts']} of {n}"})
    tree = f"{tree_line(report)}\n" if report["measured_tree"] else ""
    costs = f"costs   {costs_line(report['costs'])}\n" if report["costs"] else ""
    return f"""{heads(report)}
{described_rule(report)}, {n_tokens} tokens each
{tree}{costs}
{columns.page(rows)}

Interval of the speedup of all: {interval(total)} ({over(n)}).
{about_texts(report)}
The clock starts after the prompt has been processed and a few warm-up tokens generated.
"""


def about_texts(report):
    """What to expect of the column "same text" with this rule."""
    if report["temperature"] == 0 or RULES[report["verifier"]].one_text:
        return "With these options both texts should be the same."
    if report["exactness"] == "LOSSY":
        return "This rule is LOSSY: the texts do not even have the same distribution."
    return "At this temperature both texts have one distribution but may differ; --verifier gumbel makes them the same."


def log(report, name):
    """Write both texts of each prompt, one after the other."""
    blocks = [f"{described_rule(report)}, {report['n_tokens']} tokens each\n"]
    for i, row in enumerate(report["rows"], 1):
        same = "the same text" if row["same_text"] else "another text"
        blocks.append(f"=== {i}\n{row['prompt']}\n\n--- native, {row['native_seconds']:.3f} s\n{row['native']}\n")
        blocks.append(f"--- assisted, {row['seconds']:.3f} s, {same}\n{row['assisted']}\n")
    with replacing("log", name) as path:
        path.write_text("\n".join(blocks), encoding="utf-8")


def plot(report):
    rows, n = report["rows"], len(report["rows"])
    figure, axes = one_panel("Seconds for the same work, with and without the draft", width=7.6, height=1.4 + 0.45 * n)
    for what, shift, colour, label in (("native_seconds", -0.2, GREY, "native"), ("seconds", 0.2, BLUE, "assisted")):
        axes.barh([i + shift for i in range(n)], [row[what] for row in rows], 0.38, color=colour, label=label)
    for i, row in enumerate(rows):
        beside(axes, f"{row['speedup']:.2f} times as fast", row["seconds"], i + 0.2)
    axes.set_xlabel(
        f"seconds for {report['n_tokens']} tokens, each text once\nall {n}: {in_words(report['all'])}", fontsize=9
    )
    name_bars(axes, [row["beginning"] for row in rows])
    axes.set_xlim(0, 1.35 * max(max(row["seconds"], row["native_seconds"]) for row in rows))  # room for the texts
    figure.legend(loc="outside lower center", ncols=2)
    return figure


COMMAND = experiment(
    "prompts",
    "native against assisted, on the seven prompts of mychen76's script (--prompts)",
    measure,
    table,
    plot=plot,
    log=log,
    options=COMMON | LISTS | ONE_DRAFTER | {"log"},
    defaults={"prompts": "known", "n_prompts": 8},
    checks=(two_tokens,),
    example="--prompt_file questions.txt --log texts.txt",
)
