"""Mistakes in loops over several texts at once, through a model whose cache has slots: batches.txt, edits of `Batch`.

Texts accept different numbers of draft tokens, so a slot is a different position in each text, and some slots are
unused: padding and rejected tokens. Engines verify the draft tokens of all texts in flat arrays, one text after the
other, where a text with k draft tokens uses k + 1 rows of the target. With a single text, all these loops are correct.
"""

from pathlib import Path

import numpy as np

from ...interfaces import Verdict
from ...logits.probs import Sampling, residual, sample_token
from .edits import read


class Served(list):
    """The new tokens of each text, and the counts of draft tokens over all texts."""

    drafted = accepted = 0


class Batch:
    """The right loop. `target` is a `SlotModel` (see speculative/testing/batches.py).

    i is the index of a text, and t its index among the texts that are still running.
    """

    def __call__(self, target, drafter, prompts, n_tokens, rng, K, stop_tokens=(), sampling=Sampling()):
        """The new tokens of each text."""
        texts, n_texts = [list(prompt) for prompt in prompts], len(prompts)
        ends = [len(prompt) + n for prompt, n in zip(prompts, n_tokens)]
        served, stopped, ended = Served(), [], []  # `ended` lists the texts in the order in which they ended
        cached, mask = [0] * n_texts, np.zeros((n_texts, 0), bool)  # cached tokens; slots in use
        while running := [i for i in range(n_texts) if i not in stopped and len(texts[i]) < ends[i]]:
            # 1. a draft for each text
            room = [min(K, ends[i] - len(texts[i]) - 1, target.n_ctx - len(texts[i]) - 1) for i in running]
            drafts = [drafter.propose(list(texts[i]), max(n, 0), rng) for i, n in zip(running, room)]
            lengths = [len(draft.tokens) for draft in drafts]

            # 2. one pass over the new tokens of all texts, padded to the same width
            new = {i: [*texts[i][cached[i] :], *draft.tokens.tolist()] for i, draft in zip(running, drafts)}
            width = max(map(len, new.values()))
            tokens, positions = np.zeros((2, n_texts, width), np.int64)
            is_token, columns, first = np.zeros((n_texts, width), bool), np.arange(width), {}
            for i, new_of_text in new.items():
                first[i] = 0  # the column where its tokens begin; the rest is padding
                tokens[i, first[i] : first[i] + len(new_of_text)] = new_of_text
                is_token[i, first[i] : first[i] + len(new_of_text)] = True
                positions[i] = np.maximum(cached[i] + columns - first[i], 0)
            is_visible = is_token
            logits = target(tokens, positions, np.concatenate([mask, is_visible], axis=1))

            # 3. the rows of each text, and the verdicts
            rows = []
            for t, i in enumerate(running):
                end, seen = first[i] + len(new[i]), [*texts[i], *drafts[t].tokens.tolist()]
                rows.append(sampling(logits[i, end - lengths[t] - 1 : end], seen))
            verdicts = self.verify(drafts, rows, rng)
            added = [[*draft.tokens[: v.n_accepted].tolist(), v.next_token] for draft, v in zip(drafts, verdicts)]

            # 4. the texts grow, up to a stop token, and the slots of tokens that they keep stay visible
            accepted, now, last = [verdict.n_accepted for verdict in verdicts], is_visible.copy(), 0
            for t, i in enumerate(running):
                n = next((n for n, token in enumerate(added[t], 1) if token in stop_tokens), len(added[t]))
                texts[i] += added[t][:n]
                stopped += [i] * (texts[i][-1] in stop_tokens)
                ended += [i] * (i not in ended and (i in stopped or len(texts[i]) >= ends[i]))
                accepted[t], n_uncached = n - 1, len(new[i]) - lengths[t]
                now[i] = self.stays(columns, now[i], first[i], len(new[i]), n_uncached + accepted[t])
                last = max(last, first[i] + n_uncached + n - 1)
                cached[i] = len(texts[i]) - 1
                served.drafted += lengths[t]
                served.accepted += min(len(added[t]) - 1, n)
            mask = np.concatenate([mask, now], axis=1)[:, : mask.shape[1] + last]
            target.crop(mask.shape[1])
        ended += [i for i in range(n_texts) if i not in ended]
        served.extend(texts[i][len(prompts[i]) :] for i in sorted(ended))
        return served

    def stays(self, columns, is_visible, first, n, n_kept):
        """The new slots [width] that stay visible, bool, for a text that keeps n_kept of its n new tokens."""
        return is_visible & (columns < first + n_kept)

    def verify(self, drafts, rows, rng):
        """The verdict of each text, in flat arrays."""
        tokens, q = (np.concatenate([getattr(draft, name) for draft in drafts]) for name in ("tokens", "probs"))
        p, lengths, verdicts = np.concatenate(rows), [len(draft.tokens) for draft in drafts], []
        for t, k in enumerate(lengths):
            first = sum(lengths[:t])  # where its draft tokens begin ...
            row = first + t  # ... and its rows of the target
            n = 0
            while n < k and rng.random() * q[first + n, tokens[first + n]] < p[row + n, tokens[first + n]]:
                n += 1
            weights = p[row + k] if n == k else residual(p[row + n], q[first + n])
            verdicts.append(Verdict(n, sample_token(weights, rng)))
        return verdicts


def batch(**steps):
    """The loop with a different `stays` or `verify`."""
    return type("Batch", (Batch,), steps)()


def clamped(verdicts, next_token):
    """The verdicts, with as many draft tokens kept in every text as in the one that accepts fewest, m.

    next_token(t, m) is the next token of a text that accepts more.
    """
    m = min(verdict.n_accepted for verdict in verdicts)
    return [
        verdict if verdict.n_accepted == m else Verdict(m, int(next_token(t, m))) for t, verdict in enumerate(verdicts)
    ]


SECTIONS = read(Path(__file__).with_suffix(".txt"), {"Batch": Batch()}, globals())
LENGTHS, COUNTS = SECTIONS["LENGTHS"], SECTIONS["COUNTS"]
BATCHES = [mistake for mistakes in SECTIONS.values() for mistake in mistakes]
