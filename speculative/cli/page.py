"""Lines of numbers, shared by several commands."""

import os
import sys

from speculative.measuring.table import described


def counted(n, what):
    return f"{n} {what}{'s' if n != 1 else ''}"


def pair(target, draft):
    """The lines that describe the target and the draft."""
    is_large = draft.get("parameters", 0) >= target.get("parameters", 0) > 0
    word = "\n        no smaller than the target: expect no speedup" if is_large else ""
    return f"target  {described(target)}\ndraft   {described(draft)}{word}"


def has_colours():
    """Whether standard output is a terminal that should show colours (see https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def costs_line(costs):
    v = " ".join(f"{number:.2f}" for number in costs["v"])
    return f"an autoregressive step {1000 * costs['step']:.2f} ms, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}"


def acceptance_lines(counts):
    """The end of the line about target calls, and two lines about draft tokens."""
    shares = [f"{i}: {share:.0%}" for i, share in enumerate(counts["acceptance_by_position"], 1)]
    share = f" ({counts['acceptance']:.0%}), all rounds" if counts["drafted"] else ""
    by_position = "  ".join(shares) + ", of the rounds that drafted this far" if shares else "nothing was drafted"
    accepted = f"{counts['accepted']} of {counts['drafted']} drafted tokens{share}"
    levels = sum(counts["drafted_by_position"])
    if levels < counts["drafted"]:  # a tree: at each depth, at most one node can be accepted
        n = counts["drafted_by_position"][0]
        accepted = f"{counts['accepted'] / n:.1f} tokens of a tree of depth {levels / n:.1f} "
        accepted += f"with {counts['drafted'] / n:.1f} nodes, on average"
    return f"""{counts["tokens_per_target_call"]:.2f} tokens per call
accepted      {accepted}
by position   {by_position}"""
