"""The texts that a loop may show to a sampling that looks back: the right one for each row, and wrong ones that
shipped.

A penalty or a grammar needs the tokens before each row of a draft. Engines keep them as a state, counts of tokens or
a place in an automaton, update it once a round, and must still apply it row by row. Each function here is such a
bookkeeping: (rounds, i) -> the tokens that row i of the last round is given, or None if penalties and masks are not
applied to that row. `rounds` has for each round so far (the text before its draft, its draft tokens), two lists of int;
row i predicts the token after the first i draft tokens.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import exact_distribution
from ..logits.probs import Sampling
from ..sampler import SpeculativeSampler
from .cases import TOLERANCE, largest_difference


class LooksBack:
    """A sampler that is right, up to `seen`, the function that says what text each row is given."""

    def __init__(self, target, drafter, *, K, sampling):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    @staticmethod
    def seen(rounds, i):
        text, drafted = rounds[-1]
        return [*text, *drafted[:i]]

    def generate(self, prompt, n_tokens, rng):
        rounds = []

        def sampling(logits, tokens):
            n_text = len(tokens) - len(logits) + 1
            rounds.append((tokens[:n_text], tokens[n_text:]))
            return np.concatenate([self.row(logits[i : i + 1], self.seen(rounds, i)) for i in range(len(logits))])

        looks_back = self.sampling.processors or self.sampling.repetition_penalty != 1
        used = sampling if looks_back else self.sampling
        sampler = SpeculativeSampler(self.target, self.drafter, K=self.K, sampling=used)
        return sampler.generate(prompt, n_tokens, rng).tokens.tolist()

    def row(self, logits, text):
        return replace(self.sampling, processors=())(logits) if text is None else self.sampling(logits, text)


def nothing(rounds, i):
    return None


def text_alone(rounds, i):
    return rounds[-1][0]


def last_of_each_round(rounds, i):
    return [*rounds[0][0], *(text[-1] for text, _ in rounds[1:]), *rounds[-1][1][:i]]


def bonus_without_draft(rounds, i):
    text, drafted = rounds[-1]
    return text if i == len(drafted) else [*text, *drafted[:i]]


def bonus_only(rounds, i):
    text, drafted = rounds[-1]
    return [*text, *drafted] if i == len(drafted) else None


def all_but_the_bonus(rounds, i):
    text, drafted = rounds[-1]
    return None if i == len(drafted) else [*text, *drafted[:i]]


def first_only(rounds, i):
    return None if i else rounds[-1][0]


def last_token_twice(rounds, i):
    text, drafted = rounds[-1]
    return [*text, *text[-1:], *drafted[:i]] if i else text


def rejected_too(rounds, i):
    tokens = list(rounds[0][0])
    for (_, drafted), (text, _) in pairwise(rounds):
        tokens += [*drafted, text[-1]]
    return [*tokens, *rounds[-1][1][:i]]


def one_token_too_many(rounds, i):
    text, drafted = rounds[-1]
    return [*text, *drafted[: i + 1]]


def one_token_too_few(rounds, i):
    text, drafted = rounds[-1]
    return [*text, *drafted[: max(0, i - 1)]]


def whole_draft(rounds, i):
    text, drafted = rounds[-1]
    return [*text, *drafted]


def shifted(rounds, i):
    text, drafted = rounds[-1]
    return text[: len(text) - len(drafted) + i]


RIGHT = "; row i of sampling(logits, tokens) looks at the text and the first i draft tokens"
HINTS = {  # the text given to a row: the mistake in half a sentence
    nothing: "your sampler ignores the part of a sampling that looks back at the tokens before each row",
    text_alone: "all rows of a round are given the same tokens, those before the draft",
    last_of_each_round: "of each round only the last token is remembered, not the accepted ones before it",
    bonus_without_draft: "the bonus is drawn without regard to the draft tokens before it",
    bonus_only: "what looks back is applied to the row of the bonus alone, not to those of the draft tokens",
    all_but_the_bonus: "what looks back is applied to the rows of the draft tokens, but not to that of the bonus",
    first_only: "what looks back is applied to the first row of a round alone, not to those after draft tokens",
    last_token_twice: "the last token of the text counts twice from the second row on",
    rejected_too: "rejected draft tokens stay among the tokens that later rounds look back at",
    one_token_too_many: "row i is given draft token i, which is the token that it predicts",
    one_token_too_few: "row i is not given draft token i - 1, the last one before it",
    whole_draft: "every row is given all draft tokens, also those after it",
    shifted: "the sampling is given the text without the draft, so its rows belong to earlier tokens",
}


class AllTokens:
    """A logits processor that depends on every token before the row and on its place, and sometimes bans a token."""

    def __init__(self, rng):
        self.weights = rng.normal(size=(64, 3, 3))

    def __repr__(self):
        return "AllTokens()"

    def __call__(self, logits, tokens):
        changed = logits + self.weights[np.arange(len(tokens)) % 64, tokens].sum(axis=0)
        if sum(tokens) % 2:
            changed[sum(tokens) % 3] = -np.inf
        return changed


def mistake_in_looking_back(distribution, target, other, prompt, sampling):
    """The mistake in a sentence, for a sampler whose `distribution` of tokens is wrong with a sampling that looks back.

    The bookkeepings of HINTS are simulated with `target`, a draft model `other` and K = 2.
    """
    n_tokens = len(next(iter(distribution)))
    for seen, hint in HINTS.items():
        wrong = type("Wrong", (LooksBack,), {"seen": staticmethod(seen)})
        sampler = wrong(target, ModelDrafter(other, sampling=Sampling()), K=2, sampling=sampling)
        simulated = exact_distribution(lambda rng, sampler=sampler: sampler.generate(prompt, n_tokens, rng))
        if largest_difference(distribution, simulated) <= TOLERANCE:
            return hint + RIGHT
    return "your sampler goes wrong with a sampling that looks back, as penalties and grammars do" + RIGHT
