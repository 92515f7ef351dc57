"""Mistakes in loops over several texts at once, through a model whose cache has slots.

Texts accept different numbers of draft tokens, so a slot is a different position in each text, and some slots are
unused: padding and rejected tokens. Engines verify the draft tokens of all texts in flat arrays, one text after the
other, where a text with k draft tokens uses k + 1 rows of the target. With a single text, all these loops are correct.
"""

import numpy as np

from ...interfaces import Verdict
from ...logits.probs import Sampling, residual, sample_token
from . import Mistake


class Served(list):
    """The new tokens of each text, and the counts of draft tokens over all texts."""

    drafted = accepted = 0


class Batch:
    """The right loop, with its steps as methods. `target` is a `SlotModel` (see speculative/testing/batches.py).

    In the steps, i is the index of a text and t its index among the texts still running; `lengths` are the lengths of
    the running texts' drafts.
    """

    # ---------------------------------------------------------------------------- the pass

    def first(self, width, n):
        """The column where the n tokens of a text begin; the rest is padding."""
        return 0

    def positions(self, n_cached, columns, first, n_slots):
        return np.maximum(n_cached + columns - first, 0)

    def visible(self, is_token):
        """The columns [B, width] that attention may see, bool."""
        return is_token

    def row(self, running, t):
        """The row that contains the logits of a text."""
        return running[t]

    def state_of(self, running, t):
        """The index of the text that a history-dependent sampling reads."""
        return running[t]

    def stays(self, columns, is_visible, first, n, n_kept):
        """The new slots [width] that stay visible, bool, for a text that keeps n_kept of its n new tokens."""
        return is_visible & (columns < first + n_kept)

    def accepted_by(self, n_accepted, t):
        """The number of accepted tokens that decides how many slots of a text stay."""
        return n_accepted[t]

    # ---------------------------------------------------------------------------- the verdicts, in flat arrays

    def first_token(self, lengths, t):
        """The index at which the draft tokens of a text begin."""
        return sum(lengths[:t])

    def first_row(self, lengths, t):
        return sum(lengths[:t]) + t

    def bonus(self, lengths, t):
        return self.first_row(lengths, t) + lengths[t]

    def number(self, t, i, rng):
        """The uniform number that decides on draft token i of a text."""
        return rng.random()

    def verify(self, drafts, rows, rng):
        tokens, q = (np.concatenate([getattr(draft, name) for draft in drafts]) for name in ("tokens", "probs"))
        p, lengths, verdicts, self.numbers = np.concatenate(rows), [len(d.tokens) for d in drafts], [], {}
        for t, k in enumerate(lengths):
            first, row, n = self.first_token(lengths, t), self.first_row(lengths, t), 0
            while n < k and self.number(t, n, rng) * q[first + n, tokens[first + n]] < p[row + n, tokens[first + n]]:
                n += 1
            weights = p[self.bonus(lengths, t)] if n == k else residual(p[row + n], q[first + n])
            verdicts.append(Verdict(n, sample_token(weights, rng)))
        return verdicts

    # ---------------------------------------------------------------------------- the texts

    def added(self, drafts, verdicts, rows, t, rng):
        """The new tokens of a text."""
        return [*drafts[t].tokens[: verdicts[t].n_accepted].tolist(), verdicts[t].next_token]

    def n_until_stop(self, new, stop_tokens):
        return next((n for n, token in enumerate(new, 1) if token in stop_tokens), len(new))

    def running(self, texts, ends, stopped):
        return [i for i in range(len(texts)) if i not in stopped and len(texts[i]) < ends[i]]

    def n_drafted(self, lengths, t):
        return lengths[t]

    def n_accepted(self, n_accepted, n_kept):
        """The number of accepted tokens that are counted for a text that keeps n_kept new tokens."""
        return min(n_accepted, n_kept)

    def order(self, ended):
        """The order in which the texts are returned; `ended` lists them in the order in which they ended."""
        return sorted(ended)

    # ---------------------------------------------------------------------------- the loop

    def __call__(self, target, drafter, prompts, n_tokens, rng, K, stop_tokens=(), sampling=Sampling()):
        texts, n_texts, found, stopped, ended = [list(prompt) for prompt in prompts], len(prompts), Served(), [], []
        ends = [len(prompt) + n for prompt, n in zip(prompts, n_tokens)]
        cached, mask = [0] * n_texts, np.zeros((n_texts, 0), bool)  # cached tokens; slots in use
        while running := self.running(texts, ends, stopped):
            room = [min(K, ends[i] - len(texts[i]) - 1, target.n_ctx - len(texts[i]) - 1) for i in running]
            drafts = [drafter.propose(list(texts[i]), max(n, 0), rng) for i, n in zip(running, room)]
            lengths = [len(draft.tokens) for draft in drafts]
            new = {i: [*texts[i][cached[i] :], *draft.tokens.tolist()] for i, draft in zip(running, drafts)}
            width = max(map(len, new.values()))
            tokens, is_token = np.zeros((n_texts, width), np.int64), np.zeros((n_texts, width), bool)
            positions, columns, first = np.zeros((n_texts, width), np.int64), np.arange(width), {}
            for i, some in new.items():
                first[i] = self.first(width, len(some))
                tokens[i, first[i] : first[i] + len(some)] = some
                is_token[i, first[i] : first[i] + len(some)] = True
                positions[i] = self.positions(cached[i], columns, first[i], mask.shape[1])
            logits = target(tokens, positions, np.concatenate([mask, self.visible(is_token)], axis=1))
            rows = []
            for t, i in enumerate(running):
                end = first[i] + len(new[i])
                seen = [*texts[self.state_of(running, t)], *drafts[t].tokens.tolist()]
                rows.append(sampling(logits[self.row(running, t), end - lengths[t] - 1 : end], seen))
            verdicts, now, last = self.verify(drafts, rows, rng), self.visible(is_token), 0
            accepted = [verdict.n_accepted for verdict in verdicts]
            for t, i in enumerate(running):
                added = self.added(drafts, verdicts, rows, t, rng)
                n = self.n_until_stop(added, stop_tokens)
                texts[i] += added[:n]
                stopped += [i] * (texts[i][-1] in stop_tokens)
                ended += [i] * (i not in ended and (i in stopped or len(texts[i]) >= ends[i]))
                accepted[t], n_uncached = n - 1, len(new[i]) - lengths[t]
                now[i] = self.stays(columns, now[i], first[i], len(new[i]), n_uncached + self.accepted_by(accepted, t))
                last = max(last, first[i] + n_uncached + n - 1)
                cached[i] = len(texts[i]) - 1
                found.drafted += self.n_drafted(lengths, t)
                found.accepted += self.n_accepted(len(added) - 1, n)
            mask = np.concatenate([mask, now], axis=1)[:, : mask.shape[1] + last]
            target.crop(mask.shape[1])
        ended += [i for i in range(n_texts) if i not in ended]
        found.extend(texts[i][len(prompts[i]) :] for i in self.order(ended))
        return found


def batch(**steps):
    """The loop with different steps."""
    return type("Batch", (Batch,), steps)()


def left(self, width, n):
    return width - n


def by_slot(self, n_cached, columns, first, n_slots):
    return n_slots + columns


def one_early(self, lengths, t):
    return sum(lengths[:t])


def shared(self, t, i, rng):
    if i not in self.numbers:
        self.numbers[i] = rng.random()
    return self.numbers[i]


def clamped(keeps):
    """Every text keeps only m draft tokens, as many as the text that accepts fewest; then keeps(...)."""

    def added(self, drafts, verdicts, rows, t, rng):
        m, tokens = min(verdict.n_accepted for verdict in verdicts), drafts[t].tokens.tolist()
        is_own = verdicts[t].n_accepted == m
        return [*tokens[:m], verdicts[t].next_token if is_own else keeps(tokens[m], verdicts[t], rows[t][m], rng)]

    return batch(added=added)


def overwritten(self, drafts, verdicts, rows, t, rng):
    own = Batch.added(self, drafts, verdicts, rows, t, rng)
    if t + 1 == len(drafts) or len(own) <= max(len(draft.tokens) for draft in drafts):
        return own
    return [*own[:-1], Batch.added(self, drafts, verdicts, rows, t + 1, rng)[0]]


SLOW = clamped(lambda x, verdict, p, rng: x)  # exact: the next token is the one the text accepted beyond m
LINK = "https://github.com/"
SLOTS = [
    Mistake("rejected draft tokens stay visible in the cache where another text accepted more: crop(n) cuts all texts "
            "alike, so mask the slots that a text did not accept",
            batch(stays=lambda self, columns, is_visible, first, n, n_kept: is_visible),
            name="rejected slots stay", seen=LINK + "Blaizzy/mlx-vlm/issues/1962"),
    Mistake("the positions are those of the slots: texts accept different numbers of draft tokens, so the next token "
            "of each has a position of its own, the number of tokens before it",
            batch(positions=by_slot), name="one position for all texts", seen=LINK + "Blaizzy/mlx-vlm/pull/1155"),
    Mistake("with padding on the left, positions count the padding: the first token of each text has position 0",
            batch(first=left, positions=by_slot), name="positions count the padding",
            seen=LINK + "unslothai/unsloth/issues/3699"),
    Mistake("the padding of a shorter draft stays visible in the cache: mask its slots, also in later passes",
            batch(stays=lambda self, columns, is_visible, first, n, n_kept:
                  (columns < first + n_kept) | (columns >= first + n)),
            name="padding of drafts in the cache", seen=LINK + "vllm-project/vllm/pull/26498"),
    Mistake("attention sees the padding of a shorter prompt: its slots are masked in every pass",
            batch(first=left, visible=lambda self, is_token: is_token | is_token.any(axis=1, keepdims=True))),
    Mistake("the cache of a text is rolled back by the number that another text accepted",
            [batch(accepted_by=lambda self, n_accepted, t: n_accepted[-1 - t]),
             batch(accepted_by=lambda self, n_accepted, t: n_accepted[0]),
             batch(accepted_by=lambda self, n_accepted, t: min(n_accepted))]),
]  # fmt: skip
ROWS = [
    Mistake("the logits of a text are taken from its position among the running texts: once one has ended, the others "
            "move up, and their rows of the batch do not", batch(row=lambda self, running, t: t),
            name="place among the running", seen=f"{LINK}vllm-project/vllm/pull/14645, "
            f"{LINK}HabanaAI/vllm-fork/pull/1780"),
    Mistake("the bonus is drawn from the last row of the padded draft: a shorter draft has its last row earlier",
            batch(bonus=lambda self, lengths, t: min(self.first_row(lengths, t) + max(lengths),
                                                     sum(lengths) + len(lengths) - 1))),
    Mistake("the rows of the second text and of those after it are one off: a text of k draft tokens has k + 1 rows "
            "of the target, so text t begins at row sum(lengths[:t]) + t",
            [batch(first_row=one_early),
             batch(first_row=one_early, bonus=lambda self, lengths, t: sum(lengths[: t + 1]) + t)]),
    Mistake("text t begins at row t (k + 1), as if all drafts had the same length: they do not when a drafter "
            "proposes fewer tokens or a text is about to end", batch(first_row=lambda self, lengths, t: min(
                t * (max(lengths) + 1), sum(lengths) + len(lengths) - lengths[t] - 1))),
    Mistake("the draft tokens of the first text are tested in place of those of the others",
            batch(first_token=lambda self, lengths, t: min(0, sum(lengths) - lengths[t]))),
    Mistake("the bonus of every text is drawn from the row of the first: each has a last row of its own",
            batch(bonus=lambda self, lengths, t: lengths[0])),
    Mistake("the bonus of a full draft is overwritten: a text of k draft tokens adds up to k + 1 tokens, so its row "
            "of the result is k + 1 long, and the next text begins after it", batch(added=overwritten)),
    Mistake("one uniform number decides on draft tokens of several texts, so that these depend on each other: draw "
            "one for each draft token of each text", batch(number=shared)),
    Mistake("as many draft tokens are kept in every text as in the one that accepts fewest, but the token after them "
            "was drawn for a different position: keep what each text accepts, or the next accepted token in its place",
            clamped(lambda x, verdict, p, rng: verdict.next_token)),
    Mistake("as many draft tokens are kept in every text as in the one that accepts fewest, and a text that accepted "
            "more draws its next token from the target again: it has accepted that token, and keeps it",
            clamped(lambda x, verdict, p, rng: sample_token(p, rng))),
    Mistake("after a text has ended, penalties and masks are computed from the text of another slot: slots move "
            "up when one is free, and what belongs to a text must move along",
            batch(state_of=lambda self, running, t: t)),
]  # fmt: skip
STOPS = [
    Mistake("a stop token in the middle of a block is missed: look at every token that a round adds, and drop those "
            "after the first", batch(n_until_stop=lambda self, new, stop_tokens: len(new))),
    Mistake("the stop token of one text ends all of them: each text has its own end",
            batch(running=lambda self, texts, ends, stopped: [] if stopped else Batch.running(self, texts, ends, []))),
]  # fmt: skip
LENGTHS = [
    Mistake("the texts come back in the order in which they ended: return them in the order of their prompts",
            batch(order=lambda self, ended: ended)),
    Mistake("texts that have all their tokens continue until the last one has: each has its own end",
            batch(running=lambda self, texts, ends, stopped:
                  [*range(len(texts))] if any(len(text) < end for text, end in zip(texts, ends)) else [])),
]  # fmt: skip
COUNTS = [
    Mistake("drafted counts the padding of shorter drafts",
            batch(n_drafted=lambda self, lengths, t: max(lengths))),
    Mistake("accepted counts draft tokens after the end of a text: cut the number with the tokens",
            batch(n_accepted=lambda self, n_accepted, n_kept: n_accepted)),
]  # fmt: skip
BATCHES = [*SLOTS, *ROWS, *STOPS, *LENGTHS, *COUNTS]
