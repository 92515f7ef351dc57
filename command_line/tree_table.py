"""The page of tree_table: acceptance by the number of candidates, then trees against chains in calls and in time.

Next: tables.py
"""

from itertools import accumulate

from .columns import Columns
from .page_parts import interval, over, where
from .views import counted, described

CHOICES = (1, 2, 3, 4, 6, 8)


def tree_table(report):
    ranks = Columns(("candidates for a place", "<24"), *((str(k), ">7") for k in CHOICES))
    cells = [
        [name, *(f"{list(accumulate(w))[k - 1]:.3f}" for k in CHOICES)] for name, w in report["acceptance"].items()
    ]
    table = Columns(
        ("", "<11"), ("nodes", ">6"), ("levels", ">7"), ("calls", ">7"), ("95 % interval", ">15"), ("expected", ">9"),
        ("time", ">7"), ("95 % interval", ">15"), ("   calls over the chain", "<24"), ("same text", ">9"),
    )  # fmt: skip
    blocks = []
    for name in dict.fromkeys(row["drafter"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["drafter"] == name]
        blocks.append(f"{name}\n{table.page([row_cells(row) for row in rows])}\n\n{verdict(rows)}\n")
    texts = f"{counted(report['n_prompts'], 'prompt')}, {report['n_tokens']} tokens each"
    same = ": every text should be the same as the target's own" if report["temperature"] == 0 else ""
    return f"""target  {described(report["target"])}; temperature {report["temperature"]}; {texts}
{where(report)}

The probability that one of k candidates is accepted
{ranks.page(cells)}

{chr(10).join(blocks)}
calls     tokens per call of the target; time: the speedup in seconds over the target alone
expected  tokens per call, if candidates were accepted in all places as often as on average
interval  {over(report["n_prompts"])}
chain     in the column "calls over the chain": the chain with as many levels

All rows are exact{same}.
"""


def row_cells(row):
    chain = "" if row["over_chain"] is None else f"   {row['over_chain']:.2f}, {interval(row, 'over_')}"
    return [
        row["kind"], str(row["nodes"]), str(row["levels"]), f"{row['tokens_per_call']:.2f}", interval(row, "calls_"),
        f"{row['expected']:.2f}", f"{row['speedup']:.2f}", interval(row), chain,
        f"{row['same_texts']} of {row['n_texts']}",
    ]  # fmt: skip


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
