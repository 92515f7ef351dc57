"""The checks in notebooks 11 to 14, and other kinds of functions in all: what they say, and what passes."""

import functools

import numpy as np
import pytest

import speculative
from speculative import tree
from speculative.probs import sample_distinct

pytestmark = pytest.mark.notebooks


# ------------------------------------------------------------------------------------------------ 13


def test_other_ways_to_alpha(check):
    alpha = check("13", "check_my_alpha")
    alpha(lambda p, q: 1 - abs(p - q).sum(axis=1).mean() / 2)
    alpha(lambda p, q: sum(min(a, b) for rows in zip(p, q) for a, b in zip(*rows)) / len(p))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p, q: np.minimum(p, q).sum(), "divide by their number"),
        (lambda p, q: np.minimum(p.mean(axis=0), q.mean(axis=0)).sum(), "the p of its own position"),
        (lambda p, q: (p * q).sum(axis=1).mean(), "independent draws agree"),
        (lambda p, q: np.minimum(p, q).mean(), "add up over the vocabulary"),
        (lambda p, q: 1 - abs(p - q).sum(axis=1).mean(), "counts each rejected guess twice"),
        (lambda p, q: np.maximum(p - q, 0).sum(axis=1).mean(), "the rejected share"),
        (lambda p, q: np.minimum(p, q).sum(axis=1), "one number, the mean over the positions"),
    ],
)
def test_wrong_alphas(answer, message, check):
    with pytest.raises(AssertionError, match=message):
        check("13", "check_my_alpha")(answer)


def bigram(last, p, n_vocab, *, unseen=None, divide=True, add_at=True):
    table, n_contexts = np.zeros((n_vocab, n_vocab)), np.bincount(last, minlength=n_vocab)
    if add_at:
        np.add.at(table, last, p)
    else:
        table[last] += p
    if divide:
        table /= np.maximum(n_contexts, 1)[:, None]
    table[n_contexts == 0] = p.mean(axis=0) if unseen is None else unseen
    return table


def in_a_loop(last, p, n_vocab):
    rows = [[row for token, row in zip(last, p) if token == a] for a in range(n_vocab)]
    return [np.mean(some, axis=0) if some else np.mean(p, axis=0) for some in rows]


@pytest.fixture
def check_bigram(check):
    found, rows = check("13", "check_bigram"), np.full((3, 4), 0.25)
    contexts = np.array([[1, 0], [2, 1], [1, 2]])
    small = {"contexts": contexts, "contexts_new": contexts, "p_train": rows, "p_new": rows}
    found.__globals__.update(small, target=type("Small", (), {"n_vocab": 4}))
    return found


def test_other_ways_to_a_bigram_table(check_bigram, solution):
    check_bigram(solution("13", "bigram_from_rows"))
    check_bigram(lambda last, p, n_vocab: np.array(in_a_loop(last, p, n_vocab)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"add_at": False}, "adds once for each different token"),
        ({"divide": False}, "divide by the number of contexts"),
        ({"unseen": np.nan}, "0 / 0"),
        ({"unseen": 0}, "no distribution"),
        ({"unseen": 1 / 5}, "not the uniform row"),
    ],
)
def test_wrong_bigram_tables(options, message, check_bigram):
    with pytest.raises(AssertionError, match=message):
        check_bigram(lambda *arguments: bigram(*arguments, **options))


def test_a_bigram_table_the_wrong_way_round(check_bigram):
    with pytest.raises(AssertionError, match="rows and columns"):
        check_bigram(lambda *arguments: bigram(*arguments).T)


def softmax(z):
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


def row_by_row(z, p):
    jacobians = [np.diag(q) - np.outer(q, q) for q in softmax(z)]
    return np.array([-jacobian @ row for jacobian, row in zip(jacobians, p)])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda z, p: -row_by_row(z, p), "the sign"),
        (lambda z, p: row_by_row(z, p) / len(z), "do not divide by n"),
        (lambda z, p: -p, "the softmax is missing"),
        (lambda z, p: -softmax(z) * p, "the term with the sum"),
        (lambda z, p: softmax(z) - p, "the cross-entropy"),
        (lambda z, p: row_by_row(z, softmax(z) < p), r"1 - sum min\(p, q\)"),
        (lambda z, p: row_by_row(z, p)[0], "one gradient for each row"),
    ],
)
def test_gradients_of_matching(answer, message, check):
    match = check("13", "check_match_gradient", "def softmax", "def gradient(")
    match(row_by_row)
    with pytest.raises(AssertionError, match=message):
        match(answer)


# ------------------------------------------------------------------------------------------------ 14


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda F, B, b, K: int(b * F / (2 * B) // K), r"K \+ 1 tokens"),
        (lambda F, B, b, K: int(b * F / (2 * B)), "tokens in one pass"),
        (lambda F, B, b, K: int(2 * F / B // (K + 1)), "weights of 4 bytes"),
        (lambda F, B, b, K: int(F / B // (K + 1)), "weights of 2 bytes"),
        (lambda F, B, b, K: -int(-b * F / (2 * B) // (K + 1)), "round down"),
        (lambda F, B, b, K: b * F / (2 * B) / (K + 1), "a whole number"),
    ],
)
def test_how_many_texts(answer, message, check, solution):
    most_texts = check("14", "check_most_texts")
    most_texts(solution("14", "most_texts"))
    most_texts(lambda F, B, b, K: max(n for n in range(1000) if 2 * n * (K + 1) / F <= b / B))
    with pytest.raises(AssertionError, match=message):
        most_texts(answer)


def auditing(names, prompts, n_tokens, together=True):
    """An audit like the solution's, of these texts."""

    def audit(verify):
        found = names["exact_distribution"](lambda rng: names["serve"](verify, prompts, n_tokens, rng))
        errors, right = [], {(): 1.0}
        for i, (prompt, n) in enumerate(zip(prompts, n_tokens)):
            one = names["small_target"].distribution(prompt, n)
            right = {(*texts, text): a * b for texts, a in right.items() for text, b in one.items()}
            alone = {text: sum(p for texts, p in found.items() if texts[i] == text) for text in one}
            errors += [abs(alone[text] - one[text]) for text in one]
        if together:
            errors += [abs(found.get(texts, 0) - right.get(texts, 0)) for texts in {*found, *right}]
        return max(errors)

    return audit


def test_audits(check):
    audit = check("14", "check_audit", "def verify_batch")
    names = audit.__globals__
    audit(auditing(names, [[0], [1]], [3, 2]))
    audit(auditing(names, [[1], [1]], [3, 3]))
    wrong = {
        "two guesses are checked": auditing(names, [[0]], [2]),
        "put a second text into the batch, with guesses": auditing(names, [[0]], [3]),
        "both texts together": auditing(names, [[0], [1]], [3, 2], together=False),
        "compare probabilities of whole texts": lambda verify: 0.0,
        "the audit says": lambda verify: 0.1,
        "one number": lambda verify: np.nan,
    }
    for message, answer in wrong.items():
        with pytest.raises(AssertionError, match=message):
            audit(answer)


def matching(rows_from_text, guesses_from_first):
    def match_batch(tokens, lengths, q, p, rng):
        new, first = [], 0
        for text, length in enumerate(lengths):
            kept = []
            for i in range(length + 1):
                row = p[first + i + text * rows_from_text]
                kept.append(int(np.argmin(rng.exponential(size=len(row)) / row)))
                if i == length or kept[-1] != tokens[i + first * guesses_from_first]:
                    break
            new.append(kept)
            first += length
        return new

    return match_batch


def test_repaired_engines(check, solution):
    repaired = check("14", "check_match_batch", "def verify_batch", "def greedy_guesses")
    repaired(solution("14", "match_batch"))
    repaired(matching(True, True))
    for answer in matching(False, True), matching(True, False), matching(False, False):
        with pytest.raises(AssertionError, match=r"where do those of the second text start\?|with its own guesses\?"):
            repaired(answer)


# ------------------------------------------------------------------------------------------------ 11


def drawn_in_turn(q, k, rng, *, row=lambda left: left / left.sum(), forget=True):
    left, found = q.copy(), []
    while len(found) < k and left.any():
        token = speculative.sample_token(left, rng)
        found.append((token, row(left)))
        if forget:
            left[token] = 0
    return found


def chosen_at_once(q, k, rng):
    tokens = [token for token, _ in drawn_in_turn(q, k, rng)]
    return [(token, np.eye(1, len(q), token)[0]) for token in tokens]


def sorted_afterwards(q, k, rng):
    pairs = drawn_in_turn(q, k, rng)
    return sorted(pairs, key=lambda pair: -q[pair[0]]) if len(pairs) == 2 else pairs


def sorted_with_honest_rows(q, k, rng):
    """As if the likelier one had been drawn first."""
    tokens = sorted((token for token, _ in drawn_in_turn(q, k, rng)), key=lambda token: -q[token])
    rows, left = [], q
    for token in tokens:
        rows.append(left / left.sum())
        left = np.where(np.arange(len(q)) == token, 0, left)
    return list(zip(tokens, rows))


def in_place(q, k, rng):
    found = []
    for _ in range(k):
        row = q / q.sum()
        found.append((speculative.sample_token(row, rng), row))
        q[found[-1][0]] = 0
    return found


def never_fewer(q, k, rng):
    found = drawn_in_turn(q, k, rng)
    return found + [found[-1]] * (k - len(found))


def test_children_without_replacement(check, solution):
    children = check("11", "check_without_replacement", 'words = ["king"')
    children(solution("11", "without_replacement"))
    children(drawn_in_turn)
    children(lambda q, k, rng: [(int(token), row) for token, row in zip(*sample_distinct(q, k, rng))])
    wrong = {
        "the second row is still q": lambda q, k, rng: drawn_in_turn(q, k, rng, row=lambda left: q),
        "renormalise what is left": lambda q, k, rng: drawn_in_turn(q, k, rng, row=lambda left: left.copy()),
        "was drawn twice": lambda q, k, rng: drawn_in_turn(q, k, rng, forget=False),
        "the first candidate was drawn from q": chosen_at_once,
        "the first candidate was drawn from q: its": sorted_afterwards,
        "Keep the order of the draws": sorted_with_honest_rows,
        "q was written to": in_place,
        "one possible token": never_fewer,
        "expected 2 candidates": lambda q, k, rng: drawn_in_turn(q, k - 1, rng),
    }
    for message, answer in wrong.items():
        with pytest.raises(AssertionError, match=message):
            children(answer)


def mask_of(seen):
    """A mask from seen(parents, i, j): whether node i sees node j."""

    def mask(parents, n_text):
        n = len(parents)
        nodes = [[seen(parents, i, j) for j in range(n)] for i in range(n)]
        return np.concatenate([np.ones((n, n_text), bool), np.array(nodes, bool)], axis=1)

    return mask


def above(parents, i, j):
    while i > j:
        i = parents[i]
    return i == j


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (mask_of(lambda parents, i, j: j <= i), "sees its sibling|on another path"),
        (mask_of(lambda parents, i, j: i == j or parents[i] == j), "not only the parent counts"),
        (mask_of(lambda parents, i, j: i != j and above(parents, i, j)), "a node sees itself"),
        (mask_of(lambda parents, i, j: above(parents, i, j) or above(parents, j, i)), "which comes after it"),
        (mask_of(lambda parents, i, j: above(parents, i, j) or (parents[i] == parents[j] and j < i)), "its sibling"),
        (lambda parents, n_text: tree.visible(parents), "comes with the library"),
        (lambda parents, n_text: np.where(mask_of(above)(parents, n_text), 0, -np.inf), "not yet the 0 and -inf"),
        (lambda parents, n_text: mask_of(above)(parents, n_text)[:, n_text:], r"expected \[n, n_text \+ n\]"),
        (
            lambda parents, n_text: mask_of(above)(parents, n_text) & (np.arange(n_text + len(parents)) > 0),
            "whole text",
        ),
    ],
)
def test_masks_of_trees(answer, message, check, solution):
    mask = check("11", "check_my_mask")
    mask(solution("11", "my_mask"))
    mask(mask_of(above))
    mask(lambda parents, n_text: mask_of(above)(parents, n_text).astype(int).tolist())
    with pytest.raises(AssertionError, match=message):
        mask(answer)


def grown(n, w, *, sibling=True, child=True, take=max, value=np.prod):
    """Without a heap: the best of all nodes whose parent and elder sibling are there."""
    found, open_nodes = [], {(0,)}
    while len(found) < n and open_nodes:
        node = take(open_nodes, key=lambda node: (value([w[rank] for rank in node]), node))
        open_nodes.remove(node)
        found.append(node)
        if child:
            open_nodes.add((*node, 0))
        if sibling and node[-1] + 1 < len(w):
            open_nodes.add((*node[:-1], node[-1] + 1))
    return found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sibling": False}, "push the next sibling"),
        ({"child": False}, "expected 4 nodes|push the first child"),
        ({"take": min}, "largest product|first child"),
        ({"value": lambda values: values[-1]}, "by the product along its path"),
    ],
)
def test_most_valuable_nodes(options, message, check, solution):
    valuable = check("11", "check_most_valuable")
    valuable(solution("11", "most_valuable"))
    valuable(grown)
    with pytest.raises(AssertionError, match=message):
        valuable(lambda n, w: grown(n, w, **options))


def test_nodes_of_no_tree(check):
    valuable = check("11", "check_most_valuable")
    for message, answer in {
        "without its parent": lambda n, w: [(0,), *((i % 2, 0) for i in range(1, 2)), (0, 0), (1, 1)][:n],
        "there twice": lambda n, w: [(0,)] * n,
        "expected 4 nodes": lambda n, w: [(0,)],
    }.items():
        with pytest.raises(AssertionError, match=message):
            valuable(answer)


# ------------------------------------------------------------------------------------------------ 12


def by_rank(logits, tokens, n_ranks, order=-1, shift=0):
    ranks = [np.argsort(order * row).tolist().index(token) + shift for row, token in zip(logits, tokens)]
    return np.array([np.mean(np.array(ranks) == rank) for rank in range(n_ranks)])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda *case: np.cumsum(by_rank(*case)), "each rank by itself"),
        (lambda *case: by_rank(*case) * len(case[0]), "divide by the number of places"),
        (lambda *case: by_rank(*case, order=1), "the likeliest token has rank 0"),
        (lambda *case: by_rank(*case, shift=1), "the first choice has rank 0"),
        (lambda *case: by_rank(*case) / by_rank(*case).sum(), "divide by all places"),
        (lambda *case: by_rank(*case)[:1], "a share for each"),
    ],
)
def test_acceptance_by_rank(answer, message, check, solution):
    accepted = check("12", "check_accepted_by_rank")
    accepted(solution("12", "accepted_by_rank"))
    accepted(lambda *case: by_rank(*case).tolist())
    with pytest.raises(AssertionError, match=message):
        accepted(answer)


def hydra_with(x_of, y_of):
    def hydra(names):
        wte, silu, read_off = (names[name] for name in ("wte", "silu", "read_off"))
        return lambda head, h, seen: read_off(y_of(head, x_of(h, [wte[tokens] for tokens in seen.T]), h, silu))

    return hydra


def in_order(h, embeddings):
    return np.concatenate([h, *embeddings], axis=1)


def right_y(head, x, h, silu):
    return x @ head["a"] + silu(x @ head["w"])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((lambda h, e: np.concatenate([*e, h], axis=1), right_y), "the hidden state comes first"),
        ((lambda h, e: np.concatenate([h, *e[::-1]], axis=1), right_y), "in the order of the text"),
        ((in_order, lambda head, x, h, silu: silu(x @ head["w"])), "x A is missing"),
        ((in_order, lambda head, x, h, silu: x @ head["a"] + x @ head["w"]), "silu is missing"),
        ((in_order, lambda head, x, h, silu: h + silu(x @ head["w"])), "that is Medusa's"),
    ],
)
def test_hydra_heads(parts, message, check, solution):
    check_head = check("12", "check_hydra_head", "target, tokenizer = ", "def read_off", "def silu")
    check_head(hydra_with(in_order, right_y)(check_head.__globals__))
    with pytest.raises(AssertionError, match=message):
        check_head(hydra_with(*parts)(check_head.__globals__))


def recycler(right, *, shift=0, keep_all=True, pass_parents=True, order=-1, deeper=0, soft=False):
    """The solution's class with mistakes."""

    class Recycler(right):
        def __call__(self, tokens, n_last=1, parents=()):
            logits = self.target(
                tokens, n_last=n_last, **({"parents": parents} if pass_parents and len(parents) else {})
            )
            end = len(tokens) - shift
            for token, row in list(zip(tokens[end - n_last : end], logits))[0 if keep_all else -1 :]:
                self.followers[int(token)] = np.argsort(order * row, kind="stable")[: self.n_followers].tolist()
            return logits

        def propose(self, tokens, K, rng):
            draft = right.propose(self, tokens, K + deeper, rng)
            return speculative.Draft(draft.tokens, np.full(draft.probs.shape, 1 / 12), draft.parents) if soft else draft

    return Recycler


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"shift": 1}, "row i follows tokens"),
        ({"keep_all": False}, "row i follows tokens"),
        ({"pass_parents": False}, "pass parents on"),
        ({"order": 1}, "the likeliest follower first"),
        ({"deeper": 5}, "K = 2 allows two levels"),
        ({"soft": True}, "rows are one-hot"),
    ],
)
def test_recyclers(mistake, message, check, solution):
    check_recycler = check("12", "check_recycler")
    check_recycler.__globals__.update(per_call=lambda *_, **__: np.nan)  # the last lines need the models
    check_recycler.__globals__["target"] = type("Small", (), {"n_vocab": 12, "n_ctx": 64})
    right = solution("12", "Recycler")
    check_recycler(right)
    check_recycler(recycler(right))
    with pytest.raises(AssertionError, match=message):
        check_recycler(recycler(right, **mistake))


# ------------------------------------------------------------------------------------------------ all of them


class Called:
    """An object that is called, in place of a function."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, *given):
        return self.fn(*given)


@pytest.mark.parametrize("wrapped", [functools.partial, functools.cache, Called])
@pytest.mark.parametrize(
    ("number", "name", "check_name"),
    [
        ("06", "my_expected_tokens", "check_expected_tokens"),
        ("14", "most_texts", "check_most_texts"),
    ],
)
def test_answers_that_are_no_plain_functions(number, name, check_name, wrapped, check, solution):
    check(number, check_name)(wrapped(solution(number, name)))


@pytest.mark.parametrize("wrapped", [lambda fn: fn, functools.partial, functools.cache])
def test_names_of_the_library_are_seen_in_them(wrapped, check):
    with pytest.raises(AssertionError, match="comes with the library; if it is your own, rename it"):
        check("06", "check_best_K")(wrapped(lambda alpha, c, v: speculative.theory.best_K(alpha, c, v)))


def test_a_helper_named_path(check):
    def path(parents, node):
        return [] if node < 0 else [*path(parents, parents[node]), node]

    own = {"path": path, "np": np}
    exec(
        "def my_mask(parents, n_text):\n"
        "    mask = np.tri(len(parents), n_text + len(parents), n_text - len(parents), dtype=bool)\n"
        "    mask[:, :n_text] = True\n"
        "    for node in range(len(parents)):\n"
        "        seen = path(parents, node)\n"
        "        mask[node, n_text:] = np.isin(np.arange(len(parents)), seen)\n"
        "    return mask",
        own,
    )
    check("11", "check_my_mask")(own["my_mask"])


def nothing(*_):
    """An answer without a return."""


@pytest.mark.parametrize(
    ("number", "name", "others"),
    [
        ("04", "check_top_p", ()), ("04", "check_draw", ()), ("06", "check_best_K", ()), ("06", "check_alpha", ()),
        ("07", "check_mixed", ()), ("08", "check_draw", ()), ("08", "check_distribution", ()),
        ("11", "check_without_replacement", ("def in_turn",)), ("11", "check_most_valuable", ()),
        ("14", "check_most_texts", ()), ("14", "check_audit", ("def verify_batch",)),
    ],
)  # fmt: skip
def test_answers_without_a_return(number, name, others, check):
    with pytest.raises(AssertionError, match="nothing came back: is a return missing"):
        check(number, name, *others)(nothing)


# ------------------------------------------------------------------------------------------------ 04 to 07


def test_a_draw_may_work_in_place(check, solution):
    draw, right = check("04", "check_draw"), solution("04", "my_draw")

    def in_place(probs, u):
        for i in range(1, len(probs)):
            probs[i] += probs[i - 1]
        return int(np.searchsorted(probs, u * probs[-1], side="right"))

    draw(in_place)
    for wrong in (lambda probs, u: [right(probs, u)], lambda probs, u: float(right(probs, u))):
        with pytest.raises(AssertionError, match="one token id, a whole number"):
            draw(wrong)


def test_an_epsilon_in_a_softmax(check):
    def with_epsilon(logits, temperature):
        if temperature == 0:
            return np.eye(len(logits))[np.argmax(logits)]
        e = np.exp((logits - logits.max()).astype(np.float64) / temperature)
        return e / (e.sum() + 1e-8)

    with pytest.raises(AssertionError, match="add no epsilon"):
        check("04", "check_probs")(with_epsilon)


def tokens_of(alpha, K):
    return sum(alpha**i for i in range(K + 1))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a, c, v: max(range(len(v)), key=lambda K: tokens_of(a, K) / v[K]), "each guess costs c"),
        (lambda a, c, v: max(range(len(v)), key=lambda K: tokens_of(a, K) / (v[K] + c)), "each guess costs c"),
        (lambda a, c, v: max(tokens_of(a, K) / (K * c + v[K]) for K in range(len(v))), "and not the speedup"),
    ],
)
def test_wrong_numbers_of_guesses(answer, message, check):
    with pytest.raises(AssertionError, match=message):
        check("06", "check_best_K")(answer)


def test_a_log_without_a_test(check, solution):
    alpha, right = check("06", "check_alpha"), solution("06", "my_alpha")
    for wrong in (lambda r: right(r) if r else 0.0, lambda r: sum(n for _, n in r) / sum(min(k, n + 1) for k, n in r)):
        with pytest.raises(AssertionError, match="if nothing was tested the answer is nan"):
            alpha(wrong)


@pytest.mark.parametrize(
    ("earlier", "shift", "message"),
    [(1, 0, "copy what followed the token, not the token itself"), (0, 1, "the last one itself does not count")],
)
def test_wrong_copies(earlier, shift, message, check):
    def copied(tokens, K, n_vocab):
        found = [i for i in range(len(tokens) - earlier) if tokens[i] == tokens[-1]]
        guesses = np.array(tokens[found[-1] + shift :][:K] if found else [], dtype=np.int64)
        return speculative.Draft(guesses, np.eye(n_vocab)[guesses])

    with pytest.raises(AssertionError, match=message):
        check("07", "check_copy")(copied)


# ------------------------------------------------------------------------------------------------ 11 to 14


def uniform_in_the_end(q, k, rng):
    """The second token is drawn from all that are left alike, and not from its row."""
    found, left = [], q.copy()
    while len(found) < k and left.any():
        row = left / left.sum()
        token = speculative.sample_token(row if not found else (row > 0) / (row > 0).sum(), rng)
        found.append((token, row))
        left[token] = 0
    return found


def test_siblings_that_are_drawn_from_another_row(check):
    siblings = check("11", "check_without_replacement", "def in_turn")
    with pytest.raises(AssertionError, match="drawing the second from another row than it reports"):
        siblings(uniform_in_the_end)
    with pytest.raises(AssertionError, match="draw with the rng that is passed in"):
        siblings(lambda q, k, rng: drawn_in_turn(q, k, np.random.default_rng(0)))


def test_the_text_is_no_node(check, solution):
    right = solution("11", "most_valuable")
    with pytest.raises(AssertionError, match="the text is no node"):
        check("11", "check_most_valuable")(lambda n, w: [(), *right(n - 1, w)])


@pytest.mark.parametrize(("tree", "message"), [(False, "None: a draft without tokens"), (True, "the draft is a tree")])
def test_drafts_of_another_form(tree, message, check, solution):
    recycler = check("12", "check_recycler")

    class Wrong(solution("12", "Recycler")):
        def propose(self, tokens, K, rng):
            draft = super().propose(tokens, K, rng)
            return speculative.Draft(draft.tokens, draft.probs) if tree else draft if len(draft.tokens) else None

    with pytest.raises(AssertionError, match=message):
        recycler(Wrong)


def test_a_table_that_is_a_list(check_bigram, solution):
    right = solution("13", "bigram_from_rows")
    check_bigram(lambda last, p, n_vocab: right(last, p, n_vocab).tolist())


def test_sums_and_means_exchanged(check):
    with pytest.raises(AssertionError, match="add up over the vocabulary, average over positions"):
        check("13", "check_my_alpha")(lambda p, q: np.minimum(p, q).sum(axis=0).mean())


def test_bytes_on_the_wrong_side(check):
    with pytest.raises(AssertionError) as error:
        check("14", "check_most_texts")(lambda F, B, width, K: int(2 * F / (width * B) // (K + 1)))
    assert "this is m*" not in str(error.value)
