"""The museum of bugs: each mistake, the error of its distribution on a toy case, and the check that catches it."""

from functools import partial

from speculative.museum import EXHIBITS, TREE_EXHIBITS, caught_by, law_error

from .files import deliver
from .views import museum_page, show


def museum(request, parts):
    exhibits = {**EXHIBITS, **TREE_EXHIBITS}
    parts.expect(len(exhibits))
    report = {"mistakes": [parts.keep(name, partial(entry, exhibit)) for name, exhibit in exhibits.items()]}
    table = report["mistakes"]
    deliver(lambda: parts.finish(report), lambda: show(table, museum_page, request.json is True))


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
