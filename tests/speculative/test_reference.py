"""The pages: speculative/reference.py is the library seed by seed, and speculative/exact/reference.py proves it."""

import ast
import inspect
import re

import numpy as np
import pytest
from exactness import largest_difference
from helpers import ROOT

from speculative import ModelDrafter, SpeculativeSampler, exact_distribution, reference
from speculative.exact import reference as exact_page
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def test_the_text_is_that_of_the_sampler(tiny_pair):
    """Seed by seed, with tables and with the bundled pair."""
    models = (TableModel.random(53, seed=1), TableModel.random(53, seed=2))
    cases = [(models, [0, 1], K, seed) for K in (1, 4) for seed in range(10)]
    cases.append((tiny_pair[:2], tiny_pair[2].encode("Once upon a time there lived a"), 4, 0))
    for (target, draft_model), prompt, K, seed in cases:
        text = reference.generate(target, draft_model, prompt, 30, K, seed)
        sampler = SpeculativeSampler(target, ModelDrafter(draft_model), K=K)
        assert text == [*prompt, *sampler.generate(prompt, 30, seed).tokens.tolist()]


def error(n_tokens, fn):
    """The largest error of the probability of a text of n_tokens tokens after [0, 1], by the third page."""
    found = exact_page.exact_distribution(lambda rng: tuple(fn(rng))[-n_tokens:])
    return largest_difference(found, TARGET.distribution([0, 1], n_tokens))


@pytest.mark.parametrize(("K", "n_tokens"), [(1, 2), (2, 3), (3, 3), pytest.param(2, 4, marks=pytest.mark.slow)])
def test_the_third_page_proves_the_second(K, n_tokens):
    """Every text has the target's probability; and the library agrees, by either enumeration."""
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=K)
    library = lambda rng: tuple(sampler.generate([0, 1], n_tokens, rng).tokens.tolist())  # noqa: E731
    assert error(n_tokens, lambda rng: reference.generate(TARGET, DRAFT, [0, 1], n_tokens, K, rng)) < 1e-12
    by_the_page = exact_page.exact_distribution(library)
    assert largest_difference(by_the_page, TARGET.distribution([0, 1], n_tokens)) < 1e-12
    assert largest_difference(by_the_page, exact_distribution(library)) < 1e-12


def greedy(draft_model, tokens, K, rng):
    """Proposes the most probable tokens, and hands out the rows of a draw."""
    drafted, q = [], []
    for _ in range(K):
        q.append(reference.softmax(draft_model([*tokens, *drafted])[0]))
        drafted.append(int(q[-1].argmax()))
    return drafted, q


def one_hot(draft_model, tokens, K, rng):
    """The same tokens, told to be certain: right."""
    drafted, _ = greedy(draft_model, tokens, K, rng)
    return drafted, [np.eye(3)[token] for token in drafted]


def shorter(draft_model, tokens, K, rng):
    return reference.draft(draft_model, tokens, min(K, tokens[-1]), rng)


@pytest.mark.parametrize(("draft", "is_right"), [(greedy, False), (one_hot, True), (shorter, True)])
def test_a_wrong_draft_is_one_line_away(draft, is_right):
    off = error(3, lambda rng: reference.generate(TARGET, DRAFT, [0, 1], 3, 2, rng, draft=draft))
    assert off < 1e-12 if is_right else off > 0.05


def test_the_pages_distribution_by_hand():
    """One number, compared in two scales; and where there is nothing to draw."""

    def thrice(rng):
        u = rng.random()
        return u * 4 > 3, u < 0.5, u < 0.25

    found = exact_page.exact_distribution(thrice)
    assert found == dict.fromkeys([(1, 0, 0), (0, 1, 1), (0, 1, 0), (0, 0, 0)], 0.25)
    for q, p, share in ((0.5, 0.25, 0.5), (0.0, 0.25, 1.0), (0.0, 0.0, 0.0), (0.5, float("nan"), 0.0)):
        for fn in (lambda rng, q=q, p=p: rng.random() * q < p, lambda rng, q=q, p=p: q * rng.random() < p):
            assert exact_page.exact_distribution(fn).get(True, 0) == share
    with pytest.raises(ValueError, match=r"expected u times a positive number, got -1: enumeration\.py follows any"):
        exact_page.exact_distribution(lambda rng: rng.random() * -1 < -0.5)


def code(source):
    """The source without docstrings, comments and blank lines."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body.pop(0)
    return [line for line in ast.unparse(tree).splitlines() if line.strip()]


def test_it_fits_a_page_and_the_readme_shows_its_rule():
    assert len(code(inspect.getsource(reference))) <= 40 and len(code(inspect.getsource(exact_page))) <= 60
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(def residual.*?)```", readme, re.DOTALL)
    assert code(shown) == code(inspect.getsource(reference.residual) + inspect.getsource(reference.accept))
