"""Loops that are wrong around a right rule."""

import numpy as np

from ..sampler import SpeculativeSampler
from ..verifiers.rejection import rejection


class Loop:
    """A loop over single rounds of the right sampler; `add` is where most of the mistakes are."""

    def __init__(self, target, drafter, *, K, sampling):
        self.K, self.n_ctx = K, target.n_ctx
        self.sampler = SpeculativeSampler(target, drafter, K=K, sampling=sampling)

    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        tokens = list(prompt)
        end = len(tokens) + n_tokens
        while len(tokens) < end:
            step = next(self.sampler.rounds(tokens, self.room(end - len(tokens), len(tokens)), rng))
            tokens += self.add(step)
            if self.stops(step, stop_tokens):
                break
        return tokens[len(prompt) :]

    def room(self, remaining, length):
        return remaining

    def add(self, step):
        return step.tokens.tolist()

    def stops(self, step, stop_tokens):
        return int(step.tokens[-1]) in stop_tokens


class Overshoots(Loop):
    def room(self, remaining, length):
        return min(self.K + 1, self.n_ctx - length)


class MissesStopInBlock(Loop):
    """Looks at the last token of a round only, which is what `Loop` does."""


class EmptySlice(Loop):
    def add(self, step):
        n_rejected = len(step.drafted) - step.n_accepted
        return [*step.drafted.tolist()[:-n_rejected], int(step.tokens[-1])]


class SeedsInTheLoop(SpeculativeSampler):
    def __init__(self, target, drafter, *, K, sampling):
        def reseeded(draft, target_probs, rng):
            return rejection(draft, target_probs, np.random.default_rng(0))

        SpeculativeSampler.__init__(self, target, drafter, verifier=reseeded, K=K, sampling=sampling)


class WritesToThePrompt(SpeculativeSampler):
    def generate(self, prompt, n_tokens, rng=None):
        tokens = SpeculativeSampler.generate(self, prompt, n_tokens, rng).tokens.tolist()
        prompt += tokens
        return tokens


EXHIBITS = {  # name: (class, what is wrong, where it was seen, how the grader's message begins)
    "overshoot": (
        Overshoots,
        "The last round adds up to K tokens more than were asked for. Draft min(K, remaining - 1, n_ctx - len - 1).",
        "jaymody/speculative-sampling, feifeibear/LLMSpeculativeSampling",
        r"your sampler returns \d tokens where \d were asked for",
    ),
    "stop token missed in mid-block": (
        MissesStopInBlock,
        "Only the last token of a round is compared with the stop token; one inside an accepted block is missed.",
        "HF transformers#31301 and #47912, sglang#31599, koboldcpp#1276",
        "your sampler misses a stop token in the middle of a block",
    ),
    "a[:-0] after full acceptance": (
        EmptySlice,
        "The rejected guesses are cut off with a[:-n]. Where n = 0, a[:-0] is empty: all accepted guesses are lost.",
        "romsto/Speculative-Decoding, prune_cache",
        "your sampler goes wrong where every guess is accepted",
    ),
    "reseeding in the loop": (
        SeedsInTheLoop,
        "Every round begins with the same random numbers.",
        "feifeibear/LLMSpeculativeSampling, PR #8 and the code after it; vLLM#6038",
        "your sampler uses another source of randomness than rng: a generator of its own",
    ),
    "the prompt written to": (
        WritesToThePrompt,
        "The new tokens are appended to the caller's own list.",
        "the form of picoGPT's generate, `inputs.append(...)`",
        "your sampler writes to",
    ),
}
