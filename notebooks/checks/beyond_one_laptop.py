"""The exercises of notebook 14, and the small engine that they audit."""

import numpy as np

from checks import exercise, more, refuse_library
from speculative import ModelDrafter, Sampling, exact_distribution
from speculative.testing import TableModel, check_batch
from speculative.testing.mistakes.batches import batch

small_target, small_draft = TableModel.random(2, n_back=1, seed=0), TableModel.random(2, n_back=1, seed=1)


def drawn(text, k, rng):
    """A draft of k tokens drawn from the draft model."""
    return ModelDrafter(small_draft).propose(text, k, rng)


def greedy(text, k, rng):
    """A draft of the k most likely tokens; its rows are one-hot."""
    return ModelDrafter(small_draft, sampling=Sampling(temperature=0)).propose(text, k, rng)


def serve(verify, prompts, n_tokens, rng, K=2, propose=drawn):
    """A small engine: continues each prompt by its number of tokens, all in the same steps."""
    texts = [list(prompt) for prompt in prompts]
    ends = [len(prompt) + n for prompt, n in zip(prompts, n_tokens)]
    while any(len(text) < end for text, end in zip(texts, ends)):
        running = [i for i, text in enumerate(texts) if len(text) < ends[i]]
        drafts = [propose(texts[i], min(K, ends[i] - len(texts[i]) - 1), rng) for i in running]
        lengths, logits = [len(draft.tokens) for draft in drafts], []
        for i, draft in zip(running, drafts):
            tokens = [*texts[i], *draft.tokens]
            logits.append(small_target(tokens, n_last=len(draft.tokens) + 1))
        p = Sampling()(np.concatenate(logits))
        q = np.concatenate([draft.probs for draft in drafts])
        new = verify(np.concatenate([draft.tokens for draft in drafts]), lengths, q, p, rng)
        for i, tokens in zip(running, new):
            texts[i] += tokens
    return [text[len(prompt) :] for text, prompt in zip(texts, prompts)]


def verify_batch(tokens, lengths, q, p, rng, mistake=None):
    """The step of notebook 14, or a variant of it with one mistake."""
    uniforms, new, first = rng.random(len(tokens)), [], 0
    if mistake == "one uniform for all texts":
        uniforms = np.concatenate([uniforms[:length] for length in lengths])
    for text, length in enumerate(lengths):
        kept, weights = [], p[first + length + text]
        if mistake == "bonus of the neighbour":
            weights = p[lengths[0]]
        for i in range(first, first + length):
            row = p[first + text] if mistake == "first row for all draft tokens" else p[i + text]
            row = p[i] if mistake == "rows off by one from the second text on" else row
            if not uniforms[i] * q[i][tokens[i]] < row[tokens[i]]:
                weights = row if mistake == "correction drawn from p" else np.maximum(row - q[i], 0)
                break
            kept.append(int(tokens[i]))
        weights = weights if weights.any() else row
        with np.errstate(divide="ignore"):
            kept.append(int(np.argmin(rng.exponential(size=len(weights)) / weights)))
        new.append(kept)
        first += length
    return new


@exercise
def exercise_1(fn):
    cases = [(312e12, 2.039e12, 2, 4), (989e12, 3.35e12, 1, 5), (75e9, 10e9, 4, 1), (70e9, 10e9, 2, 7),
             (989e12, 3.35e12, 0.5, 3)]  # fmt: skip
    cases += more(lambda rng: (*rng.uniform((1e14, 1e12), (1e15, 4e12)).tolist(), 2, int(rng.integers(1, 8))))
    answers = [fn(*case) for case in cases]
    assert all(answer is not None for answer in answers), "nothing came back: is a return missing?"
    assert all(np.ndim(answer) == 0 for answer in answers), f"expected one number, got {answers[0]}"
    hints = [
        ("a round of K draft tokens is a pass for K + 1 tokens of each text", lambda F, B, b, K: b * F / (2 * B) // K),
        ("this is m*, tokens in one pass: each text has K + 1 of them", lambda F, B, b, K: b * F // (2 * B)),
        ("round down: one more text is no longer free", lambda F, B, b, K: np.ceil(b * F / (2 * B) / (K + 1))),
        ("round down, not to the nearest", lambda F, B, b, K: round(b * F / (2 * B) / (K + 1))),
        ("2 F / B holds for weights of 4 bytes: smaller ones are read faster", lambda F, B, b, K: 2 * F / B // (K + 1)),
        ("F / B holds for weights of 2 bytes", lambda F, B, b, K: F / B // (K + 1)),
        ("F / (2 B) holds for weights of 1 byte", lambda F, B, b, K: F / (2 * B) // (K + 1)),
        ("a token takes 2 operations for each weight", lambda F, B, b, K: b * F / B // (K + 1)),
        ("larger weights take longer to read: b on the other side", lambda F, B, b, K: 2 * F / b / B // (K + 1)),
        ("larger weights take longer to read: b on the other side", lambda F, B, b, K: F / 2 / b / B // (K + 1)),
        ("F and B are exchanged", lambda F, B, b, K: b * B / (2 * F) // (K + 1)),
        ("a whole number of texts, rounded down", lambda F, B, b, K: b * F / (2 * B) / (K + 1)),
    ]
    right = [int(b * F / (2 * B) // (K + 1)) for F, B, b, K in cases]
    for (F, B, b, K), got, expected in zip(cases, answers, right):
        if not np.isclose(got, expected):
            story = f"F = {F:.3g}, B = {B:.3g}, {b} bytes, K = {K}: expected {expected}, got {got}"
            named = [hint for hint, wrong in hints if np.allclose(answers, [wrong(*case) for case in cases])]
            raise AssertionError("; ".join([*named[:1], story]))
    return "right: m* = b F / (2 B) tokens, K + 1 of them for each text"


@exercise
def exercise_2(fn):
    needs = {
        "correction drawn from p": "compare probabilities of whole texts with the target's",
        "first row for all draft tokens": "a text needs at least three tokens, so that two draft tokens are verified "
        "in one round",
        "rows off by one from the second text on": "put a second text into the batch, with draft tokens of its own",
        "bonus of the neighbour": "put a second text into the batch, with a different prompt",
        "one uniform for all texts": "each text alone has the right distribution here, but the two are no longer "
        "independent: compare the probabilities of both texts together",
    }
    n_calls = []

    def counted(mistake=None):
        return lambda *step: (n_calls.append(mistake), verify_batch(*step, mistake=mistake))[1]

    error = fn(counted())
    assert error is not None, "nothing came back: is a return missing?"
    assert n_calls, "the audit never calls verify: pass it to serve"
    assert not isinstance(error, (bool, np.bool_)), f"expected the largest error, a number, got {error}"
    assert np.ndim(error) == 0 and error >= 0, f"expected one number of 0 or more, the largest error, got {error}"
    if error >= 1e-12:
        told = f"verify_batch is right, but the audit says {error:.2g}"
        drawn = error < 0.1 and fn(counted()) != error
        assert not drawn, f"{told}, and a different number each time: enumerate with exact_distribution, do not sample"
        raise AssertionError(f"{told}: is the expected distribution that of the same texts?")
    found = []
    for mistake, need in needs.items():
        error = fn(counted(mistake))
        assert error > 1e-6, f"the audit passes an engine with the mistake {mistake!r} (error {error:.0e}): {need}"
        found.append(f"found: {mistake}, error {error:.3f}")
    return "\n".join(["right: it passes the correct engine and none of the others", *found])


AS_IT_WAS_GIVEN = 0.1292  # the error of match_batch before it is repaired


@exercise
def exercise_3(fn):
    refuse_library(fn, "rejection", "exact_match")

    def error_of(prompts, n_tokens):
        found = exact_distribution(lambda rng: serve(fn, prompts, n_tokens, rng, propose=greedy))
        right = {(): 1.0}
        for prompt, n in zip(prompts, n_tokens):
            one = small_target.distribution(prompt, n)
            right = {(*texts, text): a * b for texts, a in right.items() for text, b in one.items()}
        return max(abs(found.get(texts, 0) - right.get(texts, 0)) for texts in {*found, *right})

    assert error_of([[0]], [3]) < 1e-12, "wrong for a single text: the repair broke what was right"
    two = error_of([[1], [0]], [3, 3])
    tokens, rows = np.array([0, 0, 1, 1]), np.full((6, 2), [0.75, 0.25])  # the second text has the unlikely tokens
    kept = exact_distribution(lambda rng: len(fn(tokens, [2, 2], None, rows, rng)[1]))
    mean = sum(n * chance for n, chance in kept.items())  # 1 + 1/4 + 1/16
    if two >= 1e-12:
        hint = (
            f"two texts together: a probability is off by {two:.2f}. A text with k draft tokens has k + 1 rows: where "
            "do those of the second text start? And whose draft tokens is it compared with?"
        )
        raise NotImplementedError(hint) if abs(two - AS_IT_WAS_GIVEN) < 1e-4 else AssertionError(hint)
    assert np.isclose(mean, 1.3125), (
        f"the distribution is right, but the second text of a batch gets {mean:.2f} tokens on average, not 1.31: is it "
        "compared with its own draft tokens?"
    )
    return "right: exact for both texts, and each is compared with its own draft tokens"


@exercise
def exercise_4(fn):
    found = fn(np.arange(4), np.array([True, True, True, False]), 0, 3, 2)
    assert np.shape(found) == (4,), f"expected an array of 4 for 4 columns, got {found!r:.60}"

    def of_columns(self, *arguments):
        return np.asarray(fn(*arguments), bool)

    check_batch(batch(stays=of_columns))
    return "right: exact for texts of all lengths, beside others"
