"""Turn a file into an exercise: print it without the bodies of some functions.

    python notebooks/blank.py speculative/verifiers/rejection.py rejection > homework.py
    python notebooks/blank.py gpt2np/model.py forward GPT2.__call__ -o homework.py

The body of each function named, or method as Class.method, becomes `raise NotImplementedError`. Its decorators,
signature and docstring stay, and everything else stays the same, byte for byte.
"""

import argparse
import ast
import io
import sys
import tokenize
from pathlib import Path

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree, prefix=""):
    """dict name -> list of definitions (a property has as many as it has parts), outside of other functions."""
    found = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            found.setdefault(prefix + node.name, []).append(node)
        else:
            inner = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
            for name, definitions in functions(node, inner).items():
                found.setdefault(name, []).extend(definitions)
    return found


def blank(source, names):
    """The source (bytes) of a Python file without the bodies of the functions named.

    Raises
    ------
    ValueError
        If it is not Python, or has no function of that name.
    """
    try:
        source.decode("utf-8")
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"expected a Python file in UTF-8 ({error}): name one that runs") from error
    known, lines = functions(tree), source.splitlines(keepends=True)
    for name in names:
        if name not in known:
            names_there = f"expected one of {', '.join(known)}" if known else "it has no functions"
            raise ValueError(f"there is no function {name} in it: {names_there}")
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    ends = [token.end[0] for token in tokens if token.type == tokenize.NEWLINE]  # the last line of each statement
    for node in sorted((node for name in set(names) for node in known[name]), key=lambda node: -node.lineno):
        header = next(end for end in ends if end >= node.lineno)
        first, last, body = body_of(node, header, lines)
        lines[first - 1 : last] = [body]
    return b"".join(lines)


def body_of(node, header, lines):
    """(first line, last line, replacement) of the body of a function; header is the signature's last line."""
    first, last = node.body[0], node.end_lineno
    has_docstring = ast.get_docstring(node, clean=False) is not None
    stays = first.end_lineno if has_docstring else header  # the last line that stays, or a part of it
    raises = b"raise NotImplementedError" + (b"\r\n" if lines[node.lineno - 1].endswith(b"\r\n") else b"\n")
    if has_docstring and len(node.body) == 1:
        line, end = lines[stays - 1], first.end_col_offset
        if first.lineno == header:  # def f(): "docstring"
            return stays, last, line[:end] + b"; " + raises
        return stays + 1, last, lines[first.lineno - 1][: first.col_offset] + raises
    solution = node.body[has_docstring]
    indented = lines[solution.lineno - 1][: solution.col_offset] + raises
    if solution.lineno <= stays:  # after the signature, or after the docstring
        return solution.lineno, last, indented
    while last < len(lines) and is_comment_inside(lines[last], node.col_offset):
        last += 1
    return stays + 1, last, indented


def is_comment_inside(line, indent):
    """Whether a line after the last statement of a function is a comment that still belongs to it."""
    text = line.lstrip()
    return text.startswith(b"#") and len(line) - len(text) > indent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a Python file")
    parser.add_argument("names", nargs="+", help="functions, or methods as Class.method")
    parser.add_argument("-o", dest="out", type=Path, help="the file to write, instead of printing")
    request = parser.parse_args()
    try:
        text = blank(request.file.read_bytes(), request.names)
        if request.out and request.out.exists() and request.out.samefile(request.file):
            raise ValueError("-o names the file itself, which would overwrite the solution: name another one")
        if request.out:
            request.out.write_bytes(text)
        else:
            sys.stdout.buffer.write(text)
    except ValueError as error:
        sys.exit(f"{request.file}: {error}")
    except OSError as error:
        sys.exit(f"cannot read or write {error.filename} ({error.strerror}): name an existing file")


if __name__ == "__main__":
    main()
