"""The interfaces: language model, drafter, verifier and sampler, and the results of each.

Nothing here computes a probability. Any object with the right call signature will do; there is no base class:

    LanguageModel   tokens -> logits
    Drafter         tokens -> a few draft tokens, each with the distribution it was sampled from
    Verifier        the draft and the target's distributions -> how many tokens to accept, and the token after them
    Sampler         prompt -> rounds -> a generation

A draft may branch: a token tree offers the target several tokens for one position (tree.py). A chain is the tree with
one branch. Code for chains can leave out `parents` and `nodes`; they are filled in.

Letters as in Leviathan et al., arXiv:2211.17192: p is the target's distribution and q the draft's (swapped in Chen et
al., arXiv:2302.01318). Only the draft length, their gamma, is called K here; for a tree it limits the depth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .tree import chain, children, depth_of, is_chain


class RandomSource(Protocol):
    """A source of random numbers, passed down as `rng`. np.random.Generator is one.

    Three more methods are optional; `Gumbel` (rng.py) has them all. `draw(probs) -> token` samples a token in the
    source's own way, and `draw_distinct(probs, k) -> tokens` the siblings in a tree. `at(position) -> source` is for a
    source whose numbers belong to positions of the text.
    """

    def random(self) -> float:
        """A uniform number in [0, 1)."""


class LanguageModel(Protocol):
    """Token ids in, logits out. The result depends on the tokens alone, not on earlier calls."""

    @property
    def n_vocab(self) -> int:
        """The number of tokens in the vocabulary."""

    @property
    def n_ctx(self) -> int:
        """The largest number of tokens in a text."""

    def __call__(self, tokens: Sequence[int], n_last: int = 1, parents: Sequence[int] = ()) -> np.ndarray:
        """Logits [n_last, n_vocab] float32: row i predicts the token after tokens[len(tokens) - n_last + i].

        With `parents`, the last len(parents) tokens are a tree that follows the rest (see tree.py); the row of a node
        predicts the token after the path to that node. With n_last = len(parents) + 1, the first row is the one after
        the text. Samplers pass `parents` only for drafts that branch, so a model without it supports every chain;
        `ByPaths` adds it to any model.
        """


@dataclass(frozen=True)
class Draft:
    """Draft tokens, and for each one exactly the distribution it was sampled from, after temperature and truncation.

    In a tree this means its distribution given the text, the tokens on its path, and its elder siblings. The row of a
    deterministic token is one-hot.
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
    """A verifier's decision on a draft: which of its tokens are accepted, and the token after them.

    >>> Verdict(2, 7)
    Verdict(n_accepted=2, next_token=7, nodes=(0, 1))
    >>> Verdict([0, 3], 7)
    Verdict(n_accepted=2, next_token=7, nodes=(0, 3))
    """

    n_accepted: int  # a number; for a tree, pass a list of the accepted draft tokens, from the text down
    next_token: int  # the token after the accepted ones: a correction, or the bonus if all were accepted
    nodes: tuple[int, ...] = None  # the accepted draft tokens; filled in

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

    def propose(self, tokens: Sequence[int], K: int, rng: RandomSource) -> Draft:
        """At most K tokens to follow `tokens`, or a tree of depth at most K; an empty draft for K = 0."""


class Verifier(Protocol):
    """Decides on a whole draft. A plain function will do.

    It may declare attributes: `exactness` and `trees`, which `exactness_of` and `takes_trees` return; and `draws`, the
    order of its uniform numbers, so that a trace can show which number decided on which draft token: one for each
    tested draft token ("tested"), for each draft token ("drafted"), or for each accepted position ("positions"), and
    then one for the token that follows.
    """

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
        """`target_probs` is [n + 1, n_vocab] float64: row 0 follows the text, row i + 1 follows draft token i."""


def exactness_of(verifier: Verifier) -> str:
    """The attribute `exactness` of a verifier, "exact", ..., "LOSSY"; "not declared" if it has none."""
    return getattr(verifier, "exactness", "not declared")


def takes_trees(verifier: Verifier) -> bool:
    """Whether a verifier declares, in its attribute `trees`, that it supports drafts that branch."""
    return bool(getattr(verifier, "trees", False))


class Laps:
    """A stopwatch for a round: `end(name)` adds to seconds[name] the time since the previous lap ended."""

    def __init__(self):
        self.seconds = {"draft": 0.0, "target": 0.0, "verify": 0.0}
        self.started = perf_counter()

    def end(self, name):
        now = perf_counter()
        self.seconds[name] += now - self.started
        self.started = now


@dataclass(frozen=True)
class Round:
    """One call of the target: a draft, the verdict on it, and the tokens that they added to the text."""

    tokens: np.ndarray  # [n_new] int64: the accepted draft tokens, then one from the target; cut at a stop
    draft: Draft  # its probs, and ...
    verdict: Verdict  # on the draft tokens that are in `tokens`
    target_probs: np.ndarray | None = field(repr=False)  # ... [n + 1, n_vocab] float64: None without keep_probs
    seconds: dict = field(repr=False)  # "draft", "target" and "verify" -> seconds
    uniforms: tuple = field(default=(), repr=False)  # the uniform numbers that the verifier drew, in order, and ...
    draws: str = field(default="", repr=False)  # ... the decisions they were for, as it declares (see `Verifier`)

    @property
    def drafted(self) -> np.ndarray:
        """[n] int64: the draft tokens."""
        return self.draft.tokens

    @property
    def draft_probs(self) -> np.ndarray | None:
        """[n, n_vocab] float64; None without keep_probs."""
        return self.draft.probs

    @property
    def n_accepted(self) -> int:
        """The number of draft tokens in `tokens`."""
        return self.verdict.n_accepted

    @property
    def nodes(self) -> tuple[int, ...]:
        """The draft tokens in `tokens`, as node indices from the text down."""
        return self.verdict.nodes

    @property
    def origins(self) -> list[str]:
        """The source of each token: "accepted"; for the last one "correction", "bonus", or "plain" (empty draft)."""
        if len(self.drafted) == 0:
            last = "plain"
        else:
            last = "correction" if self.draft.children(self.nodes[-1] if self.nodes else -1) else "bonus"
        return (["accepted"] * self.n_accepted + [last])[: len(self.tokens)]

    def without_probs(self) -> "Round":
        """This round without the probabilities, which take a few megabytes with GPT-2's vocabulary."""
        return replace(self, draft=replace(self.draft, probs=None), target_probs=None)


@dataclass(frozen=True)
class Stats:
    """Counts over the rounds of a generation; for several, use `collect(prompt, [*a.rounds, *b.rounds]).stats`."""

    n_tokens: int
    target_calls: int
    drafted: int
    accepted: int
    rejected: int  # rounds that end in a correction
    drafted_by_position: list[int]  # [i]: rounds that drafted an (i + 1)th token (a tree: on some path)
    accepted_by_position: list[int]  # [i]: rounds that accepted it
    seconds: dict = field(default_factory=dict)  # "draft", "target" and "verify" -> seconds

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int, bool]], seconds: dict | None = None) -> "Stats":
        """The counts over rounds. A row is (tokens added, tokens drafted, depth of the draft, tokens accepted, whether
        the round ends in a correction)."""
        rows = list(rows)
        n_tokens, drafted, depths, accepted, rejected = zip(*rows) if rows else ((), (), (), (), ())
        positions = range(max(depths, default=0))
        return cls(
            n_tokens=sum(n_tokens),
            target_calls=len(rows),
            drafted=sum(drafted),
            accepted=sum(accepted),
            rejected=sum(rejected),
            drafted_by_position=[sum(depth > i for depth in depths) for i in positions],
            accepted_by_position=[sum(n > i for n in accepted) for i in positions],
            seconds=seconds or {},
        )

    @property
    def tokens_per_target_call(self) -> float:
        return self.n_tokens / self.target_calls if self.target_calls else 0.0

    @property
    def acceptance(self) -> float:
        """Accepted / drafted tokens, or 0. This is not alpha: tokens drafted after a rejection count as drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def acceptance_by_position(self) -> list[float]:
        """[i]: the share of the rounds that drafted an (i + 1)th token in which it was accepted."""
        return [accepted / drafted for accepted, drafted in zip(self.accepted_by_position, self.drafted_by_position)]

    def __str__(self):
        drafted = f"; {self.accepted} of {self.drafted} draft tokens accepted ({self.acceptance:.0%})"
        return (
            f"{self.n_tokens} tokens in {self.target_calls} calls of the target, {self.tokens_per_target_call:.2f} "
            f"per call{drafted if self.drafted else ''}"
        )


@dataclass(frozen=True)
class Generation:
    """The result of a sampler: the new tokens, and the rounds that produced them."""

    prompt: np.ndarray  # [n_prompt] int64
    tokens: np.ndarray  # [n_tokens] int64: the new tokens
    rounds: tuple[Round, ...] = field(repr=False)

    @cached_property
    def stats(self) -> Stats:
        rows = (
            (len(r.tokens), len(r.drafted), r.draft.depth, r.n_accepted, r.origins[-1] == "correction")
            for r in self.rounds
        )
        seconds = {part: sum(r.seconds[part] for r in self.rounds) for part in ("draft", "target", "verify")}
        return Stats.of(rows, seconds)


def collect(prompt: Sequence[int], rounds: Iterable[Round], keep_probs: bool = False) -> Generation:
    """These rounds as a `Generation`.

    The rows of probabilities are stored only with keep_probs=True.
    """
    kept = tuple(r if keep_probs else r.without_probs() for r in rounds)
    tokens = np.concatenate([np.empty(0, np.int64), *(r.tokens for r in kept)])
    return Generation(np.array([*prompt], dtype=np.int64), tokens, kept)


class Sampler(Protocol):
    """Continues a prompt."""

    def rounds(
        self, prompt: Sequence[int], n_tokens: int, rng: Any = None, *, stop_tokens: Any = (), stop: Any = None
    ) -> Iterator[Round]:
        """Generate round by round: an iterator to step through."""

    def generate(
        self, prompt: Sequence[int], n_tokens: int, rng: Any = None, *, stop_tokens: Any = (), stop: Any = None
    ) -> Generation:
        """All rounds at once: exactly n_tokens new tokens, or fewer if a stop token or a stop text comes first."""
