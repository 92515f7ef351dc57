"""Speculative sampling: one loop for all methods. A method is a drafter and a verifier passed to it.

A cheap drafter proposes K tokens. One call of the target gives its distributions at all K positions and after the last.
The verifier accepts a prefix of the draft and adds one more token. With an exact verifier the output is distributed
exactly as if the target had sampled alone, and each call of the target adds 1 to K + 1 tokens.

`one_round` is the method, as in reference.py; `_rounds` is the loop around it, with limits, stops and timing. The draft
may be a tree. The same call then returns the distributions after each of its paths (tree.py).

Source: Leviathan et al., arXiv:2211.17192, algorithm 1; Chen et al., arXiv:2302.01318, algorithm 2 (with p and q
swapped). The steps are numbered as in Leviathan's algorithm. Other files draft (drafters/) and decide (verifiers/). The
KV cache is left to the model, which reuses the prefix that a call shares with the previous one.
"""

from collections.abc import Callable

import numpy as np

from .checks import (
    ask_drafter,
    ask_model,
    ask_sampling,
    ask_verifier,
    check_length,
    check_model,
    check_parts,
    show_drafter,
)
from .generation import Laps, Round, RoundByRound
from .interfaces import Draft, Drafter, LanguageModel, RandomSource, Verdict, Verifier
from .logits.probs import Sampling, inheriting
from .rng import Recorder, at_position
from .stop import until_stop
from .verifiers.rejection import rejection


class SpeculativeSampler(RoundByRound):
    """Generates tokens by drafting and verifying: the target's distribution, in fewer calls of the target.

    Parameters
    ----------
    target
        The model whose distribution the output follows: target(tokens, n_last) -> logits [n_last, n_vocab].
    drafter
        Proposes the draft tokens, such as `ModelDrafter(draft_model)`.
    verifier
        The acceptance rule. The default, `rejection`, is exact.
    K
        The draft length, at least 1; for a tree, its depth. 3 by default: a pass over four tokens costs hardly more
        than one (gpt2np/kernels/). It may also be a function of the rounds so far, a list of (drafted, accepted), that
        returns the next K, 0 or more (theory/draft_length.py); for a tree, `drafted` is its depth.
    sampling
        A `Sampling`, used for the target, and for a drafter that was not given one. It may also be a function (logits,
        tokens) -> probs of the same shape, with a third parameter `parents` for trees.

    Raises
    ------
    ValueError
        If K is neither callable nor 1 or more, the drafter has no `propose`, or a different part is not callable.

    Examples
    --------
    >>> from speculative import ModelDrafter, SpeculativeSampler, exact_distribution
    >>> from speculative.testing import TableModel
    >>> target = TableModel([[0.25, 0.75], [0.5, 0.5]])  # one row for each previous token
    >>> sampler = SpeculativeSampler(target, ModelDrafter(TableModel([[0.9, 0.1], [0.9, 0.1]])), K=2)
    >>> distribution = exact_distribution(lambda rng: sampler.generate([0], 2, rng).tokens)
    >>> round(distribution[1, 0], 6)  # the target's own, 0.75 * 0.5, whatever the draft
    0.375
    """

    def __init__(
        self,
        target: LanguageModel,
        drafter: Drafter,
        *,
        verifier: Verifier = rejection,
        K: int | Callable[[list[tuple[int, int]]], int] = 3,
        sampling: Callable[..., np.ndarray] = Sampling(),
    ):
        check_parts(drafter, verifier, sampling)
        self.target = check_model(target, "a target")
        self.drafter: Drafter = inheriting(drafter, sampling)
        self.verifier = verifier
        self.K = K if callable(K) else check_length(K, 1, "a draft length K")
        self.sampling = sampling

    def __repr__(self):
        verifier = getattr(self.verifier, "__name__", self.verifier)
        return (
            f"SpeculativeSampler({self.target}, {self.drafter}, verifier={verifier}, K={self.K}, "
            f"sampling={self.sampling})"
        )

    def one_round(
        self, tokens: list[int], k: int, draft_rng: RandomSource, verify_rng: RandomSource, laps: Laps
    ) -> tuple[Draft, np.ndarray, Verdict]:
        """(draft, target_probs, verdict) for these tokens, with at most k draft tokens."""
        # 1. Draft up to k tokens, each with the distribution q it was sampled from.
        draft = ask_drafter(self.drafter, tokens, k, draft_rng, self.target)
        laps.end("draft")

        # 2. One call of the target: its distributions p after the prefix and after each draft token.
        extended = [*tokens, *draft.tokens.tolist()]
        parents = () if draft.is_chain else draft.parents
        logits = ask_model(self.target, extended, len(draft.tokens) + 1, parents)
        target_probs = ask_sampling(self.sampling, logits, extended, parents)  # [n + 1, n_vocab]
        laps.end("target")

        # 3. and 4. How many draft tokens are accepted, and the token that follows them.
        verdict = ask_verifier(self.verifier, draft, target_probs, verify_rng)
        laps.end("verify")

        # A drafter that learns from the target is shown the target's logits; the time counts as drafting.
        show_drafter(self.drafter, extended, logits, draft.parents)
        laps.end("draft")
        return draft, target_probs, verdict

    def _rounds(self, tokens, n_tokens, rng, stop_tokens, stop):
        n_prompt, n_end = len(tokens), len(tokens) + n_tokens
        history = []  # for each round, the depth of its draft and the number of accepted tokens
        while len(tokens) < n_end:
            # A round adds one more token than it accepts: the - 1 keeps it within n_tokens. With k = 0 it is an
            # autoregressive step.
            laps, n = Laps(), len(tokens)
            K = self.K(list(history)) if callable(self.K) else self.K
            k = min(check_length(K, 0, "the function K to return a draft length"), n_end - n - 1)
            recorder = Recorder(at_position(rng, n))
            draft, target_probs, verdict = self.one_round(tokens, k, at_position(rng, n), recorder, laps)
            history.append((draft.depth, verdict.n_accepted))

            # 5. The output: the accepted tokens and the next one, cut at a stop.
            new = np.append(draft.tokens[list(verdict.nodes)], verdict.next_token)
            n_kept, stops = until_stop(tokens[n_prompt:], new.tolist(), stop_tokens, stop)
            new, verdict = new[:n_kept], Verdict(verdict.nodes[:n_kept], verdict.next_token)
            tokens += new.tolist()
            draws = getattr(self.verifier, "draws", "")
            yield Round(new, draft, verdict, target_probs, laps.seconds, tuple(recorder.uniforms), draws)
            if stops:
                return
