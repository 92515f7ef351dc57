"""The exercises of notebook 12."""

import functools

import numpy as np

import gpt2np
import speculative
from checks import drawing, exercise, refuse_library
from gpt2np.layers import layer_norm
from speculative import Shape


@exercise
def exercise_1(fn):
    rng = drawing(0)
    many = rng.standard_normal((40, 6)), rng.integers(6, size=40), 4
    for scores, tokens, n in many, (np.array([[3.0, 2, 1], [1, 2, 3]]), np.array([0, 1]), 3):
        got = fn(scores.copy(), tokens.copy(), n)
        assert got is not None, "nothing came back: is a return missing?"
        assert not isinstance(got, dict), "expected an array or a list, the share of rank 0 first, got a dict"
        got = np.array(got, dtype=float)
        order = [np.argsort(-row).tolist().index(token) for row, token in zip(scores, tokens)]
        right = np.array([order.count(b) for b in range(n)]) / len(tokens)
        assert got.shape == (n,), f"expected a share for each of {n} ranks, got shape {got.shape}"
        if not np.allclose(got, right):
            story = f"expected {right.round(3)}, got {got.round(3)}"
            upwards = [(scores.shape[1] - 1 - np.array(order) == b).mean() for b in range(n)]
            at_rank = np.argsort(-scores)[np.arange(len(tokens)), tokens]  # the token at a rank, not a token's rank
            mixed_up = [(at_rank == b).mean() for b in range(n)]
            assert not np.allclose(got, mixed_up), (
                f"argsort has the token of each rank; the rank of a token is where the token is in that list; {story}"
            )
            by_column = (np.argsort(-scores, axis=0)[:, :n] == tokens[:, None]).mean(axis=0)
            assert not np.allclose(got, by_column), f"each place has a row: sort along axis 1; {story}"
            reached = right / (1 - np.cumsum(right) + right)
            assert not np.allclose(got, reached), f"divide by all places, not by those the lower ranks missed; {story}"
            assert not np.allclose(got, np.cumsum(right)), f"'among the first k': each rank by itself; {story}"
            assert not np.allclose(got, right * len(tokens)), f"counts: divide by the number of places; {story}"
            assert not np.allclose(got, right * 100), f"percent: a share is from 0 to 1; {story}"
            assert not np.allclose(got, upwards), f"the most likely token has rank 0; {story}"
            assert not np.allclose(got[1:], right[:-1]) or got[0], f"the first choice has rank 0; {story}"
            assert not np.allclose(got * right.sum(), right), f"divide by all places; {story}"
            raise AssertionError(story)
    return "right: the weights of a tree's children"


@functools.cache
def models():
    """(target, tokenizer, the arrays of its Hydra heads)."""
    target, tokenizer = gpt2np.load("tiny-target")
    heads = gpt2np.load_heads("tiny-target", "hydra").params  # packed
    return target, tokenizer, [{part: np.array(array) for part, array in head.items()} for head in heads]


def silu(z):
    return z / (1 + np.exp(-z))


@exercise
def exercise_2(fn):
    refuse_library(fn, "Heads", "load_heads")
    (target, tokenizer, heads), rng = models(), drawing(0)
    text = tokenizer.encode("Once upon a time there was a king")
    h, wte, last_norm = layer_norm(target.states(text, 5), 1, 0), target.params["wte"], target.params["ln_f"]
    read_off = lambda y: (y * last_norm["g"] + last_norm["b"]) @ wte.T  # noqa: E731
    for i, head in enumerate(heads, 1):
        seen = rng.integers(target.n_vocab, size=(5, i))
        e = [wte[seen[:, j]] for j in range(i)]
        x = np.concatenate([h, *e], axis=1)
        y = x @ head["a"] + silu(x @ head["w"])
        got = fn({name: head[name].copy() for name in ("a", "w")}, h.copy(), seen)
        assert got is not None, "nothing came back: is a return missing?"
        got = np.array(got)
        of_y = got.shape == y.shape
        assert not of_y, f"that has the shape of y, {y.shape}: read_off(y) makes logits {read_off(y).shape} from it"
        right = read_off(y)
        assert got.shape == right.shape, f"expected logits {right.shape}, got {got.shape}: read_off makes them from y"
        if not np.allclose(got, right, atol=1e-2):
            mistakes = {
                "the hidden state comes first, then the embeddings": (np.concatenate([*e, h], axis=1), None),
                "the tokens go in the order of the text": (np.concatenate([h, *e[::-1]], axis=1), None),
                "reshape the embeddings of each row, [n, i * n_embd]: rows were mixed": (
                    np.concatenate([h, wte[seen.T].reshape(5, -1)], axis=1), None,
                ),
                "embeddings are added nothing, neither a norm nor positions": (
                    np.concatenate([h, *(layer_norm(part, 1, 0) for part in e)], axis=1), None,
                ),
                "x A is missing": (x, silu(x @ head["w"])),
                "silu is missing": (x, x @ head["a"] + x @ head["w"]),
                "silu(z) is z / (1 + exp(-z)): that is the sigmoid": (
                    x, x @ head["a"] + 1 / (1 + np.exp(-(x @ head["w"]))),
                ),
                "silu(x W) is missing": (x, x @ head["a"]),
                "silu is for x W only; x A is added as it is": (x, silu(x @ head["a"] + x @ head["w"])),
                "A and W are exchanged": (x, x @ head["w"] + silu(x @ head["a"])),
                "x A, not h: that is Medusa's": (x, h + silu(x @ head["w"])),
                "h is part of x already: do not add it again": (x, h + y),
            }  # fmt: skip
            assert not np.allclose(got.sum(axis=1), 1, atol=1e-3), f"head {i}: logits, not probabilities"
            bare = y @ wte.T
            assert not np.allclose(got, bare, atol=1e-2), f"head {i}: read_off(y), with the norm's gain and bias"
            for hint, (input_, y_wrong) in mistakes.items():
                if y_wrong is None:
                    y_wrong = input_ @ head["a"] + silu(input_ @ head["w"])
                assert not np.allclose(got, read_off(y_wrong), atol=1e-2), f"head {i}: {hint}"
            raise AssertionError(f"head {i}: the logits differ by up to {abs(got - right).max():.2g}")
    return "right: a head that sees the path"


SHAPE = Shape([-1, -1, 0, 0, 2], [0, 1, 0, 1, 0])


def rows_after(tokens, steps=(1, 2, 3)):
    """Logits [n, 12], a row after each token x, in which x + 1, x + 2, x + 3 are the most likely (or x + steps)."""
    row = np.zeros(12, np.float32)
    row[[step % 12 for step in steps]] = 3, 2, 1
    return np.array([np.roll(row, x) for x in tokens])


def show(drafter, text, drafted=(), parents=(), logits=None):
    """What the sampler does after a call of the target."""
    tokens = [*text, *drafted]
    logits = rows_after(tokens[len(text) - 1 :]) if logits is None else logits
    drafter.observe(tokens, logits, np.array(parents, np.int64))


def noted_by(drafter):
    """Its followers in plain numbers."""
    return {int(x): [int(y) for y in followers] for x, followers in drafter.followers.items()}


def proposed(drafter, tokens, K=4):
    """(tokens, parents) of its draft, two lists of plain numbers."""
    draft = drafter.propose(tokens, K, None)
    return [int(x) for x in draft.tokens], [int(x) for x in draft.parents]


@exercise
def exercise_3(cls):
    refuse_library(cls, "RecyclingDrafter")
    drafter = cls(12, SHAPE, n_followers=3)
    empty = drafter.propose([5], 4, None)
    assert empty is not None, "propose returned None: a draft without tokens is also a Draft"
    assert hasattr(empty, "tokens"), f"propose returns a speculative.Draft, got {type(empty).__name__}"
    assert len(empty.tokens) == 0, f"nothing is known yet, so nothing can be drafted; got {empty.tokens}"

    assert hasattr(drafter, "observe"), "the sampler looks for a method of the name observe(tokens, logits, parents)"
    show(drafter, [5, 6], [7], [-1])  # a row after 6, and one after 7
    noted = noted_by(drafter)
    story = f"the text is 5, 6 and the draft 7: row 0 is after 6 and row 1 after 7. Noted: {noted}"
    assert set(noted) != {5, 6}, f"row 0 is after the last token of the text, not after its first; {story}"
    assert set(noted) != {6}, f"the rows after the draft tokens count too, accepted or not; {story}"
    assert noted.get(7, [0])[0] != 7, f"row 0 is after the text; the row after draft token i is row i + 1; {story}"
    assert set(noted) != {7}, f"the row after the text counts too, not only those after the draft tokens; {story}"
    assert set(noted) == {6, 7}, f"n draft tokens have n + 1 rows; {story}"
    assert len(noted[6]) == 3, f"n_followers = 3: keep the three most likely after each token, got {noted[6]}"
    in_order = noted[6] == [7, 8, 9] and noted[7] == [8, 9, 10]
    assert in_order, f"the most likely follower first: after 6 come [7, 8, 9], got {noted[6]}"
    drafted, parents = proposed(drafter, [1, 7])
    assert drafted == [8, 9], f"after 7 come 8 and 9, whose own followers are not known; got {drafted}"
    assert parents != [-1, 0], "the draft is a tree: Draft(tokens, probs, parents)"
    show(drafter, [7], [8, 9, 9], [-1, -1, 0])
    assert {8, 9} <= set(noted_by(drafter)), "note the rows of all nodes, accepted or not"
    expected, got = ([8, 9, 9, 10, 10], [-1, -1, 0, 0, 2]), proposed(drafter, [1, 7])
    assert got == expected, f"after 7 expected tokens and parents {expected}, got {got}"
    draft = drafter.propose([1, 7], 4, None)
    assert np.array_equal(draft.probs, np.eye(12)[draft.tokens]), "nothing is drawn: rows are one-hot"
    two, _ = proposed(drafter, [1, 7], K=2)
    assert len(two) == 4, f"K = 2 allows depth 2, so 4 of the 5 nodes; got {len(two)}"

    drafter = cls(2000, SHAPE, n_followers=400)  # so many that argpartition leaves some of them unsorted
    shuffled = drawing(0).permutation(2000).astype(np.float32)
    show(drafter, [5], logits=shuffled[None].copy())
    assert noted_by(drafter).get(5) == np.argsort(-shuffled)[:400].tolist(), (
        "the most likely follower first, then the others in order: sort them (argpartition finds them, but does not)"
    )

    drafter = cls(12, Shape([-1, -1, 0, 1, 2, 3], [0, 1, 0, 0, 0, 0]), n_followers=3)
    for token in (5, 7, 8):
        show(drafter, [token])
    expected, got = ([6, 7, 8, 9], [-1, -1, 1, 2]), proposed(drafter, [5])
    assert got == expected, (
        "nothing is known of 6, so the nodes below it are left out, and only these; the parents count the nodes that "
        f"are there: expected tokens and parents {expected}, got {got}"
    )

    drafter = cls(12, SHAPE, n_followers=3)
    first, second = rows_after([5], (2, 1, 0)), rows_after([5], (3, 2, 1))
    show(drafter, [5], [6, 5], [-1, 0], np.concatenate([first, rows_after([6]), second]))  # twice in one call
    for right in ([8, 7, 6], [9, 8, 7]):
        got = noted_by(drafter)[5]
        assert got == right, f"the latest row of a token counts: after 5 expected {right}, got {got}"
        show(drafter, [5], logits=rows_after([5], (4, 3, 2)))
    return f"right: {tokens_per_call(cls):.2f} tokens per call, and the text is the target's own"


def tokens_per_call(cls, n_tokens=32):
    """Of the answer on a text at temperature 0, which must be the target's own."""
    target, tokenizer, _ = models()
    prompt, greedy = tokenizer.encode("Once upon a time there was a king who had"), speculative.Sampling(temperature=0)
    drafter = cls(target.n_vocab, Shape.best(8, (0.4, 0.15, 0.08, 0.05)))
    found = speculative.SpeculativeSampler(target, drafter, K=8, sampling=greedy).generate(prompt, n_tokens, 0)
    right = speculative.AutoregressiveSampler(target, sampling=greedy).generate(prompt, n_tokens, 0)
    assert np.array_equal(found.tokens, right.tokens), "the text is not the target's own at temperature 0"
    return n_tokens / len(found.rounds)
