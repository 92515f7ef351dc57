"""Drafting a tree with a model: several candidates for a position, and one call of the model for each depth.

A rule chooses a node's children, (logits, q, k, rng) -> up to k pairs (token, row), where q is the draft's distribution
after that node. Each row is the distribution of its token given its elder siblings, so `rejection` and `exact_match`
are exact with every rule here:

    without   k draws without replacement: each child from the rest of q, renormalised. The first is accepted as often
              as in a chain and the others rarely, so the best tree is deep below first children
    drawn     the first child is drawn from q outside of its k - 1 most probable tokens, which are the other children.
              One of the k is usually accepted more often than with `without`, if q is close to p; but it may be any
              of them, so each needs a subtree
    top       the k most probable tokens, none of which is drawn. It is good at temperature 0, where all three
              rules are the same, and poor at temperature 1

A sampled child is never dropped afterwards, however improbable: the remaining tokens would no longer follow their rows.
So a tree of sampled tokens must have its shape fixed in advance. Only a tree of `top` may grow where the draft is
confident. The model is called once for each depth; the cost of a call hardly depends on its number of nodes.
Sources: Hu et al., arXiv:2502.18779 (drawn); Chen et al. (Sequoia), arXiv:2402.12374, algorithm 2, and RSD,
arXiv:2402.14160 (without); Li et al. (EAGLE-2), arXiv:2406.16858, section 4 (growing).
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..checks import ask_model, ask_sampling, check_model
from ..interfaces import Draft, RandomSource, Tokens, TreeModel
from ..logits.probs import Sampling, sample_distinct, sample_token
from ..rng import at_position
from ..tree import children
from .deterministic import merged
from .ranked import grown_tree, top
from .shapes import Grown, Shape, check_shape


def drawn(logits, q, k, rng):
    """The first child, drawn from q outside of the k - 1 most probable tokens, then these k - 1 tokens."""
    most_likely, outside = top(logits[None], k)[0], q.copy()
    outside[most_likely[: k - 1]] = 0
    mass = outside.sum()
    if not mass:
        return certain(most_likely, len(q))
    return [(sample_token(outside / mass, rng), outside / mass), *certain(most_likely[: k - 1], len(q))]


def without(logits, q, k, rng):
    """Sampled without replacement; where q is used up, the most probable of the other tokens."""
    tokens, rows = sample_distinct(q, k, rng)
    others = [token for token in top(logits[None], k)[0] if token not in tokens]
    return [*zip(tokens.tolist(), rows), *certain(others[: k - len(tokens)], len(q))]


def most_likely(logits, q, k, rng):
    """The k most probable tokens under any sampling."""
    return certain(top(logits[None], k)[0], len(q))


RULES = {"without": without, "drawn": drawn, "top": most_likely}
GROWTH = Sampling(temperature=0.3)  # at temperature 0 the first token is right more often than its probability says


def certain(tokens, n_vocab):
    """Deterministic tokens, with one-hot rows."""
    return [(int(token), np.eye(1, n_vocab, token)[0]) for token in tokens]


class TreeDrafter:
    """Drafts a token tree with one call of a draft model per depth.

    Parameters
    ----------
    model
        It needs the target's vocabulary and must support trees, as gpt2np's models and `ByPaths` do.
    tree
        Only the parents of a shape matter. `Grown(n)` means the n nodes with the largest probabilities (at temperature
        0.3), and needs the rule "top".
    siblings
        The rule (described above).
    sampling
        As in `ModelDrafter`.
    """

    def __init__(
        self,
        model: TreeModel,
        tree: Shape | Grown,
        *,
        siblings: Literal["without", "drawn", "top"] = "without",
        sampling: Callable[..., np.ndarray] | None = None,
    ):
        if siblings not in RULES:
            raise ValueError(f"expected siblings to be one of {', '.join(RULES)}, got {siblings!r:.40}")
        if isinstance(tree, Grown) and siblings != "top":
            raise ValueError(f"a tree that grows needs siblings='top', got {siblings!r}")
        self.model: TreeModel = check_model(model, "a draft model")
        self.tree: Shape | Grown = tree if isinstance(tree, Grown) else check_shape(tree, np.inf, "ranks")
        self.rule, self.sampling = RULES[siblings], sampling

    def __repr__(self):
        size = f"grown to {self.tree.n} nodes" if isinstance(self.tree, Grown) else f"{len(self.tree)} nodes"
        return f"TreeDrafter({self.model}, {size}, siblings={self.rule.__name__})"

    def propose(self, tokens: Tokens, K: int, rng: RandomSource) -> Draft:
        """A tree of depth at most K; shallower near the model's n_ctx, which may be smaller than the target's."""
        sampling = self.sampling or Sampling()
        text = [int(token) for token in tokens]
        n_ctx, n_vocab = self.model.n_ctx, self.model.n_vocab
        if isinstance(self.tree, Grown):
            levels = min(K, 1 + (n_ctx - len(text)) // self.tree.n)
            return grown_tree(self.tree.n, levels, lambda paths, n: self.candidates(text, paths, n, sampling), n_vocab)
        parents, above = self.tree.parents, []  # parents in the shape, and in the draft, which may have fewer nodes
        drafted, rows = [], []
        level = [(-1, -1)]  # the nodes of the last depth: each one's index in shape and draft; -1 is the text
        for depth in range(K):
            followed = any(children(parents, node) for node, _ in level)
            if not followed or len(text) + len(drafted) > n_ctx:
                break
            below = []
            logits, ranking = self.after(text, drafted, above, len(level), sampling)
            draft_probs = ask_sampling(sampling, logits, [*text, *drafted], above)
            for (node, drafted_node), scores, q in zip(level, ranking, draft_probs):
                wanted = children(parents, node)
                chosen = self.rule(scores, q, len(wanted), at_position(rng, len(text) + depth)) if wanted else ()
                for child, (token, row) in zip(wanted, chosen):
                    below.append((child, len(drafted)))
                    drafted.append(token)
                    rows.append(row)
                    above.append(drafted_node)
            level = below
        probs = np.reshape(rows, (len(rows), n_vocab))
        return Draft(np.array(drafted, dtype=np.int64), probs, np.array(above, dtype=np.int64))

    def after(self, text, drafted, parents, n, sampling):
        """The logits [n, n_vocab] after the last n drafted tokens, or after the text if none are drafted, twice.

        As the model returns them, and with the sampling's penalties at temperature 1, which rank the candidates.
        """
        logits = ask_model(self.model, [*text, *drafted], n, parents, "the draft model")
        adjusted = getattr(sampling, "adjusted", lambda logits, *_: logits)
        return logits, adjusted(logits, [*text, *drafted], parents)

    def candidates(self, text, paths, n, sampling):
        """(tokens, probabilities), both [n_paths, n]: the n most probable after the text and each path."""
        drafted, parents, ends = merged(paths)
        _, ranking = self.after(text, drafted, parents, len(paths), sampling)
        rows = ranking[[end - len(drafted) for end in ends]]  # the nodes of the last depth are the last of all
        tokens = top(rows, n)
        sharper = (rows - rows.max(axis=-1, keepdims=True)) / np.float32(GROWTH.temperature)
        weights = np.exp(sharper)
        return tokens, np.take_along_axis(weights, tokens, -1) / weights.sum(axis=-1, keepdims=True, dtype=np.float64)
