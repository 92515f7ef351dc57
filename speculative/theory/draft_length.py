"""Rules that choose how many tokens to draft next, from the results of the drafts so far.

A draft length is simply a number, or a function that takes the list of rounds so far, (drafted, accepted), and returns
the next K. If it depends on past rounds alone, the output stays exact, because each round is exact for its K. Ending a
draft early, where its tokens become improbable, is up to the drafter: see `threshold` in drafters/model.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from .expected import best_K


def heuristic(history: Sequence[tuple[int, int]]) -> int:
    """Starts with 4; two tokens more after a fully accepted draft, at most 16, and one less otherwise, at least 1.

    Source: the heuristic schedule of Hugging Face's assisted generation (2023).

    >>> heuristic([(4, 4), (6, 1), (5, 0)])
    4
    """
    K = 4
    for drafted, accepted in history:
        if drafted:
            K = min(K + 2, 16) if accepted == drafted else max(1, K - 1)
    return K


@dataclass(frozen=True)
class CostModel:
    """The K with the best expected speedup, possibly 0, from measured costs and a running estimate of alpha.

    The estimate starts at 0.8, which weighs as much as 2 tests. It uses the last 64 rounds that drafted, but only those
    since alpha last changed.

    Where drafting does not pay, a single token is drafted now and then to test whether it pays now. The test comes at
    once if nothing was drafted so far or the last draft was accepted. Otherwise it comes after at least 16 rounds, and
    so rarely that these tests take at most 1/64 of the time.
    Source: arXiv:2211.17192, theorem 3.8, with the measured v.

    Parameters
    ----------
    c, v
        As in `Costs` (measuring/costs.py). K is at most len(v) - 1.

    Examples
    --------
    A draft token costs a tenth of a target call, and first all draft tokens were accepted, then none:

    >>> choose = CostModel(c=0.1, v=(1, 1.05, 1.1, 1.15, 1.2))
    >>> choose([(4, 4)] * 16), choose([(4, 0)] * 16)
    (4, 0)
    """

    c: float
    v: Sequence[float] = field(repr=False)

    def __call__(self, history: Sequence[tuple[int, int]]) -> int:
        drafted = [outcome for outcome in history if outcome[0]]
        accepted, rejected = tested(since_the_last_change(drafted[-64:]))
        alpha = (accepted + 2 * 0.8) / (accepted + rejected + 2)
        return best_K(alpha, self.c, self.v) or int(len(self.v) > 1 and self.tests_again(history))

    def tests_again(self, history):
        """Whether to draft one token where drafting is not expected to pay."""
        test = self.c + self.v[1] - 1  # the cost of a test, in autoregressive steps
        recent = history[-max(16, ceil(64 * test)) :]
        return not any(drafted for drafted, _ in recent) or 0 < recent[-1][0] == recent[-1][1]


def since_the_last_change(rounds):
    """The newest of these rounds (drafted, accepted) that agree on alpha.

    For the last 8, 16, 24, ... rounds, compare the acceptance rates of these and of all rounds before them. If they are
    more than 3.5 standard errors apart, the text has changed: return only the newer rounds.
    """
    for n in range(8, len(rounds), 8):
        (a, j), (b, k) = tested(rounds[-n:]), tested(rounds[:-n])
        alpha = (a + b) / (a + j + b + k)
        variance = alpha * (1 - alpha) * (1 / (a + j) + 1 / (b + k))
        if (a / (a + j) - b / (b + k)) ** 2 > 3.5**2 * variance:
            return rounds[-n:]
    return rounds


def tested(rounds):
    """(accepted, rejected): the tested tokens in rounds (drafted, accepted) that drafted at least one."""
    return sum(accepted for _, accepted in rounds), sum(accepted < drafted for drafted, accepted in rounds)
