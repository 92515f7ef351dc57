"""The seams: what a language model, a drafter, a verifier and a sampler are to each other, and what they return.

Nothing here computes a probability. Anything with the right call will do; nobody inherits from anything:

    LanguageModel   tokens -> logits
    Drafter         tokens -> a few guessed tokens, each with the distribution it was drawn from
    Verifier        the guesses and the target's distributions -> how many to keep, and one token more
    Sampler         prompt -> rounds -> a generation

Letters: K is the draft length (gamma in Leviathan et al.). p is the target's distribution and q the draft's, as in
Leviathan et al., arXiv:2211.17192; Chen et al., arXiv:2302.01318, have the two the other way round.
Next: probs.py
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .trace.notebook import generation_html, round_html


class LanguageModel(Protocol):
    """Token ids in, logits out. The result depends on the tokens alone, whatever was asked before."""

    n_vocab: int
    n_ctx: int

    def __call__(self, tokens: Sequence[int], n_last: int = 1) -> np.ndarray:
        """Logits [n_last, n_vocab] float32: row i predicts the token after tokens[len(tokens) - n_last + i]."""


@dataclass(frozen=True)
class Draft:
    """Guessed tokens, and for each exactly the distribution it was drawn from, after temperature and truncation."""

    tokens: np.ndarray  # [k] int64, 0 <= k <= K: a drafter may know less
    probs: np.ndarray  # [k, n_vocab] float64; one-hot where the guess is deterministic


class Drafter(Protocol):
    """Guesses what comes next."""

    def propose(self, tokens: Sequence[int], K: int, rng: Any) -> Draft:
        """At most K guesses for what follows `tokens`; none for K = 0."""


@dataclass(frozen=True)
class Verdict:
    n_accepted: int  # of the drafted tokens, from the first on
    next_token: int  # the token after the accepted ones: a correction, or the bonus where all were accepted


class Verifier(Protocol):
    """Decides on a whole block. A plain function will do; its attribute `exactness` is printed with results."""

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: Any) -> Verdict:
        """`target_probs` [k + 1, n_vocab] float64: row i is the target's distribution where drafted token i stands."""


@dataclass(frozen=True)
class Round:
    """One call of the target, and the tokens it led to."""

    tokens: np.ndarray  # [n] int64: the accepted ones of the draft, then one of the target's; none behind a stop token
    drafted: np.ndarray  # [k] int64
    n_accepted: int  # of the drafted tokens, how many stand in `tokens`
    seconds: dict  # "draft", "target" and "verify" -> seconds
    draft_probs: np.ndarray | None  # [k, n_vocab] float64, and ...
    target_probs: np.ndarray | None  # ... [k + 1, n_vocab]; None in a Generation, unless it was asked to keep them
    uniforms: tuple = ()  # the numbers that the verifier drew with rng.random(), in order

    @property
    def origins(self) -> list[str]:
        """Where each token comes from: "accepted", and the last "correction", "bonus", or "plain" (nothing drafted)."""
        last = "plain" if len(self.drafted) == 0 else "bonus" if self.n_accepted == len(self.drafted) else "correction"
        return (["accepted"] * self.n_accepted + [last])[: len(self.tokens)]

    def _repr_html_(self):
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
        """Accepted over drafted tokens, or 0. Not alpha: what was drafted behind a rejection counts as drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def acceptance_by_position(self) -> list[float]:
        """[i]: of the rounds that drafted an (i + 1)th token, the share that accepted it."""
        return [accepted / drafted for accepted, drafted in zip(self.accepted_by_position, self.drafted_by_position)]

    def __str__(self):
        """In the terms of llama.cpp; n_draft is the length of the longest draft."""
        return (
            f"n_draft = {len(self.drafted_by_position)}, n_predict = {self.n_tokens}, n_drafted = {self.drafted}, "
            f"n_accept = {self.accepted}, accept = {self.acceptance:.3%}"
        )


@dataclass(frozen=True)
class Generation:
    """What a sampler made of a prompt."""

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
        return generation_html(self)


class Sampler(Protocol):
    """Continues a prompt."""

    def rounds(self, prompt: Sequence[int], n_tokens: int, rng: Any = None) -> Iterator[Round]:
        """Generate round by round, to be stepped through."""

    def generate(self, prompt: Sequence[int], n_tokens: int, rng: Any = None) -> Generation:
        """All rounds at once: exactly n_tokens new tokens, or fewer where a stop token or stop text comes first."""


def collect(prompt: Sequence[int], rounds: Iterable[Round], keep_probs: bool = False) -> Generation:
    """The generation that these rounds add up to.

    The rows of probabilities, some megabytes a round at GPT-2's vocabulary, are kept only where asked for.
    """
    kept = tuple(r if keep_probs else replace(r, draft_probs=None, target_probs=None) for r in rounds)
    tokens = np.concatenate([np.empty(0, np.int64), *(r.tokens for r in kept)])
    return Generation(np.asarray(prompt, dtype=np.int64), tokens, kept)


def check_request(prompt: Sequence[int], n_tokens: int, model: LanguageModel) -> list[int]:
    """The prompt as a new list of int; ValueError unless `model` can continue it by n_tokens."""
    tokens = [int(token) for token in prompt]
    if not tokens:
        raise ValueError("the prompt has no tokens: start from at least one, such as <|endoftext|>")
    if min(tokens) < 0 or max(tokens) >= model.n_vocab:
        raise ValueError(
            f"expected prompt tokens from 0 to {model.n_vocab - 1}, got {min(tokens)} to {max(tokens)}: "
            "encode the text with the target's tokenizer"
        )
    if n_tokens < 0:
        raise ValueError(f"expected n_tokens of 0 or more, got {n_tokens}")
    if len(tokens) + n_tokens > model.n_ctx:
        room = model.n_ctx - len(tokens)
        remedy = f"generate at most {room} or shorten the prompt" if room > 0 else "shorten the prompt"
        raise ValueError(
            f"prompt has {len(tokens)} tokens and n_tokens is {n_tokens}, but n_ctx is {model.n_ctx}: {remedy}"
        )
    return tokens
