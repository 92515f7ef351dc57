"""Hints for language models: the mistake in a sentence, found by asking for the same tokens again among others.

`ask` is a function (tokens, n_last, parents=None) -> logits [n_last, n_vocab].
"""

import numpy as np

BEFORE = (
    "your model's answer depends on what it was asked before: a cache must forget the tokens that are no longer there, "
    "and keep a copy of those that are, not the caller's list"
)
ROW_I = "predicts the token after tokens[len(tokens) - n_last + i]"
ONE_OFF = f"your rows are one off: row i of n_last {ROW_I}"
REVERSED, ALL_THE_SAME = f"your rows are in reverse order: row i {ROW_I}", f"all your rows are the same: row i {ROW_I}"


def same_logits(a, b):
    """Whether logits are the same, up to the rounding of float32 and another order of sums."""
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * min(1.0, largest(a))))


def largest(logits):
    """The largest logit in absolute value, of those that are finite."""
    return np.max(np.abs(logits), where=np.isfinite(logits), initial=0.0)


# ------------------------------------------------------------------------------------------------ not logits


def article(value):
    """A type with its article."""
    module, name = type(value).__module__.split(".")[0], type(value).__name__
    return "None" if value is None else f"a {name}" if module == "builtins" else f"a {module}.{name}"


def remedy(logits):
    if logits is None:
        return ["  is a `return` missing?"]
    if isinstance(logits, tuple):
        return ["  return only the logits, without anything else that the model returns, such as its cache"]
    if hasattr(logits, "logits"):
        return ["  take them out: output.logits[0, -n_last:].float().numpy()"]
    if hasattr(logits, "numpy"):
        return ["  make them one: logits.detach().float().numpy()"]
    return ["  np.array(logits, dtype=np.float32)"]


def of_shape(shape, n_tokens, n_last, n_vocab):
    """What to do about a wrong shape, for the end of the sentence."""
    if len(shape) == 3 and shape[0] == 1:
        return ": there is no batch axis, logits[0]"
    if shape == (n_tokens, n_vocab):
        return ": return only the last n_last rows, logits[-n_last:]"
    if shape == (1, n_vocab):
        return ": one row for each of the last n_last tokens, not only for the last"
    return ""


# ------------------------------------------------------------------------------------------------ texts


def mistake_in_a_walk(ask, wrong, sources):
    """The lines of a failure.

    Parameters
    ----------
    ask : callable
    wrong : tuple
        (tokens, n_last, i, known, row): row i of this answer was different in an earlier call.
    sources : Sources
        Around all calls so far.
    """
    tokens, n_last, i, known_row, row = wrong
    prefix = tokens[: len(tokens) - n_last + i + 1]
    again = [ask(tokens, n_last) for _ in range(3)]
    if sources.changed and not all(same_logits(answer, again[0]) for answer in again):
        return (
            "your model gives two answers to the same tokens: is it in training mode, with dropout (model.eval()), "
            "or does it draw random numbers?",
            "",
            f"  for tokens = {tokens}, n_last = {n_last}",
        )
    other = [1 - min(token, 1) for token in tokens]
    questions = [(tokens, n_last), (prefix, 1), (tokens[:-1] or tokens, 1), (tokens, n_last), (other, n_last),
                 (tokens, n_last), (prefix, 1), (tokens[:1], 1), (tokens, n_last)]  # fmt: skip
    answers = [(question, ask(*question)) for question in questions]
    first = {}
    for (text, n), answer in [*answers, *(((tokens, n_last), answer) for answer in again)]:
        known = first.setdefault((tuple(text), n), answer)
        if not same_logits(known, answer):
            return changed_answer_hint(text, known, answer)
    return (imprecise(known_row, row),) if close(known_row, row) else rows_hint(ask, tokens, prefix)


def changed_answer_hint(text, known, answer):
    if close(known, answer):
        return (imprecise(known, answer),)
    row = next(i for i, (a, b) in enumerate(zip(known, answer)) if not same_logits(a, b))
    numbers = f"{known[row][0]:.6g} and then {answer[row][0]:.6g}"
    return BEFORE, "", f"  for the tokens {text} the logits of token 0 were {numbers}"


def gap(a, b):
    """The largest difference; infinite where one of two is -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0, abs(a - b)).max()


def close(a, b):
    """Whether a low precision may be all that is wrong."""
    return gap(a, b) < 0.03 * largest(a)


def imprecise(a, b):
    return (
        f"your logits are imprecise: the same tokens, asked for among others, differ by {gap(a, b):.2g}; compute in "
        "float32, not in bfloat16 or float16"
    )


def rows_hint(ask, tokens, prefix):
    """Where the same tokens have the same answer, but several rows differ from one row at a time."""
    n = min(6, len(tokens))
    rows = ask(tokens, n)
    alone = np.concatenate([ask(tokens[: len(tokens) - n + i + 1], 1) for i in range(n)])
    case = [
        "",
        f"  for tokens = {tokens}, n_last = {n}: the rows differ from those for n_last = 1, one prefix at a time",
    ]
    if n > 1 and same_logits(rows[::-1], alone):
        return REVERSED, *case
    if n > 1 and any(all(same_logits(row, one) for row in rows) for one in (alone[-1], rows[0])):
        return ALL_THE_SAME, *case
    if n > 1 and (same_logits(rows[1:], alone[:-1]) or same_logits(rows[:-1], alone[1:])):
        return ONE_OFF, *case
    if close(rows, alone) and not same_logits(rows, alone):
        return (imprecise(rows, alone),)
    if n > 1 and not same_logits(ask([*tokens[:-1], 1 - min(tokens[-1], 1)], n)[:-1], rows[:-1]):
        return (
            "a token sees those after it: a causal mask is missing, so that the row of a prefix changes when later "
            "tokens do",
            *case,
        )
    if not same_logits(rows, alone):
        return (
            "a row of your model depends on the number of rows asked for: with n_last = 1 the same tokens have other "
            "logits than with more",
            *case,
        )
    return BEFORE, "", f"  for the tokens {prefix} the logits are not what they were before"


# ------------------------------------------------------------------------------------------------ trees

TEXT = [0, 1, 1]
MANY = 40  # nodes of the largest tree, if the context holds them


def mistake_in_a_tree(ask, n_ctx):
    """The mistake in a sentence, found on small trees."""

    def rows(nodes, parents):
        return ask([*TEXT, *nodes], len(nodes) + 1, parents)

    def row_after(*tokens):
        return ask([*TEXT, *tokens], 1)[0]

    if not same_logits(rows([0], [-1])[0], row_after()):
        return "the row after the text changes if a tree follows: the text must not see the tree"
    return (
        one_node_hint(rows, row_after)
        or siblings_hint(rows, row_after)
        or ancestors_hint(rows, row_after)
        or branch_hint(rows, row_after)
        or many_nodes_hint(rows, row_after, min(MANY, n_ctx - len(TEXT)))
        or "a row of a tree is not that of the model on the text and the path to the node"
    )


def one_node_hint(rows, row_after):
    one, other = rows([0], [-1])[1], rows([1], [-1])[1]
    if same_logits(one, row_after(0)) and same_logits(other, row_after(1)):
        return None
    if same_logits(one, other) and not same_logits(row_after(0), row_after(1)):
        return "a node of a tree does not see itself: its row sees the text, its ancestors and its own token"
    return (
        "wrong already for a tree of one node, which is a chain: the position of a node is n_text + its depth, 0 for "
        "one that follows the text, and its mask lets it see the text and itself"
    )


def siblings_hint(rows, row_after):
    wanted = row_after(0)
    with_0, with_1 = rows([0, 0], [-1, -1])[2], rows([1, 0], [-1, -1])[2]
    if same_logits(with_0, wanted) and same_logits(with_1, wanted):
        return None
    if not same_logits(with_0, with_1):
        return "a node sees its sibling: mask all nodes but its ancestors and itself"
    return (
        "the position of a node is n_text + its depth, that of its siblings; yours seems to be its place in the list, "
        "n_text + i"
    )


def ancestors_hint(rows, row_after):
    parents = [-1, 0, 1, -1]
    for first in (0, 1):
        if not same_logits(rows([first, 0, 1, 1], parents)[3], row_after(first, 0, 1)):
            if same_logits(*(rows([token, 0, 1, 1], parents)[3] for token in (0, 1))):
                return "a node sees its parent, but not the nodes above that: its row sees its whole path"
            return "a node sees the wrong nodes: its row sees the text, all its ancestors and itself, and nothing else"
    return None


def branch_hint(rows, row_after):
    wanted = row_after(1, 0)
    rows([0, 1], [-1, -1])
    if same_logits(row_after(1, 0), wanted):
        return None
    return (
        "after a tree the model's answer changes along an accepted branch: the keys and values of its nodes must be "
        "moved together, after the text, and those of the other nodes forgotten"
    )


def many_nodes_hint(rows, row_after, n):
    """Where the last of many nodes are wrong: all of them follow the text."""
    several = rows([i % 2 for i in range(n)], [-1] * n)[1:]
    if all(same_logits(row, row_after(i % 2)) for i, row in enumerate(several) if i >= 32):
        return None
    return (
        "right for small trees, but not from 32 nodes on: are the bits of the mask in an integer of 32 bits, as by "
        "1 << j?"
    )
