"""What samplers return: a round for each call of the target, and the generation made of them, with its counts.

Both display themselves in a notebook (trace/notebook.py). Rounds of a tree also say which of its tokens were accepted.
Next: rng.py
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .tree import children_of, depth_of


@dataclass(frozen=True)
class Round:
    """One call of the target, and the tokens that it added to the text."""

    tokens: np.ndarray  # [n_new] int64: the accepted draft tokens, then one from the target; cut where the text stops
    drafted: np.ndarray  # [n] int64
    n_accepted: int  # how many of the drafted tokens are in `tokens`
    seconds: dict = field(repr=False)  # "draft", "target" and "verify" -> seconds
    draft_probs: np.ndarray | None = field(repr=False)  # [n, n_vocab] float64, and ...
    target_probs: np.ndarray | None = field(repr=False)  # ... [n + 1, n_vocab]; None without keep_probs
    uniforms: tuple = field(default=(), repr=False)  # the uniform numbers that the verifier drew, in order
    parents: np.ndarray | None = None  # of a tree, and ...
    nodes: tuple[int, ...] | None = None  # ... which of the drafted tokens are in `tokens`; None for a chain

    @property
    def depth(self) -> int:
        """The number of drafted tokens on the longest path; for a chain, all of them."""
        return depth_of(len(self.drafted), self.parents)

    def children(self, node: int = -1) -> list[int]:
        """The drafted tokens that directly follow this one, in order; by default those that follow the text."""
        return children_of(node, len(self.drafted), self.parents)

    @property
    def accepted(self) -> list[int]:
        """The indices of the drafted tokens that are in `tokens`, in order."""
        return list(range(self.n_accepted) if self.nodes is None else self.nodes)

    @property
    def origins(self) -> list[str]:
        """Where each token comes from: "accepted"; for the last "correction", "bonus", or "plain" (empty draft)."""
        if len(self.drafted) == 0:
            last = "plain"
        elif not self.children(self.accepted[-1] if self.accepted else -1):
            last = "bonus"
        else:
            last = "correction"
        return (["accepted"] * self.n_accepted + [last])[: len(self.tokens)]

    def _repr_html_(self):
        from .trace.notebook import round_html

        return round_html(self)


@dataclass(frozen=True)
class Stats:
    """Counts over the rounds of a generation; of several, `collect(prompt, [*a.rounds, *b.rounds]).stats`."""

    n_tokens: int
    target_calls: int
    drafted: int
    accepted: int
    rejected: int  # rounds that end in a correction
    drafted_by_position: list[int]  # [i]: rounds that drafted an (i + 1)th token (a tree: on some path)
    accepted_by_position: list[int]  # [i]: rounds that accepted it
    seconds: dict  # "draft", "target" and "verify" -> seconds

    @property
    def tokens_per_target_call(self) -> float:
        return self.n_tokens / self.target_calls if self.target_calls else 0.0

    @property
    def acceptance(self) -> float:
        """Accepted / drafted tokens, or 0. Not alpha: tokens drafted after a rejection count as drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def acceptance_by_position(self) -> list[float]:
        """[i]: the share of the rounds that drafted an (i + 1)th token in which it was accepted."""
        return [accepted / drafted for accepted, drafted in zip(self.accepted_by_position, self.drafted_by_position)]

    def __str__(self):
        """In the terms of llama.cpp; n_draft is the length of the longest draft."""
        return (
            f"n_draft = {len(self.drafted_by_position)}, n_predict = {self.n_tokens}, n_drafted = {self.drafted}, "
            f"n_accept = {self.accepted}, accept = {self.acceptance:.3%}"
        )


@dataclass(frozen=True)
class Generation:
    """The result of a sampler: the new tokens, and the rounds that produced them."""

    prompt: np.ndarray  # [n_prompt] int64
    tokens: np.ndarray  # [n_tokens] int64: the new ones
    rounds: tuple[Round, ...] = field(repr=False)

    @cached_property
    def stats(self) -> Stats:
        deepest = max((r.depth for r in self.rounds), default=0)
        return Stats(
            n_tokens=len(self.tokens),
            target_calls=len(self.rounds),
            drafted=sum(len(r.drafted) for r in self.rounds),
            accepted=sum(r.n_accepted for r in self.rounds),
            rejected=sum(r.origins[-1] == "correction" for r in self.rounds),
            drafted_by_position=[sum(r.depth > i for r in self.rounds) for i in range(deepest)],
            accepted_by_position=[sum(r.n_accepted > i for r in self.rounds) for i in range(deepest)],
            seconds={part: sum(r.seconds[part] for r in self.rounds) for part in ("draft", "target", "verify")},
        )

    def _repr_html_(self):
        from .trace.notebook import generation_html

        return generation_html(self)


def collect(prompt: Sequence[int], rounds: Iterable[Round], keep_probs: bool = False) -> Generation:
    """The `Generation` made of these rounds.

    The rows of probabilities, some megabytes per round with GPT-2's vocabulary, are kept only with keep_probs=True.
    """
    kept = tuple(r if keep_probs else replace(r, draft_probs=None, target_probs=None) for r in rounds)
    tokens = np.concatenate([np.empty(0, np.int64), *(r.tokens for r in kept)])
    return Generation(np.array([*prompt], dtype=np.int64), tokens, kept)
