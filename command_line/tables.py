"""The pages of the experiments: for each command a function of its name, from a report to a text.

Next: plot_parts.py
"""

from itertools import chain

from .columns import Columns
from .files import replacing
from .method_table import method_table  # noqa: F401 (a page, too)
from .page_parts import described_rule, heads, interval, number, over, where
from .registry import RULES
from .tree_table import tree_table  # noqa: F401
from .verdicts import does_it_pay, warning
from .views import costs_line, counted, described, tree_line


def calibrate(report):
    rows = report["rows"]
    table = Columns(
        ("K", ">3"), ("expected", ">10", "tokens per call"), ("measured", ">10"), ("by alpha", ">15", "speedup"),
        ("expected", ">10"), ("measured", ">10"), ("  95 % interval", "<15"),
    )  # fmt: skip
    names = ("expected_tokens_per_call", "tokens_per_call", "speedup_from_alpha", "expected_speedup", "speedup")
    cells = [[str(row["K"]), *(f"{row[name]:.2f}" for name in names), f"  {interval(row)}"] for row in rows]
    gaps = {row["K"]: row["expected_speedup"] / row["speedup"] - 1 for row in rows}
    worst = max(gaps, key=lambda K: abs(gaps[K]))
    n_texts, n_timed, n_tokens = (report[name] for name in ("n_prompts_expected", "n_prompts_timed", "n_tokens"))
    return f"""{heads(report)}
costs   {costs_line(report["costs"])}
alpha   {report["alpha"]:.3f}, 95 % interval {interval(report, "alpha_", 3)}
{warning(report)}
{table.page(cells)}

Expected and measured speedup are at most {abs(gaps[worst]):.1%} apart, at K = {worst}.
Does it pay here? {does_it_pay(report)}

c, v      the time to draft one token, and of a round for m tokens without drafting, over that of a plain step
alpha     the mean of sum min(p, q) over {n_texts} texts of {n_tokens} tokens, the target's own
by alpha  from c, v and alpha, by the formula with one alpha everywhere
expected  from c, v and the acceptance of each token along these texts
measured  on other prompts ({n_timed}), {n_tokens} tokens each, whose texts and times the prediction does not use
interval  {over(n_timed)}; of alpha over the {n_texts} texts{wilson(report)}
"""


def wilson(report):
    return " and at least Wilson's over their tokens" if report.get("temperature") == 0 else ""


def drafters(report):
    table = Columns(
        ("  drafter", "<17"), ("alpha", "<7"), ("95 % interval", "<17"), ("c", "<8"), ("best K", ">6"),
        ("tokens per call", ">17"), ("speedup", ">9"), ("  95 % interval", "<17"), ("output", "<3"),
    )  # fmt: skip
    blocks = [f"target  {described(report['target'])}; temperature {report['temperature']}\n{where(report)}\n"]
    for kind, rows in report["rows"].items():
        cells = [
            [
                f"  {row['drafter']}", number(row["alpha"], 3), interval(row, "alpha_"), number(row["c"], 3),
                str(row["K"]), f"{row['tokens_per_call']:.2f}", f"{row['speedup']:.2f}", f"  {interval(row)}",
                row["exactness"],
            ]
            for row in rows
        ]  # fmt: skip
        blocks.append(f"{kind}: {report['kinds'][kind]}\n{table.page(cells)}\n")
    blocks.append(f"""\
alpha     accepted / (accepted + rejected) draft tokens, over all K tried; c: time to draft a token over a plain step
best K    the fastest of the K tried, and so its speedup looks a little too good
interval  {over(report["settings"]["n_prompts"])}; of alpha at least Wilson's over the tokens tested with
          one K, on average, and none where tokens were drafted for one prompt alone
""")
    return "\n".join(blocks)


def prompts(report):
    total, n, n_tokens = report["all"], len(report["rows"]), report["n_tokens"]
    table = Columns(
        ("", "<41"), ("seconds", ">8", "native"), ("tok./s", ">8"), ("seconds", ">9", "assisted"), ("tok./s", ">8"),
        ("", ">9", "speedup"), ("per call", ">10", "tokens"), ("  text", "<6", "same"),
    )  # fmt: skip
    rows = [(row["beginning"], row, n_tokens, "yes" if row["same_text"] else "no") for row in report["rows"]]
    rows.append((f"all {n}", total, n * n_tokens, f"{total['same_texts']} of {n}"))
    return f"""{heads(report)}
{described_rule(report)}, {n_tokens} tokens each
{chosen(report)}
{table.page([prompt_cells(*row) for row in rows])}

Interval of the speedup of all: {interval(total)} ({over(n)}).
{about_texts(report)}
The clock starts after the prompt has been processed and a few warm-up tokens generated.
"""


def chosen(report):
    """The tree, and the costs that --K auto goes by, where there are any."""
    tree = f"{tree_line(report)}\n" if report["tree"] else ""
    return tree + (f"costs   {costs_line(report['costs'])}\n" if report["costs"] else "")


def prompt_cells(name, row, n_tokens, same):
    before, after = row["native_seconds"], row["seconds"]
    times = [f"{before:.2f}", f"{n_tokens / before:.0f}", f"{after:.2f}", f"{n_tokens / after:.0f}"]
    return [name, *times, f"{row['speedup']:.2f}", f"{row['tokens_per_call']:.2f}", f"  {same}"]


def about_texts(report):
    """What to expect of the column "same text" with this rule."""
    if report["temperature"] == 0 or RULES[report["verifier"]].one_text:
        return "With these options both texts should be the same."
    if report["exactness"] == "LOSSY":
        return "This rule is LOSSY: the texts do not even have the same distribution."
    return "At this temperature both texts have one distribution but may differ; --verifier gumbel makes them the same."


def write_log(report, name):
    """Write both texts of each prompt, one after the other."""
    blocks = [f"{described_rule(report)}, {report['n_tokens']} tokens each\n"]
    for i, row in enumerate(report["rows"], 1):
        same = "the same text" if row["same_text"] else "another text"
        blocks.append(f"=== {i}\n{row['prompt']}\n\n--- native, {row['native_seconds']:.3f} s\n{row['native']}\n")
        blocks.append(f"--- assisted, {row['seconds']:.3f} s, {same}\n{row['assisted']}\n")
    with replacing("log", name) as path:
        path.write_text("\n".join(blocks), encoding="utf-8")


def gamma_table(report):
    table = Columns(
        ("K", ">4"), ("in time", ">9", "speedup"), ("95 % interval", ">15"), ("in calls", ">10"),
        ("95 % interval", ">15"), ("alpha", ">8", "of the row alone"), ("c", ">7"),
        ("in time", ">13", "speedup, theory"), ("in calls", ">10"),
    )  # fmt: skip
    blocks = [f"{heads(report)}\n{counted(report['n_prompts'], 'prompt')}, {report['n_tokens']} tokens each\n"]
    for name, found in report["temperatures"].items():
        cells = [
            [
                str(row["K"]), f"{row['speedup']:.2f}", interval(row), f"{row['tokens_per_call']:.2f}",
                interval(row, "calls_"), number(row["alpha"], 3), number(row["c"], 3), f"{row['theory_speedup']:.2f}",
                f"{row['theory_tokens_per_call']:.2f}",
            ]
            for row in found["rows"]
        ]  # fmt: skip
        gap = max(abs(row["theory_speedup"] / row["speedup"] - 1) for row in found["rows"])
        fitted = f"alpha = {found['alpha']:.3f}, c = {found['c']:.3f}, of which drafting is {found['c_draft']:.3f}"
        repeated = f"{found['repetition']:.0%} of the text's 4-grams occurred earlier in it."
        blocks.append(f"""{name}: {fitted}
{table.page(cells)}
Theory and measured speedup in time differ by at most {gap:.1%}. {repeated}
""")
    blocks.append(f"""\
speedup   over the target alone: seconds over seconds; target calls over target calls, which is tokens per call
interval  {over(report["n_prompts"])}
theory    one alpha and one c for all rows, by least squares: alpha from the calls, c from the times. A call with k
          draft tokens takes 1 + c k plain steps, so c is the cost of a draft token, to draft and to check it
""")
    return "\n".join(blocks)


def alpha_table(report):
    blocks = [f"{where(report)}\n"]
    for found in report["targets"].values():
        tables = found["temperatures"]
        columns = [("drafter", "<18")]
        for name in tables:
            columns += [("alpha", "<7", name), ("95 % interval", "<15"), ("drafts", ">7"), ("", "<4")]
        rows = [
            [row[0]["drafter"], *chain(*map(alpha_cells, row))] for row in zip(*(t["rows"] for t in tables.values()))
        ]
        repeated = chain(*([f"{table['repetition']:.0%}", "", "", ""] for table in tables.values()))
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
    """What an interval of alpha is: a drafter that copies may draft in some of the texts only."""
    if n_texts == 1:
        return "none: there is one text"
    texts = f"95 %, Student's t over those of the {n_texts} texts in which it drafts, and none over a single one;"
    return f"{texts}\n            at temperature 0 at least Wilson's over the places"


def alpha_cells(row):
    if row["alpha"] is None:
        return ["-", "", "", ""]
    return [f"{row['alpha']:.3f}", interval(row), f"{row['guessed']:.0%}", ""]


def compare_sizes(report):
    table = Columns(
        ("target", "<16"), ("parameters", ">10"), ("native", ">10"), ("   draft", "<17"), ("assisted", ">10"),
        ("speedup", ">10"), ("95 % interval", ">15"), ("tokens per call", ">17"),
    )  # fmt: skip
    rows = []
    for name, found in report["targets"].items():
        first = [name, f"{found['target']['parameters'] / 1e6:.1f} M", f"{found['native_seconds']:.2f} s"]
        if not found["drafters"]:
            rows.append([*first, "   -", "", "", "", ""])
        for kind, row in found["drafters"].items():
            draft = report["draft"] if kind == "model" else kind
            rows.append([
                *first, f"   {draft}", f"{row['seconds']:.2f} s", f"{row['speedup']:.2f}", interval(row),
                f"{row['tokens_per_call']:.2f}",
            ])  # fmt: skip
            first = ["", "", ""]
    return f"""{counted(report["n_prompts"], "prompt")}, {report["n_tokens"]} tokens each; {described_rule(report)}
{where(report)}

{table.page(rows)}

Seconds are those of the new tokens of all prompts. Interval: {over(report["n_prompts"])}.
"""
