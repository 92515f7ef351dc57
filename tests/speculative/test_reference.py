"""speculative/reference.py is exact, and generates the text of the library for the same seed."""

import ast
import inspect
import itertools
import re

import numpy as np
import pytest
from helpers import ROOT

from speculative import ModelDrafter, SpeculativeSampler, exact_distribution, reference, residual
from speculative.testing import TableModel

PROMPT = "Once upon a time there lived a"


@pytest.mark.parametrize("K", [1, 4])
def test_the_text_is_that_of_the_sampler(tiny_pair, K):
    target, draft_model, tokenizer = tiny_pair
    prompt, sampler = tokenizer.encode(PROMPT), SpeculativeSampler(target, ModelDrafter(draft_model), K=K)
    for seed in range(3):
        text = reference.generate(target, draft_model, prompt, 40, K, seed)
        assert text == [*prompt, *sampler.generate(prompt, 40, seed).tokens.tolist()]


@pytest.mark.parametrize(("K", "n_tokens"), [(1, 2), (2, 3), (3, 3)])
def test_the_text_has_the_distribution_of_the_target(K, n_tokens):
    target, draft_model = TableModel.random(3, seed=1), TableModel.random(3, seed=2)
    found = exact_distribution(lambda rng: reference.generate(target, draft_model, [0, 1], n_tokens, K, rng))
    for text in itertools.product(range(3), repeat=n_tokens):
        whole = (0, 1, *text)
        rows = [reference.softmax(target(list(whole[: 2 + i])))[0] for i in range(n_tokens)]
        assert abs(found.get(whole, 0) - np.prod([row[x] for row, x in zip(rows, text)])) < 1e-12


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


def test_it_fits_a_page():
    assert len(code(inspect.getsource(reference))) <= 40


def test_the_readme_shows_its_rule():
    blocks = re.findall(r"```python\n(def accept.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [code(block) for block in blocks] == [code(inspect.getsource(reference.accept))]
