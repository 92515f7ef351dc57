"""How lossy is a rule, on these prompts? The total variation of its tokens from the target's, along the target's text.

At each position of the text the rule is enumerated for one draft token after the other: it sees the whole rows of p and
q, and decides. A token that it draws from a row is not enumerated. Instead the draw forks in two, "the draft token" and
"any other", and the probabilities of the other tokens are kept as one row. So a decision has 2 or 3 paths instead of
one for each token of the vocabulary. The loss of an exact rule is 0.
"""

import numpy as np

from ..checks import ask_drafter, show_drafter
from ..exact.enumeration import ExactGenerator, exact_distribution
from ..interfaces import Draft
from ..rng import as_generator
from .intervals import share
from .runs import own_text

LEFT_OUT, MOST = 1e-3, 300  # the most probable draft tokens that hold 1 - LEFT_OUT of q are tried, at most MOST


def sums_along_text(target, drafter, verifier, prompt, n_tokens, sampling, seed):
    """A list of sums over the first n_tokens positions of one text of the target, for `loss_of`.

    The first token of each round is used; a position where nothing is drafted counts as exact. ValueError if a draft
    is a tree.
    """
    rng, sums = as_generator(seed), np.zeros(4)
    text, probs = own_text(target, prompt, n_tokens, sampling, seed)
    for n, p in enumerate(probs, len(text) - len(probs)):
        draft = ask_drafter(drafter, text[:n], 1, rng, target)
        show_drafter(drafter, text[:n], target(text[:n]), np.zeros(0, np.int64))
        if not draft.is_chain:
            raise ValueError("the loss of a rule is measured on chains: expected a drafter of chains, got a tree")
        sums[0] += 1
        if len(draft.tokens):
            sums[1] += at_a_place(verifier, p, draft.probs[0])
        if len(draft.tokens) and n + 1 < len(text):
            sums[2:] += after_an_accepted(verifier, text[n], draft.probs[0], p, probs[n + 1 - len(text)])
    return sums.tolist()


def loss_of(texts):
    """A dict, from the sums for each text: "loss", the mean total variation, with its interval over the texts.

    "loss_after" is that of the tokens after an accepted draft token. All are None without texts.
    """
    names = "loss", "loss_low", "loss_high", "loss_after"
    if not texts:
        return dict.fromkeys(names)
    n, distances, accepted, after = np.array(texts).T
    return dict(zip(names, (*share(distances, n), after.sum() / (accepted.sum() or 1))))


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


def at_a_place(verifier, p, q):
    """The total variation of the first token from p."""
    order = np.argsort(-q, kind="stable")[: np.count_nonzero(q)]
    tried = order[: min(MOST, int(np.searchsorted(np.cumsum(q[order]), 1 - LEFT_OUT)) + 1)]
    first_token = sum(q[x] * outcomes(verifier, x, q, np.array([p, p]))[0] for x in tried)
    return float(np.maximum(first_token - p, 0).sum())


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
                raise ValueError("the loss cannot be measured: the rule decides by which other token it drew")
