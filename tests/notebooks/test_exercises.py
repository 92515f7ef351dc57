"""The checks of the exercises: other ways to be right pass, and each mistake is told its sentence.

Most answers are edits of the solutions, in students/exercises.
"""

import functools
import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT
from students.edits import edited, read_edits

import gpt2np
import gpt2np.files.crc32c
import gpt2np.reference
import speculative
import speculative.theory
from gpt2np.drafting.heads import silu
from speculative import rejection, tree
from speculative.logits.probs import sample_distinct

pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"
EDITS = []  # of (number, exercise, hint, (name, *changes))
for file in sorted((ROOT / "tests" / "shared" / "students" / "exercises").glob("*.txt")):
    for call, hint, changes in read_edits(file):
        exercise, name = re.fullmatch(r"exercise_(\d)\((\w+)\)", call).groups()
        EDITS.append((file.stem.partition("_")[0], int(exercise), hint, (name, *changes)))
SOLUTIONS = [*dict.fromkeys((number, i, (name,)) for number, i, _, (name, *_) in EDITS)]
FOUR = ["rows_of_a_round", "counts_of_a_round", "verify_masked", "end_of_round"]  # are checked together


@pytest.fixture(autouse=True)
def checks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@functools.cache
def of_notebook_12():
    """Names that its solutions take from it."""
    params = gpt2np.load("tiny-target")[0].params
    read_off = lambda y: (y * params["ln_f"]["g"] + params["ln_f"]["b"]) @ params["wte"].T  # noqa: E731
    return {"wte": params["wte"], "silu": silu, "read_off": read_off}


def solution(number, name, *changes):
    [path] = (FOLDER / "solutions").glob(f"{number}_*.py")
    kept = {"np": np} | (of_notebook_12() if number == "12" else {})
    return edited(path.read_text(encoding="utf-8"), name, *changes, kept=kept)


def graded(number, i, answer, **options):
    """Check an answer: a function, a class, or (the name of a solution, changes)."""
    [path] = FOLDER.glob(f"{number}_*.ipynb")
    check = getattr(importlib.import_module(f"checks.{path.stem.partition('_')[2]}"), f"exercise_{i}")
    name, *changes = answer if isinstance(answer, tuple) else [getattr(answer, "fills", "")]
    made = solution(number, name, *changes) if isinstance(answer, tuple) else answer
    answers = [made if name == one else solution(number, one) for one in FOUR] if name in FOUR else [made]
    with np.errstate(all="ignore"):
        return check(*answers, **options)


@functools.cache
def refused(number, i, answer):
    """What a check says to a wrong answer."""
    with pytest.raises(AssertionError) as error:
        graded(number, i, answer)
    return str(error.value)


class Tensor:
    """Refuses, as PyTorch's do, to be subtracted from an array and, if it requires grad, to become one."""

    __array_priority__ = 1000

    def __init__(self, values, requires_grad=False):
        self.values, self.requires_grad = values, requires_grad

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.values

    def __rsub__(self, array):
        raise TypeError("unsupported operand type(s)")


class Delegating(solution("05b", "MySampler")):
    def generate(self, prompt, n_tokens, rng):
        inside = speculative.SpeculativeSampler(self.target, self.drafter, K=self.K, sampling=self.sampling)
        return inside.generate(prompt, n_tokens, rng).tokens.tolist()


def by_the_library(draft, target_probs, rng):
    return rejection(draft, target_probs, rng)


def without_replacement_from_the_library(q, k, rng):  # as in notebook 11
    return list(zip(*sample_distinct(q, k, rng)))


def nothing(*_):
    """An answer without a return."""


def called(fn):
    """An object that is called, in place of a function."""
    return type("Called", (), {"__call__": staticmethod(fn)})()


def residual(p, q):
    """A helper of the student's own with the name of the library's."""
    missing = np.maximum(p - q, 0)
    return missing / missing.sum() if missing.any() else p


def imported(p, q):
    from speculative.logits.probs import residual as mine

    return mine(p, q)


by_the_library.fills = "verify_masked"
expected_tokens, match_gradient = solution("06", "my_expected_tokens"), solution("13", "match_gradient")
RIGHT = [
    *((number, i, answer) for number, i, hint, answer in EDITS if hint.startswith("right: ")),
    ("05b", 2, lambda p, q: residual(p, q)),
    *(("06", 1, wrapped(expected_tokens)) for wrapped in (functools.partial, functools.cache, called)),
    ("13", 3, lambda z, p: Tensor(match_gradient(z, p))),
]
OF_THE_LIBRARY = [
    ("01", 1, gpt2np.tokenizer.merge_pair),
    ("01", 3, gpt2np.StreamDecoder),
    ("02", 1, gpt2np.reference.layer_norm),
    ("02", 2, lambda x, w, b, head, n_head: gpt2np.reference.attention(x, w, b, n_head)),
    ("02", 3, gpt2np.reference.block),
    ("04", 1, lambda logits, temperature: speculative.Sampling(temperature)(logits[None])[0]),
    ("04", 3, speculative.sample_token),
    *(("05b", 2, answer) for answer in (speculative.residual, imported, lambda p, q: imported(p, q))),
    ("05b", 2, lambda p, q: speculative.logits.probs.residual(p, q)),
    ("05b", 3, speculative.rejection),
    ("05b", 4, type("MySampler", (speculative.SpeculativeSampler,), {})),
    ("05b", 4, Delegating),
    ("06", 1, speculative.theory.expected_tokens),
    ("06", 2, functools.partial(lambda alpha, c, v: speculative.theory.best_K(alpha, c, v))),
    ("08", 3, lambda *given: speculative.block(*given)),
    ("10", 3, gpt2np.files.crc32c.crc32c),
    ("11", 1, lambda q, k, rng: without_replacement_from_the_library(q, k, rng)),
    ("11", 1, lambda q, k, rng: [(int(token), row) for token, row in zip(*sample_distinct(q, k, rng))]),
    ("11", 2, lambda parents, n_text: tree.visible(parents)),
    ("11", 3, lambda n, w: speculative.Shape.best(n, w)),
    ("12", 2, lambda head, h, seen: gpt2np.load_heads("tiny-target").logits(gpt2np.load("tiny-target")[0], h, seen)),
    ("12", 3, type("Recycler", (speculative.RecyclingDrafter,), {})),
    ("14", 3, lambda *given: speculative.exact_match(*given)),
    ("15", 1, by_the_library),
]
RETURNS = "01-1 04-2 04-3 05b-2 06-2 06-3 07-2 08-1 08-2 09-3 11-1 11-2 11-3 12-1 12-2 13-1 13-2 13-3 14-1 14-2"
RETURNS += " 15-2 16-1 16-2"
WRONG = [
    *(one for one in EDITS if not one[2].startswith("right: ")),
    ("08", 3, "exact, but it accepts no more", solution("05b", "my_verifier")),
    ("13", 3, "detach", lambda z, p: Tensor(match_gradient(z, p), requires_grad=True)),
    *((number, i, "comes with the library", answer) for number, i, answer in OF_THE_LIBRARY),
    *((number, int(i), "is a return missing", nothing) for number, i in re.findall(r"(\w+)-(\d)", RETURNS)),
]


def name_of(value):
    if isinstance(value, (int, str)):
        return str(value)
    return value[0] if isinstance(value, tuple) else getattr(value, "__name__", type(value).__name__)


@pytest.mark.parametrize(("number", "i", "answer"), SOLUTIONS + RIGHT, ids=name_of)
def test_a_right_answer_passes_in_any_form(number, i, answer):
    assert graded(number, i, answer).startswith("right: ")


@pytest.mark.parametrize(("number", "i", "hint", "answer"), WRONG, ids=name_of)
def test_a_wrong_answer_is_told_its_mistake(number, i, hint, answer):
    said = refused(number, i, answer)
    assert re.search(hint, said), said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("", "ValueError: operands could not be broadcast together with shapes (4,5) (4,)\n  line 3: return (x - mean)"
             " * g + b\n  where x [4, 5] float32, g [5] float32, b [5] float32, mean [4] float32"),
        ("x -= 1; ", "your function writes to its argument: work on a copy (ValueError: output array is read-only)\n"
                     "  line 2: x -= 1; mean = x.mean(-1)\n  where x [4, 5] float32, g [5] float32, b [5] float32"),
        ("assert g is None; ",
         "AssertionError: without a message\n  line 2: assert g is None; mean = x.mean(-1)\n  where "),
    ],
)  # fmt: skip
def test_a_crash_shows_the_line_of_the_answer_and_its_variables_and_nothing_of_the_check(change, said):
    source = f"def my_layer_norm(x, g, b):\n    {change}mean = x.mean(-1)\n    return (x - mean) * g + b\n"
    answer = edited(source, "my_layer_norm")
    assert refused("02", 1, answer).startswith(said)


def test_optimised_python_has_no_checks_so_nothing_is_right():
    command = "from checks.speculative_sampling import exercise_2 as check; check(lambda p, q: p)"
    result = subprocess.run([sys.executable, "-O", "-c", command], cwd=FOLDER, capture_output=True, text=True)
    assert "the checks are assert statements, which python -O" in result.stderr and result.returncode == 1


def test_the_mistakes_in_the_texts_of_the_checks_are_named_by_their_sentences():
    for file in sorted((FOLDER / "checks").glob("*.txt")):
        [number] = [path.stem.partition("_")[0] for path in FOLDER.glob(f"*_{file.stem}.ipynb")]
        for title, mistakes in importlib.import_module(f"checks.{file.stem}").MISTAKES.items():
            for hint, wrong in [(mistake.hint, wrong) for mistake in mistakes for wrong in mistake.variants]:
                wrong.fills = wrong.__name__  # the exercise that it is an answer to
                said = refused(number, int(title.removeprefix("exercise_")), wrong)
                assert said.startswith(hint), (hint, said)


@pytest.mark.parametrize(("number", "i", "name"), [("05b", 2, "my_residual"), ("06", 2, "my_best_K")])
def test_another_seed_has_other_numbers(number, i, name):
    asked = {0: [], 3: []}
    for seed, given in asked.items():
        graded(
            number, i, lambda *args, given=given: given.append(repr(args)) or solution(number, name)(*args), seed=seed
        )
    assert asked[0] != asked[3]


def test_progress_says_which_exercises_are_solved():
    check = importlib.reload(importlib.import_module("checks.sampling"))
    assert check.progress().splitlines()[-1] == "solved 0 of 3"
    check.exercise_3(solution("04", "my_draw"))
    with pytest.raises(AssertionError):
        check.exercise_1(lambda logits, temperature: logits)
    lines = [line.split("   ")[1] for line in check.progress().splitlines()[:-1]]
    assert lines == ["wrong", "not checked yet", "right"] and check.progress().endswith("solved 1 of 3")
