"""The exercises of notebook 07."""

import itertools

import numpy as np

import speculative
from checks import asked, drawing, exercise, more, refuse_library
from speculative import Draft, exact_distribution
from speculative.testing import check_drafter


@exercise
def exercise_1(fn):
    refuse_library(fn, "PromptLookupDrafter")
    texts = {(3, 1, 2, 3, 1): [2, 3, 1], (1, 2, 1, 3, 1): [3, 1], (0, 1, 2): [], (4,): [], (2, 2): [2]}
    for (tokens, copied), K in itertools.product(texts.items(), (0, 1, 2, 9)):
        tokens, wanted = list(tokens), copied[:K]
        draft = fn(list(tokens), K, 5)
        assert draft is not None, "nothing came back: is a return missing?"
        assert hasattr(draft, "tokens"), f"return a speculative.Draft(tokens, probs), got a {type(draft).__name__}"
        got = np.asarray(draft.tokens).tolist()
        assert len(got) <= K, f"asked for at most {K} draft tokens, got {len(got)}"
        story = f"after {tokens}, K = {K}: expected the draft tokens {wanted}, got {got}"
        assert copied or not got, f"the last token has not occurred before, so there is nothing to copy: {story}"
        assert got[:1] != tokens[-1:] or wanted == got, f"copy what followed the token, not the token itself: {story}"
        assert got or not wanted, f"the last token occurs before; the last one itself does not count: {story}"
        first = tokens[tokens.index(tokens[-1]) + 1 :][:K] if copied else []
        assert got == wanted or got != first, f"the latest earlier occurrence counts, not the first: {story}"
        assert got[: len(wanted)] != wanted or len(got) <= len(copied), f"the copy ends where the text ends: {story}"
        short = got == wanted[: len(got)]
        assert not short or got == wanted, f"copy up to K tokens, as long as the text goes: {story}"
        backwards = got == tokens[::-1][1 : len(got) + 1] and got != wanted
        assert not backwards, f"copy forwards from the occurrence: {story}"
        assert got == wanted, story

    class Copying:
        def propose(self, tokens, K, rng):
            return fn(list(tokens), K, 3)

    check_drafter(Copying(), n_vocab=3, seed=asked["seed"])
    return "right: each draft token comes with the row it was drawn from"


@exercise
def exercise_2(fn):
    refuse_library(fn, "NGramModel")
    shorter = np.array([0.5, 0.25, 0.125, 0.125])
    with np.errstate(all="ignore"):
        got = fn(np.zeros(4, int), shorter.copy())
    assert got is not None, "nothing came back: is a return missing?"
    assert np.shape(got) == (4,), f"expected one probability for each token, an array [4], got {np.shape(got)}"
    assert np.isfinite(got).all(), "0 / 0: a context that was never seen has c(h) + t(h) = 0; return the shorter one's"
    assert np.allclose(got, shorter), (
        "a context that was never seen has no counts: expected the shorter one's distribution"
    )
    got = fn(np.array([8, 0, 0, 0]), shorter.copy())
    assert not np.isclose(got[0], (8 + 0.5 * 4) / 12), (
        "t(h) counts the different tokens that were seen, not the whole vocabulary"
    )
    assert not np.isclose(got[0], 1), (
        "a token that was never seen here must keep a probability: mix in the shorter context"
    )
    by_hand = [8, 0, 0, 0], [1, 2, 0, 0], [3, 1, 1, 9]
    for numbers in [*by_hand, *more(lambda rng: [3, *rng.integers(0, 6, 3).tolist()])]:
        given, row, counts = np.array(numbers), shorter.copy(), np.array(numbers)
        c, t = counts.sum(), np.count_nonzero(counts)
        wanted = (counts + t * shorter) / (c + t)
        got = np.asarray(fn(given, row))
        unwritten = np.array_equal(row, shorter) and given.tolist() == numbers
        assert unwritten, "an argument was written to: work on a new array"
        mistakes = {
            "not half of each: the shorter context has the weight t(h) / (c(h) + t(h))": (counts / c + shorter) / 2,
            "that is add-one: the t(h) extra counts go by the shorter context": (counts + 1) / (c + len(counts)),
            "the weights are swapped: the counts have c(h) / (c(h) + t(h)), the shorter context the rest": (
                (t * counts / c + c * shorter) / (c + t)
            ),
            "the shorter context counts as t(h) tokens, not as one": (counts + shorter) / (c + 1),
            "the shorter context counts as t(h) tokens, not as c(h)": (counts + c * shorter) / (2 * c),
            "mix for every token, not only for the unseen ones": np.where(counts, counts, t * shorter) / (c + t),
            "t(h) different tokens, not t(h) / c(h): the counts are not yet divided": (
                (counts / c + t * shorter) / (1 + t)
            ),
        }
        for mistake, row_of_mistake in mistakes.items():
            made = np.allclose(got, row_of_mistake) and not np.allclose(row_of_mistake, wanted)
            assert not made, mistake
        assert np.isclose(got.sum(), 1), f"the sum is {got.sum():.3f}: divide by c(h) + t(h)"
        story = f"for the counts {numbers} expected {wanted.round(3)}, got {np.round(got, 3)}"
        assert np.allclose(got, wanted), story
    return "right: the rarer the context, the more weight the shorter one has"


@exercise
def exercise_3(fn):
    rng = drawing(3)
    for p, q in [rng.dirichlet(np.ones(4), size=2) for _ in range(5)]:
        got = fn(p.copy(), q.copy())
        assert got is not None, "nothing came back: is a return missing?"
        assert np.size(got) == 3, f"expected three numbers, for (a), (b) and (c), got {np.size(got)}"

        def accepted(rng, way, p=p, q=q):
            token = int(q.argmax()) if way == "b" else int(rng.choice(4, p=q))
            draft = Draft(np.array([token]), q[None] if way == "a" else np.eye(4)[[token]])
            return speculative.rejection(draft, np.array([p, p]), rng).n_accepted

        right = [exact_distribution(lambda rng, way=way: accepted(rng, way)).get(1, 0) for way in "abc"]
        x, ratio = q.argmax(), np.minimum(1, p / q)
        mistakes = {
            "a": {
                "with the row q it is min(1, p(x) / q(x)); p(x) alone is for a one-hot row": p @ q,
                "|p - q| counts each rejected draft token twice": 1 - abs(p - q).sum(),
                "this is the probability of a rejection": 1 - right[0],
                "the tokens are drawn from q: weigh with q": ratio.mean(),
            },
            "b": {
                "takes the most likely token of q; p is not known yet when it is drafted": p.max(),
                "divides by the row's probability, which is 1 in a one-hot row, not q(x)": ratio[x],
                "q(x) is how likely the draft is to draw x; the target accepts x with p(x)": q[x],
                "both factors: the draft token is deterministic, so only p(x) is left": q[x] * p[x],
                "never draws from q: its draft token is always the same": right[2],
            },
            "c": {
                "is not (a): the row is one-hot, so divide by 1 and not by q(x)": right[0],
                "is not (b): x is drawn from q, so add up all tokens, weighted with q": right[1],
                "draws from q: weight the tokens by q, not equally": p.mean(),
                "weights by q and accepts with probability p(x), not q(x)": q @ q,
                "weights by q(x), not p(x), and accepts with probability p": p @ p,
            },
        }
        rows = {"a": "the row is q: the draft token x is accepted with min(1, p(x) / q(x))",
                "b": "the draft token is certain, so its row is one-hot: x is accepted with p(x), whatever q(x) was",
                "c": "the row is one-hot: x, drawn from q, is accepted with p(x), whatever q(x) was"}  # fmt: skip
        for way, mine, value in zip("abc", got, right):
            story = f"for p = {p.round(3)}, q = {q.round(3)} expected {value:.4f}, got {mine:.4f}"
            if not np.isclose(mine, value):
                named = (mistake for mistake, result in mistakes[way].items() if np.isclose(mine, result))
                raise AssertionError(f"({way}) {next(named, rows[way])}; {story}")
    return "right: forgetting how a token was drawn is exact, and costs acceptance"
