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
from ..sampler import SpeculativeSampler
from ..theory.expected import tree_tokens
from ..verifiers.rejection import rejection

N_COUNTED = 4  # the number of verdicts at each position


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


def acceptance_by_rank(target, drafter, tokens, n, sampling, rng=0, verifier=rejection):
    """w [n_ranks]: how often the child of each rank is accepted, on average over the last n positions of a text.

    The drafter drafts a tree of depth 1, `Shape.widths(n_ranks)`, or fewer tokens. With `rejection`, and with every
    rule at temperature 0, where all rules agree, each position's probabilities are computed. Otherwise verdicts are
    counted: one at each position with common random numbers, four without.
    """
    drafter = inheriting(drafter, sampling)
    rng, ends = as_generator(rng), range(len(tokens) - n, len(tokens))
    if verifier is rejection or getattr(sampling, "temperature", 1) == 0:
        rows = []  # the acceptance of the children at each position
        for text in (tokens[:end] for end in ends):
            draft, logits = drafter.propose(text, 1, rng), target(text)
            rows.append(accepted_by_rank(draft, sampling(logits, text)[0]))
            show_drafter(drafter, text, logits, draft.parents[:0])
    else:
        sampler = SpeculativeSampler(target, drafter, K=1, sampling=sampling, verifier=verifier)
        times = 1 if hasattr(rng, "at") else N_COUNTED
        rounds = [next(sampler.rounds(tokens[:end], 2, rng)) for _ in range(times) for end in ends]
        rows = [[float(child in round_.nodes) for child in round_.draft.children()] for round_ in rounds]
    w = np.zeros((len(rows), max(map(len, rows))))
    for padded, row in zip(w, rows):
        padded[: len(row)] = row
    return w.mean(axis=0)


def acceptance_together(make, n_ranks, *arguments, **keywords):
    """[n_ranks or fewer]: how often one of 1, 2, ... children is accepted, where make(shape) is (target, drafter).

    Where a child's row depends on the number of its siblings, as with the rule "drawn" of `TreeDrafter`, each number is
    measured separately. From `tokens` on, the arguments are those of `acceptance_by_rank`.
    """
    target, drafter = make(Shape.widths(n_ranks))
    if not getattr(drafter, "depends_on_siblings", False):
        return np.cumsum(acceptance_by_rank(target, drafter, *arguments, **keywords))
    pairs = (make(Shape.widths(k)) for k in range(1, n_ranks + 1))
    return np.array([acceptance_by_rank(*pair, *arguments, **keywords).sum() for pair in pairs])


def added(together):
    """w [n_ranks]: the acceptance that each child adds to the acceptance of earlier children; never less than 0.

    >>> added(np.array([0.5, 0.75, 0.625, 0.875]))
    array([0.5  , 0.25 , 0.   , 0.125])
    """
    return np.diff(np.maximum.accumulate(together), prepend=0.0)


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
