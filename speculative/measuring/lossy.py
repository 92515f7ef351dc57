"""How lossy is a rule, on these prompts? The total variation of its tokens from the target's, along the target's text.

At each position of the text the rule is enumerated for one draft token after the other: it sees the whole rows of p and
q, and decides. A token that it draws from a row is not enumerated. Instead the draw forks in two, "the draft token" and
"any other", and the probabilities of the other tokens are kept as one row. So a decision has 2 or 3 paths instead of
one for each token of the vocabulary. The loss of an exact rule is 0.
"""

from dataclasses import dataclass

import numpy as np

from ..checks import ask_drafter, show_drafter
from ..exact.enumeration import ExactGenerator, exact_distribution
from ..interfaces import Draft
from ..logits.probs import inheriting
from ..rng import as_generator
from .intervals import share
from .runs import own_text


@dataclass(frozen=True)
class Loss:
    """The effect of a rule on the distribution of a token; print it."""

    tv: float  # the mean total variation from the target's distribution
    low: float | None  # a 95 % interval over the prompts; None for a single prompt
    high: float | None
    at_most: float  # tv if the draft tokens that were not tried, the least probable ones, are as wrong as possible
    after: float  # the mean total variation of the token after an accepted draft token

    def __str__(self):
        interval = "" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})"
        text = f"{self.tv:.2f}{interval}: of 100 tokens after the target's text, at best {100 * self.tv:.0f} differ"
        return text + (f"; of those after an accepted one, {100 * self.after:.0f}" if self.after > 1e-9 else "")


def lossy_on_text(target, drafter, verifier, prompts, n_tokens, *, sampling, seed=0, left_out=1e-3, most=300):
    """The `Loss` of a rule (yours or the library's) along texts of the target.

    Parameters
    ----------
    target : LanguageModel
    drafter : Drafter
        It must draft chains, and the first token of the round is used. A position where it drafts nothing counts as
        exact.
    verifier : Verifier
    prompts : list of lists of int
    n_tokens : int
        The number of positions to examine, which are the target's first n_tokens tokens in each text.
    sampling : Sampling
        The sampling of the target, and of a drafter that does not specify one.
    seed : int
        The seed for the first text; the other texts get the seeds that follow.
    left_out, most : float, int
        The most probable draft tokens that together hold 1 - left_out of q are tried, at most `most` of them.

    Raises
    ------
    ValueError
        If the drafter drafts trees, or the rule's decision depends on which other token it drew.
    """
    check_rule(verifier)
    parts = target, inheriting(drafter, sampling), verifier
    limits = {"left_out": left_out, "most": most}
    return loss_of(
        [sums_along_text(*parts, prompt, n_tokens, sampling, seed + i, **limits) for i, prompt in enumerate(prompts)]
    )


def sums_along_text(target, drafter, verifier, prompt, n_tokens, sampling, seed, left_out=1e-3, most=300):
    """A list of sums over the positions of one text, for `loss_of`."""
    text, probs = own_text(target, prompt, n_tokens, sampling, seed)
    rng, sums = as_generator(seed), np.zeros(5)
    for n, p in enumerate(probs, len(text) - len(probs)):
        draft = ask_drafter(drafter, text[:n], 1, rng, target)
        show_drafter(drafter, text[:n], target(text[:n]), np.zeros(0, np.int64))
        if not draft.is_chain:
            raise ValueError("lossy_on_text: expected a drafter of chains, got a tree")
        sums[0] += 1
        if len(draft.tokens):
            sums[1:3] += at_a_place(verifier, p, draft.probs[0], left_out, most)
        if len(draft.tokens) and n + 1 < len(text):
            sums[3:] += after_an_accepted(verifier, text[n], draft.probs[0], p, probs[n + 1 - len(text)])
    return sums.tolist()


def loss_of(texts):
    """The `Loss` over several texts, from the sums for each text."""
    n, distances, missing, accepted, after = np.array(texts).T
    tv, low, high = share(distances, n)
    return Loss(tv, low, high, min(1.0, tv + missing.sum() / n.sum()), after.sum() / (accepted.sum() or 1))


class Forks(ExactGenerator):
    """Enumerates with draws that fork in two: the draft token, or any other token, with distribution `others`."""

    token = None  # the draft token
    others = None  # [n_vocab], the distribution of the other tokens
    other = None  # the token that stands for all of them

    def draw(self, probs):
        self.drawn()
        rest = np.where(np.arange(len(probs)) == self.token, 0, probs)
        if self.fork([probs[self.token] / probs.sum(), rest.sum() / probs.sum()]) == 0:
            return self.token
        self.others, self.other = rest / rest.sum(), int(rest.argmax())
        return self.other

    def choice(self, a, size=None, replace=True, p=None, **more):
        whole = size is None and np.ndim(a) == 0 and p is not None
        return self.draw(np.asarray(p)) if whole else super().choice(a, size, replace, p, **more)


def outcomes(verifier, token, q, rows):
    """[2, n_vocab]: the probabilities of the round's first token, and of the token after an accepted draft token."""
    path = []
    probs = np.zeros((2, rows.shape[1]))
    draft = Draft(np.array([token]), q[None])
    rng = Forks(path)
    rng.token = token
    while True:
        rng.others = rng.other = None
        verdict = verifier(draft, rows.copy(), rng.from_the_start())
        is_accepted, x = int(verdict.n_accepted), int(verdict.next_token)
        probs[0, token] += rng.reached() * is_accepted
        if x == rng.other:
            probs[is_accepted] += rng.reached() * rng.others
        else:
            probs[is_accepted, x] += rng.reached()
        while path and path[-1].taken == len(path[-1].probs) - 1:
            path.pop()
        if not path:
            return probs
        path[-1].taken += 1


def at_a_place(verifier, p, q, left_out, most):
    """(total variation of the first token from p, the part of q that was not tried)."""
    order = np.argsort(-q, kind="stable")[: np.count_nonzero(q)]
    tried = order[: min(most, int(np.searchsorted(np.cumsum(q[order]), 1 - left_out)) + 1)]
    first_token = sum(q[x] * outcomes(verifier, x, q, np.array([p, p]))[0] for x in tried)
    return float(np.maximum(first_token - p, 0).sum()), max(0.0, 1 - float(q[tried].sum()))


def after_an_accepted(verifier, token, q, p, after):
    """(a, the probability that the draft token is accepted; a times the total variation of the token after it)."""
    row = outcomes(verifier, token, q, np.array([p, after]))[1]
    return row.sum(), abs(row - row.sum() * after).sum() / 2


def check_rule(verifier):
    """ValueError if `outcomes` does not describe the rule: if its decision depends on which other token it drew."""
    for p, q in np.random.default_rng(0).dirichlet(np.ones(5), size=(5, 2)):
        rows = np.array([p, p[::-1]])
        for x in range(5):
            whole, draft = np.zeros((2, 5)), Draft(np.array([x]), q[None])

            def decided(rng, draft=draft, rows=rows):
                verdict = verifier(draft, rows.copy(), rng)
                return int(verdict.n_accepted), int(verdict.next_token)

            for (n, token), probability in exact_distribution(decided).items():
                whole[0, x if n else token] += probability
                whole[1, token] += probability * n
            if not np.allclose(whole, outcomes(verifier, x, q, rows), rtol=0, atol=1e-12):
                raise ValueError("lossy_on_text: the rule decides by which other token it drew; try a small vocabulary")
