"""The page of method_table: all kinds of text together, with intervals, then each kind.

Next: tree_table.py
"""

from itertools import chain
from statistics import median

from .columns import Columns
from .page_parts import interval, where
from .verdicts import best_of
from .views import described

BLOCK = "block      accepts at least as many tokens as rejection in expectation: a smaller number above is chance\n"


def method_table(report):
    rows, temperature = report["rows"], report["temperature"]
    *kinds, _ = rows[0]["kinds"]
    names = ("drafter", "<14"), ("verifier", "<13")
    together = Columns(
        *names, ("calls", ">5"), ("95 % interval", ">15"), ("time", ">8"), ("95 % interval", ">15"), ("   output", "<9")
    )
    cells = [[row["drafter"], row["verifier"], *pooled(row), f"   {output(row, temperature)}"] for row in rows]
    columns = list(names)
    for kind in kinds:
        columns += [("calls", ">5", kind), ("time", ">7"), ("", "<3")]
    by_kind = [
        [row["drafter"], row["verifier"], *chain(*(means(row["kinds"][kind]) for kind in kinds))] for row in rows
    ]
    widths = chain(*([*half_widths([row["kinds"][kind] for row in rows]), ""] for kind in kinds))
    return f"""target  {described(report["target"])}; K = {report["K"]}, temperature {temperature}
{where(report)}

all kinds of text, {rows[0]["kinds"]["all"]["n_texts"]} prompts, {report["n_tokens"]} tokens each
{together.page(cells)}

{best_of(rows, "tokens_per_call", "calls_low", "calls_high", "Most tokens per call")}\
{best_of(rows, "speedup", "low", "high", "Largest speedup")}
by kind, up to {report["n_prompts"]} prompts each
{Columns(*columns).page([*by_kind, ["interval, ±", "median row", *widths]])}

calls      tokens per call of the target, which is the speedup in calls; time: the speedup in seconds
interval   95 %, Student's t over the prompts
tales      prefixes of tales; dialogue: places with quotation marks
repeating  the tales some greedy tokens later, where the target's text repeats itself
known      the first of the prompts of the experiment `prompts`
{BLOCK if any(row["verifier"] == "block" for row in rows) else ""}"""


def pooled(row):
    """The cells of all kinds of text together."""
    cell = row["kinds"]["all"]
    return f"{cell['tokens_per_call']:.2f}", interval(cell, "calls_"), f"{cell['speedup']:.2f}", interval(cell)


def means(cell):
    return f"{cell['tokens_per_call']:.2f}", f"{cell['speedup']:.2f}", ""


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
