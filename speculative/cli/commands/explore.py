"""A page to play with in a browser: two distributions, one token, a round, mistakes, speed, trees."""

import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path

import speculative
from gpt2np.files.writing import replacing

from .. import options as shared
from ..files import check_writable
from ..options import option
from ..values import Written

PAGE = Path(speculative.__file__).parent / "pages" / "explore.html"
TAKES = ""
EXAMPLES = ("", "--html page.html")


@dataclass(frozen=True)
class Options(shared.Options):
    html: str = option("", "FILE.html", Written((".html",)),
        "write the page to this file and open no browser; without it, explore.html is written and opened")  # fmt: skip


def run(options):
    name, content = check_writable(options.html or PAGE.name), PAGE.read_bytes()
    if not options.html and Path(name).exists() and Path(name).read_bytes() != content and not may_overwrite(name):
        raise ValueError(f"{name} is a different file, and stays as it is: name one with --html FILE.html")
    with replacing(name) as path:
        path.write_bytes(content)
    opened = not options.html and webbrowser.open(Path(name).resolve().as_uri())
    print(f"{name} is written" + ("" if opened else ": open it in a browser"))


def may_overwrite(name):
    """Whether the user agrees to overwrite a file; without a terminal to ask on, the answer is no."""
    try:
        return sys.stdin.isatty() and input(f"overwrite {name}, a different file? [y/N] ").strip() in ("y", "Y")
    except EOFError:
        return False
