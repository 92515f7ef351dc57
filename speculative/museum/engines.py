"""What serving engines got wrong around a right acceptance rule: penalties and masks, random numbers, counters."""

from dataclasses import replace

from ..interfaces import Verdict, collect
from ..logits.grammar import Grammar
from ..logits.look_back import FrequencyPenalty
from ..logits.probs import Sampling, inheriting, residual, sample_token
from ..rng import Recorder
from ..sampler import SpeculativeSampler
from ..stop import until_stop
from ..testing import look_back

MASKED = Sampling(processors=[Grammar("a(ba)*", [b"a", b"b", b""], end=2, n_prompt=2)])


class LooksBack(look_back.LooksBack):
    """A right sampler, as long as `seen` is: the tokens that each row of a sampling that looks back is given."""

    toy = Sampling(processors=[FrequencyPenalty(1, n_prompt=2)])


class Ignored(LooksBack):
    """Penalties are silently ignored where a draft is verified.

    Seen: https://github.com/vllm-project/vllm/issues/18902, https://github.com/NVIDIA/TensorRT-LLM/pull/17701 (before
    it)
    """

    seen = staticmethod(look_back.nothing)


class OneStateForAllRows(LooksBack):
    """All rows of a round get the penalties, or the mask, of the text before the draft.

    Seen: https://github.com/sgl-project/sglang/pull/22049, https://github.com/sgl-project/sglang/pull/28242,
    https://github.com/sgl-project/sglang/issues/40244
    """

    seen = staticmethod(look_back.text_alone)


class LastOfEachRound(LooksBack):
    """The state is updated once a round, with the last token: the better the draft, the weaker the penalties.

    Seen: https://github.com/sgl-project/sglang/pull/33643
    """

    seen = staticmethod(look_back.last_of_each_round)


class BonusWithoutDraft(LooksBack):
    """The bonus is penalised for the text before the draft, and not for the draft tokens before it.

    Seen: https://github.com/vllm-project/vllm/pull/19482 (before it)
    """

    seen = staticmethod(look_back.bonus_without_draft)


class BonusOnly(LooksBack):
    """Only the bonus goes through the sampling: penalties or min-p are applied to the last row alone.

    Seen: https://github.com/sgl-project/sglang/pull/28200, https://github.com/vllm-project/vllm/pull/42802 (min-p)
    """

    seen = staticmethod(look_back.bonus_only)


class LastTokenTwice(LooksBack):
    """The last token of the text is among the counts, and is added again as the first input of the round. A repetition
    penalty, which does not count, hides it.

    Seen: https://github.com/vllm-project/vllm/pull/33251 (found in its review)
    """

    seen = staticmethod(look_back.last_token_twice)


class RejectedToo(LooksBack):
    """Rejected draft tokens stay in the counts, or have moved the grammar on: the state is not rolled back."""

    seen = staticmethod(look_back.rejected_too)


class OneTokenTooMany(LooksBack):
    """Row i is penalised for draft token i, the token that it predicts."""

    seen = staticmethod(look_back.one_token_too_many)


class OneTokenTooFew(LooksBack):
    """Row i is not penalised for draft token i - 1: the state lags by one token."""

    seen = staticmethod(look_back.one_token_too_few)


class Masks(LooksBack):
    """The same with a grammar, for drafts that do not know it."""

    toy = MASKED


class BonusUnmasked(Masks):
    """The mask of a grammar reaches the rows of draft tokens, but not the bonus.

    Seen: https://github.com/vllm-project/vllm/pull/44292 (where a draft token was not allowed)
    """

    seen = staticmethod(look_back.all_but_the_bonus)


class FirstRowMasked(Masks):
    """Only the first row of a round is masked, as it is without a draft.

    Seen: https://github.com/vllm-project/vllm/issues/54437 (where the draft was stale),
    https://github.com/vllm-project/vllm/pull/36138 (where the grammar began within a draft)
    """

    seen = staticmethod(look_back.first_only)


class OneNoise:
    """What replaces a rejected token is drawn with the random number that drew the token. It was rejected there, so the
    number says something about the residual: with p = (.1, .6, .3) and q = (.5, .3, .2) token 2 comes in .2 of the
    cases. With Gumbel noise in place of a uniform number it is 18/65. Draw with a number of its own.

    Seen: https://github.com/vllm-project/vllm/pull/47386, https://github.com/vllm-project/vllm/pull/54282 (the fix)
    """

    def __init__(self, target, drafter, *, K, sampling):
        self.drafter = inheriting(drafter, sampling)
        self.generate = SpeculativeSampler(target, self, verifier=self.decide, K=K, sampling=sampling).generate

    def propose(self, tokens, K, rng):
        self.noise = Recorder(rng)
        return self.drafter.propose(tokens, K, self.noise)

    def decide(self, draft, target_probs, rng):
        for i, token in enumerate(draft.tokens):
            p, q = target_probs[i], draft.probs[i]
            if not rng.random() * q[token] < p[token]:
                return Verdict(i, sample_token(residual(p, q), Repeated(self.noise.uniforms[i])))
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


class Repeated:
    """A random source that returns one number."""

    def __init__(self, number):
        self.random = lambda: number


class CountsPastTheStop:
    """The text ends at the stop token, but the counter of accepted tokens takes in those that were accepted after it:
    tokens per call and acceptance are too high.

    Seen: https://github.com/vllm-project/vllm/issues/56101 (6 tokens where 3 are in the text)
    """

    def __init__(self, target, drafter, *, K, sampling):
        self.sampler = SpeculativeSampler(target, drafter, K=K, sampling=sampling)

    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        found = []
        for step in self.sampler.rounds(prompt, n_tokens, rng):
            n_kept, stops = until_stop([], step.tokens.tolist(), stop_tokens, None)
            found.append(replace(step, tokens=step.tokens[:n_kept]))  # and n_accepted as it is
            if stops:
                break
        return collect(prompt, found)


ENGINE_EXHIBITS = {  # name: (class, how the grader's message begins)
    "looking back: ignored": (Ignored, look_back.HINTS[look_back.nothing]),
    "looking back: one state for all rows": (OneStateForAllRows, look_back.HINTS[look_back.text_alone]),
    "looking back: last token of each round": (LastOfEachRound, look_back.HINTS[look_back.last_of_each_round]),
    "looking back: bonus without the draft": (BonusWithoutDraft, look_back.HINTS[look_back.bonus_without_draft]),
    "looking back: the bonus alone": (BonusOnly, look_back.HINTS[look_back.bonus_only]),
    "looking back: last token twice": (LastTokenTwice, look_back.HINTS[look_back.last_token_twice]),
    "looking back: rejected tokens stay": (RejectedToo, look_back.HINTS[look_back.rejected_too]),
    "looking back: one token too many": (OneTokenTooMany, look_back.HINTS[look_back.one_token_too_many]),
    "looking back: one token too few": (OneTokenTooFew, look_back.HINTS[look_back.one_token_too_few]),
    "mask: all rows but the bonus": (BonusUnmasked, look_back.HINTS[look_back.all_but_the_bonus]),
    "mask: the first row alone": (FirstRowMasked, look_back.HINTS[look_back.first_only]),
    "one noise for draft and correction": (OneNoise, "a rejected token is replaced by a draw with the random number"),
    "a counter past the stop token": (CountsPastTheStop, "your sampler counts draft tokens after the stop token"),
}
