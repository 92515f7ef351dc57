"""The grader of functions with a signature of their own: right ones pass in any form, and mistakes are named."""

import random
import re

import numpy as np
import pytest
from students import answers, functions, told, two_models

from speculative.testing import check_function


@pytest.mark.parametrize(("answer", "words"), answers("RIGHT", functions))
def test_right_ones_pass_in_any_form(answer, words, capsys):
    check_function(answer)
    notes = capsys.readouterr().out
    assert ("gives the bonus away" in notes) == (answer in (functions.without_a_bonus, functions.from_logits)), notes


def some(of_wrong):
    """Every third one, and the others in the slow group."""
    slow = {"marks": pytest.mark.slow}
    return [pytest.param(*one.values, id=one.id, **(slow if i % 3 else {})) for i, one in enumerate(of_wrong)]


@pytest.mark.parametrize(("answer", "words"), some(answers("WRONG", functions)))
def test_the_mistake_is_named(answer, words):
    said = told(check_function, answer)
    assert all(word in said for word in words), said


def test_what_is_not_recognised_is_told():
    def decode(alpha, beta, gamma, delta, epsilon):
        return (0, *functions.index_and_token(beta, alpha, delta))

    assert "which argument is 'alpha'" in told(check_function, decode)
    check_function(decode, "draft, target, K, tokens, V -> _, count, token")
    said = told(lambda fn: check_function(fn, "draft, large -> tokens"), decode)
    assert "expected a specification such as 'target, draft, tokens -> tokens'" in said and "'large'" in said


def test_the_random_functions_are_put_back():
    before = random.random, np.random.rand, np.random.default_rng, random.Random
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    check_function(functions.one_token)
    assert (random.random, np.random.rand, np.random.default_rng, random.Random) == before
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    assert "float" not in vars(functions)


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_in_pytorch():
    pytest.importorskip("torch", reason="pip install torch")
    from students import torch_functions

    for function in torch_functions.RIGHT.values():
        check_function(function)
    for function, words in torch_functions.WRONG.values():
        said = told(check_function, function)
        assert all(word in said for word in words), said


def test_a_bonus_that_is_passed_in_is_a_number():
    check_function(functions.with_a_bonus_token, "output, target, draft, tokens, uniforms, bonus -> tokens")


def test_success_is_told_in_a_line():
    said = check_function(functions.coins)
    assert said.startswith(
        "check_function: the tokens of a round have the target's distribution, to 1e-12, in 18 cases"
    )
    assert said.endswith("; read as target[K+1,V], draft, tokens, uniforms -> tokens")


@pytest.mark.parametrize("fn", two_models.RIGHT)
def test_functions_of_two_models_are_graded_as_they_are(fn):
    assert check_function(fn).startswith("check_function: the text has the target's distribution")


@pytest.mark.parametrize("fn", two_models.WRONG)
def test_mistakes_in_functions_of_two_models_are_named(fn):
    with pytest.raises(AssertionError, match=re.escape(two_models.WRONG[fn])):
        check_function(fn)


def batched(numbers=None, cut=len, only_one=False):
    """A function of a batch: `numbers` of its texts, or cut(lengths) where all of them end."""

    def decode(target_probs, draft_probs, draft_tokens, rng):
        assert not only_one or len(draft_tokens) == 1
        K, new = draft_tokens.shape[1], []
        uniforms = [rng.random() for _ in range(K)] if numbers else None
        for p, q, drafted in zip(target_probs, draft_probs, draft_tokens):
            u = uniforms or [rng.random() for _ in range(K)]
            new.append(next((i for i, x in enumerate(drafted) if u[i] * q[i, x] >= p[i, x]), K))
        new = [min(new)] * len(new) if cut is min else new
        texts = np.full((len(new), K + 1), -1)
        for text, n, p, q, drafted in zip(texts, new, target_probs, draft_probs, draft_tokens):
            rest = np.maximum(p[n] - q[n], 0) if n < K else p[K]
            text[: n + 1] = [*drafted[:n], rng.choice(len(rest), p=rest / rest.sum())]
        return texts

    return decode


BATCHED = "target[B,K+1,V], draft, tokens, rng -> tokens"


def test_a_batch_is_called_with_two_texts(capsys):
    check_function(batched(), BATCHED)
    check_function(batched(only_one=True), BATCHED)
    assert (
        "note: your function is right for one text; for a batch of two: your function fails" in capsys.readouterr().out
    )
    with pytest.raises(AssertionError, match="each text of a batch is right by itself, together they are not"):
        check_function(batched(numbers="shared"), BATCHED)
    with pytest.raises(AssertionError, match="a batch of one is right, but of two texts the first has a different"):
        check_function(batched(cut=min), BATCHED)
