"""The pages: speculative/reference.py is the library seed by seed, and speculative/exact/reference.py proves it."""

import ast
import inspect
import re

import numpy as np
import pytest
from helpers import ROOT

from speculative import ModelDrafter, SpeculativeSampler, exact_distribution, reference, residual
from speculative.exact import reference as exact_page
from speculative.testing import TableModel

PROMPT = "Once upon a time there lived a"


@pytest.mark.parametrize("K", [1, 4])
def test_the_text_is_that_of_the_sampler(tiny_pair, K):
    target, draft_model, tokenizer = tiny_pair
    prompt, sampler = tokenizer.encode(PROMPT), SpeculativeSampler(target, ModelDrafter(draft_model), K=K)
    for seed in range(3):
        text = reference.generate(target, draft_model, prompt, 40, K, seed)
        assert text == [*prompt, *sampler.generate(prompt, 40, seed).tokens.tolist()]


TARGET, DRAFT = TableModel.random(3, seed=1), TableModel.random(3, seed=2)


def largest_error(n_tokens, fn, enumerate_=exact_page.exact_distribution):
    """Of the probability of any text of n_tokens tokens after [0, 1], by the third page."""
    right = TARGET.distribution([0, 1], n_tokens)
    found = enumerate_(lambda rng: tuple(fn(rng))[-n_tokens:])
    assert found.keys() <= right.keys()
    return max(abs(found.get(text, 0) - right[text]) for text in right)


@pytest.mark.parametrize(("K", "n_tokens"), [(1, 2), (2, 3), (3, 3), (2, 4)])
def test_the_third_page_proves_the_second(K, n_tokens):
    """Every text has the target's probability; and the library agrees, by either enumeration."""
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT), K=K)
    library = lambda rng: sampler.generate([0, 1], n_tokens, rng).tokens.tolist()  # noqa: E731
    assert largest_error(n_tokens, lambda rng: reference.generate(TARGET, DRAFT, [0, 1], n_tokens, K, rng)) < 1e-12
    assert largest_error(n_tokens, library) < 1e-12
    by_the_page = exact_page.exact_distribution(lambda rng: tuple(library(rng)))
    by_the_library = exact_distribution(library)
    assert by_the_page.keys() == by_the_library.keys()
    assert max(abs(by_the_page[text] - by_the_library[text]) for text in by_the_page) < 1e-12


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
    error = largest_error(3, lambda rng: reference.generate(TARGET, DRAFT, [0, 1], 3, 2, rng, draft=draft))
    assert error < 1e-12 if is_right else error > 0.05


def test_the_pages_distribution_by_hand():
    """One number, compared twice; two numbers; a number times two scales; nothing drawn."""

    def twice(rng):
        u = rng.random()
        return u < 0.5, u < 0.25, u * 4 > 3

    assert exact_page.exact_distribution(twice) == {
        (True, True, False): 0.25, (True, False, False): 0.25, (False, False, False): 0.25, (False, False, True): 0.25,
    }  # fmt: skip
    pair = exact_page.exact_distribution(lambda rng: (rng.random() < 0.25, rng.random() < 0.5))
    assert pair == {(a, b): (0.25 if a else 0.75) * 0.5 for a in (True, False) for b in (True, False)}
    cdf = np.cumsum([0.5, 0.0, 0.25, 0.25])
    searched = exact_page.exact_distribution(lambda rng: int(np.searchsorted(cdf, rng.random(), side="right")))
    assert searched == {0: 0.5, 2: 0.25, 3: 0.25}
    assert exact_page.exact_distribution(lambda rng: "always") == {"always": 1.0}
    for q, p, share in ((0.5, 0.25, 0.5), (0.0, 0.25, 1.0), (0.0, 0.0, 0.0), (0.5, float("nan"), 0.0)):
        for fn in (lambda rng, q=q, p=p: rng.random() * q < p, lambda rng, q=q, p=p: q * rng.random() < p):
            assert exact_page.exact_distribution(fn).get(True, 0) == share
    with pytest.raises(ValueError, match=r"expected u times a positive number, got -1: enumeration\.py follows any"):
        exact_page.exact_distribution(lambda rng: rng.random() * -1 < -0.5)


def test_its_parts_are_those_of_the_library():
    p, q = np.random.default_rng(0).dirichlet(np.ones(5), 2)
    np.testing.assert_array_equal(reference.residual(p, q), residual(p, q))
    np.testing.assert_array_equal(reference.residual(p, p), p)


def code(source):
    """The source without docstrings, comments and blank lines."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body.pop(0)
    return [line for line in ast.unparse(tree).splitlines() if line.strip()]


@pytest.mark.parametrize(("page", "most"), [(reference, 40), (exact_page, 60)])
def test_it_fits_a_page(page, most):
    assert len(code(inspect.getsource(page))) <= most


def test_the_readme_shows_its_rule():
    blocks = re.findall(r"```python\n(def accept.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [code(block) for block in blocks] == [code(inspect.getsource(reference.accept))]
