"""A trial: greedy loops graded for what they claim. PYTHONPATH=CHECKOUT python greedy.py

A loop that draws nothing writes the target's greedy text, or it does not: no enumeration is needed, one run a case. The cases are made by design: which index of which round is the first wrong one is decided by the length of the text.
"""
import contextlib
import itertools
import operator
import time
from zlib import crc32

import numpy as np

from ..logits.probs import Sampling
from ..drafters.model import ModelDrafter
from .samplers import AROUND, ONE, SEVERAL, loops
from .watch import fail

N_VOCAB, FULL = 5, -1
ENDS = [(), *itertools.product([FULL, 0, 1, 2, 5], repeat=1), *itertools.product([FULL, 0, 1, 3], repeat=2), (FULL, FULL, FULL), (0, 0, FULL), (1, FULL, 0)]


class Greedy:
    """Logits whose largest is a token that depends on the whole text; the draft's is another where the text has one of the lengths in `wrong`."""

    n_vocab, n_ctx = N_VOCAB, 64

    def __init__(self, wrong=()):
        self.wrong = wrong

    def best(self, text):
        return crc32(bytes(text)) % N_VOCAB

    def __call__(self, tokens, n_last=1):
        tokens = [operator.index(x) for x in np.ravel(tokens)]
        rows = np.empty((n_last, N_VOCAB), np.float32)
        for i, end in enumerate(range(len(tokens) - n_last + 1, len(tokens) + 1)):
            text = tokens[:end]
            noise = np.frombuffer(crc32(bytes(text), 7).to_bytes(4, "little") * 2, np.uint8)[:N_VOCAB] / 256
            best = (self.best(text) + (end in self.wrong) * (1 + end % (N_VOCAB - 1))) % N_VOCAB
            rows[i] = noise + 1.5 * (np.arange(N_VOCAB) == best)
        return rows


def cases():
    """(K, ends of the rounds, prompt, n_tokens): each first wrong index of each K, after each kind of round before."""
    for K, ends in itertools.product(range(1, 7), ENDS):
        n = sum(1 + (K if end == FULL else min(end, K - 1)) for end in ends)
        for more in (0, 1, K, K + 2):
            yield K, ends, [[1], [2, 0], [3, 1, 4, 1]][(K + len(ends) + more) % 3], n + more


def texts(make, which=None):
    """The texts in all cases, one after the other, or in those with the numbers `which`."""
    for i, (K, ends, prompt, n_tokens) in enumerate(cases()):
        if which is not None and i not in which:
            continue
        wrong, at = set(), len(prompt)
        for end in ends:
            end = K if end == FULL else min(end, K - 1)
            wrong |= {at + end} if end < K else set()
            at += end + 1
        target, draft = Greedy(), Greedy(wrong)
        sampler = make(target, ModelDrafter(draft, sampling=Sampling(0)), K=K, sampling=Sampling(0))
        made = sampler.generate(list(prompt), n_tokens, np.random.default_rng(0))
        yield [int(x) for x in getattr(made, "tokens", made)]


def wanted():
    found = []
    for _, _, prompt, n_tokens in cases():
        text, target = list(prompt), Greedy()
        for _ in range(n_tokens):
            text.append(target.best(text))
        found.append(text[len(prompt) :])
    return found


def graded(make):
    own, right = [*texts(make)], wanted()
    bad = [(case, a, b) for case, a, b in zip(cases(), own, right) if a != b]
    differs = {i for i, (a, b) in enumerate(zip(own, right)) if a != b}
    if not bad:
        return f"greedy: the text is the target's greedy text in {len(right)} cases (K = 1 to 6)"
    for hint, wrong in [*loops(AROUND, [*ONE, *SEVERAL]), *loops((), GREEDY)]:
        with contextlib.suppress(ValueError, IndexError, TypeError, AttributeError):
            if all(a == own[i] for i, a in zip(sorted(differs), texts(wrong, differs))) and [*texts(wrong)] == own:
                fail(hint)
    (K, ends, prompt, n), a, b = bad[0]
    rounds = ", ".join("accepted as a whole" if end == FULL else f"rejected at {end}" for end in ends) or "none"
    fail(f"in {len(bad)} of {len(right)} cases; first: K = {K}, rounds before the last: {rounds}; prompt {prompt}, {n} tokens: {a}, and the target writes {b}")


class First:  # an entry that the catalogue lacks: it has a hint and variants, as those of mistakes/verifiers.txt
    hint = "the first draft token is kept without a test: compare each with the target's most probable token"

    @staticmethod
    def wrong(draft, rows, rng):
        from ..interfaces import Verdict
        n = 0
        while n < len(draft.tokens) and draft.tokens[n] == rows[n].argmax():
            n += 1
        n = max(n, min(1, len(draft.tokens)))
        return Verdict(n, int(rows[n].argmax()))

    variants = (wrong.__func__,)


GREEDY = [First]

