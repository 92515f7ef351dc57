"""The museum of bugs: each mistake, the error of its distribution on a toy case, and the check that catches it."""

from functools import partial

from speculative.museum import ENGINE_EXHIBITS, EXHIBITS, TREE_EXHIBITS, caught_by, law_error

from ..files import deliver
from ..tables import show
from . import Command


def run(options, saved):
    exhibits = {**EXHIBITS, **TREE_EXHIBITS, **ENGINE_EXHIBITS}
    saved.expect(len(exhibits))
    rows = [saved.keep(name, partial(entry, exhibit)) for name, exhibit in exhibits.items()]
    deliver(lambda: saved.finish({"mistakes": rows}), lambda: show(rows, table, options.json is True))


def entry(exhibit):
    """One mistake, in plain numbers and texts."""
    error, message = law_error(exhibit), caught_by(exhibit)
    return {
        "mistake": exhibit.name,
        "law_error": error if error > 1e-12 else 0.0,
        "check": exhibit.grader.__name__ if message else "NOT CAUGHT",
        "message": message,
        "what": exhibit.what,
        "seen": exhibit.seen,
    }


def table(rows):
    lines = [f"{'mistake':45}{'error':12}caught by"]
    for row in rows:
        lines.append(f"\n{row['mistake']:45}{row['law_error']:<12.2g}{row['check']}")
        lines.append(f"  {row['what']}\n  seen: {row['seen']}")
    return "\n".join(lines) + "\n"


COMMAND = Command("museum", "mistakes: the error of the distribution, and the check that catches each", run, {"json"})
