"""Parts that several pages share: the models, the rule, the machine, intervals.

Next: method_table.py
"""

from .verdicts import is_busy
from .views import described


def heads(report):
    return f"target  {described(report['target'])}\ndraft   {described(report['draft'])}\n{where(report)}\n"


def busy(report):
    """The end of a line about the machine: whether it was busy."""
    return f"; BUSY: load average {report['load_average']:.1f} at the start" if is_busy(report) else ""


def where(report):
    """The draft's own temperature, if it has one; the machine, and whether it was busy."""
    own = report.get("settings", {}).get("draft_temperature")
    drafting = "" if own is None else f"drafts  at temperature {own}, whatever the target's\n"
    return f"{drafting}on      {report['machine']}{busy(report)}"


def over(n_prompts):
    """What an interval is."""
    return f"95 %, Student's t over the {n_prompts} prompts" if n_prompts > 1 else "none: there is one prompt"


def described_rule(report):
    return (
        f"K = {report['K']}, temperature {report['temperature']}, verifier {report['verifier']} ({report['exactness']})"
    )


def interval(row, prefix="", digits=2):
    low, high = row[prefix + "low"], row[prefix + "high"]
    return "-" if low is None else f"{low:.{digits}f} to {high:.{digits}f}"


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"
