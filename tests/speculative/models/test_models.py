"""What holds for all language models of this folder; an adapter is tested by its entry in MODELS."""

import copy
import pickle

import numpy as np
import pytest
from helpers import interrupted, random_gpt2
from random_transformers import random_model
from toy_tokenizers import LARGER_DRAFT, LARGER_TARGET

import speculative.models
from gpt2np import HParams
from speculative import ByPaths, NGramModel, SharedTokensModel
from speculative.models import LlamaCppModel, TransformersModel
from speculative.testing import TableModel, check_language_model

MODELS = {  # each with a vocabulary of 6 tokens or more
    "ByPaths": lambda: ByPaths(random_gpt2(HParams(17, 64, 12, 2, 2))),
    "ByPaths of a table": lambda: ByPaths(TableModel.random(7)),
    "SharedTokensModel": lambda: SharedTokensModel(TableModel.random(7), LARGER_TARGET, LARGER_DRAFT),
    "NGramModel": lambda: NGramModel.from_tokens([0, 1, 2, 0, 1, 5, 4, 3], n_vocab=7),
    "LlamaCppModel": lambda: LlamaCppModel("0"),
    "TransformersModel": lambda: TransformersModel(random_model("Llama")),
}
NEEDS_TORCH = pytest.param("TransformersModel", marks=[pytest.mark.peers, pytest.mark.filterwarnings("default")])
every = pytest.mark.parametrize("name", [*(name for name in MODELS if "Transformers" not in name), NEEDS_TORCH])
TEXTS = [0, 1, 2, 5], [0, 1, 2], [0, 4, 4, 3, 1], [0, 1, 2, 5, 2], [3], [0, 4, 4, 2]


@pytest.fixture(autouse=True)
def stand_in(llama_cpp):
    """An engine, so that no test here needs one."""


def assert_rows(model, fresh, text, n_last=1):
    np.testing.assert_allclose(model(text, n_last=n_last), fresh(text, n_last=n_last), rtol=0, atol=2e-5)


def test_every_model_is_in_the_table():
    exported = {name for name in (*speculative.__all__, *speculative.models.__all__) if name.endswith("Model")}
    assert exported - {"LanguageModel", "CostModel"} | {"ByPaths"} == {name.split()[0] for name in MODELS}


@every
def test_it_is_a_language_model(name):
    """With trees, if it takes them; else `ByPaths` lends them."""
    check_language_model(MODELS[name]())
    rows = ByPaths(MODELS[name]())([1, 2, 3, 4, 5, 0], n_last=4, parents=[-1, -1, 1])  # 4, and 5 before 0
    for row, text in zip(rows, ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 5, 0]), strict=True):
        np.testing.assert_allclose(row, MODELS[name]()(text)[0], rtol=0, atol=2e-5)


@every
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_and_the_original_go_on_with_texts_of_their_own(name, way):
    """A shallow copy may share an engine, which either may have used last; a deep one may have an empty one."""
    model, fresh = MODELS[name](), MODELS[name]
    model(TEXTS[0])
    copied = way(model)
    for i, text in enumerate(TEXTS):
        assert_rows((copied, model)[i % 2], fresh(), text)
    for text in TEXTS:
        assert_rows(model, fresh(), text)
        assert_rows(copied, fresh(), text)


@every
def test_an_interruption_leaves_nothing_wrong(name):
    """At any line of the model or of the stand-in for an engine; then another text, or the same."""
    for n in range(1, 1000):
        model = MODELS[name]()
        model(TEXTS[0])
        was_interrupted = interrupted(n, model, TEXTS[2], part="speculative/models/")
        for text in (TEXTS[0], TEXTS[2])[:: 1 - n % 2 * 2]:
            assert_rows(model, MODELS[name](), text)
        if not was_interrupted:
            return


@pytest.mark.parametrize("parents", [[0], [-2], [-1] * 4, [-1, 1], [1, 0]])
def test_what_is_no_tree_is_refused(parents):
    with pytest.raises(ValueError, match="expected parents of a tree after at least one token of text"):
        MODELS["ByPaths of a table"]()([1, 2, 3, 4], 3, parents)


@pytest.mark.parametrize(
    ("tokens", "n_last", "error", "message"),
    [
        ([], 1, ValueError, "expected 1 to n_ctx = 4 tokens, got 0"),
        ([1] * 5, 1, ValueError, "expected 1 to n_ctx = 4 tokens, got 5"),
        ([1, 2], 0, ValueError, "expected n_last from 1 to the number of tokens, 2, got 0"),
        ([1, 2], 3, ValueError, "expected n_last from 1 to the number of tokens, 2, got 3"),
        ([1.5], 1, TypeError, "'float' object cannot be interpreted as an integer"),
        ([1], 1.0, TypeError, "'float' object cannot be interpreted as an integer"),
    ],
)
def test_what_adapters_refuse(tokens, n_last, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        LlamaCppModel("0", n_ctx=4)(tokens, n_last)
