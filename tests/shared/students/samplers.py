"""Samplers as students write them: RIGHT, NOTES, and WRONG with the words that the first line must contain."""

import random

import numpy as np

from speculative import AutoregressiveSampler, residual, sample_token
from speculative import Sampling as Options

RIGHT, NOTES, WRONG = {}, {}, {}


class Sampler:
    """The loop, with its parts as methods: where the mistakes are."""

    def __init__(self, target, drafter, K, sampling):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    def k(self, n_left, length):
        return min(self.K, n_left - 1, self.target.n_ctx - length - 1)

    def rows(self, text, k):
        return self.sampling(self.target(text, n_last=k + 1), text)

    def accept(self, p, q, x, rng):
        return rng.random() * q[x] < p[x]

    def replace(self, p, q, x, rng):
        return sample_token(residual(p, q), rng)

    def bonus(self, rows, rng):
        return sample_token(rows[-1], rng)

    def round(self, text, k, rng):
        draft = self.drafter.propose(text, k, rng)
        guesses = draft.tokens.tolist()
        rows = self.rows(text + guesses, len(guesses))
        for i, x in enumerate(guesses):
            if not self.accept(rows[i], draft.probs[i], x, rng):
                return [*guesses[:i], self.replace(rows[i], draft.probs[i], x, rng)]
        return [*guesses, self.bonus(rows, rng)]

    def added(self, text, new):
        return text + new

    def generate(self, prompt, n_tokens, rng):
        text, end = list(prompt), len(prompt) + n_tokens
        while len(text) < end:
            text = self.added(text, self.round(text, self.k(end - len(text), len(text)), rng))
        return self.result(text, prompt, n_tokens)

    def result(self, text, prompt, n_tokens):
        return text[len(prompt) :]


def variant(base=Sampler, **methods):
    return type("Variant", (base,), methods)


def wrong(*words):
    def register(cls):
        WRONG[cls.__name__] = cls, words
        return cls

    return register


class Cuts(Sampler):
    """Always drafts K tokens, and cuts the end."""

    def k(self, n_left, length):
        return min(self.K, self.target.n_ctx - length - 1)

    def result(self, text, prompt, n_tokens):
        return text[len(prompt) :][:n_tokens]


class WithStop(Sampler):
    """Knows of stop tokens."""

    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        text, end = list(prompt), len(prompt) + n_tokens
        while len(text) < end:
            for token in self.round(text, self.k(end - len(text), len(text)), rng):
                text.append(token)
                if token in stop_tokens:
                    return text[len(prompt) :]
        return text[len(prompt) :]


class Decorated(Sampler):
    """Takes no stop tokens, which its signature does not tell."""

    def generate(self, *given, **options):
        return Sampler.generate(self, *given, **options)


class OneRowAtATime(Sampler):
    def rows(self, text, k):
        parts = [text[: len(text) - k + i] for i in range(k + 1)]
        return np.concatenate([self.sampling(self.target(part), part) for part in parts])


RIGHT |= {
    "plain": Sampler,
    "with stop tokens": WithStop,
    "cuts": Cuts,
    "decorated": Decorated,
    "arrays": variant(
        result=lambda s, text, prompt, n: np.array(text[len(prompt) :], dtype=np.int64),
        added=lambda s, text, new: text + [np.int64(token) for token in new],
    ),
    "never all K": variant(k=lambda s, n_left, length: min(s.K, n_left - 1, s.target.n_ctx - length - 1, 1)),
}
NOTES |= {
    "one at a time": (
        lambda target, drafter, K, sampling: AutoregressiveSampler(target, sampling=sampling),
        ("calls the target 9 times",),
    ),
    "one row at a time": (OneRowAtATime, ("calls the target 9 times",)),
    "bonus thrown away": (
        variant(added=lambda s, text, new: text + (new[:-1] if len(new) > s.K else new)),
        ("calls the target",),
    ),
}

OTHER = "your sampler uses another source of randomness than rng"


def other(random_number, draw):
    return variant(accept=lambda s, p, q, x, rng: random_number() * q[x] < p[x], bonus=lambda s, rows, rng:
    draw(rows[-1]),
                   replace=lambda s, p, q, x, rng: draw(residual(p, q)))  # fmt: skip


GENERATOR = np.random.default_rng(1)
WRONG |= {
    "np.random": (other(np.random.rand, lambda p: int(np.random.choice(3, p=p))), (OTHER, "np.random")),
    "random": (other(random.random, lambda p: random.choices(range(3), p)[0]), (OTHER, "module random")),
    "its own generator": (
        other(GENERATOR.random, lambda p: sample_token(p, GENERATOR)),
        (OTHER, "a generator of"),
    ),
    "default_rng()": (
        variant(round=lambda s, text, k, rng: Sampler.round(s, text, k, np.random.default_rng())),
        (OTHER, "default_rng"),
    ),
    "default_rng(0) for the bonus": (
        variant(bonus=lambda s, rows, rng: sample_token(rows[-1], np.random.default_rng(0))),
        (OTHER, "default_rng"),
    ),
    "ignores sampling": (variant(rows=lambda s, t, k: Options()(s.target(t, n_last=k + 1), t)), ("ignores `sampling`",)),
    "temperature twice": (
        variant(rows=lambda s, t, k: s.sampling(np.log(np.maximum(Sampler.rows(s, t, k), 1e-300)), t)),
        ("temperature twice",),
    ),
    "greedy": (
        variant(rows=lambda s, t, k: Options(0)(s.target(t, n_last=k + 1), t)),
        ("greedy",),
    ),
    "accepts all": (variant(accept=lambda s, p, q, x, rng: True), ("accept every draft token",)),
    "upside down": (variant(accept=lambda s, p, q, x, rng: rng.random() * p[x] < q[x]), ("upside down",)),
    "replaced from the target": (
        variant(replace=lambda s, p, q, x, rng: sample_token(p, rng)),
        ("on a rejection you drew from the target",),
    ),
    "replaced from the draft": (
        variant(replace=lambda s, p, q, x, rng: sample_token(q, rng)),
        ("on a rejection you drew from the draft",),
    ),
    "bonus by argmax": (variant(bonus=lambda s, rows, rng: int(rows[-1].argmax())), ("bonus", "most probable")),
    "bonus from the row before": (
        variant(bonus=lambda s, rows, rng: sample_token(rows[max(0, len(rows) - 2)], rng)),
        ("bonus", "row"),
    ),
    "float32": (variant(rows=lambda s, t, k: Sampler.rows(s, t, k).astype(np.float32)), ("nearly right", "float32")),
    "epsilon": (variant(accept=lambda s, p, q, x, rng: rng.random() < p[x] / (q[x] + 1e-8)), ("nearly right", "epsilon")),
    "draft K, no guard": (
        variant(Cuts, k=lambda s, n_left, length: s.K),
        ("n_ctx is 12", "min(K, remaining - 1, n_ctx - len(tokens) - 1)"),
    ),
    "too many": (variant(Cuts, result=Sampler.result), ("tokens where", "were asked for")),
    "with the prompt": (variant(result=lambda s, text, prompt, n: text), ("tokens where", "without the prompt")),
    "a[:-0]": (
        variant(added=lambda s, text, new: text + (new[: -(s.K + 1 - len(new))] if s.K > 1 else new) or text + new[:1]),
        ("your sampler",),
    ),
    "None": (variant(result=lambda *_: None), ("yours returns None",)),
    "half tokens": (variant(result=lambda s, t, p, n: [x + 0.5 for x in t[len(p) :]]), ("whole numbers", ".5")),
    "floats": (variant(result=lambda s, t, p, n: np.array(t[len(p) :], float)), ("whole numbers",)),
    "a batch": (variant(result=lambda s, t, p, n: np.array(t[len(p) :])[None]), ("whole numbers in one sequence",)),
    "no generate": (lambda target, drafter, K, sampling: None, ("a method generate(prompt, n_tokens, rng)",)),
    "gamma": (lambda target, drafter, gamma, sampling: None, ("make(target, drafter, K=1", "TypeError")),
    "asserts": (variant(bonus=lambda s, rows, rng: asserting(rows)), ("your sampler fails for prompt = [2, 1]", "assert")),
    "last row for all": (variant(rows=lambda s, text, k: np.repeat(Sampler.rows(s, text, 0), k + 1, axis=0)), ("your sampler",)),
    "rows one early": (
        variant(rows=lambda s, text, k: Sampler.rows(s, text[:-1], k) if len(text) > k + 1 else Sampler.rows(s, text,
        k)), ("first token does not have the target's distribution",),
    ),
}  # fmt: skip


def asserting(rows):
    assert len(rows) > 3


@wrong("writes to its arguments")
class AppendsToThePrompt(Sampler):
    def generate(self, prompt, n_tokens, rng):
        end, begin = len(prompt) + n_tokens, len(prompt)
        while len(prompt) < end:
            prompt += self.round(prompt, self.k(end - len(prompt), len(prompt)), rng)
        return prompt[begin:]


@wrong("does not return: an endless loop")
class NoBonusWithoutADraft(Sampler):
    def round(self, text, k, rng):
        return Sampler.round(self, text, k, rng) if k else []


@wrong("does not return: an endless loop")
class NeverEnds(Sampler):
    def added(self, text, new):
        return text


@wrong("cannot be enumerated", "an endless loop")
class ReplacesInALoop(Sampler):
    def replace(self, p, q, x, rng):
        while True:
            y = sample_token(q, rng)
            if rng.random() * q[y] < p[y]:
                return y


@wrong("stop token in the middle of a block")
class StopsAtTheEndOfABlock(Sampler):
    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        text, end = list(prompt), len(prompt) + n_tokens
        while len(text) < end:
            text += self.round(text, self.k(end - len(text), len(text)), rng)
            if text[-1] in stop_tokens:
                break
        return text[len(prompt) :]


@wrong("leaves the stop token out")
class WithoutTheStopToken(Sampler):
    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        tokens = Sampler.generate(self, prompt, n_tokens, rng)
        n = next((n for n, token in enumerate(tokens) if token in stop_tokens), n_tokens)
        return tokens[:n]


@wrong("one uniform number decides on several draft tokens")
class OneUniform(Sampler):
    def round(self, text, k, rng):
        self.u = rng.random()
        return Sampler.round(self, text, k, rng)

    def accept(self, p, q, x, rng):
        return self.u * q[x] < p[x]


@wrong("the rejected draft token stays in the text")
class AddsToTheRejected(Sampler):
    def round(self, text, k, rng):
        self.rejected = []
        new = Sampler.round(self, text, k, rng)
        return new[:-1] + self.rejected + new[-1:]

    def replace(self, p, q, x, rng):
        self.rejected = [x]
        return Sampler.replace(self, p, q, x, rng)


@wrong("after a rejection")
class KeepsTheRejected(Sampler):
    def round(self, text, k, rng):
        draft = self.drafter.propose(text, k, rng)
        guesses = draft.tokens.tolist()
        rows = self.rows(text + guesses, len(guesses))
        new = []
        for i, x in enumerate(guesses):
            if not self.accept(rows[i], draft.probs[i], x, rng):
                new.append(self.replace(rows[i], draft.probs[i], x, rng))
            else:
                new.append(x)
        return [*new, self.bonus(rows, rng)]


@wrong("goes wrong where the drafter proposes fewer than K tokens")
class ReckonsWithK(Sampler):
    def round(self, text, k, rng):
        self.planned = k
        return Sampler.round(self, text, k, rng)

    def rows(self, text, k):
        return Sampler.rows(self, text, min(self.planned, len(text) - 1))


@wrong("each round drafts for the prompt")
class StartsFromThePrompt(Sampler):
    """Each round drafts for the prompt."""

    def generate(self, prompt, n_tokens, rng):
        out = []
        while len(out) < n_tokens:
            out += self.round(list(prompt), self.k(n_tokens - len(out), len(prompt)), rng)
        return out


@wrong("ignores sampling.top_k", "applies all of them")
class ReadsTheTemperature(Sampler):
    def rows(self, text, k):
        return Options(self.sampling.temperature)(self.target(text, n_last=k + 1))


@wrong("ignores sampling.top_p", "applies all of them")
class WithoutTopP(Sampler):
    def rows(self, text, k):
        return Options(self.sampling.temperature, self.sampling.top_k)(self.target(text, n_last=k + 1))
