"""Samplers that draw nothing, graded for what they claim: the text is the target's greedy text.

No enumeration is needed: one run in each window (windows.py) at temperature 0. Where a position is open, the draft's
most probable token is not the target's, so the draft token is rejected there, and accepted everywhere else.
"""

from dataclasses import replace

from ..exact.enumeration import ExactGenerator
from ..interfaces import Verdict
from ..logits.probs import Sampling
from .cases import entry_like
from .sampler_parts import in_window
from .watch import fail
from .windows import shared, windows

N_SEEDS = 3


def wrongly(untested=lambda i: False, row=lambda n: n):
    """A verifier that keeps some draft tokens without a test, or takes the next token from a different row."""

    def verifier(draft, rows, rng):
        K = len(draft.tokens)
        n = next((i for i in range(K) if not untested(i) and draft.tokens[i] != rows[i].argmax()), K)
        return Verdict(n, int(rows[row(n)].argmax()))

    return verifier


TESTED = "compare each with the target's most probable token"
ITS_ROW = "it is the most probable one of row n after n accepted tokens"
GREEDY = {  # mistakes at temperature 0 that the catalogue does not have
    f"every draft token is kept without a test: {TESTED}": wrongly(lambda i: True),
    f"the first draft token is kept without a test: {TESTED}": wrongly(lambda i: i == 0),
    f"the token after the accepted ones comes from the target's first row; {ITS_ROW}": wrongly(row=lambda n: 0),
    f"the token after the accepted ones comes from the row before its own; {ITS_ROW}": wrongly(
        row=lambda n: max(0, n - 1)
    ),
}


def is_greedy(made, sharp):
    """Whether nothing is drawn, and the most probable tokens alone decide: `sharp` is `made` with sharper rows."""
    rng, prompts = ExactGenerator([]), [[a, b] for a in range(3) for b in range(3)]
    made.text(4, rng)
    return rng.n_draws == 0 and all(made.text(4, 0, prompt) == sharp.text(4, 0, prompt) for prompt in prompts)


def check_greedy(made, entries, takes_stops):
    """A line; AssertionError unless the text is the target's greedy text in each window, for several seeds.

    `entries` are (hint, class of samplers).
    """
    cases = [replace(window, sampling=Sampling(0), greedy=False) for window in windows(False, takes_stops)]
    runs = []  # (window, sampler, its text, the right text)
    for seed in range(N_SEEDS):
        for window in cases:
            sampler = in_window(made, window, seed)
            [right] = sampler.wanted(window.n_tokens)
            runs.append((window, sampler, tuple(sampler.text(window.n_tokens, 0)), right))
    wrong = sorted((run for run in runs if run[2] != run[3]), key=lambda run: len(run[2]))
    if not wrong:
        return (
            f"check_sampler: greedy: the text is the target's greedy text in {len(runs)} cases, K = 1 to 6; nothing is "
            "drawn, so above temperature 0 it is not speculative sampling"
        )

    def agrees(make, until):
        ordered = sorted(runs, key=lambda run: run[2] == run[3])  # the wrong ones first
        return any(
            all(
                replace(sampler, overshoots=overshoots).is_like(make, window.n_tokens, {text: 1.0}, until)
                for window, sampler, text, _ in ordered
            )
            for overshoots in {False, made.overshoots}
        )

    window, _, text, right = wrong[0]
    hint = entry_like(entries, agrees) or (
        "your sampler is greedy, and its text is not the target's greedy text: it goes wrong "
        + shared([*{id(run[0]): run[0] for run in wrong}.values()], cases)
    )
    fail(hint, "", f"  {window}", f"  your text is {[*text]}, and the target's own is {[*right]}")
