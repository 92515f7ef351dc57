"""The exercises of notebook 11."""

import itertools

import numpy as np

from checks import exercise, refuse_library
from speculative import CannotEnumerate, Shape, exact_distribution, sample_token, tree
from speculative.logits.probs import residual
from speculative.theory import tree_tokens

WORDS = ["king", "fox", "wolf", "bear"]
p = np.array([0.2, 0.2, 0.4, 0.2])
q = np.array([0.1, 0.1, 0.1, 0.7])


def in_turn(pairs, rng):
    """(whether a candidate was accepted, the token) of the rule of the notebook."""
    left = p
    for x, row in pairs:
        if rng.random() * row[x] < left[x]:
            return True, x
        left = residual(left, row)
    return False, sample_token(left, rng)


def are_pairs(found):
    """Whether they are pairs (token, row)."""
    try:
        return all(np.ndim(token) == 0 and np.shape(row) == np.shape(q) for token, row in found)
    except (TypeError, ValueError):
        return False


def is_path(node):
    return isinstance(node, (tuple, list, np.ndarray)) and all(np.ndim(rank) == 0 for rank in node)


def best_paths(n, weights):
    """The n paths with the largest products of weights."""
    paths = itertools.chain(*(itertools.product(range(len(weights)), repeat=depth) for depth in range(1, 8)))
    return set(sorted(paths, key=lambda path: -np.prod(weights[list(path)]))[:n])


@exercise
def exercise_1(answer):
    refuse_library(answer, "sample_distinct")
    assert answer(q.copy(), 2, np.random.default_rng(0)) is not None, "nothing came back: is a return missing?"
    fn, given = lambda *some: [*answer(*some)], q.copy()  # a list, also of a generator
    pairs = fn(given, 2, np.random.default_rng(0))
    assert np.array_equal(given, q), "q was written to: work on a copy"
    assert are_pairs(pairs), "expected a list of pairs (token, row): a token and the row [n_vocab] it was drawn from"
    rows = [row for _, row in pairs]
    shared = len(rows) == 2 and np.shares_memory(*map(np.asarray, rows)) and not np.allclose(rows[0], q)
    assert not shared, "the rows are one array, which was changed after the first draw: append row.copy()"
    try:
        drawn = exact_distribution(lambda rng: [(x, row) for x, row in fn(q.copy(), 2, rng)])
    except CannotEnumerate as error:
        raise AssertionError(f"draw the candidates one by one, each with sample_token(row, rng): {error}") from error
    for pairs in drawn:
        assert len(pairs) == 2, f"expected 2 candidates, got {len(pairs)}"
        (first, row), (second, other) = pairs
        assert first != second, f"{WORDS[first]} was drawn twice: the second comes from q without the first"
        assert np.allclose(row, q), f"the first candidate was drawn from q: its row is {np.round(row, 3)}"
        assert not np.allclose(other, q), "the second row is still q, from which the second candidate was not drawn"
        assert np.isclose(sum(other), 1), f"the second row adds up to {sum(other):.2f}: renormalise what is left"
        left = np.where(np.arange(4) == first, 0, q)
        left /= left.sum()
        assert np.allclose(other, left), f"after {WORDS[first]} the row is {left.round(3)}, got {np.round(other, 3)}"
    three = exact_distribution(lambda rng: [x for x, row in fn(q.copy(), 3, rng)])
    assert all(len({*drawn_three}) == 3 for drawn_three in three), (
        "of three candidates two are the same: the third comes from q without the first and the second"
    )
    assert len(drawn) > 1, "every draw gives the same two candidates: draw with the rng that is passed in"
    for a, b in (3, 0), (0, 3), (0, 1):
        likely = sum(probability for pairs, probability in drawn.items() if (pairs[0][0], pairs[1][0]) == (a, b))
        assert np.isclose(likely, q[a] * q[b] / (1 - q[a])), (
            f"{WORDS[a]}, then {WORDS[b]}: probability {likely:.4f}, expected {q[a]} * {q[b]} / {1 - q[a]:.1f}. Keep "
            "the order of the draws: sorting them, or drawing the second from a different row than it reports, changes "
            "the distribution"
        )
    found = exact_distribution(lambda rng: in_turn(fn(q.copy(), 2, rng), rng))
    tokens = [found.get((True, x), 0) + found.get((False, x), 0) for x in range(4)]
    assert np.abs(tokens - p).max() < 1e-12, f"the token has the distribution {np.round(tokens, 3)}, not {p}"
    one = fn(np.array([0.0, 1, 0, 0]), 3, np.random.default_rng(0))
    assert len(one) == 1, f"q has one possible token, so there is one candidate, got {len(one)}"
    accepted = sum(probability for (was, _), probability in found.items() if was)
    return f"right: exact, and accepted {accepted:.4f} for two candidates"


@exercise
def exercise_2(fn):
    refuse_library(fn, "visible")
    for parents, n_text in ([-1, -1, 0, 0, 2, 1], 3), ([-1, 0, 1, 2], 2), ([-1, -1, -1], 1), ([-1], 4):
        n, right = len(parents), tree.visible(parents)
        got = fn(list(parents), n_text)
        assert got is not None, "nothing came back: is a return missing?"
        one_length = len({np.shape(row) for row in got}) == 1
        assert one_length, "the rows have different lengths: [n, n_text + n], False for what a node does not see"
        got = np.array(got)
        assert got.shape == (n, n_text + n), f"expected [n, n_text + n] = {(n, n_text + n)}, got {got.shape}"
        assert np.isin(got, (0, 1)).all(), (
            "True where a node attends to, False elsewhere: not yet the 0 and -inf of scores"
        )
        got = got.astype(bool)
        hidden = np.concatenate([np.zeros((n, n_text), bool), ~right], axis=1)
        assert not np.array_equal(got, hidden), "True where a node attends to: this is True where it does not"
        shifted = np.concatenate([right, np.ones((n, n_text), bool)], axis=1)
        assert not np.array_equal(got, shifted) or got.all(), "the text's columns come first, then those of the nodes"
        in_front = np.concatenate([right, np.zeros((n, n_text), bool)], axis=1) | (np.arange(n_text + n) < n_text)
        assert not np.array_equal(got, in_front), "node j is the column n_text + j, after those of the text"
        assert got[:, :n_text].all(), "every node sees the whole text: without it, it has nothing to continue"
        nodes = got[:, n_text:]
        assert nodes.diagonal().all(), "a node sees itself: its own key and value belong to its path"
        flipped = np.array_equal(nodes, right.T) and not np.array_equal(right, right.T)
        assert not flipped, "rows and columns are exchanged: row i says what node i sees, not who sees node i"
        for i in range(n):
            for j in range(n):
                if nodes[i, j] == right[i, j]:
                    continue
                story = f"parents {parents}: node {i}"
                last_row = parents[i] == -1 and j == n - 1 > i
                assert not last_row, f"{story} sees node {j}: its parent -1 is the text, but [-1] is the last row"
                assert j <= i, f"{story} sees node {j}, which comes after it"
                assert not (nodes[i, j] and parents[i] == parents[j]), f"{story} sees its sibling {j}"
                assert not nodes[i, j], f"{story} sees node {j}, which is on a different path"
                raise AssertionError(f"{story} does not see node {j}, an ancestor: not only the parent counts")
    return "right: the text, the path, and itself"


@exercise
def exercise_3(fn):
    refuse_library(fn, "Shape")
    cases = (4, [0.6, 0.3]), (8, [0.6, 0.25, 0.1]), (12, [0.4, 0.3, 0.2]), (9, [0.9, 0.05]), (6, [0.3, 0.29, 0.28])
    for n, weights in cases:
        nodes = fn(n, given := list(weights))
        assert nodes is not None, "nothing came back: is a return missing?"
        assert given == weights, "w was written to: work on a copy"
        nodes = [*nodes]
        assert all(map(is_path, nodes)), (
            f"a node is a tuple of ranks, the first child of the text (0,); got {nodes[:3]}"
        )
        nodes = [tuple(node) for node in nodes]
        assert len(nodes) == n, f"expected {n} nodes, got {len(nodes)}"
        assert len(set(nodes)) == n, f"a node is there twice: push each once, by its parent or elder sibling: {nodes}"
        assert () not in nodes, "the text is not a node: () has no rank"
        from_one = min(rank for node in nodes for rank in node) == 1
        assert not from_one, f"ranks are counted from 0: the first child of the text is (0,); got {nodes}"
        highest = max(rank for node in nodes for rank in node)
        assert highest < len(weights), f"with {len(weights)} weights, ranks go from 0 to {len(weights) - 1}: {nodes}"
        value = {node: np.prod([weights[rank] for rank in node]) for node in nodes}
        for node in nodes:
            assert len(node) == 1 or node[:-1] in value, f"{node} is there without its parent {node[:-1]}"
        best = tree_tokens(Shape.best(n, weights).parents, weights) - 1
        if not np.isclose(sum(value.values()), best):
            story = f"n = {n}, w = {weights}: the values add up to {sum(value.values()):.4f}, not {best:.4f}"
            assert any(node[-1] for node in nodes), (
                f"this is a chain: push the next sibling too, and value a node by the product along its path; {story}"
            )
            assert any(len(node) > 1 for node in nodes), f"all at one depth: push the first child as well; {story}"
            of_elders = best_paths(n, np.cumprod(weights))
            siblings = "a sibling has its parent's value times its own w: divide by the elder sibling's"
            assert set(nodes) != of_elders, f"{siblings}; {story}"
            raise AssertionError(f"largest product along the path first (heappop takes the smallest); {story}")
    return "right: the nodes with the largest products, found one by one"
