"""Do two sources of texts have the same distribution? For what cannot be enumerated: a server, a kernel on a GPU.

Bettors bet on each text before they see it, at odds that are fair if nothing differs. Then their mean wealth is 1 at
any time, and it ever exceeds 1 / alpha with a probability of at most alpha (Ville's inequality): one may look after
every text, and stop when it is enough. With known rows, the odds are the target's own; with a second sample the bet is
on which text of a pair is whose, a fair coin.

The bounds on the total variation of the first k tokens hold together, with probability 1 - ALPHA_OF_BOUNDS. At least:
for a set A that is chosen before text x, E(1[x in A] - Q(A)) is at most the total variation (a normal mixture, at any
time). At most: the mean distance of the samples is at least the total variation, and one text changes it by 1 / n
(McDiarmid's inequality).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SCALES = np.array([0.02, 0.1, 0.5, 2])[:, None]  # the sizes of log(P / Q) that bettors expect
REPEATS = np.array([0.02, 0.1, 0.5])  # how often a text repeats one of the eight before it, which bettors expect
BATCH = 64  # texts between two looks
N_LEAST = 2048  # texts before a difference ends the audit, so that its size is known
ALPHA_OF_BOUNDS = 0.05
REST, IMPOSSIBLE = "(any other)", 1e-6  # a token that the rows do not list, and its least probability


@dataclass
class Level:
    """The first k tokens: counts of the two samples, or of one and known `shares`, and the bettors' log wealth."""

    cells: dict = field(default_factory=dict)  # the first k tokens of a text -> its number
    shares: np.ndarray | None = None  # the probability of each cell
    n: int = 0  # texts of each sample
    most: float = 1.0  # the upper bound on the total variation
    ahead: float = 0.0  # the sum of 1[x in A] - Q(A)

    def __post_init__(self):
        self.two = self.shares is None
        self.counts, self.recent = np.zeros((2, len(self.cells))), []
        self.on_shares, self.on_repeats = np.zeros(len(SCALES)), np.zeros(len(REPEATS))  # log wealth

    def expected(self):
        return self.counts[1] if self.two else self.n * self.shares

    def add(self, cells, others=None):
        x, y = self.numbers(cells), self.numbers(others or [])
        for text, other in zip(x, y if self.two else x):  # a little earlier: requests overlap
            recent = [*set(self.recent)]
            if recent and self.two:
                self.on_repeats += np.log1p(REPEATS * (int(text in recent) - int(other in recent)))
            elif recent:
                self.on_repeats += np.log1p(REPEATS * ((text in recent) / self.shares[recent].sum() - 1))
            self.recent = [*self.recent[-7:], text]
        p, q = self.counts[0] + 0.5, self.expected() + 0.5
        bets = np.log(p / q) * SCALES**2 / (SCALES**2 + 1 / p + self.two / q)  # the posterior mean of log(P / Q)
        often = p > q
        if self.two:
            self.on_shares -= (np.logaddexp(0, bets[:, y] - bets[:, x]) - math.log(2)).sum(axis=1)
            self.ahead += float(often[x].sum()) - often[y].sum()
            np.add.at(self.counts[1], y, 1)
        else:
            self.on_shares += (bets[:, x] - np.log(np.exp(bets) @ self.shares)[:, None]).sum(axis=1)
            self.ahead += often[x].sum() - len(x) * (often @ self.shares)
        np.add.at(self.counts[0], x, 1)
        self.n += len(x)

    def numbers(self, cells):
        for cell in cells:
            self.cells.setdefault(cell, len(self.cells))
        self.counts = np.pad(self.counts, ((0, 0), (0, len(self.cells) - self.counts.shape[1])))
        return np.array([self.cells[cell] for cell in cells], dtype=int)

    def distance(self):
        """(the distance of the samples, and how much of it is expected by chance)."""
        q = self.expected() / self.n
        chance = np.sqrt(q * (1 - q) * (1 + self.two) / self.n / 2 / math.pi).sum()
        return abs(self.counts[0] / self.n - q).sum() / 2, chance

    def least(self, alpha):
        spread = 100 + self.n / (2 if self.two else 4)  # Hoeffding's for bounded variables
        width = math.sqrt(spread * (math.log(spread / 100) + 2 * math.log(1 / alpha)))
        return max(0.0, float(self.ahead - width) / self.n)

    def bound(self, alpha):
        self.most = min(1.0, self.distance()[0] + math.sqrt(math.log(1 / alpha) / self.n / (1 if self.two else 2)))


@dataclass
class SampleAudit:
    """The result of `audit_samples`; also what is known while it runs."""

    levels: list  # of Level: the first 1, 2, ... tokens
    alpha: float
    rows: Mapping | None = None

    @property
    def n(self) -> int:
        return self.levels[0].n

    @property
    def log_e(self) -> float:
        """The logarithm of the bettors' mean wealth."""
        logs = np.concatenate([[*level.on_shares, *level.on_repeats] for level in self.levels])
        return float(np.logaddexp.reduce(logs) - math.log(len(logs)))

    @property
    def differs(self) -> bool:
        return self.log_e > -math.log(self.alpha)

    @property
    def winner(self) -> str:
        """Which bettor has the most wealth, in words."""
        kinds = [(k, name) for k in range(len(self.levels)) for name in ("on_shares", "on_repeats")]
        k, name = max(kinds, key=lambda kind: getattr(self.levels[kind[0]], kind[1]).max())
        if name == "on_repeats":
            return "texts repeat those before them: do requests without a seed share one stream of random numbers?"
        return "the first token differs" if k == 0 else f"the first {k + 1} tokens together differ"

    def add(self, texts, others=None):
        for k, level in enumerate(self.levels, 1):
            level.add(*([self.cell(text, k) for text in sample] for sample in (texts, others) if sample is not None))

    def cell(self, text, k):
        """The first k tokens; with known rows, up to the first that is not in them."""
        cell = tuple(text[:k]) if self.rows is None else ()
        while self.rows is not None and len(cell) < k and cell in self.rows:
            token = text[len(cell)] if len(cell) < len(text) else REST
            cell = *cell, token if token in self.rows[cell] else REST
        return cell

    def bounds(self):
        """For each level (texts seen, distance, by chance, at least, at most)."""
        alpha = ALPHA_OF_BOUNDS / 2 / len(self.levels)
        return [(len(level.cells), *level.distance(), level.least(alpha), level.most) for level in self.levels]

    def worst(self):
        """(the tokens before, a token, its share, the right share, the root of the deviance) where it is largest."""
        worst, above = ((), "", 0.0, 0.0, 0.0), [{(): self.n}] * 2
        for level in self.levels:
            here = [dict(zip(level.cells, counts)) for counts in (level.counts[0], level.expected())]
            for cell in level.cells:
                a, b = (counts.get(cell, 0) for counts in here)
                n, m = (counts.get(cell[:-1], 0) for counts in above)
                if min(n, m) < 20:
                    continue
                middle = (a + b) / (n + m) if level.two else b / m
                deviance = max(0, deviance_of(a, n, middle) + level.two * deviance_of(b, m, middle))
                if math.sqrt(deviance) > worst[-1]:
                    worst = cell[:-1], cell[-1], a / n, b / m, math.sqrt(deviance)
            above = here
        return worst


def deviance_of(count, n, share):
    parts = (count, n * share), (n - count, n * (1 - share))
    return 2 * math.fsum(seen * math.log(seen / max(wanted, 1e-9)) for seen, wanted in parts if seen > 0)


def audit_samples(
    draw: Callable[[int], Sequence[Sequence[Any]]],
    n_tokens: int,
    *,
    rows: Mapping[tuple, Mapping[Any, float]] | None = None,
    other: Callable[[int], Sequence[Sequence[Any]]] | None = None,
    n_max: int = 16384,
    alpha: float = 0.001,
    watch: Callable[[SampleAudit], Any] = lambda audit: None,
) -> SampleAudit:
    """A `SampleAudit` of up to n_max texts; it ends earlier once a difference is certain.

    Parameters
    ----------
    draw
        draw(n) -> n texts, sequences of tokens.
    n_tokens
        The number of tokens that are compared; shorter texts are allowed.
    rows
        The right distributions: dict text -> {token: probability}, the texts as tuples. () is the first row. A text
        that is missing, because it is improbable, is compared up to there.
    other
        A second source without a draft, in place of rows.
    n_max
        The largest number of texts; they are drawn 64 at a time.
    alpha
        The probability that a right source is called different.
    watch
        Called with the SampleAudit after each 64 texts.
    """
    levels, shares = [Level() for _ in range(n_tokens)], {(): 1.0}
    for k in range(n_tokens) if rows is not None else ():
        steps = [(text, share, rows.get(text, {None: 1})) for text, share in shares.items()]
        shares = {text if x is None else (*text, x): share * p for text, share, row in steps for x, p in row.items()}
        levels[k] = Level(dict(zip(shares, range(len(shares)))), np.array([*shares.values()]) / sum(shares.values()))
    audit = SampleAudit(levels, alpha, rows)
    while audit.n < n_max and not (audit.n >= N_LEAST and audit.differs):
        audit.add(draw(BATCH), other and other(BATCH))
        if audit.n & (audit.n - 1) == 0:  # a power of 2
            for level in audit.levels:
                level.bound(ALPHA_OF_BOUNDS / 4 * audit.n / n_max / len(audit.levels))
        watch(audit)
    return audit
