"""An answer as an edit of a right one; files of such edits.

    [verifier]                     what is edited
    the hint, a regular expression
      - old text, which occurs once in the code
      + new text                   several lines are a text of several lines, and further changes follow

The hint is "right: ..." for another right answer, and "note: ..." for one that passes with this note.
"""

import ast
import linecache
import re


def read_edits(path):
    """[(what is edited, hint, changes (old, new, old, new, ...)), ...] of a file."""
    edits = []
    for line in path.read_text(encoding="utf-8").splitlines():
        is_new, text = line.startswith("  + "), line[4:]
        if line.startswith("["):
            of = line.strip("[]")
        elif not is_new and not line.startswith("  - "):
            edits += [(of, line, [])] if line and not line.startswith("#") else []
        elif len(edits[-1][2]) % 2 == is_new:
            edits[-1][2].append(text)
        else:
            edits[-1][2][-1] += f"\n{text}"
    return [(of, hint, tuple(changes)) for of, hint, changes in edits]


def edited(source, name, *changes, kept=()):
    """The function or class `name` of a source after changes (old, new, old, new, ...) to its code."""
    node = next(n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    lines = source.splitlines(keepends=True)
    begin = node.body[0].end_lineno if ast.get_docstring(node) is not None else node.lineno - 1
    head, code, tail = (
        "".join(part) for part in (lines[:begin], lines[begin : node.end_lineno], lines[node.end_lineno :])
    )
    code = re.sub(r"^ *#.*\n", "", code, flags=re.M)  # a comment may say what the code does
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        if code.count(old) != 1:
            raise ValueError(f"{name}: {old!r} occurs {code.count(old)} times")
        code = code.replace(old, new)
    text, file = head + code + tail, f"<{name} {changes!r}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # so that graders can show a line
    names = dict(kept)
    exec(compile(text, file, "exec"), names)
    return names[name]
