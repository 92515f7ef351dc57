"""How many tokens to draft next, from what became of the drafts so far.

A draft length is a function of the rounds so far, a list of (drafted, accepted), that gives the next K; a plain number
is one that does not change. It may depend on the committed past alone, then no rule of acceptance notices: each round
is exact for the K it has. To end a draft where its guesses become unsure, within a round, is the drafter's own affair:
the `threshold` of drafters/model.py.
Next: theory.py
"""

from dataclasses import dataclass, field

from .theory import best_K


@dataclass(frozen=True)
class Heuristic:
    """Two more after a draft that was accepted whole, one less otherwise, and never less than one.

    Source: the heuristic schedule of Hugging Face's assisted generation (2023).

    Parameters
    ----------
    first : int
        The K of the first round.
    most : int

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
        The time to draft one token, over that of the target for one token.
    v : sequence of float
        v[m - 1]: the time of the target for m tokens, over that for one. K goes up to len(v) - 1.
    alpha : float
        What to expect before anything was tested; it weighs as much as 4 tests.
    window : int
        How many of the last rounds to look at.

    Where drafting does not pay, one round in `window` + 1 drafts a token all the same, to see whether it does by now.
    Source: arXiv:2211.17192, theorem 3.8, with the measured v.

    Examples
    --------
    A draft at a tenth of the target's cost, of which everything, and then nothing, was accepted:

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
