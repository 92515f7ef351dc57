"""The exercises of notebook 08."""

import numpy as np

from checks import asked, drawing, exercise, mistakes_of, refuse_library, refuse_mistakes
from speculative import Draft, Lenient, block, exact_distribution, rejection
from speculative.testing import check_verifier
from speculative.testing.cases import Case
from speculative.theory import overlap


def draw_with(E, p):
    return (E / p).argmin()


def distribution_by_hand(p, q, lenience):
    kept, rest = np.minimum(q, p / lenience), np.maximum(p - lenience * q, 0)
    return kept + (1 - kept.sum()) * rest / rest.sum(), kept.sum()


MISTAKES = mistakes_of("verifiers", draw_with, distribution_by_hand)


@exercise
def exercise_1(fn):
    rng = drawing(4)
    cases = [(np.array([0.2, 0.9]), np.array([0.25, 0.75]))]
    cases += [(rng.standard_exponential(5), rng.dirichlet(np.ones(5))) for _ in range(300)]
    answers, again = ([fn(E.copy(), p.copy()) for E, p in cases] for _ in range(2))
    assert answers[0] is not None, "nothing came back: is a return missing?"
    one_token = "expected a token id, which is an int, got {!r}: argmin returns the index of the smallest ratio"
    for got in answers:
        assert np.ndim(got) == 0 and got == int(got), one_token.format(got)
    assert answers == again, "the same numbers gave two tokens: draw with `noise` alone"
    if any(got != draw_with(E, p) for got, (E, p) in zip(answers, cases)):
        refuse_mistakes(answers, cases, MISTAKES["exercise_1"])
    assert answers[0] == 0, "0.2 / 0.25 is less than 0.9 / 0.75: the smallest E / p, and no cumulative sum"
    for got, (E, p) in zip(answers, cases):
        assert got == draw_with(E, p), f"for E / p = {(E / p).round(2)} expected the smallest E / p, got {got}"
    with np.errstate(all="ignore"):
        for E, p in (np.array([1e-9, 5.0]), np.array([0.0, 1.0])), (np.array([2.0, 1e-9]), np.array([1.0, 0.0])):
            assert fn(E, p) == p.argmax(), "a token of probability 0 was drawn: its E / 0 is infinite"
    return "right: the same numbers and the same p give the same token"


# ------------------------------------------------------------------------------------------------ a lenient rule


def round_of(verifier, p, q):
    """The distribution [n_vocab] of the first token of a round with one draft token, and how often that is accepted."""

    def first_token(rng):
        x = int(rng.choice(len(q), p=q))
        verdict = verifier(Draft(np.array([x]), q[None]), np.array([p, p]), rng)
        return int(verdict.n_accepted), x if verdict.n_accepted else int(verdict.next_token)

    distribution, accepted = np.zeros(len(p)), 0.0
    for (n_accepted, token), probability in exact_distribution(first_token).items():
        distribution[token] += probability
        accepted += probability * n_accepted
    return distribution, accepted


@exercise
def exercise_2(fn):
    refuse_library(fn, "exact_distribution", "Lenient")
    rng = drawing(5)
    for lenience in (0.8, 0.5, 1):
        p, q = rng.dirichlet(np.ones(4), size=2)
        got = fn(p.copy(), q.copy(), lenience)
        assert got is not None, "nothing came back: is a return missing?"
        both = "expected two things, (distribution, accepted): an array and a number"
        assert len(got) == 2 and np.shape(got[0]) == p.shape and np.ndim(got[1]) == 0, both
        distribution, share = np.asarray(got[0], float), float(got[1])
        wanted, wanted_share = round_of(Lenient(lenience), p, q)
        if np.allclose(distribution, wanted, rtol=0, atol=1e-12) and np.isclose(share, wanted_share):
            continue
        kept = np.minimum(q, p / lenience)
        assert not np.allclose(distribution, kept / kept.sum()), (
            "accepted tokens alone, renormalised: a rejected one is replaced, and by other tokens"
        )
        filled_in = f"the sum is {distribution.sum():.4f}: whatever is not kept is filled in"
        assert np.isclose(distribution.sum(), 1), filled_in
        if lenience < 1:
            assert not np.allclose(distribution, p), "this is the target's distribution: lenience changes it"
            assert not np.isclose(share, overlap(p, q)), "the test is min(1, p / (l q))"
            assert not np.isclose(share, 1 - wanted_share), "that is how often it is rejected: accepted is the other"
            ratios = np.minimum(1, p / (lenience * q))
            assert not np.isclose(share, ratios.mean()), "draft tokens are not drawn equally often: weigh with q"
            assert not np.isclose(share, p @ ratios), "draft tokens are drawn from q: weigh with q, not with p"
            assert not np.isclose(share, np.minimum(p, lenience * q).sum()), (
                "min(p, l q) is l times what is accepted: a token is drawn with q, and accepted with min(1, p / (l q))"
            )
        assert np.isclose(share, wanted_share), f"accepted {wanted_share:.4f}, got {share:.4f}"
        if lenience < 1:
            refuse_mistakes([got], [(p, q, lenience)], MISTAKES["exercise_2"])
        raise AssertionError(f"l = {lenience}: by enumeration {wanted.round(4)}, got {np.round(distribution, 4)}")
    return "right: the same by hand as by enumeration"


# ------------------------------------------------------------------------------------------------ block verification


def expected(rule, case):
    """The expected number of accepted draft tokens."""
    distribution = exact_distribution(lambda rng: case.run(rule, rng)[1])
    return sum(n * probability for n, probability in distribution.items())


def how_the_first_passes(fn):
    """The end of a hint: how often the first of two draft tokens is kept, and how often it should be."""
    p, q = np.array([[0.3, 0.7], [0.1, 0.9], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.7, 0.3]])
    draft = Draft(np.array([0, 0]), q)
    n_accepted = exact_distribution(lambda rng: int(fn(draft, p.copy(), rng).n_accepted))
    one, both = n_accepted.get(1, 0), n_accepted.get(2, 0)
    story = f"; for the draft 00 with p = {p[:2].tolist()}, q = {q.tolist()}"
    if not np.isclose(both, 0.6 / 7):
        return f"{story} p-hat is 0.6 and 0.0857, and both are kept with the second; yours keeps both with {both:.4g}"
    if not np.isclose(one / (1 - both), 0.375):
        passes = f"prefix 0 passes with h = 0.375; yours with {one / (1 - both):.4g}"
        return f"{story} p-hat is 0.6, M is 0.36 and S is 0.24, so that {passes}"
    return f"{story} the prefixes pass as they should: look at what the next token is drawn from"


@exercise
def exercise_3(fn):
    refuse_library(fn, "block", "traversal")
    try:
        check_verifier(fn, seed=asked["seed"])
    except AssertionError as error:
        hint, *story = str(error).split("\n")
        if "max(0, p - q)" in hint and "block" not in hint:  # a hint for one draft token; in a block p is p-hat p
            hint += "; here read p-hat p for p, with the p-hat of the kept prefix (1 if it is empty)"
        elif hint.startswith("right for K = 1"):
            hint += how_the_first_passes(fn)
        raise AssertionError("\n".join([hint, *story])) from error
    rows = np.full((3, 2), 0.5)
    same = Draft(np.array([0, 1]), rows[:2])  # p = q
    with np.errstate(divide="raise", invalid="raise"):
        try:
            fn(same, rows.copy(), drawing(0))
        except ArithmeticError:
            raise AssertionError("0 / 0 where p-hat is 1 and S is 0: with p-hat = 1, h is 1") from None
    case = Case(3, 2, "random", drawing(6))
    got, least, most = (expected(rule, case) for rule in (fn, rejection, block))
    assert got > least + 1e-9, f"exact, but it accepts no more than testing one draft token after the other, {got:.4f}"
    assert np.isclose(got, most), f"exact, but it accepts {got:.4f}, and block {most:.4f}"
    return "right: exact, and it accepts as much as block verification can"
