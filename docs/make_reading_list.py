"""docs/reading.md, made of the module headers: python docs/make_reading_list.py

Each header begins with the idea of its file in a sentence and ends with `Next: FILE`, the file to read after it.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = {
    "gpt2np/reference.py": "GPT-2",
    "gpt2np/tokenizer.py": "The tokenizer, weight files, downloads",
    "speculative/interfaces.py": "The loop",
    "speculative/drafters/model.py": "Drafters",
    "speculative/verifiers/rejection.py": "Verifiers",
    "speculative/exact.py": "Proof: enumeration, graders, the museum of bugs",
    "speculative/theory.py": "What to expect, and what it costs",
    "speculative/experiments/__init__.py": "Experiments",
    "speculative/trace/__init__.py": "The trace",
    "speculative/adapters/prefix.py": "Other engines' models",
    "main.py": "The command line",
}
INTRODUCTION = """\
# What to read

Every file is one idea and names the next. This is the path through `gpt2np` and `speculative` to
`main.py`, with what each file says of itself. In a hurry: the files listed in the [README](../README.md). It is made by
`python docs/make_reading_list.py`.
"""


def header(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def reading_path(path="gpt2np/reference.py"):
    """The files of the path (str, relative to the root), in order; it ends at a file without `Next:`."""
    while path:
        yield path
        following = re.search(r"\bNext: (\S+\.py)$", header(ROOT / path), re.M)
        path = following and (ROOT / path).parent.joinpath(following[1]).resolve().relative_to(ROOT).as_posix()


def idea(path):
    """The first sentence of a header."""
    paragraph = header(ROOT / path).partition("\n\n")[0].replace("\n", " ")
    return re.match(r".*?\.(?= |$)|.*", paragraph)[0]


def page():
    """The text of docs/reading.md."""
    lines = [INTRODUCTION]
    for path in reading_path():
        if path in PARTS:
            lines += [f"\n## {PARTS[path]}\n", "| file | what it shows |", "|---|---|"]
        lines.append(f"| [`{path}`](../{path}) | {idea(path).replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "reading.md").write_text(page(), encoding="utf-8")
