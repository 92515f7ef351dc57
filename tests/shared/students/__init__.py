"""What students hand in, for the tests of the graders. Each file has RIGHT, NOTES and WRONG answers by name."""

import pytest


def answers(kind, *modules, quick=None):
    """Parameters (answer, words) of all answers of a kind.

    By default the tests take those in `quick`, or the first for each mistake, which is told by the words of its hint;
    pytest -m slow takes the others.
    """
    found, seen = [], set()
    for module in modules:
        for name, entry in getattr(module, kind).items():
            answer, words = (entry, ()) if kind == "RIGHT" else entry
            is_quick = words not in seen if quick is None else name in quick
            seen.add(words)
            found.append(pytest.param(answer, words, id=name, marks=[] if is_quick else [pytest.mark.slow]))
    return found


def told(grader, answer):
    """The first line of what the grader says about a wrong answer."""
    with pytest.raises(AssertionError) as error:
        grader(answer)
    return str(error.value).splitlines()[0]
