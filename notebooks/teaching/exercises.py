"""Write exercises.md, the table of all exercises, from notebooks/points.csv: python notebooks/teaching/exercises.py

points.csv says of each exercise what it asks, how difficult it is, and its minutes and points.
"""

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HEAD = """# All exercises

`python notebooks/teaching/exercises.py` writes this page from [points.csv](../points.csv). The minutes are an estimate
for somebody who has just read the notebook.

- **easy**: a few lines, from an equation of the notebook.
- **medium**: one idea of the notebook, and a case that needs thought.
- **hard**: several ideas together, or a whole class.

| notebook | exercise | task | difficulty | minutes | points |
|---|---|---|---|---|---|
"""


def page(table, notebooks):
    """The text of exercises.md."""
    with open(table, encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    paths, text = {path.stem.partition("_")[0]: path for path in notebooks}, HEAD
    for row in rows:
        number = row["exercise"].partition(".")[0]
        cells = [f"[{number}](../{paths[number].name})", *(row[k] for k in ("exercise", "task", "difficulty"))]
        text += f"| {' | '.join([*cells, row['minutes'], row['points']])} |\n"
    minutes, points = (sum(float(row[name]) for row in rows) for name in ("minutes", "points"))
    return text + f"| all | {len(rows)} exercises | | | {minutes:g} | {points:g} |\n"


if __name__ == "__main__":
    text = page(FOLDER.parent / "points.csv", FOLDER.parent.glob("[0-9]*.ipynb"))
    (FOLDER / "exercises.md").write_text(text, encoding="utf-8")
