"""Answers to the exercises of the notebooks: `early` and `late` have edits of the solutions, `styles` whole ones."""

import functools

from helpers import ROOT

import gpt2np
from gpt2np.heads import silu

from ..edits import edited

FOLDER = ROOT / "notebooks"


@functools.cache
def of_the_notebook():
    """What the solutions of notebook 12 take from it."""
    params = gpt2np.load("tiny-target")[0].params
    read_off = lambda y: (y * params["ln_f"]["g"] + params["ln_f"]["b"]) @ params["wte"].T  # noqa: E731
    return {"wte": params["wte"], "silu": silu, "read_off": read_off}


def solution(number, name, *changes):
    """The solution to an exercise with these changes."""
    [path] = (FOLDER / "solutions").glob(f"{number}_*.py")
    kept = of_the_notebook() if number == "12" else {}
    return edited(path.read_text(encoding="utf-8"), name, *changes, kept=kept)
