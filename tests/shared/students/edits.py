"""A wrong answer as an edit of a right one: old texts, each of which occurs once in it, and what replaces them."""

import ast
import linecache
import re


def edited(source, name, *changes, kept=()):
    """The function or class `name` of a source after changes (old, new, old, new, ...) to its code."""
    node = next(n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    lines = source.splitlines(keepends=True)
    begin, first = node.lineno - 1, node.body[0]
    if ast.get_docstring(node) is not None:
        begin = first.end_lineno
    head, code, tail = (
        "".join(lines[part]) for part in (slice(begin), slice(begin, node.end_lineno), slice(node.end_lineno, None))
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
