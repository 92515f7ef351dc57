"""Mistakes, the error of each in the distribution, and the check that finds it; museum TEXT shows those about TEXT."""

from dataclasses import dataclass
from functools import partial
from itertools import groupby
from textwrap import indent, wrap

from speculative.testing.museum import ENGINE_EXHIBITS, EXHIBITS, TREE_EXHIBITS, caught_by, law_error, source

from .. import options as shared
from ..journal import Journal
from ..options import option

TAKES = "json"
WORD = "only"
EXAMPLES = ("", "residual")
SECTIONS = {"check_verifier": "Verifiers", "check_drafter": "Drafters", "check_sampler": "Samplers",
            "check_batch": "Several texts at once", "check_language_model": "Language models"}  # fmt: skip
HEAD = """\
error    the largest error of a probability in the exact distribution of the
         text, in a toy case; 0 where the mistake leaves the distribution
         unchanged, but costs tokens or time, or harms the caller
check_*  the function of speculative.testing that catches the mistake
"""


@dataclass(frozen=True)
class Options(shared.Options):
    only: str = option("", "TEXT", str, "the mistakes about TEXT")


def run(options):
    everything = {**EXHIBITS, **TREE_EXHIBITS, **ENGINE_EXHIBITS}
    exhibits = {name: exhibit for name, exhibit in everything.items() if has(exhibit, options.only)}
    if not exhibits:
        raise ValueError(f"museum: no mistake is about {options.only!r:.60}: try residual, tree, or no word at all")
    with Journal(options.json, options) as journal:
        journal.expect(len(exhibits))
        rows = [journal.keep(name, partial(entry, exhibit)) for name, exhibit in exhibits.items()]
        codes = {name: source(exhibit) for name, exhibit in exhibits.items()} if options.only else {}
        journal.finish(lambda: {"mistakes": rows}, page_of(rows, codes))


def has(exhibit, text):
    """Whether a text occurs in the description of a mistake, ignoring case."""
    said = section(exhibit), exhibit.name, exhibit.grader.__name__, exhibit.what, exhibit.seen
    return text.lower() in " ".join(said).lower()


def section(exhibit):
    return SECTIONS[exhibit.grader.__name__] + (", of trees" if exhibit.name in TREE_EXHIBITS else "")


def entry(exhibit):
    """One mistake, as plain numbers and texts."""
    error, message = law_error(exhibit), caught_by(exhibit)
    return {
        "mistake": exhibit.name, "section": section(exhibit), "law_error": error if error > 1e-12 else 0.0,
        "check": exhibit.grader.__name__ if message else "NOT CAUGHT", "message": message, "what": exhibit.what,
        "seen": exhibit.seen,
    }  # fmt: skip


def page_of(rows, codes):
    """The text; `codes` contains the code to show, by the names of the mistakes."""
    lines, below = [HEAD], {"initial_indent": "  ", "subsequent_indent": "  "}
    for name, in_section in groupby(rows, key=lambda row: row["section"]):
        lines += [f"{name}\n{'=' * len(name)}\n"]
        for row in in_section:
            lines += [row["mistake"], f"  error {row['law_error']:.2g}, {row['check']}"]
            note = [row["message"]] * (row["message"] or "").startswith("note: ")
            for text in (row["what"], *note, f"seen: {row['seen']}"):
                lines += wrap(text, 80, break_long_words=False, break_on_hyphens=False, **below)
            lines += [""]
            if row["mistake"] in codes:
                lines += [indent(codes[row["mistake"]], "    ")]
    return "\n".join(lines)
