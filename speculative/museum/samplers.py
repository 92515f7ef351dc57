"""Loops with a mistake around a right acceptance rule."""

import numpy as np

from ..sampler import SpeculativeSampler
from ..verifiers.rejection import rejection


class Loop:
    """A loop over single rounds of the right sampler; the classes below replace one of its methods."""

    def __init__(self, target, drafter, *, K, sampling):
        self.K, self.n_ctx = K, target.n_ctx
        self.sampler = SpeculativeSampler(target, drafter, K=K, sampling=sampling)

    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        tokens = list(prompt)
        end = len(tokens) + n_tokens
        while len(tokens) < end:
            step = next(self.sampler.rounds(tokens, self.room(end - len(tokens), len(tokens)), rng))
            tokens += self.add(step)
            if int(step.tokens[-1]) in stop_tokens:
                break
        return tokens[len(prompt) :]

    def room(self, remaining, length):
        return remaining

    def add(self, step):
        return step.tokens.tolist()


class Overshoots(Loop):
    """The last round adds up to K tokens more than were asked for. Draft min(K, remaining - 1, n_ctx - len - 1).

    Seen: https://github.com/jaymody/speculative-sampling/blob/HEAD/main.py,
    https://github.com/feifeibear/LLMSpeculativeSampling/blob/HEAD/sampling/speculative_sampling.py
    """

    def room(self, remaining, length):
        return min(self.K + 1, self.n_ctx - length)


class MissesStopInBlock(Loop):  # as `Loop` itself does
    """Only the last token of a round is compared with the stop token; one inside an accepted block is missed.

    Seen: https://github.com/huggingface/transformers/pull/31301 (prompt lookup),
    https://github.com/huggingface/transformers/issues/47912,
    https://github.com/LostRuins/koboldcpp/issues/1276
    """


class EmptySlice(Loop):
    """The rejected tokens are cut off with a[:-n]. If n = 0, a[:-0] is empty: all accepted tokens are lost.

    Seen: prune_cache in https://github.com/romsto/Speculative-Decoding/blob/HEAD/utils/caching.py (where it empties the
    cache)
    """

    def add(self, step):
        n_rejected = len(step.drafted) - step.n_accepted
        return [*step.drafted.tolist()[:-n_rejected], int(step.tokens[-1])]


class SeedsInTheLoop:
    """Every round starts with the same random numbers.

    Seen: https://github.com/feifeibear/LLMSpeculativeSampling/pull/8
    """

    def __init__(self, target, drafter, *, K, sampling):
        def reseeded(draft, target_probs, rng):
            return rejection(draft, target_probs, np.random.default_rng(0))

        self.generate = SpeculativeSampler(target, drafter, verifier=reseeded, K=K, sampling=sampling).generate


class WritesToThePrompt:
    """The new tokens are appended to the caller's own list.

    Seen: inputs.append(...) in https://github.com/jaymody/picoGPT/blob/HEAD/gpt2.py
    """

    def __init__(self, target, drafter, *, K, sampling):
        self.sampler = SpeculativeSampler(target, drafter, K=K, sampling=sampling)

    def generate(self, prompt, n_tokens, rng=None):
        tokens = self.sampler.generate(prompt, n_tokens, rng).tokens.tolist()
        prompt += tokens
        return tokens


EXHIBITS = {  # name: (class, how the grader's message begins)
    "overshoot": (Overshoots, r"your sampler returns \d tokens where \d were asked for"),
    "stop token missed in mid-block": (
        MissesStopInBlock,
        "your sampler misses a stop token in the middle of a block",
    ),
    "a[:-0] after full acceptance": (EmptySlice, "your sampler goes wrong where every draft token is accepted"),
    "reseeding in the loop": (
        SeedsInTheLoop,
        "your sampler uses another source of randomness than rng: a generator of its own",
    ),
    "the prompt written to": (WritesToThePrompt, "your sampler writes to"),
}
