"""What several tables share: columns, descriptions of models and machines, intervals; and how a page is printed.

The table of a command is in the command's file, a function from a report to a text.
"""

import os
import sys
from itertools import chain
from json import dumps
from shutil import get_terminal_size

from speculative.trace.terminal import visible


class Columns:
    """Columns of a table.

    Parameters
    ----------
    columns : (heading, format), (heading, format, cell) or (heading, format, cell, heading above)
        The format is that of a text, such as ">9" or "<14", including the gap to the previous column. A column grows
        if a cell is too long for it. The cell is a template for the fields of a row, or a function of the row. A
        heading above starts where the heading below it starts, and may be longer.

    Examples
    --------
    >>> table = Columns(("name", "<6", "{name}"), ("alpha", ">8", "{alpha:.2f}", "of the row"))
    >>> print(table.page([{"name": "some", "alpha": 0.5}, ["longer", "-"]]))
              of the row
    name      alpha
    some       0.50
    longer        -
    """

    def __init__(self, *columns):
        padded = ((*column, "", "")[:4] for column in columns)
        self.headings, self.formats, self.cells, self.above = zip(*padded)

    def page(self, rows):
        """The headings and the rows, each a dict, or a list of its cells; without a newline at the end."""
        rows = [row if isinstance(row, list) else [filled(cell, row) for cell in self.cells] for row in rows]
        widths = [int(form[1:]) for form in self.formats]
        for i, cells in enumerate(zip(*rows)):
            widths[i] = max(widths[i], *(len(cell) + 1 for cell in cells)) if len(cells) else widths[i]
        formats = [f"{form[0]}{width}" for form, width in zip(self.formats, widths)]
        lines = [line(self.headings, formats)]
        if any(self.above):
            lines.insert(0, self.heading_above(formats, widths))
        return "\n".join(chain(lines, (line(row, formats) for row in rows)))

    def heading_above(self, formats, widths):
        text, place = "", 0
        for heading, form, width, above in zip(self.headings, formats, widths, self.above):
            if above:
                cell = f"{heading or above:{form}}"
                text = text.ljust(place + len(cell) - len(cell.lstrip())) + above
            place += width
        return text


def filled(cell, row):
    return cell(row) if callable(cell) else cell.format(**row)


def line(cells, formats):
    return "".join(f"{cell:{form}}" for cell, form in zip(cells, formats)).rstrip()


# ------------------------------------------------------------------------------------------------ parts of a page


def described(model):
    """A model in a report, in words."""
    size = f", {model['parameters'] / 1e6:.1f} million parameters" if "parameters" in model else ""
    tokenizer = f"\n        {model['tokenizer']}" if "tokenizer" in model else ""
    return model["name"] + size + tokenizer


def counted(n, what="node"):
    return f"{n} {what}{'s' if n != 1 else ''}"


def pair(report):
    """The lines on target and draft."""
    target, draft = report["target"], report["draft"]
    is_large = draft.get("parameters", 0) >= target.get("parameters", 0) > 0
    word = "\n        no smaller than the target: no speedup is to be expected" if is_large else ""
    return f"target  {described(target)}\ndraft   {described(draft)}{word}"


def heads(report):
    return f"{pair(report)}\n{where(report)}\n"


def is_busy(report):
    return report.get("load_average", 0) > (os.cpu_count() or 1)


def busy(report):
    """The end of a line about the machine: whether it was busy."""
    return f"; BUSY: load average {report['load_average']:.1f} at the start" if is_busy(report) else ""


def where(report):
    """The draft's own temperature, if it has one; the machine, and whether it was busy."""
    own = report.get("settings", {}).get("draft_temperature")
    drafting = "" if own is None else f"drafts  at temperature {own}, whatever the target's\n"
    return f"{drafting}on      {report['machine']}{busy(report)}"


def over(n_prompts):
    """The meaning of the intervals."""
    return f"95 %, Student's t over the {n_prompts} prompts" if n_prompts > 1 else "none: there is one prompt"


def interval(row, prefix="", digits=2):
    """The interval of a row in words; the fields are PREFIXlow and PREFIXhigh."""
    low, high = row[prefix + "low"], row[prefix + "high"]
    return "-" if low is None else f"{low:.{digits}f} to {high:.{digits}f}"


def number(name, digits):
    """A cell for a field that may be None."""
    return lambda row: "-" if row[name] is None else f"{row[name]:.{digits}f}"


def calls_interval(row):
    return interval(row, "calls_")


def drafted(report):
    """How much is drafted: K, or the most nodes and levels of a tree."""
    nodes = report.get("tree_nodes")
    return f"{counted(nodes)}, depth {report['tree_depth']}" if nodes else f"K = {report['K']}"


def described_rule(report):
    return (
        f"{drafted(report)}, temperature {report['temperature']}, verifier {report['verifier']} ({report['exactness']})"
    )


def tree_line(report):
    """The tree that --tree auto has found, in words."""
    found = report["measured_tree"]
    size = f"{counted(found['nodes'])}, depth {found['levels']}" if found["nodes"] else "none pays"
    return f"tree    {size}: expected speedup {found['expected_speedup']:.2f} by measured costs and acceptance"


def costs_line(costs):
    v = " ".join(f"{number:.2f}" for number in costs["v"])
    return f"an autoregressive step {1000 * costs['step']:.2f} ms, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}"


def acceptance_lines(counts):
    """The end of the line on target calls, and two lines on draft tokens."""
    shares = [f"{i}: {share:.0%}" for i, share in enumerate(counts["acceptance_by_position"], 1)]
    share = f" ({counts['acceptance']:.0%}), all rounds" if counts["drafted"] else ""
    by_position = "  ".join(shares) + ", of the rounds that drafted this far" if shares else "nothing was drafted"
    accepted = f"{counts['accepted']} of {counts['drafted']} drafted tokens{share}"
    levels = sum(counts["drafted_by_position"])
    if levels < counts["drafted"]:  # a tree: of its nodes, one a level can be accepted
        n = counts["drafted_by_position"][0]
        accepted = f"{counts['accepted'] / n:.1f} of {levels / n:.1f} levels of a tree of {counts['drafted'] / n:.1f} "
        accepted += "nodes, on average"
    return f"""{counts["tokens_per_target_call"]:.2f} tokens per call
accepted      {accepted}
by position   {by_position}"""


# ------------------------------------------------------------------------------------------------ printing


def has_colours():
    """Whether standard output is a terminal that should show colours."""
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # see https://no-color.org
    return sys.stdout.isatty() and not dull


def show(report, table, as_json):
    """Print a report as JSON, or as the text that `table` returns for it; a terminal that is too narrow is told so."""
    if as_json:
        print(dumps(report, indent=1), flush=True)
        return
    page = visible(table(report)).removesuffix("\n")
    width, columns = max(map(len, page.splitlines()), default=0), get_terminal_size().columns
    if sys.stdout.isatty() and width > columns:
        page += f"\n\nThis page is {width} columns wide, and the terminal has {columns}."
    print(page, flush=True)
