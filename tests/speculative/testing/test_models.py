"""The grader of language models: right ones pass, and the mistakes in wrong ones are named."""

import numpy as np
import pytest
from helpers import random_gpt2
from students import answers, models, told

from gpt2np import HParams
from speculative.testing import TableModel, check_language_model


@pytest.mark.parametrize(("answer", "words"), answers("RIGHT", models))
def test_right_ones_pass(answer, words, capsys):
    check_language_model(answer)
    assert capsys.readouterr().out == ""


def test_the_librarys_own_pass(tiny_pair):
    check_language_model(random_gpt2(HParams(n_vocab=17, n_ctx=23, n_embd=15, n_head=3, n_layer=2)))
    check_language_model(tiny_pair[1])


def test_a_model_that_takes_lists_alone_passes_with_a_note(capsys):
    check_language_model(models.changed(lambda logits, tokens, n: logits[tokens.index(tokens[0]) :]))
    said = capsys.readouterr().out
    assert said.startswith("note: your model is right for a list of tokens, but not for an array: your model fails")


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", models))
def test_the_mistake_is_named(answer, words):
    said = told(check_language_model, answer)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(("name", "value"), [("n_vocab", 1), ("n_ctx", "64")])
def test_a_model_too_small_for_the_grader(name, value):
    model = TableModel.random(3)
    setattr(model, name, value)
    said = told(check_language_model, model)
    assert said.startswith(f"{name} is a whole number, and at least") and said.endswith(f"yours is {value!r}")


@pytest.mark.parametrize("offset", [0, -100, -1000])
def test_a_number_added_to_all_logits_hides_nothing(offset):
    table, stale = TableModel.random(5, seed=3), TableModel.random(5, seed=4)
    calls = []

    def shifted(wrong):
        def call(tokens, n_last=1):
            calls.append(None)
            return table(tokens, n_last) + wrong * (len(calls) % 2) * stale(tokens, n_last) + np.float32(offset)

        call.n_vocab, call.n_ctx = table.n_vocab, table.n_ctx
        return call

    check_language_model(shifted(np.float32(0)))
    assert "your" in told(check_language_model, shifted(np.float32(0.01)))
