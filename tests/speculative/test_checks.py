"""The borders of the loop: what is handed out is copied, what comes back is checked, each mistake gets one sentence."""

from pathlib import Path

import numpy as np
import pytest
from helpers import Clearing, TreeDrafter

from speculative import (
    AutoregressiveSampler,
    ByPaths,
    Draft,
    Heuristic,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    StopText,
    Verdict,
    block,
    rejection,
)
from speculative.checks import ask_sampling
from speculative.testing import TableModel

TARGET, DRAFT = TableModel.random(5, seed=1), TableModel.random(5, seed=2)


class Drafting:
    """A drafter from a function."""

    def __init__(self, propose):
        self.propose = propose


class Model:
    """A language model from a function (tokens, n_last) -> logits."""

    n_vocab, n_ctx = 5, 64

    def __init__(self, call):
        self.call = call

    def __call__(self, tokens, n_last=1):
        return self.call(tokens, n_last)

    def __repr__(self):
        return "<a model>"


def text(drafter=None, verifier=rejection, target=TARGET, K=3, sampling=Sampling(), rng=0, **options):
    sampler = SpeculativeSampler(target, drafter or ModelDrafter(DRAFT), verifier=verifier, K=K, sampling=sampling)
    return sampler.generate([0, 1], 20, rng, **options).tokens.tolist()


def alone(target=TARGET, sampling=Sampling()):
    return AutoregressiveSampler(target, sampling=sampling).generate([0, 1], 20, 0).tokens.tolist()


def error_of(call):
    with pytest.raises(ValueError) as error:
        call()
    return str(error.value)


# ------------------------------------------------------------------------------------------ what is handed out


def appending(tokens, K, rng):
    """The most common mistake of a drafter: it changes the list that it was given."""
    before = len(tokens)
    for _ in range(K):
        tokens.append(int(np.argmax(DRAFT(tokens))))
    return Draft(np.array(tokens[before:], np.int64), np.eye(5)[tokens[before:]])


def popping(tokens, K, rng):
    draft = ModelDrafter(DRAFT).propose(tokens, K, rng)
    tokens.clear()
    return draft


def clearing_sampling(logits, tokens):
    probs = Sampling(repetition_penalty=1.5)(logits, tokens)
    tokens.clear()
    return probs


def test_parts_that_write_to_the_text_harm_nobody():
    assert text(Drafting(appending)) == text(Drafting(lambda tokens, K, rng: appending(list(tokens), K, rng)))
    assert text(Drafting(popping)) == text() and len(text()) == 20
    clearing = Clearing(TARGET.probs)
    assert text(ModelDrafter(Clearing(DRAFT.probs)), target=clearing) == text()
    assert alone(clearing) == alone()
    penalty = Sampling(repetition_penalty=1.5)  # which needs the whole text
    drafters = [ModelDrafter(DRAFT, sampling=sampling) for sampling in (penalty, clearing_sampling)]
    assert text(drafters[1], sampling=clearing_sampling) == text(drafters[0], target=clearing, sampling=penalty)
    assert alone(sampling=clearing_sampling) == alone(clearing, penalty)


class ReusesItsArrays:
    """Hands out the same arrays each time."""

    def __init__(self, drafter):
        self.drafter, self.arrays = drafter, None

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        n, names = len(draft.tokens), ("tokens", "probs", "parents")
        if self.arrays is None:
            self.arrays = {name: getattr(draft, name).copy() for name in names}
        for name in names:
            self.arrays[name][:n] = getattr(draft, name)
            self.arrays[name][n:] = 0
        return Draft(*(self.arrays[name][:n] for name in names))


def overwriting(draft, target_probs, rng):
    verdict = rejection(draft, target_probs, rng)
    draft.tokens[:], draft.probs[:], draft.parents[:], target_probs[:] = 0, 0, 0, 0
    return verdict


overwriting.trees = True


@pytest.mark.parametrize(
    "drafter", [ModelDrafter(DRAFT), TreeDrafter(DRAFT, [-1, -1, 0], "iid")], ids=["chain", "tree"]
)
@pytest.mark.parametrize("wrong", ["drafter", "verifier"])
def test_rounds_keep_what_was_drafted(drafter, wrong):
    """Whatever a drafter or a verifier does to its arrays afterwards."""
    parts = (ReusesItsArrays(drafter), rejection) if wrong == "drafter" else (drafter, overwriting)
    right, other = (
        SpeculativeSampler(ByPaths(TARGET), one, verifier=rule, K=3).generate([0], 20, 0, keep_probs=True)
        for one, rule in ((drafter, rejection), parts)
    )
    assert right.tokens.tolist() == other.tokens.tolist()
    for a, b in zip(right.rounds, other.rounds, strict=True):
        np.testing.assert_array_equal(a.target_probs, b.target_probs)
        for name in ("tokens", "probs", "parents"):
            np.testing.assert_array_equal(getattr(a.draft, name), getattr(b.draft, name))


class Observer(ModelDrafter):
    """Keeps what it is shown, and writes to it."""

    def observe(self, tokens, logits, parents):
        self.seen.append((list(tokens), logits.copy(), parents.tolist()))
        tokens.clear()
        logits[:], parents[:] = np.nan, 7


def test_a_drafter_may_observe_the_target_and_write_to_what_it_sees():
    drafter = Observer(DRAFT)
    drafter.seen = []
    seen, right = (
        SpeculativeSampler(Lasting(TARGET.probs), one, K=2).generate([0], 8, 0, keep_probs=True)
        for one in (drafter, ModelDrafter(DRAFT))
    )
    assert seen.tokens.tolist() == right.tokens.tolist() and len(drafter.seen) == len(seen.rounds)
    text = [0]
    for (tokens, logits, parents), step in zip(drafter.seen, seen.rounds):
        assert tokens == [*text, *step.drafted.tolist()] and parents == step.draft.parents.tolist()
        np.testing.assert_array_equal(Sampling()(logits), step.target_probs)
        text += step.tokens.tolist()


def in_place(logits, tokens, parents=()):
    """Sampling(0.5), in the array that it is given."""
    logits /= 0.5
    return Sampling()(logits)


@pytest.mark.parametrize("to", ["target", "drafter"])
def test_a_sampling_may_write_to_the_logits_it_is_given(to):
    """Neither a model that returns the arrays it keeps nor a drafter that observes sees the difference."""
    texts, seen = [], []
    for sampling in (Sampling(0.5), in_place):
        drafter = Observer(Lasting(DRAFT.probs), sampling=sampling if to == "drafter" else Sampling())
        drafter.seen = []
        sampler = SpeculativeSampler(
            Lasting(TARGET.probs), drafter, K=2, sampling=sampling if to == "target" else Sampling()
        )
        texts.append([sampler.generate([0], 12, seed).tokens.tolist() for seed in (0, 0, 1)])
        seen.append(drafter.seen)
    assert texts[0] == texts[1]
    for right, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(right[1], other[1])


class Lasting(TableModel):
    """Returns the arrays that it keeps."""

    def __call__(self, tokens, n_last=1):
        logits = super().__call__(tokens, n_last)
        self.kept = getattr(self, "kept", {})
        return self.kept.setdefault((tuple(tokens), n_last), logits)


# ------------------------------------------------------------------------------------------ what is refused

ROW = np.full((1, 5), 0.2)


def tree(*parents, n=None):
    n = len(parents) if n is None else n
    return Draft(np.zeros(n, np.int64), np.full((n, 5), 0.2), np.array(parents))


def drafted(draft, target=ByPaths(TARGET), verifier=rejection):
    return lambda: text(Drafting(lambda tokens, K, rng: draft), verifier, target)


def judged(verdict):
    """On a tree of two tokens after the text, and a third after the first of them."""

    def rule(draft, target_probs, rng):
        return verdict

    rule.trees = True
    return drafted(tree(-1, -1, 0), verifier=rule)


def modelled(logits, whose):
    """Of a model that returns something else of the rows after all tokens, where n are asked for."""
    wrong = Model(lambda tokens, n_last: logits(TARGET(tokens, len(tokens)), n_last))
    return {
        "the target alone": lambda: alone(wrong),
        "the target": lambda: text(target=wrong),
        "the draft model": lambda: text(ModelDrafter(wrong)),
    }[whose]


def sampled(change, whose):
    own = lambda logits, tokens: change(Sampling()(logits, tokens))  # noqa: E731
    return {"alone": lambda: alone(sampling=own), "with a draft": lambda: text(sampling=own)}[whose]


SAMPLERS = {
    "alone": AutoregressiveSampler(TARGET), "with a draft": SpeculativeSampler(TARGET, ModelDrafter(DRAFT)),
}  # fmt: skip


def asked(request, whose):
    """Before anything runs."""
    return lambda: SAMPLERS[whose].rounds(**{"prompt": [0], "n_tokens": 3, **request})


DRAFTS = {
    "nothing": None,
    "a pair": ([1], 0.2),
    "a fraction": Draft(np.array([1.5]), ROW),
    "two axes": Draft(np.array([[1]]), ROW),
    "token 5": Draft(np.array([5]), ROW),
    "token -1": Draft(np.array([-1]), ROW),
    "probability 0": Draft(np.array([1]), np.eye(5)[[0]]),
    "probability 1.2": Draft(np.array([1]), 6 * ROW),
    "probability -0.2": Draft(np.array([1]), -ROW),
    "probability nan": Draft(np.array([1]), ROW * np.nan),
    "one axis of probs": Draft(np.array([1]), ROW[0]),
    "a column less": Draft(np.array([1]), ROW[:, :4]),
    "four tokens": Draft(np.zeros(4, int), np.full((4, 5), 0.2)),
    "four levels": tree(-1, 0, 1, 2, 0),
    "a parent of its own": tree(-1, 1, -1),
    "a parent -2": tree(-1, -2, -1),
    "a parent less": tree(-1, -1, n=3),
    "a parent 0.0": tree(-1, 0.0),
}
VERDICTS = [
    *(None, (1, 2), Verdict(1, 1.5), Verdict(1.0, 1), Verdict(("a",), 1), Verdict(-1, 0), Verdict(4, 0)),
    *(Verdict(1, -1), Verdict(1, 5), Verdict(2, 0), Verdict((2,), 0)),
]
LOGITS = {
    "all positions": lambda rows, n: rows,
    "a batch": lambda rows, n: rows[None],
    "a column less": lambda rows, n: rows[-n:, :4],
    "one row without its axis": lambda rows, n: rows[-1],
    "none": lambda rows, n: None,
}
SAMPLINGS = {"half": lambda p: p / 2, "nan": lambda p: p * np.nan, "no axis of rows": lambda p: p[0]}
REQUESTS = [
    *({"prompt": wrong} for wrong in ([0.7, 1.2], "Once", 3, [[0, 1]], [], [5, 0], [-1], [0] * 64)),
    *({"n_tokens": wrong} for wrong in (-1, 2.0, 64)), {"stop": "the"},
    *({"stop_tokens": wrong} for wrong in (0, "the")), *({"rng": wrong} for wrong in (-1, "seed")),
]  # fmt: skip
PARTS = {
    "drafter": [Model(None), ModelDrafter],
    "verifier": ["rejection", Verdict],
    "sampling": [0.7],
    "K": [0, "auto", 2.5, None],
}
TARGETS = ["355M", None, ("a model", "a tokenizer")]
BOTH, MODELS = ("alone", "with a draft"), ("the target alone", "the target", "the draft model")
CASES = {
    **{f"a draft: {name}": drafted(draft) for name, draft in DRAFTS.items()},
    "a draft: a tree for a rule of chains": drafted(tree(-1, -1), verifier=block),
    "a draft: a tree for a target of chains": drafted(tree(-1, -1), TARGET),
    **{f"a verdict: {verdict}": judged(verdict) for verdict in VERDICTS},
    **{f"logits of {whose}: {name}": modelled(logits, whose) for name, logits in LOGITS.items() for whose in MODELS},
    **{f"a sampling, {whose}: {name}": sampled(change, whose) for name, change in SAMPLINGS.items() for whose in BOTH},
    **{f"a request, {whose}: {str(wrong)[:40]}": asked(wrong, whose) for wrong in REQUESTS for whose in BOTH},
    **{f"a part: {name} {part!r}": lambda given={name: part}: text(**given)
       for name, some in PARTS.items() for part in some},
    **{f"a part: K, a function to {K}": lambda K=K: text(K=lambda history: K) for K in (-1, 2.5)},
    **{f"a target: {part!r}": lambda part=part: AutoregressiveSampler(part) for part in TARGETS},
    **{f"a target with a draft: {part!r}": lambda part=part: SpeculativeSampler(part, ModelDrafter(DRAFT))
       for part in TARGETS},
}  # fmt: skip


def test_each_mistake_gets_one_sentence(golden):
    """checks.txt has them all; `pytest --update` writes it."""
    lines = [f"{name}\n    {error_of(call)}\n" for name, call in CASES.items()]
    golden(Path(__file__).with_name("checks.txt"), "\n".join(lines))


# ------------------------------------------------------------------------------------------ what is right


def test_drafts_as_lists_and_in_other_dtypes_are_right():
    listed = Drafting(lambda tokens, K, rng: Draft([1] * K, np.reshape([0.2] * 5 * K, (K, 5)), [-1, 0, 1][:K] or None))
    arrays = Drafting(lambda tokens, K, rng: Draft(np.ones(K, np.uint16), np.full((K, 5), 0.2, np.float32)))
    assert text(arrays) == text(listed)
    assert text(Drafting(lambda tokens, K, rng: Draft(np.array([]), np.empty((0, 5))))) == alone()
    rounded = Drafting(lambda tokens, K, rng: Draft(np.ones(K, int), np.tile([0, 1 + 2**-52, 0, 0, 0], (K, 1))))
    assert len(text(rounded)) == 20


def test_numpy_numbers_make_a_verdict():
    def rule(draft, target_probs, rng):
        verdict = rejection(draft, target_probs, rng)
        return Verdict(np.int64(verdict.n_accepted), np.array(verdict.next_token))

    assert text(verifier=rule) == text()


def test_a_chain_with_its_parents_is_no_tree():
    as_a_tree = Drafting(lambda tokens, K, rng: tree(*range(-1, K - 1)))
    assert len(text(as_a_tree, block)) == 20


def test_how_far_a_row_may_be_from_1():
    logits = np.zeros((2, 5))
    assert len(alone(sampling=lambda logits, tokens: Sampling()(logits).astype(np.float32))) == 20
    for off, is_right in ((1e-6, True), (-1e-6, True), (1e-3, False), (-1e-3, False)):
        rows = np.array([[0.2] * 5, [0.2 + off / 5] * 5])
        if is_right:
            ask_sampling(lambda logits, tokens, rows=rows: rows, logits, [0])
        else:  # the row that is wrong is named
            with pytest.raises(ValueError, match=f"rows that add up to 1, got {1 + off:.6g}"):
                ask_sampling(lambda logits, tokens, rows=rows: rows, logits, [0])


def test_right_draft_lengths():
    assert len(text(K=np.int64(2))) == len(text(K=Heuristic())) == len(text(K=lambda history: np.int32(1))) == 20


def test_right_requests():
    whole = text()
    stopped = whole[: whole.index(whole[4]) + 1]
    assert text(stop_tokens=iter([whole[4]])) == stopped
    assert text(stop=StopText(str(whole[4]), lambda tokens: "".join(map(str, tokens)))) == stopped
    generation = AutoregressiveSampler(TARGET).generate(np.array([0, 1], np.uint8), np.int64(3), np.int64(0))
    assert generation.tokens.tolist() == alone()[:3]
