"""The exercises of notebook 15."""

import contextlib
import itertools

import numpy as np

from checks import asked, exercise, mistakes_of, refuse_library, refuse_mistakes
from speculative import Draft, ModelDrafter, Sampling, exact_distribution, rejection
from speculative.testing import check_verifier
from speculative.testing.cases import largest_difference
from speculative.testing.mistakes.samplers import Loop
from speculative.testing.museum import DRAFT, TARGET
from speculative.testing.sampler_diagnosis import LOOKING_BACK, mistake_in_a_text
from speculative.testing.sampler_parts import AllTokens, Made, Target

PROMPT, LOOKS_BACK = [0, 1], Sampling(processors=[AllTokens(np.random.default_rng(0))])


@exercise
def exercise_1(rows_of_a_round, counts_of_a_round, verify_masked, end_of_round):
    """Repairs of four engines."""
    check_rows(rows_of_a_round)
    check_counts(counts_of_a_round)
    check_verify(verify_masked)
    check_end(end_of_round)
    return "right: all four, by enumeration"


def check_rows(fn):
    """A sampler that uses fn has the target's distribution, with a sampling that depends on all tokens."""

    def generated(rng):
        text, end = list(PROMPT), len(PROMPT) + 3
        while len(text) < end:
            draft = ModelDrafter(DRAFT, sampling=Sampling()).propose(text, min(2, end - len(text) - 1), rng)
            drafted = draft.tokens.tolist()
            logits = TARGET([*text, *drafted], n_last=len(drafted) + 1)
            rows = fn(LOOKS_BACK, logits.copy(), list(text), list(drafted))
            assert rows is not None, "A: nothing came back: is a return missing?"
            assert np.shape(rows) == logits.shape, (
                f"A: expected k + 1 rows, an array of shape {logits.shape}, got {np.shape(rows)}"
            )
            verdict = rejection(draft, np.array(rows, float), rng)
            text += [*drafted[: verdict.n_accepted], int(verdict.next_token)]
        return text[len(PROMPT) :]

    found, wanted = exact_distribution(generated), TARGET.distribution(PROMPT, 3, LOOKS_BACK)
    if largest_difference(found, wanted) > 1e-12:
        drafter = ModelDrafter(DRAFT, sampling=Sampling())
        made = Made(Loop, Target(TARGET, [0]), drafter, 2, LOOKS_BACK, prompt=PROMPT)
        made.text = lambda n_tokens, rng: generated(rng)
        raise AssertionError("A: " + mistake_in_a_text(found, wanted, made, 3, LOOKING_BACK))


def counts_of_a_round(counts, last, drafted):
    return np.array([counts + np.bincount(drafted[:i], minlength=len(counts)) for i in range(len(drafted) + 1)])


MISTAKES = mistakes_of("what_engines_got_wrong", counts_of_a_round)


def check_counts(fn):
    """The counts are right for all drafts of up to three of three tokens."""
    cases = [  # every last token, every draft
        (np.array([2, 1, 3]), last, list(drafted))
        for last in range(3)
        for k in range(4)
        for drafted in itertools.product(range(3), repeat=k)
    ]
    answers = []
    for counts, last, drafted in cases:
        given = counts.copy()
        got = fn(given, last, list(drafted))
        assert got is not None, "B: nothing came back: is a return missing?"
        assert np.array_equal(given, counts), "B: `counts` was written to: rejected tokens would stay in it"
        shape = len(drafted) + 1, len(counts)
        assert np.shape(got) == shape, f"B: expected k + 1 rows, an array of shape {shape}, got {np.shape(got)}"
        answers.append(np.array(got))

    refuse_mistakes(answers, cases, MISTAKES["exercise_1"])
    for (counts, last, drafted), got in zip(cases, answers):
        right = counts_of_a_round(counts, last, drafted)
        assert np.array_equal(got, right), (
            f"B: for counts = {counts.tolist()}, last = {last}, drafted = {drafted} expected {right.tolist()}, "
            f"got {got.tolist()}"
        )


def check_verify(fn):
    """The tokens have the target's distribution, also where it has tokens of probability 0."""
    refuse_library(fn, "rejection", "block", "exact_match", "traversal")
    try:
        check_verifier(fn, seed=asked["seed"])
    except AssertionError as error:
        hint, *story = str(error).split("\n")
        with contextlib.suppress(Exception):
            hint = mistake_after_a_forbidden_token(fn) or hint
        raise AssertionError("\n".join([f"C: {hint}", *story])) from error


def mistake_after_a_forbidden_token(fn):
    """What follows a draft token of target probability 0, or None where that is right."""
    p, q = np.array([0, 0.4, 0.6]), np.array([0.5, 0.3, 0.2])
    draft, after = Draft(np.array([0]), q[None]), np.zeros(3)

    def decide(rng):
        verdict = fn(draft, np.array([p, p]), rng)
        return int(verdict.n_accepted), int(verdict.next_token)

    for (n_accepted, token), probability in exact_distribution(decide).items():
        if n_accepted:
            return "a token that the mask forbids is accepted"
        after[token] += probability
    if np.allclose(after, p):
        return (
            "a draft token that the mask forbids is cut away, and the next token drawn from p; but it was drawn from q "
            "and rejected, so the next token comes from max(0, p - q), normalised"
        )
    return None


def check_end(fn):
    """The tokens up to the stop token, and how many of them were accepted, for all rounds of up to four tokens."""
    for k in range(4):
        for tokens in itertools.product(range(3), repeat=k + 1):
            got = fn(list(tokens), k, 2)
            assert got is not None, "D: nothing came back: is a return missing?"
            assert len(got) == 2, "D: expected two things, (tokens, n_accepted)"
            kept = list(tokens[: tokens.index(2) + 1] if 2 in tokens else tokens)
            story = f"; for tokens = {list(tokens)}, n_accepted = {k}, stop = 2 expected {(kept, min(k, len(kept)))}"
            story += f", got {(list(got[0]), got[1])}"
            assert list(got[0]) == kept, "D: the text ends with the first stop token" + story
            assert got[1] != k or k <= len(kept), "D: tokens after the stop token are still counted as accepted" + story
            assert got[1] != len(kept) - 1 or len(kept) > k, (
                "D: all that is left of a round that stops is accepted draft tokens, the stop token among them" + story
            )
            assert got[1] != len(kept) or len(kept) <= k, "D: the last token of a round is not a draft token" + story
            assert got[1] == min(k, len(kept)), "D: count the accepted draft tokens that the text keeps" + story


# ------------------------------------------------------------------------------------------------ rounding or a bug?

N_VOCAB = 5


class Imitation:
    """An engine in one precision: `rounding` is how much a row changes with the width, `bug(m, i)` what is wrong."""

    def __init__(self, rounding, bug=lambda m, i: 0.0):
        self.rounding, self.bug, self.n_vocab, self.n_ctx = rounding, bug, N_VOCAB, 64

    def __call__(self, tokens, n_last=1):
        m, rows = n_last, []
        for i in range(m):
            text = list(map(int, tokens[: len(tokens) - m + 1 + i]))
            row = np.random.default_rng([7, *text]).normal(scale=4, size=N_VOCAB)
            if m > 1:
                changed = np.random.default_rng([8, m, *text])
                row += self.rounding * changed.uniform(-1, 1, N_VOCAB)
                row[len(text) % N_VOCAB] += self.bug(m, i)
            rows.append(row)
        return np.array(rows, np.float32)


BF16, F32 = 2.0**-6, 2.0**-22  # a step of the two dtypes for logits of 4
ENGINES = {  # what it is: the bug, the verdict
    "nothing but rounding": (lambda m, i: 0.0, "rounding"),
    "positions one off in each block": (lambda m, i: 2.0, "bug"),
    "the rows after the first see too little": (lambda m, i: -1.5 * (i > 0), "bug"),
    "the first row of a block sees too much": (lambda m, i: 1.0 * (i == 0), "bug"),
    "a kernel for 4 rows with an error": (lambda m, i: 0.5 * (m == 4), "bug"),
    "a bug smaller than the rounding of bfloat16": (lambda m, i: 0.004, "bug"),
}


def differences(model, tokens, widths=(2, 3, 4)):
    """dict (m, i) -> [n, n_vocab], the differences of row i among m from the same row alone, at every position."""
    alone = {n: model(tokens[:n])[0].astype(float) for n in range(1, len(tokens) + 1)}
    return {
        (m, i): np.array([
            model(tokens[:n], n_last=m)[i] - alone[n - m + 1 + i] for n in range(m, len(tokens) + 1)
        ])
        for m in widths
        for i in range(m)
    }  # fmt: skip


OTHER_LARGEST = {  # what is wrong: the largest difference, computed differently
    "the differences of all widths m = 2, 3, 4 count; yours is that of m = 2": (
        lambda found: max(abs(part).max() for (m, _), part in found.items() if m == 2)
    ),
    "the differences of all widths m = 2, 3, 4 count; yours is that of m = 4": (
        lambda found: max(abs(part).max() for (m, _), part in found.items() if m == 4)
    ),
    "every row of a block counts; yours is the first alone": (
        lambda found: max(abs(part).max() for (_, i), part in found.items() if i == 0)
    ),
    "every row of a block counts; yours is the last alone": (
        lambda found: max(abs(part).max() for (m, i), part in found.items() if i == m - 1)
    ),
    "a logit may become smaller as well: take absolute values before the largest": (
        lambda found: max(part.max() for part in found.values())
    ),
    "the largest difference, not the mean": lambda found: abs(np.concatenate(list(found.values()))).mean(),
}


@exercise
def exercise_2(fn):
    tokens = [3, 1, 4, 1, 0, 2, 2, 4]
    cases = {"no rounding at all": (0, lambda m, i: 0.0, "identical")}
    cases |= {name: (1, bug, verdict) for name, (bug, verdict) in ENGINES.items()}
    models = {name: [Imitation(scale * step, bug) for step in (BF16, F32)] for name, (scale, bug, _) in cases.items()}
    answers = {name: fn(*both, list(tokens)) for name, both in models.items()}
    for got in answers.values():
        assert got is not None, "nothing came back: is a return missing?"
        assert isinstance(got, (tuple, list)) and len(got) == 3, "expected (verdict, D_low, D_high), three things"
    found = [differences(model, tokens) for both in models.values() for model in both]
    given = np.array([D for answer in answers.values() for D in answer[1:]], float)

    def agrees(D):
        return np.allclose(given, [D(each) for each in found], rtol=1e-4, atol=1e-9)

    if not agrees(largest := lambda found: max(abs(part).max() for part in found.values())):
        for hint, other in OTHER_LARGEST.items():
            assert not agrees(other), hint
        i = int(np.argmax(~np.isclose(given, [largest(each) for each in found], rtol=1e-4, atol=1e-9)))
        raise AssertionError(
            f"D_{('low', 'high')[i % 2]} of an engine with {list(cases)[i // 2]} is {largest(found[i]):.3g}, got "
            f"{given[i]:.3g}: compare each row among m with the row of the same prefix alone"
        )
    for name, (_, _, verdict) in cases.items():
        said, low, high = answers[name]
        assert isinstance(said, str) and said in ("identical", "rounding", "bug"), (
            f'expected "identical", "rounding" or "bug", got {said!r}'
        )
        numbers = f"D_low = {low:.2g}, D_high = {high:.2g}"
        assert said == verdict or "smaller" not in name, (
            "a bug hides below the rounding of bfloat16; rounding shrinks some 10,000-fold in float32, and what is "
            f"left here does not: {numbers}"
        )
        assert said == verdict, f"an engine with {name} is judged {said!r}, not {verdict!r}: {numbers}"
    return "right: rounding shrinks with the precision, a bug does not"
