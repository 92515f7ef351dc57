"""A file of data with calls, `$ a call`, each followed by its answer, which `pytest --update` writes."""

import re


def answered(path, names):
    """The text of such a file, each call evaluated with these names; its answer is a text, or the error it raises."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            try:
                answer = eval(line[2:], names)
                assert isinstance(answer, str), f"{line} is right, and should be wrong"
            except (ValueError, OSError, IndexError) as error:
                answer = f"{type(error).__name__}: {error}"
                assert answer.isprintable() and len(str(error)) <= 500, line
            for variable in (r"(?<=is not JSON in UTF-8 \().*(?=\);)", r"(?<=failed \().*(?=\))", r" at 0x\w+"):
                answer = re.sub(variable, "..." if "(" in variable else "", answer)  # as libraries say it
            lines += [line, f"    {answer}"]
        elif not line.startswith("    "):
            lines.append(line)
    return "\n".join([*lines, ""])
