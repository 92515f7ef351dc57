"""audit_loop: a right loop of somebody's own is exact up to rounding, each planted mistake is named."""

from functools import partial

import numpy as np
import pytest

from speculative import AutoregressiveSampler, Sampling
from speculative.testing import TableModel, audit_loop

TARGET, DRAFT = TableModel.random(3, seed=2), TableModel.random(3, seed=102)
softmax = Sampling()


def loop_of(residual=lambda p, q: np.maximum(p - q, 0), bonus=-1, counted=0, greedy=False):
    """A loop in NumPy with K = 2, with parts that may be wrong."""

    def generate(prompt, n_tokens, rng):
        text, end = list(prompt), len(prompt) + n_tokens
        while len(text) < end:
            drafted, q = [], []
            for _ in range(min(2, end - len(text) - 1)):
                q.append(softmax(DRAFT([*text, *drafted]))[0])
                drafted.append(int(q[-1].argmax()) if greedy else int(rng.choice(3, p=q[-1])))
            p = softmax(TARGET([*text, *drafted], len(drafted) + 1))
            for i, token in enumerate(drafted):
                if rng.random() * q[i][token] >= p[i][token]:
                    rest = residual(p[i], q[i])
                    text += [*drafted[: i + counted], int(rng.choice(3, p=rest / rest.sum()))]
                    break
            else:
                text += [*drafted, int(rng.choice(3, p=p[bonus] if drafted else p[-1]))]
        return text[:end]

    return generate


def test_a_right_loop_is_exact():
    found = audit_loop(loop_of(), TARGET, DRAFT)
    assert (found.verdict, found.covered, found.mistakes) == ("exact", 1, ()) and found.distance < 1e-12
    assert str(found).startswith("exact: total variation")


NAMED, UNKNOWN = "the same distribution has: ", "the catalogue has no mistake with this distribution, with K = 2"
FROM_P, EARLY = "on a rejection you drew from the target", "you drew the bonus from the row of the last draft token"
STAYS, SOFT = "the rejected draft token stays in the text", "the draft's most probable token is taken, and its row is"


@pytest.mark.parametrize(
    ("parts", "n_tokens", "place", "sentence"),
    [
        ({"residual": lambda p, q: p}, 2, "new token 1 is the first wrong one: token 2 has 0.3174, not 0.4109", FROM_P),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (
            ({"bonus": -2}, 2, "new token 2 is the first wrong one: after [1], token 2 has 0.4109, not 0.1814", EARLY),
            ({"counted": 1}, 3, "new token 1 is the first wrong one", STAYS),
            ({"greedy": True}, 3, "new token 1 is the first wrong one", SOFT),
        )),
        ({"residual": lambda p, q: p**2}, 3, "new token 1 is the first wrong one", UNKNOWN),
    ],
)  # fmt: skip
def test_each_mistake_is_placed_and_named_if_the_catalogue_has_it(parts, n_tokens, place, sentence):
    found = audit_loop(loop_of(**parts), TARGET, DRAFT, n_tokens=n_tokens)
    assert found.verdict == "wrong" and found.mistakes[0].startswith(place), str(found)
    wanted = sentence if sentence == UNKNOWN else NAMED + sentence
    assert any(said.startswith(wanted) for said in found.mistakes), str(found)


def test_the_text_that_is_always_the_same():
    found = audit_loop(lambda prompt, n_tokens: [0] * n_tokens, TARGET)
    assert found.verdict == "wrong" and "draws nothing" in str(found) and "greedy" not in str(found)
    greedy = AutoregressiveSampler(TARGET, sampling=Sampling(temperature=0))
    found = audit_loop(lambda prompt, n_tokens, rng: greedy.generate(prompt, n_tokens, rng).tokens, TARGET)
    assert "it is the target's greedy text: audit it with sampling=Sampling(temperature=0)" in str(found)


def test_a_loop_without_time_is_unknown():
    found = audit_loop(loop_of(), TARGET, seconds=0)
    assert (found.verdict, found.covered) == ("unknown", 0) and "give more than seconds=0" in str(found)


def test_the_wrong_number_of_tokens():
    with pytest.raises(ValueError, match="expected 3 new tokens"):
        audit_loop(lambda prompt, n_tokens: [0], TARGET)


def drawn(target, sharing=()):
    """A loop over several texts without a draft; the texts `sharing` are drawn with the numbers of one of them."""

    def generate(prompts, n_tokens, rng):
        texts, shared = [], []
        for i, prompt in enumerate(prompts):
            text, numbers = list(prompt), shared if i in sharing else []
            for n in range(n_tokens):
                if n == len(numbers):
                    numbers.append(rng.random())
                ends = np.cumsum(softmax(target(text))[0])[:-1]
                text.append(next((x for x, end in enumerate(ends) if numbers[n] < end), len(ends)))
            texts.append(text)
        return texts

    return generate


def test_batches_tell_shared_numbers_from_texts_that_disturb_each_other():
    def audited(generate):
        return audit_loop(generate, TARGET, prompt=[[0, 1], [2]], n_tokens=2)

    def disturbed(prompts, n_tokens, rng):
        first, *others = drawn(TARGET)(prompts, n_tokens, rng)
        return [first, *(drawn(TARGET)([first[-1:]], n_tokens, rng)[0][-n_tokens:] for _ in others)]

    assert audited(drawn(TARGET)).verdict == "exact"
    shared, found = audited(drawn(TARGET, sharing=(0, 1))), audited(disturbed)
    assert shared.verdict == "wrong" and "share random numbers" in str(shared)
    assert "text 1: right in its own batch, so the others make it wrong" in str(found)


def test_a_large_batch_is_audited_in_pairs():
    """Token 3 is certain; texts 1 and 3 share their numbers."""
    rows = np.pad(np.random.default_rng(0).dirichlet(np.ones(3), size=4), ((0, 0), (0, 1)))
    rows[3] = np.eye(4)[3]
    target = TableModel(rows)
    right, found = (
        audit_loop(drawn(target, sharing), target, prompt=[[0, 1], [2], [1, 1], [0]], n_tokens=2, certain=3)
        for sharing in ((), (1, 3))
    )
    assert right.verdict == "exact" and "in 6 pairs of texts" in str(right)
    assert found.verdict == "wrong" and "share random numbers" in str(found)
    assert str(found).endswith("where texts 1 and 3 are drawn, beside deterministic texts")


def test_in_pytorch():
    torch = pytest.importorskip("torch")

    def generate(prompt, n_tokens):
        ids = torch.tensor([prompt])
        for _ in range(n_tokens):
            p, q = (torch.tensor(softmax(model(ids[0].tolist()))[0]) for model in (TARGET, DRAFT))
            token = torch.multinomial(q, 1)
            if torch.rand(1) >= float(p[token] / q[token]):
                token = torch.multinomial(torch.clamp(p - q, min=0), 1)
            ids = torch.cat([ids, token[None]], dim=1)
        return ids[0].tolist()

    found = audit_loop(generate, TARGET, DRAFT)
    assert found.distance < 1e-6 and found.verdict in ("exact", "rounding"), str(found)


def test_texts_end_with_eos_and_each_has_its_sampling():
    def stopping(prompt, n_tokens, rng):
        text = loop_of()(prompt, n_tokens, rng)[len(prompt) :]
        return text[: text.index(0) + 1] if 0 in text else text

    found = audit_loop(stopping, TARGET, DRAFT, eos=0)
    assert found.verdict == "exact", str(found)
    with pytest.raises(ValueError, match="give the token that ends it as eos="):
        audit_loop(stopping, TARGET, DRAFT)

    def served(prompts, n_tokens, rng, temperatures=(1, 0.5)):
        alone = (AutoregressiveSampler(TARGET, sampling=Sampling(t)) for t in temperatures)
        return [one.generate(prompt, n_tokens, rng).tokens for one, prompt in zip(alone, prompts)]

    options = {"prompt": [[0, 1], [1]], "n_tokens": 2, "sampling": [Sampling(), Sampling(0.5)]}
    assert audit_loop(served, TARGET, **options).verdict == "exact"
    of_the_first = audit_loop(partial(served, temperatures=(1, 1)), TARGET, **options)
    assert "a different text's sampling, Sampling()" in str(of_the_first)


@pytest.mark.parametrize("padding", [[0], [2], []])
def test_only_padding_may_follow_eos(padding):
    """A loop that looks for eos in the last token of a round alone goes on after one in the middle (r27, r01)."""

    def generate(look_everywhere, prompt, n_tokens, rng):
        text, right = [], loop_of()
        while len(text) < n_tokens and not (2 in text if look_everywhere else text[-1:] == [2]):
            text += right([*prompt, *text], min(2, n_tokens - len(text)), rng)[len(prompt) + len(text) :]
        text = text[: text.index(2) + 1] if look_everywhere and 2 in text else text
        return (text + padding * n_tokens)[:n_tokens] if padding else text

    assert audit_loop(partial(generate, True), TARGET, eos=2).verdict == "exact"
    found = audit_loop(partial(generate, False), TARGET, eos=2)
    assert found.verdict == "wrong" and found.distance < 1e-12
    assert "goes on after eos = 2: tokens 0, 1, 2 follow it" in str(found) and len(found.mistakes) == 1
