"""The interfaces: language model, drafter and verifier, and what they return.

Nothing here computes a probability. Any object with the right call signature will do; there is no base class:

    LanguageModel   tokens -> logits
    Drafter         tokens -> a few draft tokens, each with the distribution it was sampled from
    Verifier        the draft and the target's distributions -> how many tokens to accept, and the token after them

A sampler puts them together: prompt -> rounds -> a generation (generation.py).

A draft is a chain: each token follows the one before it. Everything that is said of `parents` and `nodes` is for drafts
that branch, which offer the target several tokens for one position (tree.py). A chain is the tree with one branch, so
code for chains leaves these two out, and they are filled in.

Parameters before a `/` are passed by position, so they may have any name. `rng` is a `RandomSource` in every call; its
type is Any so that code written for an np.random.Generator fits.

Letters as in Leviathan et al., arXiv:2211.17192: p is the target's distribution and q the draft's (swapped in Chen et
al., arXiv:2302.01318). Only the draft length, their gamma, is called K here; for a tree it limits the depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

import numpy as np

from .tree import chain, children, depth_of, is_chain

Tokens = Sequence[int] | np.ndarray  # [n_seq] token ids


class RandomSource(Protocol):
    """A source of random numbers, passed down as `rng`. np.random.Generator is one.

    Three more methods are optional; `Gumbel` (rng.py) has them all. `draw(probs) -> token` samples a token in the
    source's own way, and `draw_distinct(probs, k) -> tokens` the siblings in a tree. `at(position) -> source` is for a
    source whose numbers belong to positions of the text.
    """

    def random(self) -> float:
        """A uniform number in [0, 1)."""


class LanguageModel(Protocol):
    """Token ids in, logits out. The result depends on the tokens alone, not on earlier calls.

    This is enough for drafts that are chains; for those that branch the target must be a `TreeModel`.
    """

    @property
    def n_vocab(self) -> int:
        """The number of tokens in the vocabulary."""

    @property
    def n_ctx(self) -> int:
        """The largest number of tokens in a text."""

    def __call__(self, tokens: list[int], /, n_last: int = 1) -> np.ndarray:
        """Logits [n_last, n_vocab] float32: row i predicts the token after tokens[len(tokens) - n_last + i]."""


class TreeModel(LanguageModel, Protocol):
    """A language model that also takes trees; `ByPaths` makes one of any language model."""

    def __call__(self, tokens: list[int], /, n_last: int = 1, parents: Sequence[int] = ()) -> np.ndarray:
        """Logits [n_last, n_vocab] float32. The last len(parents) tokens are a tree that follows the rest (tree.py).

        The row of a node predicts the token after the path to that node. With n_last = len(parents) + 1, the first row
        is the one after the text. Samplers pass `parents` only for drafts that branch.
        """


@dataclass(frozen=True)
class Draft:
    """Draft tokens, and for each one exactly the distribution it was sampled from, after temperature and truncation.

    The row of a deterministic token is one-hot. In a tree, a row is the distribution given the text, the tokens on the
    path to the node, and its elder siblings.

    >>> Draft(tokens=np.array([1, 0]), probs=np.array([[0.1, 0.9], [0.5, 0.5]])).parents  # a chain
    array([-1,  0])
    """

    tokens: np.ndarray  # [n] int64: in a chain n <= K, as a drafter may propose fewer; in a tree a path has at most K
    probs: np.ndarray = field(repr=False)  # [n, n_vocab] float64
    parents: np.ndarray = None  # [n] int64 (see tree.py); a chain if it is not given

    def __post_init__(self):
        if self.parents is None:
            object.__setattr__(self, "parents", chain(len(self.tokens)))

    def children(self, node: int = -1) -> list[int]:
        """The draft tokens that directly follow this node, in order; by default, that directly follow the text."""
        return children(self.parents.tolist(), node)

    @property
    def depth(self) -> int:
        """The number of draft tokens on the longest path; for a chain, all of them."""
        return depth_of(self.parents.tolist())

    @cached_property
    def is_chain(self) -> bool:
        """Whether the draft has one branch, so that models and samplings need no parents."""
        return is_chain(self.parents.tolist())

    def copy(self) -> "Draft":
        """The same draft, in new arrays."""
        return Draft(self.tokens.copy(), self.probs.copy(), self.parents.copy())


@dataclass(frozen=True)
class Verdict:
    """A verifier's decision on a draft: how many of its tokens are accepted, and the token after them.

    >>> Verdict(2, 7)
    Verdict(n_accepted=2, next_token=7, nodes=(0, 1))
    >>> Verdict([0, 3], 7)  # in a tree: which ones
    Verdict(n_accepted=2, next_token=7, nodes=(0, 3))
    """

    n_accepted: int  # a number; for a tree, pass a list of the accepted draft tokens, from the text down
    next_token: int  # the token after the accepted ones: a correction, or the bonus if all were accepted
    nodes: tuple[int, ...] = None  # the accepted draft tokens; filled in

    if TYPE_CHECKING:

        def __init__(
            self,
            n_accepted: SupportsIndex | Sequence[SupportsIndex],
            next_token: SupportsIndex,
            nodes: Sequence[int] | None = None,
        ) -> None:
            """What may be passed; more than the fields contain."""

    def __post_init__(self):
        accepted, nodes = self.n_accepted, self.nodes
        if isinstance(accepted, np.ndarray) and accepted.ndim:
            raise ValueError(
                f"expected a number of accepted draft tokens, or a list of them, got {accepted!r:.60}: int(n) is the "
                "number, nodes.tolist() the list"
            )
        if isinstance(accepted, (list, tuple, range)):
            nodes = accepted
            object.__setattr__(self, "n_accepted", len(nodes))
        elif nodes is None:
            nodes = range(accepted) if hasattr(accepted, "__index__") else ()  # the loop refuses this
        object.__setattr__(self, "nodes", tuple(nodes))


class Drafter(Protocol):
    """Proposes the next tokens.

    Further attributes are optional. A drafter that samples has an attribute `sampling`, its settings. None means "as
    the sampler does": the sampler then uses a copy of the drafter with its own settings (`sampler.drafter`).

    A drafter that learns from the target has a method `observe(tokens, logits, parents)`. After each call of the target
    it is shown the tokens of the call (the text and the whole draft, accepted or not), the target's logits [n + 1,
    n_vocab] (row 0 after the text, row i + 1 after draft token i) and the draft's parents [n]. The next call of
    `propose` shows which draft tokens were accepted: they are in its text. A text that does not continue the previous
    one is a new text.
    """

    def propose(self, tokens: list[int], K: int, rng: Any, /) -> Draft:
        """At most K tokens to follow `tokens`, or a tree of depth at most K; an empty draft for K = 0."""


class Verifier(Protocol):
    """Decides on a whole draft. A plain function will do.

    It may declare attributes: `exactness` and `trees`, which `exactness_of` and `takes_trees` return; and `draws`, the
    order of its uniform numbers, so that a trace can show which number decided on which draft token: one for each
    tested draft token ("tested"), for each draft token ("drafted"), or for each accepted position ("positions"), and
    then one for the token that follows. A rule that uses one number for several decisions declares nothing.
    """

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: Any, /) -> Verdict:
        """`target_probs` is [n + 1, n_vocab] float64: row 0 follows the text, row i + 1 follows draft token i."""


def exactness_of(verifier: Verifier) -> str:
    """The attribute `exactness` of a verifier, "exact", ..., "LOSSY"; "not declared" if it has none."""
    return getattr(verifier, "exactness", "not declared")


def takes_trees(verifier: Verifier) -> bool:
    """Whether a verifier declares, in its attribute `trees`, that it supports drafts that branch."""
    return bool(getattr(verifier, "trees", False))
