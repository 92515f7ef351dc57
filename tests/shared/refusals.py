"""A file of data with calls, `$ a call`, each followed by its answer, which `pytest --update` writes.

Calls that follow each other without an answer between them share the one after the last of them.
"""

import re


def answer_to(call, names, evaluate):
    """What the call returns, which is a text, or the error it raises."""
    try:
        answer = evaluate(call, names)
        assert isinstance(answer, str), f"{call} is right, and should be wrong"
    except (ValueError, OSError, IndexError) as error:
        answer = f"{type(error).__name__}: {error}"
        assert answer.isprintable() and len(str(error)) <= 500, call
    for variable in (r"(?<=is not JSON in UTF-8 \().*(?=\);)", r"(?<=failed \().*(?=\))", r" at 0x\w+"):
        answer = re.sub(variable, "..." if "(" in variable else "", answer)  # as libraries say it
    return answer


def answered(path, names, evaluate=eval):
    """The text of such a file, each call evaluated with these names."""
    given = path.read_text(encoding="utf-8").splitlines()
    answers = [answer_to(line[2:], names, evaluate) if line.startswith("$ ") else None for line in given]
    lines = []
    for line, answer, following in zip(given, answers, [*answers[1:], None]):
        lines += [] if line.startswith("    ") else [line]
        lines += [f"    {answer}"] if answer not in (None, following) else []
    return "\n".join([*lines, ""])
