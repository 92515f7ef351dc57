"""What is handed to the loop is copied, and what is handed back is checked: every mistake gets one sentence."""

import numpy as np
import pytest

from speculative import (
    AutoregressiveSampler,
    Draft,
    Heuristic,
    ModelDrafter,
    Sampling,
    SpeculativeSampler,
    StopText,
    Verdict,
    rejection,
)
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


def text(drafter=None, verifier=rejection, target=TARGET, K=3, rng=0, **options):
    sampler = SpeculativeSampler(target, drafter or ModelDrafter(DRAFT), verifier=verifier, K=K)
    return sampler.generate([0, 1], 20, rng, **options).tokens.tolist()


# ------------------------------------------------------------------------------------------ what is handed out


def appending(tokens, K, rng):
    """The most common mistake of a drafter: it changes the list that it was given."""
    before = len(tokens)
    for _ in range(K):
        tokens.append(int(np.argmax(DRAFT(tokens))))
    return Draft(np.array(tokens[before:], np.int64), np.eye(5)[tokens[before:]])


def popping(tokens, K, rng):
    draft = ModelDrafter(DRAFT).propose(tokens, K, rng)
    while tokens:
        tokens.pop()
    return draft


class ReusesItsArrays:
    """Hands out the same two arrays each time."""

    def __init__(self):
        self.tokens, self.probs, self.drafter = np.zeros(3, np.int64), np.zeros((3, 5)), ModelDrafter(DRAFT)

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        self.tokens[:K], self.probs[:K] = draft.tokens, draft.probs
        return Draft(self.tokens[:K], self.probs[:K])


def overwriting(draft, target_probs, rng):
    verdict = rejection(draft, target_probs, rng)
    draft.tokens[:], draft.probs[:], target_probs[:] = 0, 0, 0
    return verdict


def greedy_chain(tokens, K, rng):
    guesses = []
    for _ in range(K):
        guesses.append(int(np.argmax(DRAFT([*tokens, *guesses]))))
    return Draft(np.array(guesses, np.int64), np.eye(5)[guesses])


def test_a_drafter_that_writes_to_the_text_harms_nobody():
    assert text(Drafting(appending)) == text(Drafting(greedy_chain))
    assert text(Drafting(popping)) == text() and len(text()) == 20


def test_models_and_policies_that_write_to_what_they_are_given_harm_nobody():
    def clearing(model):
        def call(tokens, n_last):
            logits = model(tokens, n_last)
            tokens.clear()
            return logits

        return Model(call)

    def clearing_policy(history):
        history.clear()
        return 3

    assert text(ModelDrafter(clearing(DRAFT)), target=clearing(TARGET), K=clearing_policy) == text()
    alone = [
        AutoregressiveSampler(model).generate([0, 1], 20, 0).tokens.tolist() for model in (TARGET, clearing(TARGET))
    ]
    assert alone[0] == alone[1] and len(alone[0]) == 20


@pytest.mark.parametrize(
    ("drafter", "verifier"), [(ReusesItsArrays(), rejection), (None, overwriting)], ids=["drafter", "verifier"]
)
def test_rounds_keep_what_was_drafted(drafter, verifier):
    """Whatever a drafter or a verifier does to its arrays afterwards."""
    right, other = (
        SpeculativeSampler(TARGET, one or ModelDrafter(DRAFT), verifier=rule, K=3).generate([0], 20, 0, keep_probs=True)
        for one, rule in ((None, rejection), (drafter, verifier))
    )
    assert right.tokens.tolist() == other.tokens.tolist()
    for a, b in zip(right.rounds, other.rounds):
        for name in ("drafted", "draft_probs", "target_probs"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# ------------------------------------------------------------------------------------------ what is handed back

ROW = np.full((1, 5), 0.2)


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        (None, r"the drafter must return Draft\(tokens, probs\); it returned None"),
        (([1], ROW), r"the drafter must return Draft\(tokens, probs\); it returned \(\[1\]"),
        (Draft(np.array([-1]), ROW), "the drafter proposed token -1: expected 0 to 4"),
        (Draft(np.array([5]), ROW), "the drafter proposed token 5: expected 0 to 4"),
        (Draft(np.array([1.5]), ROW), r"tokens \[k\], whole numbers; .* float64"),
        (Draft(np.array([[1]]), ROW), r"tokens \[k\], whole numbers; .* shape \(1, 1\)"),
        (Draft(np.array([1]), np.eye(5)[[0]]), "proposed token 1 with probability 0 in its row"),
        (Draft(np.array([1]), 6 * ROW), "proposed token 1 with probability 1.2 in its row"),
        (Draft(np.array([1]), -ROW), "proposed token 1 with probability -0.2 in its row"),
        (Draft(np.array([1]), ROW * np.nan), "proposed token 1 with probability nan in its row"),
        (Draft(np.array([1]), np.log(ROW)), "proposed token 1 with probability -1.6"),
        (Draft(np.array([1]), ROW[0]), r"draft probabilities of shape \(1, 5\).*got \(5,\)"),
        (Draft(np.array([1]), ROW[:, :4]), "draft and target must share one vocabulary"),
        (Draft(np.zeros(4, int), np.full((4, 5), 0.2)), "asked for at most 3 tokens and proposed 4"),
    ],
)
def test_a_wrong_draft(draft, message):
    with pytest.raises(ValueError, match=message):
        text(Drafting(lambda tokens, K, rng: draft))


def test_drafts_as_lists_and_in_other_dtypes_are_right():
    listed = Drafting(lambda tokens, K, rng: Draft([1] * K, [[0.2] * 5] * K if K else np.empty((0, 5))))
    arrays = Drafting(lambda tokens, K, rng: Draft(np.ones(K, np.uint16), np.full((K, 5), 0.2, np.float32)))
    assert text(arrays) == text(listed)
    nothing = Drafting(lambda tokens, K, rng: Draft(np.array([]), np.empty((0, 5))))
    assert text(nothing) == AutoregressiveSampler(TARGET).generate([0, 1], 20, 0).tokens.tolist()


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (None, r"the verifier must return Verdict\(n_accepted, next_token\).*it returned None"),
        ((1, 2), r"it returned \(1, 2\)"),
        (Verdict(-1, 0), "the verifier accepted -1 of 3 draft tokens: expected 0 to 3"),
        (Verdict(4, 0), "the verifier accepted 4 of 3 draft tokens: expected 0 to 3"),
        (Verdict(1, 1.5), "two whole numbers; it returned Verdict.*1.5"),
        (Verdict(1.0, 1), "two whole numbers; it returned Verdict.*1.0"),
        (Verdict(1, -1), "the verifier returned next_token -1: expected a token from 0 to 4"),
        (Verdict(1, 5), "the verifier returned next_token 5: expected a token from 0 to 4"),
        (Verdict(1, np.array([1, 2])), "two whole numbers"),
    ],
)
def test_a_wrong_verdict(verdict, message):
    with pytest.raises(ValueError, match=message):
        text(verifier=lambda draft, target_probs, rng: verdict)


def test_numpy_numbers_make_a_verdict():
    def rule(draft, target_probs, rng):
        verdict = rejection(draft, target_probs, rng)
        return Verdict(np.int64(verdict.n_accepted), np.array(verdict.next_token))

    assert text(verifier=rule) == text()


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (
            lambda all_rows, n: all_rows,
            r"returned logits of shape \(\d+, 5\) for n_last = \d.*only the last n_last rows",
        ),
        (lambda all_rows, n: all_rows[None], r"shape \(1, \d+, 5\).*only the last n_last rows"),
        (lambda all_rows, n: all_rows[-n:, :4], r"shape \(\d, 4\).*one row of n_vocab logits"),
        (lambda all_rows, n: all_rows[-1], r"shape \(5,\).*one row of n_vocab logits"),
        (lambda all_rows, n: None, r"shape \(\) "),
    ],
    ids=["all positions", "a batch", "a column less", "no rows", "none"],
)
@pytest.mark.parametrize("whose", ["the target alone", "the target", "the draft model"])
def test_wrong_logits(logits, message, whose):
    wrong = Model(lambda tokens, n_last: logits(TARGET(tokens, len(tokens)), n_last))
    with pytest.raises(ValueError, match=message) as caught:
        if whose == "the target alone":
            AutoregressiveSampler(wrong).generate([0, 1], 4, 0)
        elif whose == "the target":
            text(target=wrong)
        else:
            text(ModelDrafter(wrong))
    assert str(caught.value).startswith(f"{whose.removesuffix(' alone')} returned logits")


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (0, "a draft length K of 1 or more, got 0"),
        ("auto", "a draft length K of 1 or more, a whole number, got 'auto'"),
        (2.5, "a whole number, got 2.5"),
        (None, "a whole number, got None"),
        (float("nan"), "a whole number, got nan"),
        (lambda history: -1, "the function K to return a draft length of 0 or more, got -1"),
        (lambda history: 2.5, "the function K to return a draft length of 0 or more, a whole number, got 2.5"),
        (lambda history: None, "a whole number, got None"),
    ],
)
def test_a_wrong_draft_length(K, message):
    with pytest.raises(ValueError, match=message):
        text(K=K)


def test_right_draft_lengths():
    assert len(text(K=np.int64(2))) == len(text(K=Heuristic())) == len(text(K=lambda history: np.int32(1))) == 20


# ------------------------------------------------------------------------------------------ what is asked for


@pytest.mark.parametrize(
    ("prompt", "n_tokens", "rng", "options", "message"),
    [
        ([0.7, 1.2], 3, 0, {}, r"a prompt of token ids, got \[0.7, 1.2\]: encode the text with the target's tokenizer"),
        ("Once", 3, 0, {}, "a prompt of token ids, got 'Once'"),
        (3, 3, 0, {}, "a prompt of token ids, got 3"),
        ([[0, 1]], 3, 0, {}, "a prompt of token ids, got"),
        ([0], 2.0, 0, {}, "n_tokens of 0 or more, a whole number, got 2.0"),
        ([0], float("nan"), 0, {}, "n_tokens of 0 or more, a whole number, got nan"),
        ([0], 3, 0, {"stop": "the"}, r"stop to be a function of the new tokens, got 'the': for a text, .*StopText\("),
        ([0], 3, 0, {"stop_tokens": 0}, r"stop_tokens to be a collection of token ids, such as \[0\], got 0"),
        ([0], 3, 0, {"stop_tokens": "the"}, "stop_tokens to be a collection of token ids"),
        ([0], 3, -1, {}, "a seed of 0 or more, .* got -1"),
        ([0], 3, "seed", {}, "a seed of 0 or more, .* got 'seed'"),
    ],
)
@pytest.mark.parametrize("speculative", [False, True])
def test_a_wrong_request(prompt, n_tokens, rng, options, message, speculative):
    sampler = SpeculativeSampler(TARGET, ModelDrafter(DRAFT)) if speculative else AutoregressiveSampler(TARGET)
    with pytest.raises(ValueError, match=message):
        sampler.generate(prompt, n_tokens, rng, **options)


def test_right_requests():
    whole = text()
    assert text(stop_tokens=iter([whole[4]])) == whole[: whole.index(whole[4]) + 1]
    assert (
        text(stop=StopText(str(whole[4]), lambda tokens: "".join(map(str, tokens))))
        == whole[: whole.index(whole[4]) + 1]
    )
    generation = AutoregressiveSampler(TARGET).generate(np.array([0, 1], np.uint8), np.int64(3), np.int64(0))
    assert generation.tokens.tolist() == AutoregressiveSampler(TARGET).generate((0, 1), 3, 0).tokens.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": "0.7"}, "a temperature of 0 or more, got '0.7'"),
        ({"temperature": None}, "a temperature of 0 or more, got None"),
        ({"temperature": float("nan")}, "a temperature of 0 or more, got nan"),
        ({"top_k": None}, "a top_k of 1 or more, or 0 for all tokens, got None"),
        ({"top_k": 2.0}, "a top_k of 1 or more, or 0 for all tokens, got 2.0"),
        ({"top_p": "1"}, "a top_p above 0 and at most 1, got '1'"),
        ({"min_p": None}, "a min_p from 0 to 1, got None"),
        ({"repetition_penalty": [1]}, r"a repetition_penalty above 0, got \[1\]"),
    ],
)
def test_wrong_sampling(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**options)


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        (lambda logits, tokens: Sampling()(logits, tokens) / 2, "rows that add up to 1, got 0.5"),
        (lambda logits, tokens: Sampling()(logits, tokens) * np.nan, "rows that add up to 1, got nan"),
        (lambda logits, tokens: Sampling()(logits, tokens)[0], r"probabilities of shape \(\d, 5\), got \(5,\)"),
    ],
)
def test_a_sampling_of_ones_own_is_checked(sampling, message):
    for sampler in (
        AutoregressiveSampler(TARGET, sampling=sampling),
        SpeculativeSampler(TARGET, ModelDrafter(DRAFT), sampling=sampling),
    ):
        with pytest.raises(ValueError, match=message):
            sampler.generate([0], 5, 0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"drafter": DRAFT}, r"expected a drafter, with a method propose, got <.*: ModelDrafter\(model\) is one"),
        ({"verifier": "rejection"}, "expected verifier to be callable and no class, such as .*, got 'rejection'"),
        ({"verifier": Verdict}, "expected verifier to be callable and no class"),
        ({"sampling": 0.7}, r"expected sampling to be callable and no class, such as Sampling\(0\), got 0.7"),
        ({"sampling": Sampling}, "expected sampling to be callable and no class"),
    ],
)
def test_parts_of_another_kind(parts, message):
    with pytest.raises(ValueError, match=message):
        SpeculativeSampler(TARGET, **{"drafter": ModelDrafter(DRAFT), **parts})


def test_a_target_without_a_vocabulary_and_a_prompt_that_can_be_read_only_once():
    with pytest.raises(ValueError, match=r"expected a target with n_vocab and n_ctx, got .*: gpt2np.load returns"):
        AutoregressiveSampler((TARGET, "tokenizer")).generate([0], 3, 0)
    with pytest.raises(ValueError, match="expected a prompt of token ids, got <list_iterator"):
        AutoregressiveSampler(TARGET).generate(iter([0]), 3, 0)
