"""Speculative sampling: the one loop. Every method is a drafter and a verifier handed to it.

A cheap drafter guesses K tokens; one call of the target gives its distributions at all K places and one beyond; the
verifier keeps a beginning of the guesses and adds one token of its own. With an exact verifier the tokens have the law
that the target alone would give them, and each call of the target yields between 1 and K + 1 of them.

Source: Leviathan et al., arXiv:2211.17192, algorithm 1; Chen et al., arXiv:2302.01318, algorithm 2 (which has p and q
the other way round). The steps are numbered as in Leviathan's algorithm. Leaves out: how to guess (drafters/), how to
decide (verifiers/), and any cache: a model that keeps one compares the tokens it is given with those it has.
Next: drafters/model.py, then verifiers/rejection.py
"""

from time import perf_counter

import numpy as np

from .interfaces import Round, check_request, collect
from .probs import Noted, Sampling, as_generator, at_position
from .stop import until_stop
from .verifiers.rejection import rejection


class SpeculativeSampler:
    """Draws tokens by drafting and verifying.

    Parameters
    ----------
    target : LanguageModel
    drafter : Drafter
    verifier : Verifier
    K : int, or callable
        Draft length, at least 1; or a function of the history that gives one for each round, see draft_length.py.
    sampling : Sampling
        The target's; a drafter has its own.
    """

    def __init__(self, target, drafter, *, verifier=rejection, K=4, sampling=Sampling()):
        if not callable(K) and K < 1:
            raise ValueError(f"expected a draft length K of 1 or more, got {K}")
        self.target = target
        self.drafter = drafter
        self.verifier = verifier
        self.K = K
        self.sampling = sampling

    def rounds(self, prompt, n_tokens, rng=None, *, stop_tokens=(), stop=None):
        """One `Round` for each call of the target; see `generate` for the parameters."""
        tokens = check_request(prompt, n_tokens, self.target)
        return self._rounds(tokens, n_tokens, as_generator(rng), stop_tokens, stop)

    def _rounds(self, tokens, n_tokens, rng, stop_tokens, stop):
        begin, end, history = len(tokens), len(tokens) + n_tokens, []
        while len(tokens) < end:
            # 1. Guess up to K tokens, one by one, with their distributions q. The round will add one token more
            #    than it accepts, hence the - 1: never past the end. With k = 0 the round is a plain step.
            started = perf_counter()
            K = self.K(history) if callable(self.K) else self.K
            k = min(K, end - len(tokens) - 1, self.target.n_ctx - len(tokens) - 1)
            draft = self.drafter.propose(tokens, k, at_position(rng, len(tokens)))
            check_draft(draft, k, self.target.n_vocab)
            n_drafted = len(draft.tokens)

            # 2. One call of the target: its distributions p before each guess, and after the last.
            drafted = perf_counter()
            drafted_too = [*tokens, *draft.tokens.tolist()]
            logits = self.target(drafted_too, n_last=n_drafted + 1)
            target_probs = self.sampling(logits, drafted_too)  # [k + 1, n_vocab]

            # 3. and 4. How many guesses stay, and the token that follows them.
            called = perf_counter()
            noted = Noted(at_position(rng, len(tokens)))
            verdict = self.verifier(draft, target_probs, noted)
            history.append((n_drafted, verdict.n_accepted))

            # 5. The accepted guesses and that token are the output, up to where the text stops, in mid-block or not.
            new = np.append(draft.tokens[: verdict.n_accepted], verdict.next_token)
            n_kept, stops = until_stop(tokens[begin:], new.tolist(), stop_tokens, stop)
            new = new[:n_kept]
            tokens += new.tolist()
            seconds = {"draft": drafted - started, "target": called - drafted, "verify": perf_counter() - called}
            n_accepted, uniforms = min(verdict.n_accepted, n_kept), tuple(noted.uniforms)
            yield Round(new, draft.tokens, n_accepted, seconds, draft.probs, target_probs, uniforms)
            if stops:
                return

    def generate(self, prompt, n_tokens, rng=None, *, stop_tokens=(), stop=None, keep_probs=False):
        """A `Generation`; parameters and result as in `AutoregressiveSampler.generate`."""
        return collect(prompt, self.rounds(prompt, n_tokens, rng, stop_tokens=stop_tokens, stop=stop), keep_probs)


def check_draft(draft, k, n_vocab):
    """Raise ValueError unless the draft has at most k tokens, each with a distribution over the target's vocabulary."""
    n_drafted = len(draft.tokens)
    if n_drafted > k:
        raise ValueError(f"the drafter was asked for at most {k} tokens and proposed {n_drafted}")
    if draft.probs.shape != (n_drafted, n_vocab):
        raise ValueError(
            f"expected draft probabilities of shape ({n_drafted}, {n_vocab}), one row over the target's vocabulary for "
            f"each token, got {draft.probs.shape}: draft and target must share one vocabulary"
        )
