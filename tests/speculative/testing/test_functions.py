"""The grader of functions with a signature of their own: right ones pass in any form, and mistakes are named."""

import functools
import random

import numpy as np
import pytest
from students import answers, functions, told, two_models

from speculative.testing import check_function


def sources():
    """The random functions, and the state of NumPy's."""
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    return random.random, np.random.rand, np.random.default_rng, random.Random, state, vars(functions).get("float")


@pytest.mark.parametrize("name", functions.RIGHT)
def test_right_ones_pass_in_any_form_and_the_random_functions_are_put_back(name, capsys, request):
    if name != "from_logits":
        request.getfixturevalue("few_cases")
    before = sources()
    check_function(functions.RIGHT[name])
    notes = capsys.readouterr().out
    assert ("wastes the bonus" in notes) == (name in ("without a bonus", "from_logits")), notes
    assert sources() == before


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", functions))
def test_the_mistake_is_named(answer, words, few_forms, few_cases):
    said = told(check_function, answer)
    assert all(word in said for word in words), said


def test_what_is_not_recognised_is_told(few_cases):
    def decode(alpha, beta, gamma, delta, epsilon):
        return (0, *functions.index_and_token(beta, alpha, delta))

    assert "which argument is 'alpha'" in told(check_function, decode)
    check_function(decode, "draft, target, K, tokens, V -> _, count, token")
    said = told(lambda fn: check_function(fn, "draft, large -> tokens"), decode)
    assert "expected a specification such as 'target, draft, tokens -> tokens'" in said and "'large'" in said


def after_an_option(target_probs, draft_probs, draft_tokens, eps=0.0, rng=None):
    assert eps == 0
    return functions.decode(target_probs, draft_probs, draft_tokens, rng)


def by_name(target_probs, draft_probs, draft_tokens, *, rng):
    return functions.decode(target_probs, draft_probs, draft_tokens, rng)


def with_options(target_probs, draft_probs, draft_tokens, rng, **options):
    return functions.decode(target_probs, draft_probs, draft_tokens, rng)


def yielded(target_probs, draft_probs, draft_tokens, rng):
    yield from functions.decode(target_probs, draft_probs, draft_tokens, rng)


@pytest.mark.parametrize(("fn", "spec"), [
    (after_an_option, None), (by_name, None), (by_name, "target, draft, tokens, rng -> tokens"), (with_options, None),
    (yielded, None),
])  # fmt: skip
def test_parameters_are_passed_by_name_where_they_must_be(fn, spec, few_cases):
    assert check_function(fn, spec).endswith("; read as target[K+1,V], draft, tokens, rng -> tokens")


def written_and_returned(target_probs, draft_probs, draft_tokens, rng, output):
    new = functions.decode(target_probs, draft_probs, draft_tokens, rng)
    output[: len(new)] = new
    return {"statistics": {}}, output


def with_an_exponential_number(target_probs, draft_probs, draft_tokens, rng):
    p, q, x = np.log(target_probs), np.log(draft_probs), draft_tokens
    n = next((i for i in range(len(x)) if not -rng.standard_exponential() < p[i, x[i]] - q[i, x[i]]), len(x))
    weights = functions.rest(target_probs[n], draft_probs[n]) if n < len(x) else target_probs[n]
    return [*x[:n], int(rng.choice(len(weights), p=weights))]


def with_a_bonus_token_id(target_probs, draft_probs, draft_tokens, bonus_token_id, rng):
    assert target_probs.shape == draft_probs.shape  # no row for the bonus
    rows = np.concatenate([target_probs, np.eye(target_probs.shape[1])[[bonus_token_id]]])
    return functions.decode(rows, draft_probs, draft_tokens, rng)


def test_other_right_ones_pass(few_cases):
    check_function(written_and_returned, "target, draft, tokens, rng, output -> _, tokens")
    check_function(with_an_exponential_number)
    check_function(with_a_bonus_token_id)


def count_and_token(bonus, row=lambda i: i):
    """A function that returns the number of accepted draft tokens and the next token; bonus(p, q, K) is a row."""

    def decode(target_probs, draft_probs, draft_tokens, rng):
        p, q, k = target_probs, draft_probs, len(draft_tokens)
        test = (rng.random() * q[row(i), x] < p[row(i), x] for i, x in enumerate(draft_tokens))
        n = next((i for i, passes in enumerate(test) if not passes), k)
        weights = bonus(p, q, k) if n == k else functions.rest(p[n], q[n])
        return n, int(rng.choice(len(weights), p=weights))

    return decode


@pytest.mark.parametrize(("answer", "words"), [
    (count_and_token(lambda p, q, k: p[k - 1]), "you drew the bonus from the row of the last draft token"),
    pytest.param(count_and_token(lambda p, q, k: q[-1]), "you drew the bonus from the draft", marks=pytest.mark.slow),
    pytest.param(count_and_token(lambda p, q, k: p[k], row=lambda i: 0),
                 "tested against row i of the target, not always", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_reading_in_which_the_mistake_is_right_is_not_believed(answer, words, few_cases):
    for spec in (None, "target, draft, tokens, rng -> count, token"):
        assert words in told(lambda fn, spec=spec: check_function(fn, spec), answer)
    check_function(count_and_token(lambda p, q, k: p[k]))


def without_a_bonus(target_probs, draft_probs, draft_tokens, rng, last=None):
    n, token = count_and_token(lambda p, q, k: p[-1])(target_probs, draft_probs, draft_tokens, rng)
    return n, token if n < len(draft_tokens) else last


def test_no_token_and_another_token_after_all_draft_tokens(few_cases, capsys):
    spec = "target, draft, tokens, rng -> count, token"
    assert check_function(without_a_bonus).endswith("read as target[K,V], draft, tokens, rng -> count, token")
    zero = functools.partial(without_a_bonus, last=0)
    check_function(zero, spec.replace("target", "target[K,V]"))
    with pytest.raises(AssertionError, match=r"if it returns no bonus: target\[K,V\]"):
        check_function(zero, spec)


class WithFloat:
    """`float` as a dtype and a type, beside float(u) of a number that is not drawn yet."""

    def __init__(self, wrong=False):
        self.wrong, self.numbers = wrong, lambda rng, n: [float(rng.random()) for _ in range(n)]

    def __call__(self, target_probs, draft_probs, draft_tokens, rng, dtype=float):
        p, q, k = np.log(target_probs.astype(float)), draft_probs.astype(dtype), len(draft_tokens)
        u = self.numbers(rng, k)
        ratios = [float(np.exp(p[i, x]) / q[i, x]) for i, x in enumerate(draft_tokens)]
        n = next((i for i in range(k) if not (isinstance(ratios[i], float) and u[i] < ratios[i])), k)
        rest = np.exp(p[n]) if n == k or self.wrong else np.maximum(np.exp(p[n]) - q[n], np.zeros(1, float))
        return [*draft_tokens[:n], rng.choice(len(rest), p=rest / rest.sum())]


AS_OBJECTS = """
def decode(target_probs, draft_probs, draft_tokens, rng):
    u = np.array([rng.random() for _ in draft_tokens], dtype=float)
    p, q = target_probs, draft_probs
    n = next((i for i, x in enumerate(draft_tokens) if not float(u[i]) * q[i, x] < p[i, x]), len(u))
    rest = np.maximum(target_probs[n] - np.append(draft_probs, 0 * draft_probs[:1], axis=0)[n], 0)
    return [*draft_tokens[:n], rng.choice(len(rest), p=rest / rest.sum())]
"""


def test_float_means_what_it_means(few_cases):
    check_function(WithFloat())
    assert "on a rejection you drew from the target" in told(check_function, WithFloat(wrong=True))
    names = {"np": np}
    exec(AS_OBJECTS, names)
    check_function(names["decode"])
    assert "float" not in names


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


def test_a_bonus_that_is_passed_in_is_a_number_and_success_is_told_in_a_line(few_cases):
    spec = "output, target, draft, tokens, uniforms, bonus -> tokens"
    said = check_function(functions.with_a_bonus_token, spec)
    about = "the tokens of a round have the target's distribution, to 1e-12, in 14 cases, K = 0 to 6"
    assert said == f"check_function: {about}; read as {spec.replace('target', 'target[K+1,V]')}"


@pytest.mark.parametrize("name", [  # by default a mistake below shows that one "of probabilities" is read
    pytest.param(name, marks=pytest.mark.slow if name.startswith("of ") else []) for name in two_models.RIGHT
])  # fmt: skip
def test_functions_of_two_models_are_graded_as_they_are(name, few_cases):
    function, form = two_models.RIGHT[name]
    said = check_function(function)
    assert said.startswith("check_function: the text has the target's distribution")
    assert said.endswith(f"; read as {form}")


@pytest.mark.parametrize(("answer", "words"), answers("WRONG", two_models, quick=["residual from the target"]))
def test_mistakes_in_functions_of_two_models_are_named(answer, words, few_cases):
    with pytest.raises(AssertionError) as error:
        check_function(answer)
    assert all(word in str(error.value) for word in words)


def test_a_greedy_function_is_graded_for_the_greedy_text():
    said = check_function(two_models.greedy)
    assert said.startswith("check_function: greedy: the text is the target's greedy text in 336 cases, K = 1 to 6; ")
    assert "; nothing is drawn, so above temperature 0 it is not speculative sampling; K = 2: " in said


@pytest.mark.parametrize("words", [
    pytest.param(words, marks=[pytest.mark.slow] * (i in (1, 2))) for i, words in enumerate(two_models.WRONG_GREEDY)
])  # fmt: skip
def test_mistakes_of_greedy_functions_are_named(words):
    assert words in told(check_function, two_models.WRONG_GREEDY[words])


def drawn_inside(target_probs, draft_probs, rng, rest=functions.rest):
    x = int(rng.choice(len(draft_probs), p=draft_probs))
    if rng.random() * draft_probs[x] < target_probs[x]:
        return x, True
    return int(rng.choice(len(target_probs), p=rest(target_probs, draft_probs))), False


def test_a_function_that_draws_its_draft_token_is_a_sampler_of_one_token():
    said = check_function(drawn_inside)
    assert said.startswith("check_function: a sampler of one token, which draws the draft token itself: its token has")
    said = told(check_function, lambda p, q, rng: drawn_inside(p, q, rng, lambda p, q: p))
    assert said.startswith("on a rejection you drew from the target")
    said = told(check_function, lambda p, q, rng: drawn_inside(p, q, rng, lambda p, q: (p + q) / 2))
    assert said == "your function's tokens do not have the target's distribution"


def log_probs_of_the_drafted(draft_ids, draft_log_probs, target_log_probs, rng):
    n = 0
    while n < len(draft_ids) and rng.random() < np.exp(target_log_probs[n] - draft_log_probs[n]):
        n += 1
    return draft_ids[:n], n


def passed_in_a_row(draft_probs, target_probs, draft_tokens, rng):
    decoded = functions.decode(target_probs, draft_probs, draft_tokens, rng)
    return decoded[: len(decoded) - 1]


@pytest.mark.parametrize("fn", [log_probs_of_the_drafted, passed_in_a_row])
def test_a_test_without_a_replacement_leaves_it_to_the_caller(fn, few_cases, capsys):
    check_function(fn)
    assert (
        "note: your function tests alone: left to the caller is a token from max(0, p - q)" in capsys.readouterr().out
    )


def test_an_unknown_name_is_asked_for_with_the_nearest_reading():
    said = told(check_function, lambda candidate_tokens, arbiter, draft_probs, rng: None)
    spec = "'tokens, target, draft, rng -> tokens'"
    assert said == f"which argument is 'arbiter'? If it is the target's rows: check_function(fn, {spec})"
    said = told(check_function, lambda prompt, oracle, draft_model, n_tokens, gamma: None)
    assert said.startswith(
        "which argument is 'oracle'? If it is the target: check_function(fn, 'prompt, target_model, "
    )


def batched(is_shared=False, cuts=False, only_one=False):
    """A function of a batch: with numbers for all of its texts, or cut where the first of them ends."""

    def decode(target_probs, draft_probs, draft_tokens, rng):
        assert not only_one or len(draft_tokens) == 1
        K, new = draft_tokens.shape[1], []
        uniforms = [rng.random() for _ in range(K)] if is_shared else None
        for p, q, drafted in zip(target_probs, draft_probs, draft_tokens):
            u = uniforms or [rng.random() for _ in range(K)]
            new.append(next((i for i, x in enumerate(drafted) if u[i] * q[i, x] >= p[i, x]), K))
        new = [min(new)] * len(new) if cuts else new
        texts = np.full((len(new), K + 1), -1)
        for text, n, p, q, drafted in zip(texts, new, target_probs, draft_probs, draft_tokens):
            weights = functions.rest(p[n], q[n]) if n < K else p[K]
            text[: n + 1] = [*drafted[:n], rng.choice(len(weights), p=weights)]
        return texts

    return decode


def test_a_batch_is_called_with_two_texts(capsys, few_cases):
    spec = "target[B,K+1,V], draft, tokens, rng -> tokens"
    check_function(batched(), spec)
    assert capsys.readouterr().out == ""
    check_function(batched(only_one=True), spec)
    noted = "note: your function is right for one text; for a batch of two: your function fails"
    assert capsys.readouterr().out.startswith(noted)
    for mistake, hint in [
        ({"is_shared": True}, "each text of a batch is right by itself, but together they are not"),
        ({"cuts": True}, "a batch of one is right, but of two texts the first has a different distribution"),
    ]:
        assert hint in told(lambda fn: check_function(fn, spec), batched(**mistake))
