"""A user's drafter (--drafter FILE.py:NAME) or verifier (--verifier FILE.py:NAME), loaded and then graded.

A verifier is a function or any other callable object: (draft, target_probs, rng) -> Verdict. A drafter is either an
object with `propose`, which all settings share, or a class or function that is called with (target, tokenizer) for each
setting. speculative.testing grades both before anything is measured. A drafter's class or function is graded with a
target of three tokens. A rule that is LOSSY on purpose declares `exactness = "LOSSY"` and is not graded.
"""

import sys
import traceback
from contextlib import redirect_stdout
from copy import deepcopy
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

from speculative.interfaces import exactness_of
from speculative.testing import TableModel, check_drafter, check_verifier

from .files import say

MOST_ENUMERATED = 4  # a drafter that is ready is graded if its rows have at most so many tokens above 0


@cache
def brought(given):
    """The object that FILE.py:NAME names; ValueError if the file does not define it."""
    path, _, name = given.rpartition(":")
    if not path.endswith(".py"):
        raise ValueError(f"expected FILE.py:NAME, got {given[:60]!r}")
    if not hasattr(module := loaded(path), name):
        raise ValueError(f"{path} has no {name[:60]!r}")
    return getattr(module, name)


@cache
def loaded(file):
    """The module of a file."""
    path = Path(file).resolve()
    if not path.is_file():
        raise ValueError(f"cannot read {file} (no such file): expected FILE.py:NAME")
    spec = spec_from_file_location(f"brought_{path.stem}", path)
    module = sys.modules[spec.name] = module_from_spec(spec)
    sys.path.append(str(path.parent))  # for the modules that it imports
    sys.addaudithook(forbid_chdir)
    try:
        with redirect_stdout(sys.stderr):  # standard output is the report's
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{file} cannot be imported: {in_brief(error)}") from None
    return module


def forbid_chdir(event, _):
    """Raise RuntimeError in a brought file that changes the working folder, which the names of our files rest on."""
    if event == "os.chdir" and sys._getframe(1).f_globals.get("__name__", "").startswith("brought_"):
        raise RuntimeError("os.chdir is not allowed here: use whole paths")


def line_of(error):
    """(name of a brought file, line) that an exception comes from, or None."""
    files = {module.__file__ for name, module in sys.modules.items() if name.startswith("brought_")}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return (Path(frames[-1].filename).name, frames[-1].lineno) if frames else None


def in_brief(error):
    """An exception and where it comes from, in a few words."""
    place = " (line {1} of {0})".format(*line_of(error)) if line_of(error) else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}{place}"


# ------------------------------------------------------------------------------------------------ graded


class SmallTokenizer:
    """A tokenizer for the grader's small target: each byte becomes one of its three tokens."""

    n_vocab, end_of_text = 3, None

    def encode(self, text):
        return [byte % 3 for byte in text.encode()]

    def decode(self, tokens):
        return "".join("abc"[token] for token in tokens)


@cache
def graded_verifier(name):
    """(the verifier, its exactness or "checked" if it declares none); ValueError with the grader's sentence."""
    loaded = brought(name)
    try:
        verifier = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise ValueError(f"{name}: its class cannot be called without arguments, {in_brief(error)}") from None
    if exactness_of(verifier) == "LOSSY":
        return verifier, "LOSSY"
    grade(name, check_verifier, verifier, '; if it is meant to be LOSSY, give it exactness = "LOSSY"')
    return verifier, {"not declared": "checked"}.get(exactness_of(verifier), exactness_of(verifier))


@cache
def graded_drafter(name):
    """A function (target, tokenizer) -> the drafter; ValueError with the grader's sentence."""
    loaded = brought(name)
    if hasattr(loaded, "propose") and not isinstance(loaded, type):
        grade_object(name, loaded)
        return lambda target, tokenizer: loaded
    if not callable(loaded):
        raise ValueError(
            f"{name}: expected a drafter, or a callable that makes one from (target, tokenizer), got {loaded!r:.60}"
        )
    try:
        small = loaded(TableModel.random(3, seed=2, n_ctx=32), SmallTokenizer())
    except Exception as error:
        say(f"{name} is not graded: it cannot be made for a target of 3 tokens, {in_brief(error)}")
    else:
        grade(name, check_drafter, small)
    return loaded


def grade_object(name, drafter):
    """Grade a drafter that is ready for its target, if its rows have few enough tokens to be enumerated."""
    try:
        drafter = deepcopy(drafter)
        draft = drafter.propose([0, 1], 2, np.random.default_rng(0))
        n_tokens = np.count_nonzero(draft.probs, axis=1).max(initial=0)
    except Exception as error:
        say(f"{name} is not graded: {in_brief(error)}")
        return
    if n_tokens > MOST_ENUMERATED:
        say(f"{name} is not graded, as its rows have {n_tokens} tokens: name its class, which is graded with 3 tokens")
    else:
        grade(name, check_drafter, drafter)


def grade(name, check, part, remedy=""):
    try:
        check(part)
    except AssertionError as error:
        sentence = str(error).splitlines()[0]
        if error.__cause__ is None:
            remedy = remedy * (not sentence.startswith(("return ", "n_accepted ", "next_token ")))
            raise ValueError(f"{name}: {sentence}{remedy}") from None
        if check is check_verifier:
            raise ValueError(f"{name}: {sentence}") from None
        say(f"{name} is not graded: with a target of 3 tokens, {sentence}")
