"""audit_loop: a right loop of somebody's own is exact up to rounding, each planted mistake is named."""

import numpy as np
import pytest

from speculative import Sampling
from speculative.testing import TableModel, audit_loop

TARGET, DRAFT = TableModel.random(3, seed=2), TableModel.random(3, seed=102)
softmax = Sampling()


def loop_of(target, draft, K=2, residual=lambda p, q: np.maximum(p - q, 0), bonus=-1, counted=0, greedy=False,
            temperature=1):  # fmt: skip
    """A loop in NumPy, with parts that may be wrong."""

    def generate(prompt, n_tokens, rng):
        text, end = list(prompt), len(prompt) + n_tokens
        while len(text) < end:
            drafted, q = [], []
            for _ in range(min(K, end - len(text) - 1)):
                q.append(Sampling(temperature)(draft([*text, *drafted]))[0])
                drafted.append(int(q[-1].argmax()) if greedy else int(rng.choice(3, p=q[-1])))
            q = [softmax(draft([*text, *drafted[:i]]))[0] for i in range(len(drafted))] if temperature != 1 else q
            p = softmax(target([*text, *drafted], len(drafted) + 1))
            for i, token in enumerate(drafted):
                if rng.random() * q[i][token] >= p[i][token]:
                    rest = residual(p[i], q[i])
                    text += [*drafted[: i + counted], int(rng.choice(3, p=rest / rest.sum()))]
                    break
            else:
                text += [*drafted, int(rng.choice(3, p=p[bonus] if drafted else p[-1]))]
        return text[:end]

    return generate


def audited(target=TARGET, draft=DRAFT, **parts):
    return audit_loop(loop_of(target, draft, **parts), target, draft)


def test_a_right_loop_is_exact():
    found = audited()
    assert (found.verdict, found.covered, found.mistakes) == ("exact", 1, ()) and found.distance < 1e-12
    assert str(found).startswith("exact: total variation")


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"residual": lambda p, q: p}, "on a rejection you drew from the target"),
        ({"bonus": -2}, "you drew the bonus from the row of the last draft token"),
        ({"counted": 1}, "the rejected draft token stays in the text"),
        ({"greedy": True}, "the draft's most probable token is taken, and its row is given as if it had been drawn"),
    ],
)
def test_each_mistake_is_named(parts, sentence):
    found = audited(**parts)
    assert found.verdict == "wrong" and "is the first wrong one" in found.mistakes[0]
    assert any(sentence in said for said in found.mistakes), str(found)


def test_what_the_catalogue_does_not_have_is_placed_but_not_named():
    found = audited(residual=lambda p, q: np.maximum(p - q, 0) ** 1.5)
    assert found.verdict == "wrong" and "no mistake with this distribution" in str(found)


def test_the_text_that_is_always_the_same():
    found = audit_loop(lambda prompt, n_tokens: [0] * n_tokens, TARGET)
    assert found.verdict == "wrong" and "draws nothing" in str(found)


def test_a_loop_without_time_is_unknown():
    found = audit_loop(loop_of(TARGET, DRAFT), TARGET, seconds=0)
    assert (found.verdict, found.covered) == ("unknown", 0)


def test_the_wrong_number_of_tokens():
    with pytest.raises(ValueError, match="expected 3 new tokens"):
        audit_loop(lambda prompt, n_tokens: [0], TARGET)


def together(one, shared=False, held_back=False):
    """A batch of texts by a loop of one text."""

    def generate(prompts, n_tokens, rng):
        if shared:  # the second text is drawn with the numbers of the first
            numbers = Recorded(rng)
            return [one(prompts[0], n_tokens, numbers), one(prompts[1], n_tokens, Recorded(rng, numbers.kept))]
        texts = [one(prompt, n_tokens, rng) for prompt in prompts]
        return [texts[0], one(texts[0][-len(prompts[1]) :], n_tokens, rng)[-n_tokens:]] if held_back else texts

    return generate


class Recorded:
    def __init__(self, rng, kept=None):
        self.rng, self.kept, self.given = rng, [], iter(kept or ())

    def choice(self, n, p):
        u = next(self.given, None)
        self.kept.append(self.rng.random() if u is None else u)
        return next((i for i in range(n - 1) if self.kept[-1] < np.cumsum(p)[i]), n - 1)


def alone(target):
    def generate(prompt, n_tokens, rng):
        text = list(prompt)
        for _ in range(n_tokens):
            text.append(int(rng.choice(3, p=softmax(target(text))[0])))
        return text

    return generate


def test_batches_tell_shared_numbers_from_texts_that_disturb_each_other():
    prompts, loop = [[0, 1], [2]], alone(TARGET)
    assert audit_loop(together(loop), TARGET, prompt=prompts, n_tokens=2).verdict == "exact"
    shared = audit_loop(together(loop, shared=True), TARGET, prompt=prompts, n_tokens=2)
    assert shared.verdict == "wrong" and "share random numbers" in str(shared)

    def disturbed(prompts, n_tokens, rng):
        return together(loop, held_back=len(prompts) > 1)(prompts, n_tokens, rng)

    found = audit_loop(disturbed, TARGET, prompt=prompts, n_tokens=2)
    assert "text 1: right in a batch of its own, so wrong by the other texts" in str(found)


def test_a_large_batch_is_audited_in_pairs():
    """Token 3 is certain; texts 1 and 3 share their numbers."""
    rows = np.pad(np.random.default_rng(0).dirichlet(np.ones(3), size=4), ((0, 0), (0, 1)))
    rows[3] = np.eye(4)[3]
    target, prompts = TableModel(rows), [[0, 1], [2], [1, 1], [0]]

    def generate(prompts, n_tokens, rng, shared=False):
        texts, numbers = [], Recorded(rng)
        for i, prompt in enumerate(prompts):
            some = {1: numbers, 3: Recorded(rng, numbers.kept)}.get(i, rng) if shared else rng
            text = list(prompt)
            for _ in range(n_tokens):
                text.append(3 if text[-1] == 3 else int(some.choice(3, p=rows[text[-1], :3])))
            texts.append(text)
        return texts

    def audited(generate):
        return audit_loop(generate, target, prompt=prompts, n_tokens=2, certain=3)

    right = audited(generate)
    assert right.verdict in ("exact", "rounding") and "in 6 pairs of texts" in str(right)
    found = audited(lambda prompts, n_tokens, rng: generate(prompts, n_tokens, rng, shared=True))
    assert found.verdict == "wrong" and "share random numbers" in str(found)
    assert str(found).endswith("where texts 1 and 3 are drawn, beside texts that are certain")


def test_in_pytorch():
    torch = pytest.importorskip("torch")

    def tensor(model):
        return lambda ids: torch.tensor(softmax(model(ids[0].tolist(), ids.shape[1])))

    def generate(prompt, n_tokens):
        target, draft = tensor(TARGET), tensor(DRAFT)
        ids, end = torch.tensor([prompt]), len(prompt) + n_tokens
        while ids.shape[1] < end:
            n, q = ids.shape[1], []
            for _ in range(min(2, end - n - 1)):
                q.append(draft(ids)[-1])
                ids = torch.cat([ids, torch.multinomial(q[-1], 1)[None]], dim=1)
            p = target(ids)[n - 1 :]
            for i, row in enumerate(q):
                token = ids[0, n + i]
                if torch.rand(1) >= float(p[i][token] / row[token]):
                    rest = torch.clamp(p[i] - row, min=0)
                    ids = torch.cat([ids[:, : n + i], torch.multinomial(rest / rest.sum(), 1)[None]], dim=1)
                    break
            else:
                ids = torch.cat([ids, torch.multinomial(p[-1], 1)[None]], dim=1)
        return ids[0].tolist()

    found = audit_loop(generate, TARGET, DRAFT)
    assert found.distance < 1e-6 and found.verdict in ("exact", "rounding"), str(found)
