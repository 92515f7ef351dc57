"""The exercises of notebook 09."""

import contextlib

import numpy as np

import speculative
from checks import asked, exercise, refuse_library
from speculative import Draft, ModelDrafter, SpeculativeSampler, Verdict, exact_distribution, sample_token
from speculative.testing import check_drafter, check_sampler, check_verifier, museum
from speculative.testing.mistakes.samplers import Loop


def mistake_in_match(fn):
    """What a wrong answer does instead of drawing from the target and keeping the draw, or None."""
    p, q = np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]), np.array([[0.2, 0.7, 0.1]])

    def decide(x, rng):
        verdict = fn(Draft(np.array([x]), q.copy()), p.copy(), rng)
        return int(verdict.n_accepted), int(verdict.next_token)

    shares = np.zeros((3, 2, 3))  # [draft token, n_accepted, next token]
    for x in range(3):
        for (n, token), share in exact_distribution(lambda rng, x=x: decide(x, rng)).items():
            shares[x, n, token] += share
    accepted, after = shares[:, 1].sum(axis=1), shares[:, 0]
    keep_the_draw = "the draw that did not match is the next token"
    if np.allclose(accepted, 1) or np.allclose(accepted, 0):
        return (
            "n_accepted is the number of draft tokens that matched, in order: i where draft token i did not, k where "
            "all did"
        )
    if np.isin(accepted, (0, 1)).all():
        return "draw the token from target_probs[i] with rng; the most probable one is right at temperature 0 only"
    if np.allclose(accepted, q[0]):
        return "draw from the target's row, target_probs[i], not from the draft's"
    if np.allclose(accepted, p[1]):
        return "draft token i is compared with a draw from target_probs[i]; yours is compared with one from row i + 1"
    if not np.allclose(accepted, p[0]):
        return f"a draft token matches a draw from target_probs[i] with p(x), {p[0]}; yours is accepted with {accepted}"
    if (after.diagonal() > 0).all() and np.allclose(after.sum(axis=1), after.diagonal()):
        return f"the draft token that did not match is returned; {keep_the_draw}"
    if not np.allclose(after, p[0] * (1 - np.eye(3))):
        return f"{keep_the_draw}; yours comes from a different draw, which may even be the draft token"
    if not np.allclose(shares[:, 1], np.outer(p[0], p[1])):
        return "after the draft tokens that matched comes a bonus, a draw from target_probs[k], the last row"
    return (
        "right for one draft token, but not for several: the first that does not match ends the round, and n_accepted "
        "is the number before it"
    )


@exercise
def exercise_1(fn):
    refuse_library(fn, "exact_match", "block", "rejection", "traversal")
    try:
        check_verifier(fn, seed=asked["seed"])
    except AssertionError as error:
        hint, *story = str(error).split("\n")
        with contextlib.suppress(Exception):  # where it fails or cannot be enumerated, check_verifier has said why
            hint = hint if "did not match" in hint else mistake_in_match(fn)
        raise AssertionError("\n".join([hint, *story])) from error
    p, q = np.array([[0.5, 0.5]] * 2), np.array([[0.75, 0.25]])
    accepted = exact_distribution(lambda rng: fn(Draft(np.array([0]), q), p, rng).n_accepted).get(1, 0)
    assert np.isclose(accepted, 0.5), (
        f"exact, but a different rule: a draft token with p = 1/2 is accepted with 1/2, here with {accepted:.3f}"
    )
    return "right: the draw that did not match is the next token"


# ------------------------------------------------------------------------------------------------ a drafter


class Proposing:
    def __init__(self, fn):
        self.fn = fn

    def propose(self, tokens, K, rng):
        return self.fn(museum.TARGET, tokens, K, rng)


@exercise
def exercise_2(fn):
    check_drafter(Proposing(fn), n_vocab=3, seed=asked["seed"])

    def likely(rng):
        draft = fn(museum.TARGET, [0, 1], 3, rng)
        return [draft.probs[i][x] for i, x in enumerate(draft.tokens)]

    drafts = exact_distribution(likely)
    assert all(len(row) for row in drafts), "a draft is empty: the first draft token is drawn, and kept"
    assert {len(row) for row in drafts} != {1}, "it always stops after the first draft token: go on after a sure one"
    assert len({len(row) for row in drafts}) > 1, (
        "exact, but it never stops early: end the draft after a token with a probability below floor, and keep "
        "that token. (The largest of three probabilities is never below 0.3: a rule that looks at it does nothing.)"
    )
    assert not all(q == 1 for row in drafts for q in row), (
        "exact, but the rows are one-hot: return the row that each token was drawn from, which says how sure it was"
    )
    for row in drafts:  # how probable each token of a draft was
        assert all(q >= 0.3 for q in row[:-1]), "there is a draft token after an unsure one: stop there"
        assert len(row) == 3 or row[-1] < 0.3, "a draft ended though its last token was sure"
    return "right: a token, once drawn, is kept"


# ------------------------------------------------------------------------------------------------ which check sees it?


class LooksBack(ModelDrafter):
    def propose(self, tokens, K, rng):
        return ModelDrafter.propose(self, tokens[:-1], K, rng)


class OtherRows(ModelDrafter):
    def propose(self, tokens, K, rng):
        hot = ModelDrafter(self.model, sampling=speculative.Sampling(2))
        drafted = hot.propose(tokens, K, rng).tokens
        ends = range(len(tokens), len(tokens) + len(drafted))
        rows = [speculative.Sampling()(self.model([*tokens, *drafted][:end]))[0] for end in ends]
        return Draft(drafted, np.reshape(rows, (len(drafted), self.model.n_vocab)))


class NoBonus(Loop):
    def added(self, draft, verdict):
        return super().added(draft, verdict)[: -1 if len(draft.tokens) == verdict.n_accepted > 0 else None]


class KeepsRejected(Loop):
    def added(self, draft, verdict):
        return [*draft.tokens[: verdict.n_accepted + 1].tolist(), int(verdict.next_token)]


def without_guess(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[token] < p[token]:
            rest = np.where(np.arange(len(p)) == token, 0, p)
            return Verdict(i, sample_token(rest if rest.any() else p, rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def error_of(sampler):
    """The largest error in the probability of a text of three tokens."""

    def generated(rng):
        result = sampler.generate(list(museum.PROMPT), museum.N_TOKENS, rng)
        return [int(token) for token in getattr(result, "tokens", result)][: museum.N_TOKENS]

    wanted = museum.TARGET.distribution(museum.PROMPT, museum.N_TOKENS, museum.SAMPLING)
    found = exact_distribution(generated)
    return max(abs(found.get(text, 0) - wanted.get(text, 0)) for text in {*found, *wanted})


@exercise
def exercise_3(fn):
    answers, common = fn(), {"K": 2, "sampling": museum.SAMPLING}
    assert answers is not None, "nothing came back: is a return missing?"
    assert set(answers) == set("abcdefg"), f"expected an answer for each of a to g, got {sorted(answers)}"
    names = "check_verifier", "check_drafter", "check_sampler", "none"
    for letter in "abcdefg":
        assert answers[letter] in names, f"{letter}: expected one of {', '.join(names)}, got {answers[letter]!r}"
    drafter, hot = ModelDrafter(museum.DRAFT), ModelDrafter(museum.DRAFT, sampling=speculative.Sampling(2))
    right = {  # those with the right distribution, to be computed
        "a": SpeculativeSampler(museum.TARGET, LooksBack(museum.DRAFT), **common),
        "b": NoBonus(museum.TARGET, drafter, **common),
        "e": SpeculativeSampler(museum.TARGET, hot, **common),
        "g": SpeculativeSampler(museum.TARGET, drafter, **{**common, "K": lambda h: h[-1][1] + 1 if h else 2}),
    }
    wrong = {
        "c": (check_verifier, without_guess),
        "d": (check_drafter, OtherRows(museum.DRAFT)),
        "f": (check_sampler, KeepsRejected),
    }
    for letter, sampler in right.items():
        if answers[letter] != "none":
            raise AssertionError(f"{letter}: the distribution is right, to {error_of(sampler):.0e}; it only costs time")
    for letter, (grader, thing) in wrong.items():
        try:
            grader(thing)
        except AssertionError as error:
            said = str(error).split("\n")[0]
        assert answers[letter] == grader.__name__, f"{letter}: {grader.__name__} says: {said}"
    return "right: what counts is the distribution a token was drawn from, not how good the draft token was"
