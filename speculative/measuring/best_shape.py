"""The best size of a tree, from measured acceptance by rank and measured costs.

A larger tree yields at least as many tokens per call, but each node adds a row to the target's pass, and each depth a
pass of the draft model. With w_b, the probability that the b-th child of a node is accepted, the shape with the best

    (1 + the sum over the nodes of the products of w along their paths) / (v(n + 1) + depth c)

is found by trying all sizes and depths; `Shape.best` finds the shape for each. This assumes the same w at every node.
Source: Chen et al. (Sequoia), arXiv:2402.12374, section 3.3 (the hardware-aware tree optimizer).
"""

import numpy as np

from ..checks import show_drafter
from ..drafters.shapes import Shape
from ..interfaces import Draft
from ..logits.probs import acceptance_probability, inheriting, residual
from ..rng import as_generator
from ..theory.expected import tree_tokens


def accepted_by_rank(draft: Draft, p):
    """The probability that each child of the text is the one that `rejection` accepts, given the draft: [n_children].

    >>> draft = Draft(np.array([0, 1]), np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([-1, -1]))
    >>> accepted_by_rank(draft, np.array([0.25, 0.75]))
    array([0.5, 0.5])
    """
    left, accepted = 1.0, []  # the probability that all children so far are rejected; that each is the accepted one
    for child in draft.children():
        q = draft.probs[child]
        accept = acceptance_probability(p, q, draft.tokens[child])
        accepted.append(left * accept)
        left *= 1 - accept
        p = residual(p, q)
    return np.array(accepted)


def acceptance_by_rank(target, drafter, tokens, n, sampling, rng=0):
    """w [n_ranks]: how often `rejection` accepts the child of each rank, on average over a text's last n positions.

    The drafter drafts a tree of depth 1, `Shape.widths(n_ranks)`, or fewer tokens.
    """
    drafter, rng = inheriting(drafter, sampling), as_generator(rng)
    rows = []  # the acceptance of the children at each position
    for end in range(len(tokens) - n, len(tokens)):
        text = tokens[:end]
        draft, logits = drafter.propose(text, 1, rng), target(text)
        rows.append(accepted_by_rank(draft, sampling(logits, text)[0]))
        show_drafter(drafter, text, logits, draft.parents[:0])
    w = np.zeros((len(rows), max(map(len, rows))))
    for padded, row in zip(w, rows):
        padded[: len(row)] = row
    return w.mean(axis=0)


def best_shape(w, c, v, max_depth=8):
    """(Shape, speedup): the tree that is expected to save the most time; it has 0 nodes if no tree pays.

    w comes from `acceptance_by_rank`, c and v from `Costs`, where c is for one depth of the draft. A tree has at most
    len(v) - 1 nodes, and exactly that many if extra tokens in a pass are free. If each costs a whole step, none pays.

    >>> shape, speedup = best_shape([0.6, 0.2], c=0.1, v=[1] * 5)
    >>> shape.parents, round(speedup, 2)
    ((-1, -1, 0, 0), 1.9)
    >>> best_shape([0.6, 0.2], c=0.1, v=range(1, 6))
    (Shape(parents=(), ranks=()), 1.0)
    """
    falling = np.minimum.accumulate(w)
    shapes = [Shape((), ())]
    for depth in range(1, min(max_depth, len(v) - 1) + 1):
        shapes += [Shape.chain(depth), *(Shape.best(n, falling, depth) for n in range(depth, len(v)))]

    def speedup(shape):
        return tree_tokens(shape.parents, w) / (v[len(shape)] + shape.depth * c)

    best = max(shapes, key=speedup)
    return best, speedup(best)
