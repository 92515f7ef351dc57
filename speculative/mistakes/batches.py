"""Mistakes in samplers of several texts at once. Drafts have different lengths, so do texts, and some end earlier.

Engines verify such a batch in flat arrays: the draft tokens of all texts one after the other, and k + 1 rows of the
target for each text of k draft tokens. Where a text begins in them is what goes wrong.
"""

import numpy as np

from ..interfaces import Draft, Verdict
from ..logits.probs import residual, sample_token
from ..tree import chain
from . import Mistake
from .samplers import Loop


class Batch(Loop):
    """The loop over rounds of several texts, each step a method."""

    def first_token(self, lengths, t):
        """Where the draft tokens of text t begin among all."""
        return sum(lengths[:t])

    def first_row(self, lengths, t):
        """Where its rows begin."""
        return sum(lengths[:t]) + t

    def bonus(self, lengths, t):
        return self.first_row(lengths, t) + lengths[t]

    def number(self, t, i, rng):
        """The uniform number that decides on draft token i of text t."""
        return rng.random()

    def state_of(self, running, slot):
        """The number of the text at which a sampling that looks back looks, for the text in this slot."""
        return running[slot]

    def n_kept(self, verdicts, t):
        return verdicts[t].n_accepted

    def order(self, ended):
        """In which order the texts are returned; `ended` are they in the order in which they ended."""
        return sorted(ended)

    def verify(self, tokens, lengths, q, p, rng):
        verdicts, self.numbers = [], {}
        for t, k in enumerate(lengths):
            first, row, n = self.first_token(lengths, t), self.first_row(lengths, t), 0
            while n < k and self.number(t, n, rng) * q[first + n, tokens[first + n]] < p[row + n, tokens[first + n]]:
                n += 1
            weights = p[self.bonus(lengths, t)] if n == k else residual(p[row + n], q[first + n])
            verdicts.append(Verdict(n, sample_token(weights, rng)))
        return verdicts

    def generate(self, prompts, n_tokens, rng):
        texts, ended = [list(prompt) for prompt in prompts], []
        ends = [len(prompt) + n for prompt, n in zip(prompts, n_tokens)]
        while running := [i for i in range(len(texts)) if i not in ended and len(texts[i]) < ends[i]]:
            drafts, rows = [], []
            for slot, i in enumerate(running):
                draft = self.propose(list(texts[i]), self.room(ends[i] - len(texts[i]), len(texts[i])), rng)
                drafts.append(draft)
                drafted = draft.tokens.tolist()
                logits = self.target([*texts[i], *drafted], n_last=len(drafted) + 1)
                rows.append(self.sampled(logits, [*texts[self.state_of(running, slot)], *drafted]))
            lengths = [len(draft.tokens) for draft in drafts]
            tokens, q = np.concatenate([d.tokens for d in drafts]), np.concatenate([d.probs for d in drafts])
            verdicts = self.verify(tokens, lengths, q, np.concatenate(rows), rng)
            for t, i in enumerate(running):
                kept = Draft(drafts[t].tokens, drafts[t].probs, chain(lengths[t]))
                texts[i] += self.added(kept, Verdict(self.n_kept(verdicts, t), verdicts[t].next_token), lengths[t])
                if len(texts[i]) >= ends[i]:
                    ended.append(i)
        ended += [i for i in range(len(texts)) if i not in ended]
        return [texts[i][len(prompts[i]) :] for i in self.order(ended)]


def batch(**steps):
    return type("Batch", (Batch,), steps)


def one_early(self, lengths, t):
    return sum(lengths[:t])


def shared(self, t, i, rng):
    if i not in self.numbers:
        self.numbers[i] = rng.random()
    return self.numbers[i]


BATCHES = [
    Mistake("one uniform number decides on draft tokens of several texts, so that these depend on each other: draw "
            "one for each draft token of each text", batch(number=shared)),
    Mistake("the rows of the second text and of those after it are one off: a text of k draft tokens has k + 1 rows "
            "of the target, so text t begins at row sum(lengths[:t]) + t",
            [batch(first_row=one_early),
             batch(first_row=one_early, bonus=lambda self, lengths, t: sum(lengths[: t + 1]) + t)]),
    Mistake("text t begins at row t (k + 1), as if all drafts had one length: they have not, where a drafter proposes "
            "fewer tokens or a text is about to end", batch(first_row=lambda self, lengths, t: min(
                t * (max(lengths) + 1), sum(lengths) + len(lengths) - lengths[t] - 1))),
    Mistake("the draft tokens of the first text are tested in place of those of the others",
            batch(first_token=lambda self, lengths, t: min(0, sum(lengths) - lengths[t]))),
    Mistake("the bonus of every text is drawn from the row of the first: each has a last row of its own",
            batch(bonus=lambda self, lengths, t: lengths[0])),
    Mistake("as many draft tokens are kept in every text as in the one that accepts fewest, but the token after them "
            "was drawn for another position: draw it from the row after those that are kept, or keep what each text "
            "accepts",
            batch(n_kept=lambda self, verdicts, t: min(v.n_accepted for v in verdicts))),
    Mistake("after a text has ended, a sampling that looks back looks at the text of another slot: slots move up when "
            "one is free, and what belongs to a text must move along",
            batch(state_of=lambda self, running, slot: slot)),
    Mistake("the texts come back in the order in which they ended: return them in the order of their prompts",
            batch(order=lambda self, ended: ended)),
]  # fmt: skip
