"""The borders of the loop: what is handed out is copied, what comes back is checked, each mistake gets one sentence."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers import TreeDrafter
from refusals import answered

import speculative
from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    StopText,
    Verdict,
    block,
    heuristic,
    rejection,
)
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1), TableModel.random(5, seed=2)


class Drafting:
    """A drafter from a function, and from one that observes."""

    def __init__(self, propose, observe=lambda tokens, logits, parents: None):
        self.propose, self.observe = propose, observe


def text(drafter=ModelDrafter(DRAFT), verifier=rejection, target=TARGET, K=3, sampling=Sampling(), rng=0, **options):
    sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=sampling)
    return sampler.generate([0, 1], 20, rng, **options).tokens.tolist()


def alone(target=TARGET, sampling=Sampling()):
    return AutoregressiveSampler(target, sampling=sampling).generate([0, 1], 20, 0).tokens.tolist()


# ------------------------------------------------------------------------------------------ what is handed out


class Lasting(ByPaths):
    """Returns the arrays that it keeps."""

    def __call__(self, tokens, n_last=1, parents=()):
        self.kept = getattr(self, "kept", {})
        return self.kept.setdefault((*tokens, n_last, str(parents)), super().__call__(tokens, n_last, parents))


def destroy(value):
    """Empty a list, overwrite an array or the arrays of a draft."""
    if isinstance(value, list):
        value.clear()
    for array in (value.tokens, value.probs, value.parents) if isinstance(value, Draft) else (value,):
        if isinstance(array, np.ndarray):
            array[...] = -1


class Destroying:
    """A part of the loop that destroys all that it is given; but for a sampling, at the next call what it returned."""

    trees, n_vocab, n_ctx, returned = True, 5, 64, None

    def __init__(self, part):
        self.part = part

    def __call__(self, *given, **named):
        destroy(self.returned)
        result = self.part(*given, **named)
        for value in (*given, *named.values()):
            destroy(value)
        self.returned = None if isinstance(self.part, Sampling) else result
        return result


def generations(kind, wrong):
    """What three generations hold and what the drafter was shown, where the part named `wrong` is destroying."""
    part = lambda name, usual: Destroying(usual) if name == wrong else usual  # noqa: E731
    penalty, observed = Sampling(repetition_penalty=1.5), []  # which needs the whole text
    target = Destroying(ByPaths(TARGET)) if wrong == "target" else Lasting(TARGET)
    draft_model = Destroying(DRAFT) if wrong == "draft model" else Lasting(DRAFT)
    drafter = ModelDrafter(draft_model, sampling=part("draft sampling", penalty))
    if kind == "tree":
        drafter = TreeDrafter(DRAFT, [-1, -1, 0], "iid")
    observe = lambda tokens, logits, parents: observed.append((tokens[:], logits.tolist(), parents.tolist()))  # noqa: E731
    drafter = Drafting(part("drafter", drafter.propose), part("observe", observe))
    how = {"verifier": part("verifier", rejection), "K": part("K", lambda history: 2 + len(history) % 2)}
    sampler = SpeculativeSampler(target, drafter, sampling=part("sampling", penalty), **how)
    if kind == "alone":
        sampler = AutoregressiveSampler(target, sampling=part("sampling", penalty))
    stop, held = part("stop", lambda tokens: tokens[-2:] == [4, 4]), []
    for seed in (0, 0, 1):
        for r in sampler.generate([0, 1], 20, seed, stop=stop, keep_probs=True).rounds:
            arrays = (r.tokens, r.target_probs, r.draft.tokens, r.draft.probs, r.draft.parents)
            held.append([array.tolist() for array in arrays])
    return held, observed


LOOP = ["target", "draft model", "drafter", "observe", "verifier", "sampling", "draft sampling", "K", "stop"]


@pytest.mark.parametrize("kind", ["chain", "tree", "alone"])
@pytest.mark.parametrize("wrong", LOOP)
def test_parts_that_write_to_what_they_are_given_or_returned_harm_nobody(kind, wrong):
    assert generations(kind, wrong) == generations(kind, None)


@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_a_drafter_is_shown_the_text_with_the_draft_and_the_targets_logits(kind):
    held, observed = generations(kind, None)
    before = [0, 1]
    for (tokens, probs, drafted, _, parents), seen in zip(held, observed, strict=True):
        before = [0, 1] if len(seen[0]) < len(before) else before  # the next generation
        assert seen[0] == [*before, *drafted] and seen[2] == parents
        np.testing.assert_array_equal(Sampling(repetition_penalty=1.5)(np.array(seen[1]), seen[0], parents), probs)
        before = [*before, *tokens]


# ------------------------------------------------------------------------------------------ what is refused

ROW = np.full((1, 5), 0.2)


def tree(*parents, n=None):
    n = len(parents) if n is None else n
    return Draft(np.zeros(n, np.int64), np.full((n, 5), 0.2), np.array(parents))


def proposed(draft, verifier=rejection, target=ByPaths(TARGET)):
    return text(Drafting(lambda tokens, K, rng: draft), verifier, target)


def decided(verdict):
    return proposed(tree(-1, -1, 0), Destroying(lambda draft, target_probs, rng: verdict))


def answering(change):
    return Destroying(lambda tokens, n_last=1: change(TARGET(tokens, len(tokens)), n_last))


def of_both(alone, with_a_draft):
    """What is refused with the same sentence by the target alone and with a draft."""
    with pytest.raises(ValueError) as error:
        alone()
    with pytest.raises(ValueError, match=f"^{re.escape(str(error.value))}$"):
        with_a_draft()
    raise error.value


def sampled(change):
    sampling = lambda logits, tokens: change(Sampling()(logits, tokens))  # noqa: E731
    of_both(lambda: alone(sampling=sampling), lambda: text(sampling=sampling))


def requested(**wrong):
    samplers = AutoregressiveSampler(TARGET), SpeculativeSampler(TARGET, ModelDrafter(DRAFT))
    request = {"prompt": [0], "n_tokens": 3} | wrong
    of_both(*(lambda sampler=sampler: sampler.rounds(**request) for sampler in samplers))


def test_each_mistake_gets_one_sentence(golden):
    path = Path(__file__).with_name("checks.txt")
    golden(path, answered(path, vars(speculative) | globals()))


# ------------------------------------------------------------------------------------------ what is right


def with_numpy_numbers(draft, target_probs, rng):
    verdict = rejection(draft, target_probs, rng)
    return Verdict(np.int64(verdict.n_accepted), np.array(verdict.next_token))


def test_other_types_are_right():
    """Lists, other dtypes, NumPy's numbers, an iterator; a chain with its parents; rows that are rounded."""
    listed = Drafting(lambda tokens, K, rng: Draft([1] * K, np.reshape([0.2] * 5 * K, (K, 5)), [-1, 0, 1][:K] or None))
    arrays = Drafting(lambda tokens, K, rng: Draft(np.ones(K, np.uint16), np.full((K, 5), 0.2, np.float32)))
    rounded = Drafting(lambda tokens, K, rng: Draft(np.ones(K, int), np.tile([0, 1 + 2**-52, 0, 0, 0], (K, 1))))
    chain, whole = Drafting(lambda tokens, K, rng: tree(*range(-1, K - 1))), text()
    in_float32 = lambda logits, tokens: np.float32(Sampling()(logits) * (1 + 1e-6))  # noqa: E731
    assert text(arrays) == text(listed) and len(alone(sampling=in_float32)) == 20
    assert text(Drafting(lambda tokens, K, rng: Draft(np.array([]), np.empty((0, 5))))) == alone()
    assert len(text(rounded)) == len(text(chain, block)) == len(text(K=heuristic)) == 20
    assert text(K=np.int64(2)) == text(K=lambda history: np.int32(2)) == text(K=2)
    assert text(verifier=with_numpy_numbers) == text(rng=np.int64(0)) == whole
    stopped = whole[: whole.index(whole[4]) + 1]
    assert text(stop_tokens=iter([whole[4]])) == stopped
    assert text(stop=StopText(str(whole[4]), lambda tokens: "".join(map(str, tokens)))) == stopped
