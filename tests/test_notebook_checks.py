"""The checks in the notebooks: what they say to wrong answers, and that other ways to be right pass."""

import re

import numpy as np
import pytest
from helpers import ROOT

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks
FOLDER = ROOT / "notebooks"


@pytest.fixture
def check(monkeypatch):
    """check(number, name, *others): the function `name` of a notebook, after the cells that contain one of `others`."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("MPLBACKEND", "Agg")

    def loaded(number, name, *others):
        [path] = FOLDER.glob(f"{number}_*.ipynb")
        cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        names = {}
        for source in cells:
            if source is cells[0] or any(other in source for other in others):
                exec(source, names)
            if f"def {name}(" in source:
                exec(re.sub(rf"\n{name}\(\w+\)$", "", source), names)
        return names[name]

    return loaded


@pytest.fixture
def solution():
    def loaded(number, name):
        [path], names = (FOLDER / "solutions").glob(f"{number}_*.py"), {}
        exec(path.read_text(encoding="utf-8"), names)
        return names[name]

    return loaded


def test_merging_strings_is_no_merge_of_symbols(check, solution):
    merge, right = check("01", "check_merge"), solution("01", "merge")
    merge(lambda symbols, pair: tuple(right(symbols, pair)))
    with pytest.raises(AssertionError, match="compare whole symbols"):
        merge(lambda symbols, pair: " ".join(symbols).replace(" ".join(pair), "".join(pair)).split())


def test_top_p_stops_where_the_sum_is_reached(check, solution):
    top_p = check("04", "check_top_p")
    top_p(solution("04", "my_top_p"))

    def one_too_many(probs, top_p):
        order = np.argsort(-probs, kind="stable")
        n = np.searchsorted(np.cumsum(probs[order]), top_p, side="right") + 1
        kept = np.zeros(len(probs))
        kept[order[:n]] = probs[order[:n]]
        return kept / kept.sum()

    with pytest.raises(AssertionError, match="here the first one reaches it"):
        top_p(one_too_many)


def missing(p, q, epsilon=0.0):
    rest = np.maximum(p - q, 0)
    return rest / (rest.sum() + epsilon)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p, q: p if np.allclose(p, q) else missing(p, q), "close to p = q the residual is not p"),
        (lambda p, q: p if (p == q).all() else missing(p, q, 1e-10), "without an epsilon"),
        (lambda p, q: p if (p == q).all() else abs(p - q) / abs(p - q).sum(), "has the surplus in it"),
        (lambda p, q: p if (p == q).all() else missing(q, p), "q - p is the surplus"),
        (missing, "return p where the sum is 0"),
    ],
)
def test_wrong_residuals(answer, message, check, solution):
    residual = check("05", "check_residual", 'words = ["king"')
    residual(solution("05", "my_residual"))
    with pytest.raises(AssertionError, match=message):
        residual(answer)


def test_a_verifier_that_never_accepts_is_exact_and_not_the_rule(check, solution):
    from speculative import Verdict, rejection, sample_token

    verifier = check("05", "check_my_verifier", 'words = ["king"')
    verifier(solution("05", "my_verifier"))
    with pytest.raises(AssertionError, match=r"it keeps 0\.000 on average"):
        verifier(lambda draft, rows, rng: Verdict(0, sample_token(rows[0], rng)))
    with pytest.raises(AssertionError, match="comes with the library"):
        verifier(rejection)


@pytest.mark.parametrize("n", [2, 4])
def test_three_acceptances_are_three(n, check, solution):
    acceptances, right = check("07", "check_acceptances"), solution("07", "acceptances")
    acceptances(lambda p, q: np.array(right(p, q)))
    with pytest.raises(AssertionError, match=f"expected three numbers.* got {n}"):
        acceptances(lambda p, q: [*right(p, q), 0][:n])
