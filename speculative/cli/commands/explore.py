"""The page to play with: p, q and u under one's hands. It is one file that needs nothing else."""

import webbrowser
from pathlib import Path

import speculative

from ..files import check_file, replacing
from . import Command

PAGE = Path(speculative.__file__).parent / "pages" / "explore.html"


def run(options, saved):
    """Write the page; without --html FILE, to explore.html, and open it."""
    name = options.html or PAGE.name
    check_file("html", name)
    with replacing("html", name) as path:
        path.write_bytes(PAGE.read_bytes())
    opened = not options.html and webbrowser.open(Path(name).resolve().as_uri())
    print(f"{name} is written" + ("" if opened else ": open it in a browser"))


COMMAND = Command(
    "explore",
    "a page to play with in a browser: two distributions, one token, a round, mistakes, speed, trees",
    run,
    {"html"},
    example="--html page.html",
)
