"""The borders of the loop: what is handed out is copied, what comes back is checked, each mistake gets one sentence."""

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


# ------------------------------------------------------------------------------------------ what is handed back

ROW = np.full((1, 5), 0.2)


def tree(*parents, n=None):
    n = len(parents) if n is None else n
    return Draft(np.zeros(n, np.int64), np.full((n, 5), 0.2), np.array(parents))


def no_row(token, probability):
    return (
        f"the drafter proposed token {token} with probability {probability} in its row of probs: expected more than 0 "
        "and at most 1, as the row is the distribution that the token was drawn from"
    )


@pytest.mark.parametrize(
    ("draft", "sentence"),
    [
        (None, "the drafter must return Draft(tokens, probs); it returned None"),
        (([1], 0.2), "the drafter must return Draft(tokens, probs); it returned ([1], 0.2)"),
        (Draft(np.array([1.5]), ROW), "the drafter must return tokens [k], whole numbers; it returned an array of "
         "shape (1,) and dtype float64"),
        (Draft(np.array([[1]]), ROW), "the drafter must return tokens [k], whole numbers; it returned an array of "
         "shape (1, 1) and dtype int64"),
        (Draft(np.array([5]), ROW), "the drafter proposed token 5: expected 0 to 4"),
        (Draft(np.array([-1]), ROW), "the drafter proposed token -1: expected 0 to 4"),
        (Draft(np.array([1]), np.eye(5)[[0]]), no_row(1, 0)),
        (Draft(np.array([1]), 6 * ROW), no_row(1, 1.2)),
        (Draft(np.array([1]), -ROW), no_row(1, -0.2)),
        (Draft(np.array([1]), ROW * np.nan), no_row(1, "nan")),
        (Draft(np.array([1]), ROW[0]), "expected draft probabilities of shape (1, 5), one row over the target's "
         "vocabulary for each token, got (5,): draft and target must share one vocabulary"),
        (Draft(np.array([1]), ROW[:, :4]), "expected draft probabilities of shape (1, 5), one row over the target's "
         "vocabulary for each token, got (1, 4): draft and target must share one vocabulary"),
        (Draft(np.zeros(4, int), np.full((4, 5), 0.2)), "the drafter was asked for at most 3 tokens and proposed 4"),
        (tree(-1, 0, 1, 2, 0), "the drafter was asked for at most 3 tokens and proposed 4 on one path of its tree"),
        (tree(-1, 1, -1), "the drafter returned 1 as the parent of draft token 1: expected an earlier draft token, or "
         "-1 for the end of the text"),
        (tree(-1, -2, -1), "the drafter returned -2 as the parent of draft token 1: expected an earlier draft token, "
         "or -1 for the end of the text"),
        (tree(-1, -1, n=3), "the drafter must return one parent for each of its 3 tokens, whole numbers; it returned "
         "parents of shape (2,) and dtype int64"),
        (tree(-1, 0.0), "the drafter must return one parent for each of its 2 tokens, whole numbers; it returned "
         "parents of shape (2,) and dtype float64"),
    ],
)  # fmt: skip
def test_a_wrong_draft(draft, sentence):
    assert error_of(lambda: text(Drafting(lambda tokens, K, rng: draft), target=ByPaths(TARGET))) == sentence


def test_drafts_as_lists_and_in_other_dtypes_are_right():
    listed = Drafting(lambda tokens, K, rng: Draft([1] * K, np.reshape([0.2] * 5 * K, (K, 5)), [-1, 0, 1][:K] or None))
    arrays = Drafting(lambda tokens, K, rng: Draft(np.ones(K, np.uint16), np.full((K, 5), 0.2, np.float32)))
    assert text(arrays) == text(listed)
    assert text(Drafting(lambda tokens, K, rng: Draft(np.array([]), np.empty((0, 5))))) == alone()
    rounded = Drafting(lambda tokens, K, rng: Draft(np.ones(K, int), np.tile([0, 1 + 2**-52, 0, 0, 0], (K, 1))))
    assert len(text(rounded)) == 20


NODES = (
    "the verifier accepted the draft tokens {}: expected the nodes of one path, in order, from the text down, each a "
    "child of the one before"
)
KIND = "the verifier must return Verdict(n_accepted, next_token), two whole numbers; it returned {!r}"


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        *((wrong, KIND) for wrong in (None, (1, 2), Verdict(1, 1.5), Verdict(1.0, 1), Verdict(("a",), 1))),
        (Verdict(-1, 0), "the verifier accepted -1 of 3 draft tokens: expected 0 to 3"),
        (Verdict(4, 0), "the verifier accepted 4 of 3 draft tokens: expected 0 to 3"),
        (Verdict(1, -1), "the verifier returned next_token -1: expected a token from 0 to 4"),
        (Verdict(1, 5), "the verifier returned next_token 5: expected a token from 0 to 4"),
        (Verdict(2, 0), NODES.format((0, 1))),
        (Verdict((2,), 0), NODES.format((2,))),
    ],
)
def test_a_wrong_verdict(verdict, sentence):
    """On a tree of two tokens after the text, and a third after the first of them."""

    def rule(draft, target_probs, rng):
        return verdict

    rule.trees = True
    drafter = Drafting(lambda tokens, K, rng: tree(-1, -1, 0))
    assert error_of(lambda: text(drafter, rule, ByPaths(TARGET))) == sentence.format(verdict)


def test_numpy_numbers_make_a_verdict():
    def rule(draft, target_probs, rng):
        verdict = rejection(draft, target_probs, rng)
        return Verdict(np.int64(verdict.n_accepted), np.array(verdict.next_token))

    assert text(verifier=rule) == text()


def test_trees_are_for_rules_and_targets_that_take_them():
    drafter = Drafting(lambda tokens, K, rng: tree(-1, -1))
    assert error_of(lambda: text(drafter, block, ByPaths(TARGET))) == (
        "the drafter proposed a tree, but the verifier block takes chains only: use rejection, exact_match or "
        "traversal, or set its attribute trees = True if it follows draft.children"
    )
    assert error_of(lambda: text(drafter)) == (
        "the drafter proposed a tree, but the target takes chains only: give its call the parameter parents, or use "
        "ByPaths(model) for the target"
    )
    as_a_tree = Drafting(lambda tokens, K, rng: tree(*range(-1, K - 1)))  # a chain, with its parents
    assert len(text(as_a_tree, block)) == 20


ONE_ROW = "return one row of n_vocab logits for each of the last n_last tokens"
TOO_MANY = "these are the logits of more positions than were asked for, return only the last n_last rows"


@pytest.mark.parametrize(
    ("logits", "shape", "remedy"),
    [
        (lambda rows, n: rows, "({all}, 5)", TOO_MANY),
        (lambda rows, n: rows[None], "(1, {all}, 5)", TOO_MANY),
        (lambda rows, n: rows[-n:, :4], "({n}, 4)", ONE_ROW),
        (lambda rows, n: rows[-1], "(5,)", ONE_ROW),
        (lambda rows, n: None, "()", ONE_ROW),
    ],
    ids=["all positions", "a batch", "a column less", "no rows", "none"],
)
@pytest.mark.parametrize("whose", ["the target alone", "the target", "the draft model"])
def test_wrong_logits(logits, shape, remedy, whose):
    wrong = Model(lambda tokens, n_last: logits(TARGET(tokens, len(tokens)), n_last))
    call, n = {
        "the target alone": (lambda: alone(wrong), 1),
        "the target": (lambda: text(target=wrong), 4),
        "the draft model": (lambda: text(ModelDrafter(wrong)), 1),
    }[whose]
    assert error_of(call) == (
        f"{whose.removesuffix(' alone')} returned logits of shape {shape.format(all=n + 1, n=n)} for n_last = {n}, "
        f"expected (n_last, n_vocab) = {(n, 5)}: {remedy}"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda probs: probs / 2, "rows that add up to 1, got 0.5"),
        (lambda probs: probs * np.nan, "rows that add up to 1, got nan"),
        (lambda probs: probs[0], "probabilities of shape {}, got (5,)"),
    ],
)
def test_a_sampling_of_ones_own_is_checked(change, sentence):
    own = lambda logits, tokens: change(Sampling()(logits, tokens))  # noqa: E731
    expected = f"expected sampling to return {sentence}"
    assert error_of(lambda: alone(sampling=own)) == expected.format((1, 5))
    assert error_of(lambda: text(sampling=own)) == expected.format((1, 5))


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


# ------------------------------------------------------------------------------------------ what is asked for


@pytest.mark.parametrize(
    ("K", "sentence"),
    [
        (0, "expected a draft length K of 1 or more, got 0"),
        ("auto", "expected a draft length K of 1 or more, a whole number, got 'auto'"),
        (2.5, "expected a draft length K of 1 or more, a whole number, got 2.5"),
        (None, "expected a draft length K of 1 or more, a whole number, got None"),
        (lambda history: -1, "expected the function K to return a draft length of 0 or more, got -1"),
        (lambda history: 2.5, "expected the function K to return a draft length of 0 or more, a whole number, got 2.5"),
    ],
)  # fmt: skip
def test_a_wrong_draft_length(K, sentence):
    assert error_of(lambda: text(K=K)) == sentence


def test_right_draft_lengths():
    assert len(text(K=np.int64(2))) == len(text(K=Heuristic())) == len(text(K=lambda history: np.int32(1))) == 20


NO_PROMPT = "expected a prompt of token ids, got {!r}: encode the text with the target's tokenizer"
NO_STOP_TOKENS = "expected stop_tokens to be a collection of token ids, such as [0], got {!r}"
NO_SEED = "expected a seed of 0 or more, a np.random.Generator, or an object with a method random, got {!r}"


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        *(({"prompt": wrong}, NO_PROMPT.format(wrong)) for wrong in ([0.7, 1.2], "Once", 3, [[0, 1]])),
        ({"prompt": []}, "the prompt has no tokens: start from at least one, such as <|endoftext|>"),
        ({"prompt": [5, 0]}, "expected prompt tokens from 0 to 4, got 0 to 5: encode the text with the target's "
         "tokenizer"),
        ({"prompt": [-1]}, "expected prompt tokens from 0 to 4, got -1 to -1: encode the text with the target's "
         "tokenizer"),
        ({"n_tokens": -1}, "expected n_tokens of 0 or more, got -1"),
        ({"n_tokens": 2.0}, "expected n_tokens of 0 or more, a whole number, got 2.0"),
        ({"n_tokens": 64}, "prompt has 1 tokens and n_tokens is 64, but n_ctx is 64: generate at most 63 or shorten "
         "the prompt"),
        ({"prompt": [0] * 64}, "prompt has 64 tokens and n_tokens is 3, but n_ctx is 64: shorten the prompt"),
        ({"stop": "the"}, "expected stop to be a function of the new tokens, got 'the': for a text, "
         "stop=StopText(text, tokenizer.decode)"),
        *(({"stop_tokens": wrong}, NO_STOP_TOKENS.format(wrong)) for wrong in (0, "the")),
        *(({"rng": wrong}, NO_SEED.format(wrong)) for wrong in (-1, "seed")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sampler", [AutoregressiveSampler(TARGET), SpeculativeSampler(TARGET, ModelDrafter(DRAFT))])
def test_a_wrong_request_is_refused_before_anything_runs(request_, sentence, sampler):
    assert error_of(lambda: sampler.rounds(**{"prompt": [0], "n_tokens": 3, **request_})) == sentence


def test_right_requests():
    whole = text()
    stopped = whole[: whole.index(whole[4]) + 1]
    assert text(stop_tokens=iter([whole[4]])) == stopped
    assert text(stop=StopText(str(whole[4]), lambda tokens: "".join(map(str, tokens)))) == stopped
    generation = AutoregressiveSampler(TARGET).generate(np.array([0, 1], np.uint8), np.int64(3), np.int64(0))
    assert generation.tokens.tolist() == alone()[:3]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"drafter": Model(None)}, "expected a drafter, with a method propose, got <a model>: ModelDrafter(model) is "
         "one"),
        ({"verifier": "rejection"}, "expected verifier to be callable and no class, such as speculative.rejection, got "
         "'rejection'"),
        ({"verifier": Verdict}, "expected verifier to be callable and no class, such as speculative.rejection, got "
         "<class 'speculative.interfaces.Verdict'>"),
        ({"sampling": 0.7}, "expected sampling to be callable and no class, such as Sampling(0), got 0.7"),
    ],
)  # fmt: skip
def test_parts_of_another_kind(parts, sentence):
    assert error_of(lambda: text(**parts)) == sentence


def test_a_target_with_its_tokenizer():
    """As gpt2np.load returns them."""
    assert error_of(lambda: alone((TARGET, "tokenizer"))).endswith(
        "'tokenizer'): gpt2np.load(name) returns (model, tokenizer)"
    )


@pytest.mark.parametrize("target", ["355M", None, rejection])
def test_a_target_that_is_no_model_is_refused_when_the_sampler_is_made(target):
    drafter = ModelDrafter(DRAFT)
    for make in (lambda: AutoregressiveSampler(target), lambda: SpeculativeSampler(target, drafter)):
        assert "expected a target with n_vocab and n_ctx" in error_of(make)
