"""The exercises of notebook 05."""

import numpy as np

from speculative import Sampling, Verdict, rejection, residual, sample_token


def acceptance_probability(p, q):
    """The sum of q(x) min(1, p(x) / q(x)) = min(p(x), q(x)) over all words."""
    return float(np.minimum(p, q).sum())


def my_residual(p, q):
    """If nothing is missing, no draft token is ever rejected, and p is as good an answer as any."""
    missing = np.maximum(p - q, 0)
    return missing / missing.sum() if missing.any() else p


def my_verifier(draft, target_probs, rng):
    """The first rejection ends the round: those after it were drafted for a text that no longer exists."""
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if rng.random() * q[x] >= p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


class MySampler:
    def __init__(self, target, drafter, K=4, sampling=Sampling()):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    def generate(self, prompt, n_tokens, rng):
        """A round adds 1 to k + 1 tokens, so with k < the number of missing tokens it never adds too many."""
        tokens, n_end = list(prompt), len(prompt) + n_tokens
        while len(tokens) < n_end:
            k = min(self.K, n_end - len(tokens) - 1, self.target.n_ctx - len(tokens) - 1)
            draft = self.drafter.propose(list(tokens), k, rng)
            extended = [*tokens, *draft.tokens.tolist()]
            logits = self.target(extended, n_last=len(draft.tokens) + 1)
            verdict = rejection(draft, self.sampling(logits, extended), rng)
            tokens += [*draft.tokens[: verdict.n_accepted].tolist(), verdict.next_token]
        return tokens[len(prompt) :]
