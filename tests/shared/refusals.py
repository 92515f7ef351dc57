"""Mistakes in a file of data: `$ a call`, each followed by the error that it raises, which `pytest --update` writes."""

import re

import pytest


def answered(path, names):
    """The text of such a file, each call evaluated with these names."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            with pytest.raises((ValueError, OSError, IndexError)) as error:
                eval(line[2:], names)
            sentence = re.sub(r"is not JSON in UTF-8 \(.*\);", "is not JSON in UTF-8 (...);", str(error.value))
            sentence = re.sub(r" at 0x\w+", "", sentence)
            assert sentence.isprintable() and len(sentence) <= 500, line
            lines += [line, f"    {error.type.__name__}: {sentence}"]
        elif not line.startswith("    "):
            lines.append(line)
    return "\n".join([*lines, ""])
