"""Mistakes in language models: logits for the wrong tokens, and wrong tree attention.

As with drafters, the grader compares a model with itself: `tell` is a function of the model's answers.
"""

from types import SimpleNamespace

import numpy as np

from ...tree import children, depths, n_common, visible
from . import Mistake


def same_logits(a, b):
    """Whether logits are the same, up to float32's rounding and a different order of summation.

    Compared are the rows without their maximum, and the maximum: GPT-2's own logits are around -100, where a thousandth
    of a logit is as much as a mistake.
    """
    of_a, of_b = from_best(a), from_best(b)
    size, rounding = largest(of_a[0]), 16 * np.finfo(np.float32).eps * largest(a)
    return all(np.allclose(x, y, rtol=1e-3, atol=1e-3 * min(1.0, size) + rounding) for x, y in zip(of_a, of_b))


def from_best(logits):
    """(logits without the maximum of their row, float64, and the maximum [..., 1])."""
    best = np.max(np.asarray(logits, np.float64), axis=-1, keepdims=True)
    return logits - best, best


def largest(logits):
    """The largest absolute value of a finite logit."""
    return np.max(np.abs(logits), where=np.isfinite(logits), initial=0.0)


def gap(a, b):
    """The largest difference; infinite where only one of the two is -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0, abs(a - b)).max()


def close(a, b):
    """Whether low precision may be the only mistake."""
    return not same_logits(a, b) and gap(a, b) < 0.03 * largest(a)


class Around:
    """A class of models around a right model, with `answer` in place of its call."""

    drafts = False  # whether draft models make the mistake: the text stays exact, and fewer tokens are accepted

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx, self.seen = model, model.n_vocab, model.n_ctx, []

    def __call__(self, tokens, n_last=1):
        return self.answer([int(token) for token in tokens], n_last)


def around(answer, **attributes):
    return type("Around", (Around,), {"answer": answer, **attributes})


def not_rolled_back(n_forgotten):
    def answer(self, tokens, n_last):
        kept = self.seen[: len(self.seen) - n_forgotten]
        self.seen = [*kept, *tokens[-n_last:]] if kept else tokens
        return self.model(self.seen, n_last)

    return around(answer)


def one_off(self, tokens, n_last):
    return self.model(tokens, n_last) if len(tokens) <= n_last else self.model(tokens, n_last + 1)[:-1]


def predicted_state_stays(self, tokens, n_last):
    n_kept = n_common(self.seen, tokens)
    is_draft = 0 < len(self.seen) == n_kept  # the call only appends tokens to the text of the last call
    self.is_predicted = [*self.is_predicted[:n_kept], *[is_draft] * (len(tokens) - n_kept)]
    self.seen = tokens
    blur = 1 + np.cumsum(self.is_predicted, dtype=np.float32)[-n_last:, None]  # a stand-in for the small errors
    return self.model(tokens, n_last) / blur


def key_longer_than_cache(self, tokens, n_last):
    n_kept = min(n_common(self.seen, tokens), len(tokens) - n_last)
    is_cut = n_kept < len(self.seen) - 1
    n_held = max(0, len(self.held) - (len(self.seen) - n_kept))  # cut by the length of the key
    self.held, self.seen = [*self.held[:n_held], *tokens[n_kept:]], tokens
    rows = self.model(self.held, n_last)
    self.held = self.held[: len(self.held) - is_cut]
    return rows


BEFORE = (
    "your model's answer depends on what it was asked before: a cache must forget the tokens that are no longer "
    "there, and keep a copy of those that are, not the caller's list"
)
CACHED = (
    "your model's answer depends on how many tokens its cache holds: after n of them the new tokens have the positions "
    "n, n + 1, ..., and each of them sees these n and the new ones up to itself"
)
ROW_I = ": row i of n_last predicts the token after tokens[len(tokens) - n_last + i]"
ONE_OFF = "your rows are one off" + ROW_I
IMPRECISE = (
    "your logits are imprecise: the same tokens, asked for among others, differ by {:.2g}; compute in float32, not in "
    "bfloat16 or float16, and if you do, look for stale or lost entries in the cache"
)
ROWS = [  # the `rows` of several tokens, those of each prefix `alone`, and those after the last token is `changed`
    Mistake("your rows are in reverse order: row i predicts the token after tokens[len(tokens) - n_last + i]",
            tell=lambda d: same_logits(d.rows[::-1], d.alone)),
    Mistake("all your rows are the same: row i predicts the token after tokens[len(tokens) - n_last + i]",
            tell=lambda d: any(all(same_logits(row, one) for row in d.rows) for one in (d.alone[-1], d.rows[0]))),
    Mistake(ONE_OFF, around(one_off), name="rows one off", why="Row j of a pass predicts token j + 1; these rows "
            "begin one too early.",
            tell=lambda d: same_logits(d.rows[1:], d.alone[:-1]) or same_logits(d.rows[:-1], d.alone[1:])),
    Mistake(IMPRECISE, tell=lambda d: close(d.rows, d.alone)),
    Mistake("a token sees those after it: a causal mask is missing, so that the row of a prefix changes when later "
            "tokens do",
            tell=lambda d: not same_logits(d.changed[:-1], d.rows[:-1])),
    Mistake("a row of your model depends on the number of rows asked for: with n_last = 1 the same tokens have "
            "different logits than with more", tell=lambda d: not same_logits(d.rows, d.alone)),
    Mistake(BEFORE, not_rolled_back(0), name="cache not rolled back", tell=lambda d: True, why="Keys and values of "
            "rejected draft tokens stay in the cache, and later rows attend to them.",
            seen="https://github.com/ml-explore/mlx-lm/pull/1109 (for caches that cannot be trimmed, before it)"),
]  # fmt: skip
OTHERWISE = [
    Mistake(BEFORE, not_rolled_back(1), name="cache rolled back by a fixed number",
            why="The cache forgets one token, however many were rejected."),
    Mistake(BEFORE, around(key_longer_than_cache, held=()), name="a key longer than its cache", why="After a "
            "correction the cache holds one token fewer than the key under which a server files it. The next request "
            "with this beginning is cut by the length of the key, so a token of the prompt is missing.",
            seen="mlx_lm.server 0.32.2 with a draft model (found by `main.py audit`; dev/audits/audit_mlx.py)"),
    Mistake(ONE_OFF, around(one_off, drafts=True), name="features one off", why="EAGLE's block is given each hidden "
            "state with its own token, not with the next one, so a draft does not depend on the last token of the "
            "text. The text stays exact, but hardly any draft token is accepted."),
    Mistake(BEFORE, around(predicted_state_stays, drafts=True, is_predicted=()),
            name="predicted state stays in the draft's cache", why="A draft token is accepted, but the block's cache "
            "keeps the results of its own prediction of the hidden state, where the target's is now known. The text "
            "stays exact, but fewer tokens are accepted.", seen="https://github.com/vllm-project/vllm/issues/14649"),
]  # fmt: skip


# ------------------------------------------------------------------------------------------------ trees


class TreeAttention:
    """A language model over three tokens that takes trees, small enough to read: one layer of attention with random
    weights, positions, and a cache of keys and values, whose slot n_text + i holds node i of the last tree. It is
    correct; `attention(part=...)` returns a class with a different mask, positions, or cache after an accepted branch.

    Parameters
    ----------
    model : object
        Not used: the entries of models are classes around a model.
    """

    n_vocab, n_ctx = 3, 64

    def __init__(self, model=None):
        rng = np.random.default_rng(5)
        self.wte, self.wpe = rng.normal(size=(self.n_vocab, 8)), rng.normal(size=(self.n_ctx + 1, 8))
        self.to_query, self.to_key, self.to_value, self.to_logits = rng.normal(size=(4, 8, 8)) / 2
        self.keys, self.values = np.zeros((2, self.n_ctx, 8))
        self.text, self.nodes, self.parents = [], [], []  # the contents of the slots

    def __call__(self, tokens, n_last=1, parents=()):
        """Logits [n_last, n_vocab] float32."""
        tokens, parents = [int(token) for token in tokens], [int(parent) for parent in parents]
        n_text, n = len(tokens) - len(parents), len(tokens)
        n_kept = self.keep(tokens[:n_text])
        positions = [*range(n_text), *(n_text + i for i in self.positions(parents))]
        x = self.wte[tokens] + self.wpe[positions]  # [n, 8]
        self.keys[n_kept:n] = x[n_kept:] @ self.to_key
        self.values[n_kept:n] = x[n_kept:] @ self.to_value
        self.text, self.nodes, self.parents = tokens[:n_text], tokens[n_text:], parents
        mask = np.tril(np.ones((n, n), dtype=bool))
        mask[n_text:, n_text:] = self.visible(parents)
        scores = x[n - n_last :] @ self.to_query @ self.keys[:n].T  # [n_last, n]
        weights = np.where(mask[n - n_last :], np.exp(scores / 4), 0)
        x = x[n - n_last :] + weights @ self.values[:n] / weights.sum(axis=1, keepdims=True)
        return (x @ self.to_logits)[:, : self.n_vocab].astype(np.float32)

    def keep(self, text):
        """The number of the text's tokens in the cache, after moving the nodes of the branch that the text follows."""
        n, node, n_text = n_common(self.text, text), -1, len(self.text)
        while n_text <= n < len(text):
            below = [child for child in children(self.parents, node) if self.nodes[child] == text[n]]
            if not below:
                break
            node = below[0]
            self.move(n_text + node, n)
            n += 1
        return n

    def move(self, slot, to):
        self.keys[to], self.values[to] = self.keys[slot], self.values[slot]

    positions = staticmethod(depths)
    visible = staticmethod(visible)


def attention(**parts):
    static = {name: staticmethod(f) if name != "move" else f for name, f in parts.items()}
    return type("Attention", (TreeAttention,), static)


def in_32_bits(parents):
    bits = [sum(1 << j for j in set(np.flatnonzero(row) % 32)) for row in visible(parents)]  # 1 << j wraps round
    seen = [[row >> j % 32 & 1 for j in range(len(parents))] for row in bits]
    return np.array(seen, bool).reshape(len(parents), len(parents))


def answers(ask, text, n_ctx):
    """The answers that the entries use: rows(nodes, parents), and after(*tokens), the row after the text and tokens."""
    return SimpleNamespace(
        rows=lambda nodes, parents: ask([*text, *nodes], len(nodes) + 1, parents),
        after=lambda *tokens: ask([*text, *tokens], 1)[0],
        n=min(40, n_ctx - len(text)),
    )


def differ(m, nodes, parents, row, *path):
    """Whether a row of a tree is not the row after the text and this path."""
    return not same_logits(m.rows(nodes, parents)[row], m.after(*path))


def moves_wrongly(m):
    wanted = m.after(1, 0)
    m.rows([0, 1], [-1, -1])
    return not same_logits(m.after(1, 0), wanted)


FORK, DEEP = [-1, -1], [-1, 0, 1, -1]
IN_TREES = [
    Mistake("the row after the text changes if a tree follows: the text must not see the tree",
            tell=lambda m: differ(m, [0], [-1], 0)),
    Mistake("a node of a tree does not see itself: its row sees the text, its ancestors and its own token",
            tell=lambda m: same_logits(m.rows([0], [-1])[1], m.rows([1], [-1])[1])
            and not same_logits(m.after(0), m.after(1))),
    Mistake("wrong already for a tree of one node, which is a chain: the position of a node is n_text + its depth, 0 "
            "for one that follows the text, and its mask lets it see the text and itself",
            attention(positions=lambda parents: [1 + depth for depth in depths(parents)]),
            tell=lambda m: any(differ(m, [token], [-1], 1, token) for token in (0, 1)), name="positions one too deep",
            why="The first nodes of the tree have depth 1: every node is one position too far to the right."),
    Mistake("a node sees its sibling: mask all nodes but its ancestors and itself",
            attention(visible=lambda parents: visible(parents) | np.tril(np.equal.outer(parents, parents))),
            tell=lambda m: not same_logits(m.rows([0, 0], FORK)[2], m.rows([1, 0], FORK)[2]), name="siblings visible",
            why="A node attends to its elder siblings, as tokens of a chain attend to those before them."),
    Mistake("the position of a node is n_text + its depth, that of its siblings; yours seems to be its place in the "
            "list, n_text + i", attention(positions=lambda parents: range(len(parents))), name="positions by slot",
            tell=lambda m: differ(m, [0, 0], FORK, 2, 0)),
    Mistake("a node sees its parent, but not the nodes above that: its row sees its whole path",
            attention(visible=lambda parents: np.eye(len(parents), dtype=bool)
                      | np.equal.outer(parents, np.arange(len(parents)))),
            tell=lambda m: any(differ(m, [a, 0, 1, 1], DEEP, 3, a, 0, 1) for a in (0, 1))
            and same_logits(*(m.rows([a, 0, 1, 1], DEEP)[3] for a in (0, 1))), name="only the parent visible"),
    Mistake("a node sees the wrong nodes: its row sees the text, all its ancestors and itself, and nothing else",
            tell=lambda m: any(differ(m, [a, 0, 1, 1], DEEP, 3, a, 0, 1) for a in (0, 1))),
    Mistake("after a tree the model's answer changes along an accepted branch: the keys and values of its nodes must "
            "be moved together, after the text, and those of the other nodes forgotten",
            attention(move=lambda self, slot, to: None), tell=moves_wrongly, name="slots not moved"),
    Mistake("right for small trees, but not from 32 nodes on: are the bits of the mask in an integer of 32 bits, as "
            "by 1 << j?",
            attention(visible=in_32_bits), name="mask in 32 bits", why="The mask of a node is an integer with bits 1 "
            "<< j, an int of 32 bits, in trees of up to 64 nodes.",
            seen="https://github.com/flexflow/flexflow-serve/blob/HEAD/src/runtime/request_manager.cc (before 1ULL)",
            tell=lambda m: not all(same_logits(row, m.after(i % 2)) for i, row in
                                                         enumerate(m.rows([i % 2 for i in range(m.n)], [-1] * m.n)[1:])
                                                         if i >= 32)),
    Mistake("a row of a tree is not that of the model on the text and the path to the node", tell=lambda m: True),
]  # fmt: skip
OTHERWISE_IN_TREES = [
    Mistake("wrong already for a tree of one node", attention(
        visible=lambda parents: visible(parents) & ~np.eye(len(parents), dtype=bool)), name="a node that does not see "
        "itself",
        why="The mask shows a node its ancestors, but not itself: the diagonal is missing."),
]  # fmt: skip
