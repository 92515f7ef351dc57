"""Grade one submission as Gradescope and GitHub Classroom do; `handout.py ... --autograder lab.zip` packs this file.

$AUTOGRADER_ROOT (/autograder)/source      the contents of the zip: a handout, grade.py, the library as a wheel
                              /submission  what a student has handed in
                              /results     results.json, which this writes: an entry for each exercise, whatever
                                           the submission does
"""

import argparse
import json
import os
import re
import time
import traceback
from pathlib import Path

import grade

FIGURE = re.compile(r"([\d.]+) tokens per (?:target )?call")  # in what a check says: it goes on the leaderboard


def results_of(lab, submission, seconds=60):
    """What Gradescope reads, a dict: tests, execution_time, and the leaderboard if an exercise has a figure."""
    begun, parts = time.monotonic(), []
    for notebook in sorted(lab.glob("[!.]*.ipynb")):
        part = grade.Part(notebook.resolve(), None)
        parts += [part] if part.calls else []
    names = [f"{grade.number_of(part.notebook)}.{name[9:]}" for part in parts for name in part.calls]
    options = argparse.Namespace(folder=submission, feedback=None, points=None, seconds=seconds)
    said, _ = grade.marked(submission, parts, options)
    tests, figures = [], []
    for name, (right, text, points) in zip(names, said):
        tests.append({
            "name": f"exercise {name}", "number": name, "score": points if right else 0, "max_score": points,
            "status": "passed" if right else "failed", "output": text,
        })  # fmt: skip
        if right and (figure := FIGURE.search(text)):
            figures.append({"name": f"{name}, tokens per call", "value": float(figure[1])})
    found = {"tests": tests, "execution_time": round(time.monotonic() - begun, 1)}
    return found | {"leaderboard": figures} if figures else found


def main():
    root = Path(os.environ.get("AUTOGRADER_ROOT", "/autograder"))
    try:
        found = results_of(
            root / "source" / "lab", root / "submission", float(os.environ.get("SECONDS_FOR_A_CELL", 60))
        )
    except Exception:  # a results.json that says so, whatever it is
        found = {"score": 0, "output": f"not graded:\n{traceback.format_exc()}"}
    (root / "results").mkdir(parents=True, exist_ok=True)
    (root / "results" / "results.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
