"""The table of a comparison in words: a page to read, and CSV for other programs. plot.py draws it."""

import csv
import io
from re import fullmatch

from ..trace.terminal import visible

# the options that decide the target's own text, and so the race in which a row was measured
OF_THE_TEXT = {
    "target_model_size", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "n_tokens_to_generate", "seed",
    "presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "min_tokens", "prompts", "n_lanes",
}  # fmt: skip
MOST_ULPS = {"float32": 128, "float16": 24, "bfloat16": 24}  # two logits further apart do not swap by rounding alone
NOT_TIDY = {"setting", "target", "draft", "costs", "texts", "is_one_text", "gap"}  # not for --csv


def table(rows):
    """A table of rows (dict heading -> cell): numbers aligned right, words aligned left.

    >>> print(table([{"drafter": "model", "speedup": "1.43"}, {"drafter": "n", "speedup": "0.9"}]))
    drafter  speedup
    model       1.43
    n            0.9
    """
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    right = [all(fullmatch(r"[-+\d.,]*%?", cell) for cell in column[1:]) for column in zip(*lines)]
    pads = [f"{'>' if is_right else '<'}{width}" for width, is_right in zip(widths, right)]
    return "\n".join("  ".join(f"{cell:{pad}}" for cell, pad in zip(line, pads)).rstrip() for line in lines)


def with_interval(row, what, prefix=""):
    """A number with its interval, the fields PREFIXlow and PREFIXhigh: 1.79 (1.55 to 2.06)."""
    low, high = row[prefix + "low"], row[prefix + "high"]
    return f"{row[what]:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")


def over(n, what="prompts"):
    """The meaning of the intervals."""
    return f"95 %, Student's t over the {n} {what}" if n > 1 else "none: there is one prompt"


def page_of(rows, fixed, machine, has_lanes=False):
    """The page of a comparison.

    Parameters
    ----------
    rows : list of dict
        `numbers_of` and `expected` (rows.py), with "setting" (dict option -> text), "by" (a name of some of the
        prompts), "target" and "draft" (dicts with "name" and "parameters"), "exactness" and "is_one_text".
    fixed : dict option -> text
        Options that have the same value in all rows, for the heading.
    machine : str
    has_lanes : bool
        Whether texts were generated together.
    """
    models = {f"{role:8} {described(row[role])}": None for row in rows for role in ("target", "draft")}
    head = [*sorted(models, reverse=True), f"with     {in_words(fixed)}", f"on       {machine}"]
    times = f"without prefill ({rows[-1]['with_prefill']:.2f} with it in the last row)"
    times = "which also generates --n_lanes texts at once; times include prefill" if has_lanes else times
    notes = f"""\
speedup   over the target alone, {times}
tokens/call {"of a text, " if has_lanes else ""}per call of the target, which is the speedup in calls
interval  {over(max(row["n_texts"] for row in rows), "runs over all prompts" if has_lanes else "prompts")}
alpha     accepted / (accepted + rejected) draft tokens; c: the time to draft one over that of an autoregressive step
tok/s     tokens per second with the draft; same: how many texts are the target's own, where all should be
"""
    if has_expected(rows):
        notes += """\
expected  from alpha and c, if each draft token is accepted with probability alpha, and verifying K + 1 tokens takes an
          autoregressive step; where it takes longer, the measured speedup is lower
"""
    if gaps := [row["gap"] for row in rows if "gap" in row]:
        notes += f"rounding  where texts differ, {rounding(max(gaps))}\n"
    if any(row["exactness"] == "checked" for row in rows):
        notes += "checked   check_verifier found no mistake; the rule itself does not say whether it is exact\n"
    columns = columns_of(rows)
    cells = [{heading: cell(row) for heading, cell in columns.items()} for row in rows]
    blocks = ["\n".join(head), table(cells), "\n".join(fastest(rows)), notes]
    return "\n\n".join(filter(None, blocks))


def rounding(gap):
    """A line on a `gap_between` two texts: an engine computes a row alone and among others in different orders."""
    distance, ulps, dtype = gap
    size = f"the two logits are {distance:.2g} apart, {ulps:,.3g} ulps of {dtype}"
    if ulps <= MOST_ULPS[dtype]:
        return f"{size}: this engine rounds differently for K + 1 tokens than for one"
    return f"{size}: more than rounding, unless the weights are quantised; see docs/audit.md"


def in_words(label):
    return ", ".join(f"{name} {text}" for name, text in label.items() if text)


def digits(value, n):
    return "-" if value is None else f"{value:.{n}f}"


def columns_of(rows):
    """dict heading -> the function row -> cell, of the columns that these rows need."""
    has_parts, has_lanes = bool(rows[0]["by"]), any(row["setting"].get("n_lanes") for row in rows)
    columns = [(axis, True, lambda row, axis=axis: row["setting"][axis] or "-") for axis in rows[0]["setting"]]
    columns += [
        ("speedup", True, lambda row: with_interval(row, "speedup")),
        ("expected speedup", has_expected(rows), lambda row: digits(row["expected_speedup"], 2)),
        ("tokens/call", True, lambda row: with_interval(row, "tokens_per_call", "calls_")),
        ("expected tokens/call", has_expected(rows), lambda row: digits(row["expected_tokens_per_call"], 2)),
        ("alpha", True, lambda row: digits(row["alpha"], 3)),
        ("c", True, lambda row: digits(row["c"], 3)),
        ("alone, s", has_parts, lambda row: digits(row["alone_seconds"], 2)),
        ("draft, s", has_parts, lambda row: digits(row["seconds"], 2)),
        ("alone, tok/s", has_lanes, lambda row: digits(row["alone_tokens_per_second"], 1)),
        ("tok/s", True, lambda row: digits(row["tokens_per_second"], 1)),
        (
            "text",
            True,
            lambda row: row["exactness"] + ", same {same_texts}/{n_texts}".format(**row) * row["is_one_text"],
        ),
    ]
    shown = {heading: cell for heading, is_needed, cell in columns if is_needed}
    return {"": lambda row: row["by"], **shown} if has_parts else shown


def has_expected(rows):
    return any(row["expected_speedup"] for row in rows) and "K" in rows[0]["setting"]


def fastest(rows):
    """Lines: the fastest exact setting for each text of the target, and whether the intervals separate it."""
    groups = {}
    for row in [row for row in rows if row["exactness"] != "LOSSY" and row["by"] in ("", "all")]:
        group = {name: text for name, text in row["setting"].items() if name in OF_THE_TEXT}
        groups.setdefault(in_words(group), []).append(row)
    for name, group in groups.items():
        best, *others = sorted(group, key=lambda row: -row["speedup"])
        label = in_words({axis: text for axis, text in best["setting"].items() if axis not in OF_THE_TEXT})
        setting = ": ".join(filter(None, (name, label))) or "with the draft"
        if others:
            equal = sum(best["low"] is None or row["high"] >= best["low"] for row in others)
            lead = f"on these prompts it is indistinguishable from {equal} of the {len(others)} others"
            lead = lead if equal else "its interval is above all others"
            yield f"Fastest of the exact, {setting}, {with_interval(best, 'speedup')}; {lead}."
        if best["speedup"] < 1:
            yield f"The target alone is faster{f' ({name})' if name else ''}: no setting reaches a speedup of 1."


def csv_of(rows):
    """The rows as CSV: the options that vary and the numbers, of several rows those that differ, and same_texts."""
    numbers = [name for name in rows[0] if name not in NOT_TIDY]
    new = {name: f"speedup_{name}" for name in ("low", "high", "with_prefill")} | {"c": "cost_coefficient"}
    lines = [[*rows[0]["setting"], *(new.get(name, name) for name in numbers)]]
    for row in rows:
        row = row | ({} if row["is_one_text"] else {"same_texts": ""})  # otherwise the texts may differ
        lines.append([cell(value) for value in (*row["setting"].values(), *(row[name] for name in numbers))])
    columns = [
        column
        for column in zip(*lines)
        if len({*column[1:]}) > 1 or len(rows) == 1 or (column[0] == "same_texts" and any(column[1:]))
    ]
    written = io.StringIO()
    csv.writer(written).writerows(zip(*columns))
    return written.getvalue()


def cell(value):
    """A value for a spreadsheet: a text that it would read as a formula, or that steers a terminal, is only shown."""
    if not isinstance(value, str):
        return value
    is_formula = value[:1] in "=+-@\t" and not fullmatch(r"[-+]?[\d.]+", value)
    return "" if value == "None" else visible(f"'{value}" if value and is_formula else value)


def described(about):
    """A model in a report, in words."""
    size = f", {about['parameters'] / 1e6:.1f} million parameters" if "parameters" in about else ""
    return about["name"] + size + (f"\n        {about['tokenizer']}" if "tokenizer" in about else "")


def pair(target, draft):
    """The lines that describe the target and the draft."""
    is_large = draft.get("parameters", 0) >= target.get("parameters", 0) > 0
    word = "\n        no smaller than the target: expect no speedup" if is_large else ""
    return f"target  {described(target)}\ndraft   {described(draft)}{word}"


def counted(n, what):
    return f"{n} {what}{'s' if n != 1 else ''}"
