"""Answers as edits of a right one: the text files here have the format of speculative/testing/mistakes/edits.py.

The sentence of an entry is the hint, a regular expression: "right: ..." for a different right answer, and "note: ..."
for one that passes with this note.
"""

import ast
import linecache
import re

from speculative.testing.mistakes.edits import changed, changes_in, parsed


def read_edits(path):
    """[(what is edited, hint, changes (old, new, old, new, ...)), ...] of a file."""
    return [
        (header.strip("[]"), hint, sum(changes_in(lines, "", ""), ()))
        for header, entries in parsed(path.read_text(encoding="utf-8"))
        for hint, lines in entries
    ]


def edited(source, name, *changes, kept=()):
    """The function or class `name` of a source after changes (old, new, old, new, ...) to its code."""
    node = next(n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    lines = source.splitlines(keepends=True)
    begin = node.body[0].end_lineno if ast.get_docstring(node) is not None else node.lineno - 1
    head, code, tail = (
        "".join(part) for part in (lines[:begin], lines[begin : node.end_lineno], lines[node.end_lineno :])
    )
    code = re.sub(r"^ *#.*\n", "", code, flags=re.M)  # a comment may say what the code does
    text = head + changed(code, zip(changes[::2], changes[1::2], strict=True), name) + tail
    file = f"<{name} {changes!r}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # so that graders can show a line
    names = dict(kept)
    exec(compile(text, file, "exec"), names)
    return names[name]
