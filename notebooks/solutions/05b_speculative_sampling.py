"""The exercises of notebook 05b."""

import numpy as np

from speculative import Sampling, Verdict, rejection, residual, sample_token


def acceptance_probability(p, q):
    """The probability that a draft token drawn from q is accepted by the rule (float).

    p, q : arrays [n_vocab] float64, each with sum 1; q may have zeros.

    For p = (0.4, 0.3, 0.2, 0.1) and q = (0.1, 0.2, 0.4, 0.3) it is 0.6.
    """
    # The sum of q(x) min(1, p(x) / q(x)) = min(p(x), q(x)) over all words.
    return float(np.minimum(p, q).sum())


def my_residual(p, q):
    """The distribution of the correction: (p - q)+ renormalised, [n_vocab] float64.

    p, q : arrays [n_vocab] float64, each with sum 1; they must not be written to.

    Where p - q is nowhere positive, p = q, and a rejection has probability 0: return p
    itself, not NaN.

    For p = (0.4, 0.3, 0.2, 0.1) and q = (0.1, 0.2, 0.4, 0.3) it is (0.75, 0.25, 0, 0).
    """
    # If nothing is missing, no draft token is ever rejected, and p is as good an answer as any.
    missing = np.maximum(p - q, 0)
    return missing / missing.sum() if missing.any() else p


def my_verifier(draft, target_probs, rng):
    """Test the draft tokens in turn, accept those before a rejection, and add one token.

    draft.tokens : [k] int64, the draft tokens; k may be 0.
    draft.probs : [k, n_vocab] float64, q: draft token i was sampled from row i.
    target_probs : [k + 1, n_vocab] float64, p before each draft token, and after all.
    rng : rng.random() is a uniform number from [0, 1).

    Returns speculative.Verdict(n_accepted, next_token): how many are accepted,
    and the token after them, which is the correction, or the bonus if all are accepted.
    """
    # The first rejection ends the round: those after it were drafted for a text that no longer exists.
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if rng.random() * q[x] >= p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


class MySampler:
    """Speculative sampling: the target's distribution, several tokens per target call."""

    def __init__(self, target, drafter, K=4, sampling=Sampling()):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    def generate(self, prompt, n_tokens, rng):
        """The new tokens: a list of int, n_tokens of them.

        self.drafter.propose(tokens, k, rng) returns a Draft of at most k >= 0 tokens.
        self.target(tokens, n_last=n) returns the logits [n, n_vocab] after each of the
            last n tokens; it takes at most self.target.n_ctx tokens.
        self.sampling(logits, tokens) turns them into probabilities [n, n_vocab].
        """
        # A round adds 1 to k + 1 tokens, so with k < the number of missing tokens it never adds too many.
        tokens, n_end = list(prompt), len(prompt) + n_tokens
        while len(tokens) < n_end:
            k = min(self.K, n_end - len(tokens) - 1, self.target.n_ctx - len(tokens) - 1)
            draft = self.drafter.propose(list(tokens), k, rng)
            extended = [*tokens, *draft.tokens.tolist()]
            logits = self.target(extended, n_last=len(draft.tokens) + 1)
            verdict = rejection(draft, self.sampling(logits, extended), rng)
            tokens += [*draft.tokens[: verdict.n_accepted].tolist(), verdict.next_token]
        return tokens[len(prompt) :]
