"""check_batch: right loops of any style pass, each mistake of the catalogue is told from the others."""

import numpy as np
import pytest

from speculative import Sampling, rejection
from speculative.mistakes import batches as catalogue
from speculative.mistakes.batches import Batch, batch
from speculative.testing import check_batch
from speculative.testing.batches import CASES, Case, Loop, SlotModel, TableModel, largest_difference

softmax = Sampling()
WRONG = [(mistake.hint, wrong) for mistake in catalogue.BATCHES for wrong in mistake.variants]


def in_two_phases(target, drafter, prompts, n_tokens, rng, K):
    """A right loop in another style: the prompts in a pass of their own, padded on the left; lists; no crop."""
    longest, n = max(map(len, prompts)), len(prompts)
    tokens = [[0] * (longest - len(prompt)) + prompt for prompt in prompts]
    mask = [[False] * (longest - len(prompt)) + [True] * len(prompt) for prompt in prompts]
    positions = [[max(0, column - longest + len(prompt)) for column in range(longest)] for prompt in prompts]
    rows = target(tokens, positions, mask)[:, -1]
    texts = [[int(rng.choice(target.n_vocab, p=softmax(rows[i : i + 1])[0]))] if n_tokens[i] else [] for i in range(n)]
    while any(len(text) < end for text, end in zip(texts, n_tokens)):
        drafts = [
            drafter.propose([*prompts[i], *texts[i]], max(0, min(K, n_tokens[i] - len(texts[i]) - 1)), rng)
            for i in range(n)
        ]
        fed = [[*texts[i][-1:], *drafts[i].tokens.tolist()] for i in range(n)]
        width = max(map(len, fed))
        padded = [some + [0] * (width - len(some)) for some in fed]
        begin = [len(prompts[i]) + len(texts[i]) - 1 for i in range(n)]
        columns = [[True] * len(some) + [False] * (width - len(some)) for some in fed]
        logits = target(padded, [[b + c for c in range(width)] for b in begin], [m + c for m, c in zip(mask, columns)])
        for i in range(n):
            n_accepted = 0
            if len(texts[i]) < n_tokens[i]:
                verdict = rejection(drafts[i], softmax(logits[i, : len(fed[i])]), rng)
                n_accepted = verdict.n_accepted
                texts[i] += [*drafts[i].tokens[:n_accepted].tolist(), int(verdict.next_token)]
            mask[i] += [True] * (1 + n_accepted) + [False] * (width - 1 - n_accepted)
    return texts


def said_about(serve, **options):
    with pytest.raises(AssertionError) as caught:
        check_batch(serve, **options)
    return str(caught.value).split("\n")[0]


def test_a_right_loop_in_another_style_passes(capsys):
    assert check_batch(in_two_phases).startswith("check_batch: the texts are independent")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_text_held_back_by_the_other_is_exact_and_noted(seed, capsys):
    assert check_batch(Batch(), seed=seed)
    assert capsys.readouterr().out == ""
    assert check_batch(catalogue.SLOW, seed=seed)
    assert "passes where" in capsys.readouterr().out


@pytest.mark.parametrize("hint, wrong", WRONG, ids=[f"{i}" for i in range(len(WRONG))])
def test_each_mistake_is_named(hint, wrong):
    assert said_about(wrong) == hint


@pytest.mark.parametrize("hint, wrong", WRONG, ids=[f"{i}" for i in range(len(WRONG))])
def test_with_a_single_text_each_is_right(hint, wrong):
    loop = Loop(wrong, TableModel.random(2, seed=1), TableModel.random(2, seed=101))
    case = Case("one text", ([0, 1],), (3,), 2)
    assert largest_difference(loop.distribution(case), loop.wanted(case)) < 1e-12


def test_a_mistake_of_a_single_text_is_named_as_such():
    from_target = batch(verify=lambda self, drafts, rows, rng: [from_p(d, p, rng) for d, p in zip(drafts, rows)])
    assert "draw from max(0, p - q)" in said_about(from_target)


def from_p(draft, p, rng):
    verdict = rejection(draft, p, rng)
    if verdict.n_accepted == len(draft.tokens):
        return verdict
    return type(verdict)(verdict.n_accepted, rng.choice(p.shape[1], p=p[verdict.n_accepted]))


def test_a_mistake_that_no_entry_has_is_placed():
    def first_alone(self, n_cached, columns, first, n_slots):
        return Batch.positions(self, n_cached, columns, first, n_slots) + (n_slots > 3)

    assert said_about(batch(positions=first_alone)).startswith("your loop goes wrong where")
    depends = batch(number=lambda self, t, i, rng: self.numbers.setdefault("u", rng.random()) if i == t == 0 else
                    1 - self.numbers["u"] if (i, t) == (0, 1) and "u" in self.numbers else rng.random())  # fmt: skip
    assert "depend on each other" in said_about(depends)


@pytest.mark.parametrize(
    "wrong, hint",
    [
        (lambda target, drafter, prompts, n_tokens, rng, K: None, "return a list of texts"),
        (lambda target, drafter, prompts, n_tokens, rng, K: [[0.5] for _ in prompts], "return a list of texts"),
        (lambda target, drafter, prompts, n_tokens, rng, K: target(prompts, prompts, [[1]]), "target(tokens [B, T]"),
        (lambda target, drafter, prompts, n_tokens, rng, K: [n_tokens.pop(), [0]], "writes to its arguments"),
        (lambda target, drafter, prompts, n_tokens, rng, K: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_is_no_loop_gets_a_sentence(wrong, hint):
    assert hint in said_about(wrong)


def test_a_loop_that_never_ends_is_ended():
    def endless(target, drafter, prompts, n_tokens, rng, K):
        while True:
            target(
                np.zeros((len(prompts), 1)), np.zeros((len(prompts), 1)), np.ones((len(prompts), target.n_slots + 1))
            )

    assert "endless loop" in said_about(endless)


def test_slots_seen_rightly_are_the_table():
    table = TableModel.random(3, seed=4)
    model = SlotModel(table, 2)
    rows = model([[2, 1, 0], [0, 0, 1]], [[0, 1, 2], [0, 0, 1]], [[1, 1, 1], [0, 1, 1]])
    assert np.array_equal(rows[0], table([2, 1, 0], 3)) and np.array_equal(rows[1, 1:], table([0, 1], 2))
    model.crop(2)
    rows = model([[1], [1]], [[2], [1]], [[1, 1, 1], [0, 1, 1]])
    assert np.array_equal(rows[0], table([2, 1, 1])) and np.array_equal(rows[1], table([0, 1]))
    rows = model([[1], [1]], [[2], [1]], [[1, 1, 1, 1], [0, 1, 0, 1]])  # a slot too many; the same as before
    assert not np.allclose(rows[0], table([2, 1, 1, 1])) and np.array_equal(rows[1], table([0, 1]))


def test_cases_say_what_they_are():
    assert str(CASES[0]) == "prompts of one length: prompts [[0, 1], [1, 1]], n_tokens = [2, 2], K = 1"
