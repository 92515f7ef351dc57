"""Native against assisted: on the prompts of a published comparison, one by one, or on a benchmark, by category."""

from dataclasses import replace
from json import dumps
from pathlib import Path
from time import time

from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import SIZES
from speculative.measuring.runs import compared, gain_of

from .. import experiments
from ..experiments.acceptance_length import acceptance_lengths, mean_speedup, spec_bench_answer
from ..files import replacing
from ..inputs import questions_of
from ..plots import BLUE, GREY, beside, in_words, name_bars, one_panel
from ..registry import DRAFTERS, RULES, draft_length, drafter_of, size_of
from ..tables import Columns, calls_interval, costs_line, described_rule, heads, interval, over, tree_line
from . import COMMON, LISTS, ONE_DRAFTER, experiment, open_target, rule_arguments, rule_in_report, two_tokens


def measure(options, saved):
    context, about = open_target(options, saved)
    caches = [context.target]

    def seen(draft, load_seconds):
        caches.append(draft)
        return draft

    setting, tokenizer = DRAFTERS[options.drafter].build(replace(context, timed=seen)), context.tokenizer
    questions, some = zip(*questions_of(options, tokenizer, context.target))
    saved.expect(len(some))
    drafter, measured_tree = drafter_of(options, setting, some[0], options.sampling, saved.note)
    entries = {"assisted": (setting.target, drafter)}
    K, costs = draft_length(options, setting, drafter, some[0], saved.note)
    how = {"K": K, "keep": saved.keep, "caches": [*caches, setting.target], **rule_arguments(options)}
    runs, rows = experiments.native_and_assisted(context.target, entries, some, options.n_tokens_to_generate, **how)
    per_prompt = []
    for question, tokens, native, assisted in zip(questions, some, runs["native"], runs["assisted"]):
        per_prompt.append({
            "question_id": question.question_id, "category": question.category,
            "prompt": tokenizer.decode(tokens), "beginning": beginning(tokens, tokenizer),
            "native": tokenizer.decode(native.tokens), "assisted": tokenizer.decode(assisted.tokens),
            "native_seconds": native.seconds, "seconds": assisted.seconds,
            "native_prefill_seconds": native.prefill_seconds, "prefill_seconds": assisted.prefill_seconds,
            "speedup": native.seconds / assisted.seconds, "tokens_per_call": assisted.tokens_per_call,
            "lengths": assisted.lengths, "same_text": native.tokens == assisted.tokens,
        })  # fmt: skip
    tree = {"tree": options.tree, **size_of(drafter, options), "measured_tree": measured_tree, "costs": costs}
    measured = {
        "rows": per_prompt, "all": rows["assisted"],
        "categories": by_category([question.category for question in questions], runs["native"], runs["assisted"]),
        "with_prefill": gain_of(runs["native"], runs["assisted"], prefill=True),
        "mean_speedup": mean_speedup(runs["native"], runs["assisted"]),
        "acceptance": acceptance_lengths([run.lengths for run in runs["assisted"]]),
        "spec_bench": options.spec_bench,
        "tokenizer": tokenizer_name(options),
    }  # fmt: skip
    return {**about, "draft": setting.about, **rule_in_report(options), **tree, **measured}


def tokenizer_name(options):
    """What transformers loads the target's tokenizer by."""
    name = options.target_model_size
    return "gpt2" if name in SIZES else str(find_folder(name, Path(options.models_dir), options.source).resolve())


def by_category(categories, native, assisted):
    """A row for each category, and one for all questions; none if the questions have no category."""
    rows = []
    for name in [*dict.fromkeys(categories), None] if any(categories) else []:
        alone, runs = (
            [run for run, category in zip(some, categories) if name in (category, None)] for some in (native, assisted)
        )
        seconds = {
            "native_seconds": sum(run.seconds for run in alone),
            "seconds": sum(run.seconds for run in runs),
        }
        rows.append({"beginning": "all" if name is None else name or "none", **seconds, **compared(alone, runs)})
    return rows


def beginning(tokens, tokenizer, length=40):
    """The text of the tokens on one line, shortened to a length."""
    text = " ".join(tokenizer.decode(tokens).split())
    return text if len(text) <= length else text[: length - 3] + "..."


def table(report):
    tree = f"{tree_line(report)}\n" if report["measured_tree"] else ""
    costs = f"costs   {costs_line(report['costs'])}\n" if report["costs"] else ""
    return f"""{heads(report)}
{described_rule(report)}, {report["n_tokens"]} tokens each
{tree}{costs}
{category_rows(report) if report["categories"] else prompt_rows(report)}

Interval of the speedup of all: {interval(report["all"])} ({over(len(report["rows"]))}).
{about_texts(report)}
The clock starts after the prompt has been processed and a few warm-up tokens generated.
With prefill, the speedup of all is {report["with_prefill"]["speedup"]:.2f} ({interval(report["with_prefill"])}).
{metrics(report) if report["spec_bench"] else ""}"""


def prompt_rows(report):
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
    return columns.page(rows)


def category_rows(report):
    columns = Columns(
        ("category", "<21", "{beginning}"),
        ("prompts", ">8", "{n_texts}"),
        ("tokens per call", ">17", "{tokens_per_call:.2f}"),
        ("95 %", ">15", calls_interval),
        ("speedup", ">9", "{speedup:.2f}"),
        ("95 %", ">15", interval),
        ("same text", ">11", "{same_texts}"),
    )
    return columns.page(report["categories"])


def metrics(report):
    """The lines on the metrics of Spec-Bench and SPEED-Bench, and on the files of answers."""
    found, name = report["acceptance"], Path(report["spec_bench"]).resolve()
    too_fast = report["n_tokens"] / (report["n_tokens"] - 1)

    def shares(rate):
        return "  ".join(f"{k}: {share:.0%}" for k, share in found[rate].items()) or "-"

    return f"""
speedup              {report["with_prefill"]["speedup"]:.2f} ratio of the total times, with prefill
                     {report["mean_speedup"]:.2f} ratio of the mean tokens per second (Spec-Bench)
mean accepted tokens {found["mean_accepted_tokens"]:.2f} over all calls (Spec-Bench; tokens per call)
acceptance length    {found["average_AL"]:.2f} mean of the questions' own means (SPEED-Bench)
calls by length      {"  ".join(f"{length}: {n}" for length, n in found["histogram"].items())}
joint rate           {shares("joint")}  of the calls added at least this many tokens
conditional rate     {shares("conditional")}  of those that added at least one less

The answers are in {name.name} and {baseline(name).name}. In Spec-Bench's folder, for each of its tasks:

    python evaluation/speed.py --file-path {name} --base-path {baseline(name)} --tokenizer-path {report["tokenizer"]}

It counts one token less for each text of the target alone, Vicuna's BOS: its speedup is {too_fast:.3f} times as large.
"""


def baseline(name):
    """The path of the file with the answers of the target alone."""
    return Path(name).with_name(f"{Path(name).stem}-baseline.jsonl")


def answers(report, name):
    """Write the answers as Spec-Bench does, those with the draft and those of the target alone."""
    target, now = report["target"]["name"], time()
    for path, model_id, prefix, text in (
        (name, f"{target} with {report['draft']['name']}", "", "assisted"),
        (baseline(name), target, "native_", "native"),
    ):
        found = []
        for row in report["rows"]:
            lengths = row["lengths"] if text == "assisted" else [1] * sum(row["lengths"])
            seconds = row[f"{prefix}seconds"] + row[f"{prefix}prefill_seconds"]
            question = row["question_id"], row["category"], row[text]
            found.append(dumps(spec_bench_answer(*question, lengths, seconds, model_id, now)))
        with replacing("spec_bench", path) as new:
            new.write_text("\n".join(found) + "\n", encoding="utf-8")


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
    rows = report["categories"][:-1] or report["rows"]
    n = len(rows)
    figure, axes = one_panel("Seconds for the same work, with and without the draft", width=7.6, height=1.4 + 0.45 * n)
    for what, shift, colour, label in (("native_seconds", -0.2, GREY, "native"), ("seconds", 0.2, BLUE, "assisted")):
        axes.barh([i + shift for i in range(n)], [row[what] for row in rows], 0.38, color=colour, label=label)
    for i, row in enumerate(rows):
        beside(axes, f"{row['speedup']:.2f} times as fast", row["seconds"], i + 0.2)
    axes.set_xlabel(
        f"seconds for {report['n_tokens']} tokens a text, each text once\n"
        f"all {len(report['rows'])}: {in_words(report['all'])}",
        fontsize=9,
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
    files={"log": log, "spec_bench": answers},
    options=COMMON | LISTS | ONE_DRAFTER | {"log", "spec_bench"},
    defaults={"prompts": "known", "n_prompts": 8},
    checks=(two_tokens,),
    example="--prompt_file qa.jsonl --spec_bench out.jsonl",
)
