"""check_batch: right loops of any style pass, each mistake of the catalogue is told from the others."""

import numpy as np
import pytest
from students import told

from speculative import Sampling, rejection
from speculative.mistakes import batches as catalogue
from speculative.mistakes.batches import Batch, batch
from speculative.testing import batches, check_batch
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


@pytest.mark.parametrize("serve", [in_two_phases, Batch(), catalogue.SLOW], ids=["two phases", "catalogue", "slow"])
def test_right_loops_pass_with_a_note_if_a_text_is_held_back_by_the_other(serve, capsys):
    assert check_batch(serve).startswith("check_batch: the texts are independent")
    said = capsys.readouterr().out
    assert ("passes where" in said) == (said != "") == (serve is catalogue.SLOW)


@pytest.mark.parametrize(("hint", "wrong"), WRONG, ids=map(str, range(len(WRONG))))
def test_each_mistake_is_named_and_is_none_for_a_single_text(hint, wrong, monkeypatch, simulated_once):
    loop = Loop(wrong, TableModel.random(2, seed=1), TableModel.random(2, seed=101))
    case = Case("one text", ([0, 1],), (3,), 2)
    assert largest_difference(loop.distribution(case), loop.wanted(case)) < 1e-12
    monkeypatch.setattr(batches, "check_one_text", lambda *_: None)  # which takes longer
    assert told(check_batch, wrong) == hint


def test_a_mistake_of_a_single_text_is_named_as_such():
    def from_p(draft, p, rng):
        verdict = rejection(draft, p, rng)
        if verdict.n_accepted == len(draft.tokens):
            return verdict
        return type(verdict)(verdict.n_accepted, rng.choice(p.shape[1], p=p[verdict.n_accepted]))

    from_target = batch(verify=lambda self, drafts, rows, rng: [from_p(d, p, rng) for d, p in zip(drafts, rows)])
    assert "draw from max(0, p - q)" in told(check_batch, from_target)


def test_a_mistake_that_no_entry_has_is_placed(simulated_once):
    def first_alone(self, n_cached, columns, first, n_slots):
        return Batch.positions(self, n_cached, columns, first, n_slots) + (n_slots > 3)

    assert told(check_batch, batch(positions=first_alone)).startswith("your loop goes wrong where")
    depends = batch(number=lambda self, t, i, rng: self.numbers.setdefault("u", rng.random()) if i == t == 0 else
                    1 - self.numbers["u"] if (i, t) == (0, 1) and "u" in self.numbers else rng.random())  # fmt: skip
    assert "depend on each other" in told(check_batch, depends)


def endless(target, drafter, prompts, n_tokens, rng, K):
    n = len(prompts)
    while True:
        target(np.zeros((n, 1)), np.zeros((n, 1)), np.ones((n, target.n_slots + 1)))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda target, drafter, prompts, n_tokens, rng, K: None, "return a list of texts"),
        (lambda target, drafter, prompts, n_tokens, rng, K: [[0.5] for _ in prompts], "return a list of texts"),
        (lambda target, drafter, prompts, n_tokens, rng, K: target(prompts, prompts, [[1]]), "target(tokens [B, T]"),
        (lambda target, drafter, prompts, n_tokens, rng, K: [n_tokens.pop(), [0]], "writes to its arguments"),
        (lambda target, drafter, prompts, n_tokens, rng, K: 1 / 0, "ZeroDivisionError"),
        (endless, "endless loop"),
    ],
)
def test_what_is_no_loop_gets_a_sentence(wrong, hint):
    assert hint in told(check_batch, wrong)


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
