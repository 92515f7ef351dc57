"""The interfaces: language model, drafter, verifier and sampler, and what each of them returns.

Nothing here computes a probability. Any object with the right call signature will do; there is no base class:

    LanguageModel   tokens -> logits
    Drafter         tokens -> a few drafted tokens, each with the distribution it was drawn from
    Verifier        the draft and the target's distributions -> how many tokens to accept, and the token after them
    Sampler         prompt -> rounds -> a generation

Letters: K is the draft length (gamma in Leviathan et al.). p is the target's distribution and q the draft's, as in
Leviathan et al., arXiv:2211.17192; Chen et al., arXiv:2302.01318, have the two the other way round.
Next: rng.py
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np


class RandomSource(Protocol):
    """A source of random numbers, passed down as `rng`. np.random.Generator is one.

    More methods are optional; `Gumbel` (rng.py) has them: `draw(probs) -> token`, for a source that draws tokens in its
    own way, `draw_distinct(probs, k) -> tokens`, for siblings in a tree, and `at(position) -> source`, for a source
    whose numbers belong to positions of the text.
    """

    def random(self) -> float:
        """A uniform number in [0, 1)."""


class LanguageModel(Protocol):
    """Token ids in, logits out. The result depends on the tokens alone, not on earlier calls."""

    n_vocab: int
    n_ctx: int

    def __call__(self, tokens: Sequence[int], n_last: int = 1) -> np.ndarray:
        """Logits [n_last, n_vocab] float32: row i predicts the token after tokens[len(tokens) - n_last + i]."""


@dataclass(frozen=True)
class Draft:
    """Draft tokens, and for each one exactly the distribution it was drawn from, after temperature and truncation."""

    tokens: np.ndarray  # [k] int64, 0 <= k <= K: a drafter may propose fewer than K
    probs: np.ndarray  # [k, n_vocab] float64; one-hot where the token is certain


class Drafter(Protocol):
    """Proposes what comes next."""

    def propose(self, tokens: Sequence[int], K: int, rng: RandomSource) -> Draft:
        """At most K tokens to follow `tokens`; an empty draft for K = 0."""


@dataclass(frozen=True)
class Verdict:
    n_accepted: int  # how many draft tokens are accepted, counted from the first
    next_token: int  # the token after the accepted ones: a correction, or the bonus if all were accepted


class Verifier(Protocol):
    """Decides on a whole draft. A plain function will do; `exactness_of` returns what it declares about itself."""

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
        """`target_probs` [k + 1, n_vocab] float64: row i is the target's distribution at place i of the draft."""


def exactness_of(verifier: Verifier) -> str:
    """What a verifier declares in its attribute `exactness`: "exact", ..., "LOSSY"; "not declared" if it has none."""
    return getattr(verifier, "exactness", "not declared")


@dataclass(frozen=True)
class Round:
    """One call of the target, and the tokens that it added to the text."""

    tokens: np.ndarray  # [n] int64: the accepted draft tokens, then one from the target; cut after a stop token
    drafted: np.ndarray  # [k] int64
    n_accepted: int  # how many of the drafted tokens are in `tokens`
    seconds: dict  # "draft", "target" and "verify" -> seconds
    draft_probs: np.ndarray | None  # [k, n_vocab] float64, and ...
    target_probs: np.ndarray | None  # ... [k + 1, n_vocab]; None in a Generation without keep_probs=True
    uniforms: tuple = ()  # the uniform numbers that the verifier drew with rng.random(), in order

    @property
    def origins(self) -> list[str]:
        """Where each token comes from: "accepted"; for the last "correction", "bonus", or "plain" (empty draft)."""
        if len(self.drafted) == 0:
            last = "plain"
        elif self.n_accepted == len(self.drafted):
            last = "bonus"
        else:
            last = "correction"
        return (["accepted"] * self.n_accepted + [last])[: len(self.tokens)]

    def _repr_html_(self):
        from .trace.notebook import round_html

        return round_html(self)


@dataclass(frozen=True)
class Stats:
    """Counts over the rounds of a generation."""

    n_tokens: int
    target_calls: int
    drafted: int
    accepted: int
    rejected: int  # rounds that end in a correction
    drafted_by_position: list[int]  # [i]: rounds that drafted an (i + 1)th token
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
    rounds: tuple[Round, ...]

    @cached_property
    def stats(self) -> Stats:
        deepest = max((len(r.drafted) for r in self.rounds), default=0)
        return Stats(
            n_tokens=len(self.tokens),
            target_calls=len(self.rounds),
            drafted=sum(len(r.drafted) for r in self.rounds),
            accepted=sum(r.n_accepted for r in self.rounds),
            rejected=sum(r.origins[-1] == "correction" for r in self.rounds),
            drafted_by_position=[sum(len(r.drafted) > i for r in self.rounds) for i in range(deepest)],
            accepted_by_position=[sum(r.n_accepted > i for r in self.rounds) for i in range(deepest)],
            seconds={part: sum(r.seconds[part] for r in self.rounds) for part in ("draft", "target", "verify")},
        )

    def _repr_html_(self):
        from .trace.notebook import generation_html

        return generation_html(self)


class Sampler(Protocol):
    """Continues a prompt."""

    def rounds(
        self,
        prompt: Sequence[int],
        n_tokens: int,
        rng: Any = None,
        *,
        stop_tokens: Collection[int] = (),
        stop: Callable | None = None,
    ) -> Iterator[Round]:
        """Generate round by round: an iterator, for stepping through."""

    def generate(
        self,
        prompt: Sequence[int],
        n_tokens: int,
        rng: Any = None,
        *,
        stop_tokens: Collection[int] = (),
        stop: Callable | None = None,
        keep_probs: bool = False,
    ) -> Generation:
        """All rounds at once: exactly n_tokens new tokens, or fewer if a stop token or a stop text comes first."""


def collect(prompt: Sequence[int], rounds: Iterable[Round], keep_probs: bool = False) -> Generation:
    """The `Generation` made of these rounds.

    The rows of probabilities, some megabytes per round with GPT-2's vocabulary, are kept only with keep_probs=True.
    """
    kept = tuple(r if keep_probs else replace(r, draft_probs=None, target_probs=None) for r in rounds)
    tokens = np.concatenate([np.empty(0, np.int64), *(r.tokens for r in kept)])
    return Generation(np.asarray(prompt, dtype=np.int64), tokens, kept)
