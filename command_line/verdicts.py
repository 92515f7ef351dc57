"""Conclusions from a table: whether speculation pays, which method is best, and whether the times can be trusted.

A sentence claims no more than the intervals do: where they overlap, it says so.
Next: page_parts.py
"""

import os

BELOW = 0.95  # a v smaller than this contradicts v(1) = 1
FALLS = 0.85  # ... and one smaller than this times an earlier v contradicts that
WIDE = 0.3  # the quartiles of the same step are this far apart, over the median


def load_average():
    """How many processes have wanted to run, on average over the last minute; 0.0 where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def is_busy(report):
    return report.get("load_average", 0) > (os.cpu_count() or 1)


def warning(report):
    """A line about costs that contradict themselves, or nothing."""
    v, found = report["costs"]["v"], []
    if min(v) < BELOW:
        found.append(f"v({v.index(min(v)) + 1}) = {min(v):.2f} is below 1")
    falls = [(i, j) for j in range(len(v)) for i in range(1, j) if v[j] < FALLS * v[i]]
    if falls:
        i, j = min(falls, key=lambda pair: v[pair[1]] / v[pair[0]])
        found.append(f"v falls from {v[i]:.2f} at {i + 1} tokens to {v[j]:.2f} at {j + 1}")
    if report["costs"].get("spread", 0) > WIDE:
        found.append(f"the quartiles of a plain step are {report['costs']['spread']:.0%} of it apart")
    if is_busy(report):
        found.append(f"the load average was {report['load_average']:.1f} at the start")
    why = ", ".join(found)
    return f"WARNING: do not rely on these times ({why}): measure again on a quiet machine.\n" if found else ""


def does_it_pay(report):
    """Whether speculation pays, in one sentence, from the expected and the measured speedup."""
    best_K = report["best_K"]
    if best_K == 0:
        good = max(report["rows"], key=lambda row: row["low"] or 0)
        if (good["low"] or 0) <= 1:
            return "No: every K is expected to be slower than the target alone."
        head = "Unclear: every K is expected to be slower than the target alone"
        return f"{head}, but K = {good['K']} was {measured(good)}."
    row = next(row for row in report["rows"] if row["K"] == best_K)
    if row["low"] is None:
        answer = "Unclear"
    else:
        answer = "Yes" if row["low"] > 1 else "No" if row["high"] < 1 else "Unclear"
    expected = f"{row['expected_speedup']:.2f} times as fast as the target alone"
    return f"{answer}: K = {best_K} is expected to be the fastest, {expected}, and was {measured(row)}."


def measured(row):
    interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}" if row["low"] is not None else "one prompt alone"
    return f"measured at {row['speedup']:.2f} ({interval})"


def best_of(rows, what, low, high, name):
    """Which of the exact methods has the most of `what` over all kinds of text, and whether the intervals tell."""
    exact = [row for row in rows if row["exactness"] == "exact"]
    cells = {f"{row['drafter']} with {row['verifier']}": row["kinds"]["all"] for row in exact}
    if len(cells) < 2:
        return ""
    best = max(cells, key=lambda method: cells[method][what])
    least = cells[best][low]
    others = [method for method in cells if method != best]
    equal = others if least is None else [method for method in others if cells[method][high] >= least]
    value = f"{name} of the exact methods: {best}, {cells[best][what]:.2f}."
    if not equal:
        return f"{value} Its interval is above all others.\n"
    of = f"{len(equal)} of the {len(others)} others" if len(equal) < len(others) else f"any of the {len(others)} others"
    of = "the other" if len(others) == 1 else of
    return f"{value} These prompts do not tell it apart from {of}: the intervals overlap.\n"
