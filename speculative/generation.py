"""What a sampler returns: a round for each call of the target, their counts, and the whole generation.

A sampler is any object with `rounds` and `generate`, such as those in sampler.py and autoregressive.py.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .checks import check_request, check_stop
from .interfaces import Draft, LanguageModel, RandomSource, Tokens, Verdict
from .rng import as_generator


class Laps:
    """A stopwatch for a round: `end(name)` adds to seconds[name] the time since the last `end`, or the start."""

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
    target_probs: np.ndarray | Any = field(repr=False)  # ... [n + 1, n_vocab] float64: None without keep_probs
    seconds: dict[str, float] = field(repr=False)  # "draft", "target" and "verify" -> seconds
    uniforms: tuple[float, ...] = field(
        default=(), repr=False
    )  # the uniform numbers that the verifier drew, in order, and ...
    draws: str = field(default="", repr=False)  # ... the decisions they were for, as it declares (see `Verifier`)

    @property
    def drafted(self) -> np.ndarray:
        """[n] int64: the draft tokens."""
        return self.draft.tokens

    @property
    def draft_probs(self) -> np.ndarray | Any:
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
    seconds: dict[str, float] = field(default_factory=dict)  # "draft", "target" and "verify" -> seconds

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]], seconds: dict[str, float] | None = None) -> "Stats":
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

    def __str__(self) -> str:
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

    @property
    def calls(self) -> list[list]:
        """For each call of the target, what `Stats.of` takes."""
        return [
            [len(r.tokens), len(r.drafted), r.draft.depth, r.n_accepted, r.origins[-1] == "correction"]
            for r in self.rounds
        ]

    @cached_property
    def stats(self) -> Stats:
        seconds = {part: sum(r.seconds[part] for r in self.rounds) for part in ("draft", "target", "verify")}
        return Stats.of(self.calls, seconds)


def collect(prompt: Tokens, rounds: Iterable[Round], keep_probs: bool = False) -> Generation:
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


class RoundByRound:
    """A sampler with a generator `_rounds(tokens, n_tokens, rng, stop_tokens, stop)`, which does the work."""

    target: LanguageModel

    def rounds(
        self,
        prompt: Tokens,
        n_tokens: int,
        rng: int | RandomSource | None = None,
        *,
        stop_tokens: Collection[int] = (),
        stop: Callable[[list[int]], bool] | None = None,
    ) -> Iterator[Round]:
        """An iterator with one `Round` for each call of the target. The parameters are those of `generate`."""
        tokens = check_request(prompt, n_tokens, self.target)
        return self._rounds(tokens, int(n_tokens), as_generator(rng), check_stop(stop_tokens, stop), stop)

    def generate(
        self,
        prompt: Tokens,
        n_tokens: int,
        rng: int | RandomSource | None = None,
        *,
        stop_tokens: Collection[int] = (),
        stop: Callable[[list[int]], bool] | None = None,
        keep_probs: bool = False,
    ) -> Generation:
        """A `Generation` with exactly n_tokens new tokens, or with fewer if it stops early.

        Parameters
        ----------
        prompt
            Token ids [n_prompt], at least one.
        n_tokens
            How many tokens to generate.
        rng
            A seed; a source, such as an np.random.Generator, which is used as it is; or None for a fresh seed.
        stop_tokens
            Token ids. The output ends with the first stop token, which is included.
        stop
            The output ends with the first token for which stop(new tokens up to and including it) is true; see stop.py.
        keep_probs
            Keep the probabilities p and q in the rounds.

        Raises
        ------
        ValueError
            If the prompt is not a sequence of the target's token ids, if prompt and n_tokens together exceed n_ctx, or
            if a model, drafter or verifier returns something invalid (checks.py).
        """
        return collect(prompt, self.rounds(prompt, n_tokens, rng, stop_tokens=stop_tokens, stop=stop), keep_probs)
