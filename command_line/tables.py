"""The pages of the experiments: each a function of the command's name, from a report to a text.

Next: plots.py
"""

from itertools import chain

from .columns import Columns
from .files import replacing
from .registry import RULES
from .views import costs_line, described


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
    if best_K := report["best_K"]:
        best = f"Best is K = {best_K}, with an expected speedup of {report['expected_speedup'][best_K - 1]:.2f}."
    else:
        best = "Speculation does not pay here: with this draft and this sampling every K is expected to be slower."
    n_texts, n_timed, n_tokens = (report[name] for name in ("n_prompts_expected", "n_prompts_timed", "n_tokens"))
    return f"""{heads(report)}
costs   {costs_line(report["costs"])}
alpha   {report["alpha"]:.3f}, 95 % interval {report["alpha_low"]:.3f} to {report["alpha_high"]:.3f}

{table.page(cells)}

Expected and measured speedup are at most {abs(gaps[worst]):.1%} apart, at K = {worst}.
{best}

alpha     the mean of sum min(p, q) over {n_texts} texts of {n_tokens} tokens, the target's own
by alpha  what the formula for one alpha everywhere makes of alpha, c and v
expected  what the acceptance of each token along these texts makes of c and v
measured  {n_timed} other prompts, {n_tokens} tokens each: the expected knows neither their texts nor their times
"""


def drafters(report):
    table = Columns(
        ("  drafter", "<17"), ("alpha", "<7"), ("95 % interval", "<17"), ("c", "<8"), ("best K", ">6"),
        ("tokens per call", ">17"), ("speedup", ">9"), ("  95 % interval", "<17"), ("law", "<3"),
    )  # fmt: skip
    blocks = [
        f"target  {described(report['target'])}; temperature {report['temperature']}\non      {report['machine']}\n"
    ]
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

{table.page([prompt_cells(*row) for row in rows])}

The speedup of all has the 95 % interval {total["low"]:.2f} to {total["high"]:.2f}.
{about_texts(report)}
Seconds are those of the new tokens: the prompt is in both caches, and a few tokens went before to warm up.
"""


def prompt_cells(name, row, n_tokens, same):
    before, after = row["native_seconds"], row["seconds"]
    times = [f"{before:.2f}", f"{n_tokens / before:.0f}", f"{after:.2f}", f"{n_tokens / after:.0f}"]
    return [name, *times, f"{row['speedup']:.2f}", f"{row['tokens_per_call']:.2f}", f"  {same}"]


def about_texts(report):
    """What the column of same texts means with this rule."""
    if report["temperature"] == 0 or RULES[report["verifier"]].one_text:
        return "With these options both texts are to be the same."
    if report["exactness"] == "LOSSY":
        return "This rule is LOSSY: the texts have not even the same law."
    return "At this temperature both texts have one law, and need not be the same; --verifier gumbel makes them so."


def write_log(report, name):
    """Both texts of each prompt of `prompts`, one below the other."""
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
        ("alpha", ">8", "of the row alone"), ("c", ">7"), ("in time", ">13", "speedup, theory"), ("in calls", ">10"),
    )  # fmt: skip
    blocks = [f"{heads(report)}\n{report['n_prompts']} prompts, {report['n_tokens']} tokens each\n"]
    for name, found in report["temperatures"].items():
        cells = [
            [
                str(row["K"]), f"{row['speedup']:.2f}", interval(row), f"{row['tokens_per_call']:.2f}",
                number(row["alpha"], 3), number(row["c"], 3), f"{row['theory_speedup']:.2f}",
                f"{row['theory_tokens_per_call']:.2f}",
            ]
            for row in found["rows"]
        ]  # fmt: skip
        gap = max(abs(row["theory_speedup"] / row["speedup"] - 1) for row in found["rows"])
        fitted = f"alpha = {found['alpha']:.3f}, c = {found['c']:.3f}, of which drafting is {found['c_draft']:.3f}"
        repeated = f"{found['repetition']:.0%} of the text's 4-grams stood in it before."
        blocks.append(f"""{name}: {fitted}
{table.page(cells)}
Theory is at most {gap:.1%} from the measured speedup in time. {repeated}
""")
    blocks.append("""\
speedup  over the target alone: seconds over seconds; target calls over target calls, which is tokens per call
theory   one alpha and one c for all rows, by least squares: alpha from the calls, c from the times. A call with k
         guesses takes 1 + c k plain steps, so c is what a guess costs to draft and to check
""")
    return "\n".join(blocks)


def alpha_table(report):
    blocks = [f"on      {report['machine']}\n"]
    for found in report["targets"].values():
        tables = found["temperatures"]
        columns = [("drafter", "<18")]
        for name in tables:
            columns += [("alpha", "<7", name), ("95 % interval", "<15"), ("guesses", ">7"), ("", "<4")]
        rows = [
            [row[0]["drafter"], *chain(*map(alpha_cells, row))] for row in zip(*(t["rows"] for t in tables.values()))
        ]
        repeated = chain(*([f"{table['repetition']:.0%}", "", "", ""] for table in tables.values()))
        head = f"target  {described(found['target'])}; {found['n_prompts']} texts of {found['n_tokens']} tokens"
        blocks.append(f"{head}\n{Columns(*columns).page([*rows, ['repetition', *repeated]])}\n")
    blocks.append("""\
alpha       the mean of sum min(p, q) along the target's own text, over the places where the drafter guesses
guesses     at what share of the places it does
repetition  the share of the text's 4-grams that stood in it before
""")
    return "\n".join(blocks)


def alpha_cells(row):
    if row["alpha"] is None:
        return ["-", "", "", ""]
    return [f"{row['alpha']:.3f}", interval(row), f"{row['guessed']:.0%}", ""]


def method_table(report):
    columns = [("drafter", "<14"), ("verifier", "<13")]
    for kind in report["rows"][0]["kinds"]:
        columns += [("calls", ">5", kind), ("time", ">6"), ("", "<3")]
    rows = []
    for row in report["rows"]:
        cells = [[f"{cell['tokens_per_call']:.2f}", f"{cell['speedup']:.2f}", ""] for cell in row["kinds"].values()]
        rows.append([row["drafter"], row["verifier"], *chain(*cells), law(row, report["temperature"])])
    best = ""
    if exact := [row for row in report["rows"] if row["exactness"] == "exact"]:
        calls, time = (best_method(exact, what) for what in ("tokens_per_call", "speedup"))
        best = f"\nOf the exact ones, {calls} makes the most tokens per call, and {time} is the fastest.\n"
    return f"""target  {described(report["target"])}; K = {report["K"]}, temperature {report["temperature"]}
on      {report["machine"]}

{Columns(*columns, ("law", "<3")).page(rows)}
{best}
calls      tokens per call of the target, which is the speedup in calls; time: the speedup in seconds
tales      {report["n_prompts"]} beginnings of tales, {report["n_tokens"]} tokens each; dialogue: places with quotes
repeating  the tales some greedy tokens later, where the target's text goes round in circles
known      the first of the prompts that the experiment `prompts` has
"""


def best_method(rows, what):
    """The drafter and verifier with the largest number over all kinds of text, in words."""
    row = max(rows, key=lambda row: row["kinds"]["all"][what])
    return f"{row['drafter']} with {row['verifier']}"


def law(row, temperature):
    """What the rule does to the distribution of the text; at temperature 0, whether the texts were the target's own."""
    if temperature > 0:
        return row["exactness"]
    cell = row["kinds"]["all"]
    name = "exact for greedy" if row["exactness"] == "LOSSY" else row["exactness"]
    return f"{name}, same text {cell['same_texts']} of {cell['n_texts']}"


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
    return f"""{report["n_prompts"]} prompts, {report["n_tokens"]} tokens each; {described_rule(report)}
on      {report["machine"]}

{table.page(rows)}

Seconds are those of the new tokens of all prompts.
"""


# ------------------------------------------------------------------------------------------------ parts of a page


def heads(report):
    return f"target  {described(report['target'])}\ndraft   {described(report['draft'])}\non      {report['machine']}\n"


def described_rule(report):
    return (
        f"K = {report['K']}, temperature {report['temperature']}, verifier {report['verifier']} ({report['exactness']})"
    )


def interval(row, prefix=""):
    return f"{row[prefix + 'low']:.2f} to {row[prefix + 'high']:.2f}"


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"
