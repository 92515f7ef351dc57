"""How many tokens to draft next, from the results of the drafts so far.

A draft length is a function of the rounds so far, a list of (drafted, accepted), that returns the next K; or simply a
number. If it depends on past rounds alone, the output stays exact, because each round is exact for its K. Ending a
draft early within a round, where the drafter becomes uncertain, is up to the drafter: see `threshold` in
drafters/model.py.
Next: costs.py
"""

from dataclasses import dataclass, field

from .theory import best_K


@dataclass(frozen=True)
class Heuristic:
    """Two more after a draft that was accepted completely, one less otherwise, and at least one.

    Source: the heuristic schedule of Hugging Face's assisted generation (2023).

    Parameters
    ----------
    first : int
        The K of the first round.
    most : int
        The largest K.

    Examples
    --------
    >>> Heuristic()([(4, 4), (6, 1), (5, 0)])
    4
    """

    first: int = 4
    most: int = 16

    def __call__(self, history):
        K = self.first
        for drafted, accepted in history:
            if drafted:
                K = min(K + 2, self.most) if accepted == drafted else max(1, K - 1)
        return K


@dataclass(frozen=True)
class CostModel:
    """The K with the best expected speedup, 0 included, from measured costs and a running estimate of alpha.

    Parameters
    ----------
    c : float
        The time to draft one token, relative to a plain step of the target.
    v : sequence of float
        v[m - 1]: the time of a round for m tokens, relative to a plain step. K is at most len(v) - 1.
    alpha : float
        The estimate before any token was tested; it weighs as much as 4 tests.
    window : int
        How many of the last rounds to use.

    Rounds without a draft are counted, too. After `window` of them nothing is known but `alpha`, so that decides again,
    and at least one token is drafted, to see whether drafting pays by now.
    Source: arXiv:2211.17192, theorem 3.8, with the measured v.

    Examples
    --------
    A draft token at a tenth of the target's cost; all of them were accepted, or none:

    >>> choose = CostModel(c=0.1, v=(1, 1.05, 1.1, 1.15, 1.2))
    >>> choose([(4, 4)] * 16), choose([(4, 0)] * 16)
    (4, 0)
    """

    c: float
    v: tuple = field(repr=False)
    alpha: float = 0.7
    window: int = 16

    def __call__(self, history):
        recent = history[-self.window :]
        accepted = sum(accepted for _, accepted in recent)
        rejected = sum(accepted < drafted for drafted, accepted in recent)
        alpha = (accepted + 4 * self.alpha) / (accepted + rejected + 4)
        K = best_K(alpha, self.c, self.v)
        return K or int(len(recent) == self.window and not any(drafted for drafted, _ in recent))
