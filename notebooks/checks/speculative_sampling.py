"""The exercises of notebook 05b."""

import numpy as np

import speculative
from checks import asked, drawing, exercise, mistakes_of, refuse_library, refuse_mistakes
from speculative import Draft, Sampling, exact_distribution, residual
from speculative.testing import TableModel

p = np.array([0.4, 0.3, 0.2, 0.1])  # king, fox, wolf, bear
q = np.array([0.1, 0.2, 0.4, 0.3])
small_target = TableModel.random(n_vocab=3, n_back=2, seed=0)
greedy = Sampling(temperature=0)


def acceptance_probability(p, q):
    return np.minimum(p, q).sum()


def ratio(p, q):
    return np.nan_to_num(np.minimum(1, p / q))


MISTAKES = mistakes_of("speculative_sampling", acceptance_probability)


@exercise
def exercise_1(fn):
    pairs = [(p, q), drawing(1).dirichlet(np.ones(5), size=2), (np.array([0.5, 0.5, 0]), np.array([1.0, 0, 0]))]
    with np.errstate(all="ignore"):
        answers = [fn(*pair) for pair in pairs]
    for got in answers:
        assert got is not None and np.ndim(got) == 0, "expected one number: is a return, or a sum, missing?"
        assert np.isfinite(got), "q(x) = 0 makes p(x) / q(x) infinite or NaN: do it without dividing"
    refuse_mistakes(answers, pairs, MISTAKES["exercise_1"])
    for got, (P, Q) in zip(answers, pairs):
        right = acceptance_probability(P, Q)
        story = f"for p = {P.round(2)}, q = {Q.round(2)} it is {right:.6f}, not {got:.6f}"
        guessed = 1e-4 < abs(got - right) < 0.02
        assert not guessed, f"{story}: an estimate from random draws? A sum over the words is exact"
        assert np.isclose(got, right), f"{story}: add up, over all words, how often each is drafted and accepted"
    return "right: the green part of the picture"


@exercise
def exercise_2(fn):
    refuse_library(fn, "residual")
    near = p + 1e-9 * np.array([1, -1, 0, 0])  # the residual of near and p is king alone
    some, never = drawing(2).dirichlet(np.ones(6), size=2), np.array([0, 0, 0.5, 0.5])
    for P, Q in (p, q), (q, p), some, (p, never), (near, p), (p, p):
        given, right, same = np.array([P, Q]), residual(P, Q), P is Q
        with np.errstate(all="ignore"):
            got, absolute = np.array(fn(*given), float), abs(P - Q) / abs(P - Q).sum()
            scaled = got / got.sum()
        assert got.shape == P.shape, "expected one probability for each token: is a return missing?"
        assert np.array_equal(given, [P, Q]), "p or q was written to: work on new arrays"
        assert np.isfinite(got).all() or same, "the sum of p - q is 0: negative differences count as 0, before the sum"
        assert np.isfinite(got).all(), "p = q leaves nothing to divide by: return p where the sum is 0"
        assert (got >= 0).all(), "a negative probability: where p is less than q, the difference counts as 0"
        assert got.any(), "all zeros: where p = q return p, and add no epsilon to the sum"
        assert not np.allclose(scaled, residual(Q, P)) or same, "q - p is the surplus; the missing part is p - q"
        assert not np.allclose(scaled, absolute), "|p - q| also contains the surplus"
        assert np.isclose(got.sum(), 1), (
            f"the sum is {got.sum():.6f}: divide by the sum of what is missing, without an epsilon"
        )
        hint = "close to p = q the residual is not p: only where nothing at all is missing" if P is near else ""
        hint = "where p = q return p itself" if same else hint
        hint = hint or ("a token with q = 0 is missing altogether: all of p" if Q is never else "")
        if not hint and np.allclose(got, right, rtol=0, atol=1e-6):
            hint = f"off by {abs(got - right).max():.0e}: compute in float64, and add no epsilon"
        if not hint and np.allclose(got, P):
            hint = "that is p itself: what is common is in the output already"
        elif not hint and np.allclose(got, np.minimum(P, Q) / np.minimum(P, Q).sum()):
            hint = "that is the common part; the residual is what p has beyond it"
        elif not hint and np.allclose(got, P * (P > Q) / P[P > Q].sum()):
            hint = "of each token only p - q is missing, not all of p"
        elif not hint and (got[P <= Q] > 0).any():
            hint = "where p is at most q nothing is missing: these tokens have probability 0"
        apart = f", p - q = {P - Q}" if P is near else ""
        story = f"p = {P}, q = {Q}{apart}: expected {right.round(6)}, got {got.round(6)}"
        atol = 1e-6 if P is near else 1e-9  # 1 - sum min(p, q) has few digits left where p is close to q
        assert np.allclose(got, right, rtol=0, atol=atol), f"{hint or 'not the residual'}; {story}"
    return "right: what is missing, and nothing else"


@exercise
def exercise_3(fn):
    refuse_library(fn, "rejection", "block", "exact_match", "traversal", "accept")
    speculative.testing.check_verifier(fn, seed=asked["seed"])
    draft = Draft(np.array([0, 2]), np.array([q, q]))  # king, wolf
    n_accepted = exact_distribution(lambda rng: fn(draft, np.array([p, p, p]), rng).n_accepted)
    assert max(n_accepted) != 1, "exact, but it stops after one accepted token: go on to the next draft token"
    mean = sum(n * probability for n, probability in n_accepted.items())
    assert np.isclose(mean, 1.5), (
        f"exact, but a different rule: of the draft tokens king, wolf it accepts {mean:.3f} on average; with "
        "min(1, p / q) king is always accepted and wolf half the time, 1.5 in all"
    )
    return "right: exact, by enumeration, and it accepts as many draft tokens as the rule does"


@exercise
def exercise_4(cls):
    refuse_library(cls, "SpeculativeSampler", "AutoregressiveSampler", "generate")
    n_calls, drafted_for, prompt = [], [], [0]

    class Counting(TableModel):
        def __call__(self, tokens, n_last=1):
            n_calls.append(n_last)
            return TableModel.__call__(self, tokens, n_last)

    class Perfect(speculative.ModelDrafter):
        def propose(self, tokens, *given, **named):
            drafted_for.append(tuple(tokens))
            return super().propose(tokens, *given, **named)

    mine = cls(Counting(small_target.probs), Perfect(small_target, sampling=greedy), K=2, sampling=greedy)
    ask, where = lambda: mine.generate(prompt, 9, drawing(0)), lambda: "for prompt = [0], n_tokens = 9"
    try:
        tokens = speculative.testing.watch.asked(ask, "your sampler", where, (prompt,))
    except AssertionError:
        speculative.testing.check_sampler(cls, seed=asked["seed"])  # says more
        raise
    alone = speculative.AutoregressiveSampler(small_target, sampling=greedy).generate([0], 9).tokens
    if tokens is None or not np.array_equal(tokens, alone):
        speculative.testing.check_sampler(cls, seed=asked["seed"])  # says what is wrong
    assert len({*drafted_for}) == len(drafted_for), (
        "the drafter is asked about the same text again: propose(tokens, k, rng) continues the text so far, not only "
        "the prompt"
    )
    assert len(n_calls) == 3, (
        f"{len(n_calls)} calls of the target for 9 tokens. With K = 2 and a drafter that is always right each call "
        "gives 3 tokens: draft K tokens, ask for k + 1 rows of logits, and use the last one for the bonus"
    )
    speculative.testing.check_sampler(cls, seed=asked["seed"])
    return "right: the distribution of the target, in fewer calls"
