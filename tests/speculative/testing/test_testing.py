"""The graders, by what they must reject and what they must let pass."""

import itertools
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import random_gpt2, random_heads

import speculative
from gpt2np import EarlyExit, Heads, HParams
from speculative import (
    AutoregressiveSampler,
    Draft,
    EarlyExitDrafter,
    HeadsDrafter,
    ModelDrafter,
    NGramDrafter,
    NGramModel,
    NoisyDrafter,
    OracleDrafter,
    PromptLookupDrafter,
    Sampling,
    SpeculativeSampler,
    SuffixDrafter,
    Verdict,
    exact_distribution,
)
from speculative.cli.commands.museum import entry, table
from speculative.museum import CONSTRUCTED, EXHIBITS, caught_by, law_error
from speculative.probs import residual, sample_token
from speculative.testing import TableModel, check_drafter, check_language_model, check_sampler, check_verifier

LAW_IS_RIGHT = {
    "residual in place",
    "accepted at equality",
    "overshoot",
    "stop token missed in mid-block",
    "the prompt written to",
}


def test_the_museum_has_some_twenty_exhibits_of_every_kind():
    """Each with a text of its own in whole sentences."""
    assert len(EXHIBITS) >= 20
    assert {e.grader for e in EXHIBITS.values()} == {check_drafter, check_language_model, check_sampler, check_verifier}
    texts = [exhibit.what for exhibit in EXHIBITS.values()]
    assert len(set(texts)) == len(texts)
    assert all(text.endswith(".") for text in texts)


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_links_where_it_was_seen_or_says_that_it_is_constructed(name):
    seen = EXHIBITS[name].seen
    links = re.findall(r"https://github\.com/[\w.-]+/[\w.-]+/(?:(?:issues|pull)/\d+|blob/HEAD/\w[\w/.]+\w)", seen)
    assert (seen == CONSTRUCTED) != bool(links), seen


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_exhibit_is_caught_by_its_grader_with_the_right_hint(name):
    message = caught_by(EXHIBITS[name])
    assert message is not None and re.match(EXHIBITS[name].hint, message), message


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_error_of_the_distribution_is_0_only_where_another_check_sees_the_mistake(name):
    error = law_error(EXHIBITS[name])
    assert error < 1e-15 if name in LAW_IS_RIGHT else error > 1e-9


def test_the_page_of_the_museum():
    """What the command prints, in this process: the distributions take long, and the tests above have computed them."""
    page = table([entry(exhibit) for exhibit in EXHIBITS.values()])
    assert len(EXHIBITS) >= 20
    for exhibit in EXHIBITS.values():
        line = next(line for line in page.splitlines() if line.startswith(exhibit.name + "  "))
        shown, error = float(line.split()[-2]), law_error(exhibit)
        np.testing.assert_allclose(shown, error if error > 1e-12 else 0, rtol=0.06)  # two digits
        assert (shown == 0) == (exhibit.name in LAW_IS_RIGHT) and line.split()[-1] == exhibit.grader.__name__
        assert exhibit.what in page and exhibit.seen in page


def test_no_two_hints_of_verifiers_are_the_same():
    hints = [exhibit.hint for exhibit in EXHIBITS.values() if exhibit.grader is check_verifier]
    assert len(set(hints)) == len(hints)


# ------------------------------------------------------------------------------------------------ right solutions pass


def by_division(draft, target_probs, rng):
    n = 0
    for x, p, q in zip(draft.tokens, target_probs, draft.probs):
        if rng.random() >= min(1, p[x] / q[x]):
            r = np.clip(p - q, 0, None)
            return Verdict(n, int(rng.choice(len(p), p=r / r.sum())))
        n += 1
    p = target_probs[n]
    return Verdict(n, int(rng.choice(len(p), p=p)))


def vectorised(draft, target_probs, rng):
    k = len(draft.tokens)
    rows = np.arange(k)
    p, q = target_probs[rows, draft.tokens], draft.probs[rows, draft.tokens]
    accepted = rng.random(k) * q < p
    n = k if accepted.all() else int(np.argmin(accepted))
    final = target_probs[n] if n == k else np.maximum(target_probs[n] - draft.probs[n], 0)
    return Verdict(n, int(np.searchsorted(np.cumsum(final), rng.random() * final.sum(), side="right")))


def in_logarithms(draft, target_probs, rng):
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(target_probs), np.log(draft.probs)
    for i, x in enumerate(draft.tokens):
        if not np.log(rng.random()) < log_p[i, x] - log_q[i, x]:
            return Verdict(i, sample_token(residual(target_probs[i], draft.probs[i]), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def with_cumsum_and_argmax(draft, target_probs, rng):
    def draw(weights):
        return int(np.argmax(np.cumsum(weights) / np.sum(weights) > rng.random()))

    i = 0
    while i < len(draft.tokens):
        p, q, x = target_probs[i], draft.probs[i], draft.tokens[i]
        if rng.uniform() * q[x] < p[x]:
            i += 1
        else:
            return SimpleNamespace(n_accepted=i, next_token=draw(np.where(p > q, p - q, 0)))
    return SimpleNamespace(n_accepted=i, next_token=draw(target_probs[i]))


def with_its_own_loop_over_the_vocabulary(draft, target_probs, rng):
    def draw(weights):
        u, total = rng.random() * sum(weights), 0.0
        for token, weight in enumerate(weights):
            total += weight
            if u < total:
                return token
        raise ValueError("no weight left")

    for i in range(len(draft.tokens)):
        x = draft.tokens[i]
        if target_probs[i][x] < draft.probs[i][x] and 1 - rng.random() > target_probs[i][x] / draft.probs[i][x]:
            return Verdict(i, draw([max(0.0, a - b) for a, b in zip(target_probs[i], draft.probs[i])]))
    return Verdict(len(draft.tokens), draw(list(target_probs[-1])))


def by_recursion(draft, target_probs, rng, i=0):
    if i == len(draft.tokens):
        return Verdict(i, sample_token(target_probs[i], rng))
    p, q, x = target_probs[i], draft.probs[i], draft.tokens[i]
    if rng.choice([True, False], p=[min(1, p[x] / q[x]), 1 - min(1, p[x] / q[x])]):
        return by_recursion(draft, target_probs, rng, i + 1)
    return Verdict(i, sample_token(residual(p, q), rng))


def with_numpy_integers(draft, target_probs, rng):
    verdict = by_division(draft, target_probs, rng)
    return Verdict(np.int64(verdict.n_accepted), np.int32(verdict.next_token))


def matching_by_choice(draft, target_probs, rng):
    for i, p in enumerate(target_probs):
        token = rng.choice(len(p), p=p)
        if i == len(draft.tokens) or token != draft.tokens[i]:
            return Verdict(i, token)
    return None


def matching_by_multinomial(draft, target_probs, rng):
    own = [int(np.flatnonzero(rng.multinomial(1, p))[0]) for p in target_probs]
    n = next((i for i, x in enumerate(draft.tokens) if own[i] != x), len(draft.tokens))
    return Verdict(n, own[n])


def nothing_accepted(draft, target_probs, rng):
    """Slow, and exact: the target's own token each time."""
    return Verdict(0, sample_token(target_probs[0], rng))


def block_from_the_last(draft, target_probs, rng):
    """Block verification with all uniform numbers drawn first, and the search from the end."""
    k, joint = len(draft.tokens), [1.0]
    for i, x in enumerate(draft.tokens):
        joint.append(min(1.0, joint[-1] * target_probs[i, x] / draft.probs[i, x]))
    eta = rng.random(k)
    for i in range(k, 0, -1):
        rest = np.clip(joint[i] * target_probs[i] - draft.probs[i], 0, None).sum() if i < k else 0
        passes = joint[i] if i == k else 1.0 if rest + 1 - joint[i] == 0 else rest / (rest + 1 - joint[i])
        if eta[i - 1] < passes:
            break
    else:
        i = 0
    if i == k:
        return Verdict(k, sample_token(target_probs[k], rng))
    return Verdict(i, sample_token(residual(joint[i] * target_probs[i], draft.probs[i]), rng))


class AsObject:
    def __call__(self, draft, target_probs, rng):
        rng = np.random.default_rng(rng)  # a Generator is passed through
        return by_division(draft, target_probs.copy(), rng)


RIGHT = [
    by_division, vectorised, in_logarithms, with_cumsum_and_argmax, with_its_own_loop_over_the_vocabulary, by_recursion,
    with_numpy_integers, matching_by_choice, matching_by_multinomial, nothing_accepted, block_from_the_last, AsObject(),
]  # fmt: skip


@pytest.mark.parametrize("verifier", RIGHT, ids=lambda v: getattr(v, "__name__", "an object"))
def test_right_verifiers_pass_in_any_style(verifier):
    for seed in (0, 1):
        check_verifier(verifier, seed=seed)


# ------------------------------------------------------------------------------------------------ wrong ones do not


def test_a_verifier_that_is_wrong_only_where_p_equals_q():
    def wrong(draft, target_probs, rng):
        for i, x in enumerate(draft.tokens):
            p, q = target_probs[i], draft.probs[i]
            if not (p[x] > q[x] or (p[x] != q[x] and rng.random() * q[x] < p[x])):
                return Verdict(i, sample_token(residual(p, q), rng))
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))

    with pytest.raises(AssertionError, match=r"^right, but not where p\(x\) = q\(x\) for the draft token x"):
        check_verifier(wrong)


def test_graders_in_several_threads_leave_nothing_behind():
    before, together = np.random.default_rng, threading.Barrier(4)

    def grade(i):
        together.wait()
        check_drafter(speculative.ModelDrafter(TableModel.random(2 + i)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(grade, range(4)))
    assert np.random.default_rng is before


def test_another_thread_that_draws_is_not_the_graded_codes():
    busy = threading.Event()

    def draws():
        while not busy.is_set():
            np.random.default_rng(1).random()

    thread = threading.Thread(target=draws)
    thread.start()
    try:
        with pytest.raises(AssertionError, match=r"^on a rejection you drew from the target"):
            check_verifier(EXHIBITS["residual from the target"].wrong)
    finally:
        busy.set()
        thread.join()


def test_a_mistake_that_no_museum_has_is_caught_and_its_distribution_is_shown():
    """Accepts with the square root of the ratio, and draws from the right residual."""

    def wrong(draft, target_probs, rng):
        for i, x in enumerate(draft.tokens):
            p, q = target_probs[i], draft.probs[i]
            if not rng.random() < np.sqrt(p[x] / q[x]):
                return Verdict(i, sample_token(residual(p, q), rng))
        return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))

    with pytest.raises(AssertionError) as error:
        check_verifier(wrong)
    message = str(error.value)
    assert message.startswith("what you accept and what you replace by do not add up to the target")
    p, q = (
        np.array([float(n) for n in re.search(rf"{name} = \[(.*?)\]", message).group(1).split(",")])
        for name in ("target p", "draft q")
    )
    drafted = int(re.search(r"draft token (\d): accepted with probability 0", message).group(1))
    shown = float(re.search(rf"draft token {drafted}: accepted with probability ([\d.]+)", message).group(1))
    np.testing.assert_allclose(shown, np.sqrt(p[drafted] / q[drafted]), rtol=1e-4)
    got, wanted = map(float, re.search(rf"\({1 - drafted}, 0\) +got ([\d.]+), wanted ([\d.]+)", message).groups())
    first = q[1 - drafted] + q[drafted] * (1 - shown)
    np.testing.assert_allclose(got / wanted, first / p[1 - drafted], rtol=1e-4)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"return Verdict\(n_accepted, next_token\), two whole numbers; you returned None"),
        (Verdict(0, None), r"return Verdict\(n_accepted, next_token\)"),
        (Verdict(2, 0), "n_accepted must lie between 0 and the 1 draft tokens; you returned 2"),
        (Verdict(-1, 0), "n_accepted must lie between 0"),
        (Verdict(0, 2), "next_token must be a token from 0 to 1; you returned 2"),
    ],
)
def test_a_verdict_that_is_none(returned, message):
    with pytest.raises(AssertionError, match=message):
        check_verifier(lambda *_: returned)


def test_a_verifier_that_draws_elsewhere():
    own = np.random.default_rng(0)

    def wrong(draft, target_probs, rng):
        return Verdict(0, sample_token(target_probs[0], own))

    with pytest.raises(AssertionError):
        check_verifier(wrong)


def test_a_verifier_that_is_certain():
    with pytest.raises(AssertionError, match="whether a draft token is accepted must be drawn with rng"):
        check_verifier(lambda draft, rows, rng: Verdict(0, int(rows[0].argmax())))


def test_an_error_inside_a_verifier_is_its_own():
    with pytest.raises(
        AssertionError, match=r"your verifier fails for K = 1, draft.tokens = \[0\].*ZeroDivisionError"
    ) as error:
        check_verifier(lambda *_: 1 / 0)
    assert type(error.value.__cause__) is ZeroDivisionError


# ------------------------------------------------------------------------------------------------ the other graders


def drafters():
    """Some of each exported drafter; a new one must be added here."""
    model, text = TableModel.random(3), [0, 1, 2, 0, 1, 1, 0]
    table = NGramModel.from_tokens(text, n_vocab=3)
    shape = HParams(n_vocab=3, n_ctx=23, n_embd=15, n_head=3, n_layer=2)
    whole, heads = EarlyExit(random_gpt2(shape), 1), Heads(random_gpt2(shape), random_heads(shape))
    all_options = Sampling(0.7, top_k=2, top_p=0.9, min_p=0.1, repetition_penalty=1.3)
    return {
        "ModelDrafter": [
            ModelDrafter(model, sampling=Sampling(0.7)),
            ModelDrafter(model, sampling=all_options),
            ModelDrafter(model, threshold=0.4),
        ],
        "EarlyExitDrafter": [EarlyExitDrafter(whole), EarlyExitDrafter(whole, threshold=0.4)],
        "HeadsDrafter": [HeadsDrafter(heads, ([-1, 0], [0, 1]))],  # trees: test_heads.py
        "NGramDrafter": [NGramDrafter(table), NGramDrafter(table, sampling=all_options, threshold=0.4)],
        "NoisyDrafter": [NoisyDrafter(model, 0.3, sampling=all_options)],
        "OracleDrafter": [OracleDrafter(model)],
        "PromptLookupDrafter": [PromptLookupDrafter(3)],
        "SuffixDrafter": [SuffixDrafter(3), SuffixDrafter(3, text, floor=0)],
    }


def test_every_exported_drafter_is_looked_at():
    exported = {name for name in speculative.__all__ if name.endswith("Drafter")} - {"Drafter"}
    assert exported - {"TreeDrafter", "RecyclingDrafter"} == drafters().keys()  # trees: test_tree_drafters.py


@pytest.mark.parametrize("name", drafters())
def test_every_drafter_passes_its_grader_and_is_exact_in_the_loop(name):
    target = TableModel.random(3, seed=5, n_ctx=12)
    wanted = exact_distribution(lambda rng: AutoregressiveSampler(target).generate([0, 1, 0], 3, rng).tokens)
    for drafter, K in itertools.product(drafters()[name], (1, 2)):
        check_drafter(drafter, n_vocab=3)
        sampler = SpeculativeSampler(target, drafter, K=K)
        distribution = exact_distribution(lambda rng, sampler=sampler: sampler.generate([0, 1, 0], 3, rng).tokens)
        assert distribution.keys() == wanted.keys() and all(abs(distribution[t] - wanted[t]) < 1e-12 for t in wanted)


class FixedDrafter:
    def __init__(self, tokens, probs):
        self.draft = Draft(tokens, probs)

    def propose(self, tokens, K, rng):
        return self.draft if K else Draft(np.empty(0, int), np.empty((0, 3)))


ROWS = np.full((1, 3), 1 / 3)


@pytest.mark.parametrize(
    ("drafter", "message"),
    [
        (FixedDrafter(np.array([1, 1, 1]), np.full((3, 3), 1 / 3)), "a draft has at most K = 1 tokens"),
        (FixedDrafter(np.array([[1]]), ROWS), "in one dimension"),
        (FixedDrafter(np.array([1]), ROWS[0]), "a row of n_vocab probabilities for each token"),
        (FixedDrafter(np.array([1]), np.full((1, 4), 0.25)), "a row of n_vocab probabilities for each token"),
        (FixedDrafter(np.array([1.0]), ROWS), "the draft tokens are whole numbers"),
        (FixedDrafter(np.array([1]), ROWS * 2), "each row of a draft is a distribution"),
        (FixedDrafter(np.array([1]), np.array([[1.5, -0.5, 0]])), "each row of a draft is a distribution"),
        (FixedDrafter(np.array([1]), ROWS.astype(np.float32)), "the rows of a draft are float64"),
        (FixedDrafter(np.array([1]), ROWS), "takes one token for certain, but its row is not one-hot"),
    ],
)
def test_drafts_of_the_wrong_form(drafter, message):
    with pytest.raises(AssertionError, match=message):
        check_drafter(drafter, n_vocab=3)


def test_drafters_that_stop_early_by_a_right_rule_pass():
    class KeepsTheUnlikely:
        """Stops after a token of low probability, which stays in the draft; and by a coin, before drawing."""

        def propose(self, tokens, K, rng):
            model, tokens, guesses, rows = TableModel.random(3), [int(t) for t in tokens], [], []
            while len(guesses) < K and rng.random() < 0.8:
                row = Sampling()(model(tokens))[0]
                guesses.append(sample_token(row, rng))
                rows.append(row)
                tokens.append(guesses[-1])
                if row[guesses[-1]] < 0.3:
                    break
            return Draft(np.array(guesses, int), np.array(rows).reshape(-1, 3))

    check_drafter(KeepsTheUnlikely(), n_vocab=3)


def test_the_samplers_pass():
    exported = {name for name in speculative.__all__ if name.endswith("Sampler")} - {"Sampler"}
    assert exported == {"SpeculativeSampler", "AutoregressiveSampler"}  # a new one must be added here
    check_sampler(SpeculativeSampler)
    check_sampler(SpeculativeSampler, seed=1)
    check_sampler(lambda target, drafter, K, sampling: AutoregressiveSampler(target, sampling=sampling))


class Mine:
    """A sampler as another author might write it."""

    def __init__(self, target, drafter, K, sampling):
        self.parts = target, drafter, K, sampling

    def n_rows(self, k, draft, context):
        return len(draft.tokens) + 1

    def generate(self, prompt, n_tokens, rng):
        target, drafter, K, sampling = self.parts
        out = []
        while len(out) < n_tokens:
            context, k = [int(t) for t in prompt] + out, min(K, n_tokens - len(out) - 1)
            draft = drafter.propose(context, k, rng)
            rows = sampling(target(context + draft.tokens.tolist(), n_last=self.n_rows(k, draft, context)))
            verdict = by_division(draft, rows, rng)
            out += [int(t) for t in draft.tokens[: verdict.n_accepted]] + [verdict.next_token]
        return out


def test_a_sampler_in_another_style_passes():
    check_sampler(Mine)


def test_a_decorated_sampler_that_takes_no_stop_tokens_passes():
    class Decorated(Mine):
        def generate(self, *given, **options):
            return Mine.generate(self, *given, **options)

    check_sampler(Decorated)


def test_a_sampler_that_reckons_with_k_guesses_is_caught():
    class ReckonsWithK(Mine):
        def n_rows(self, k, draft, context):
            return min(k + 1, len(context) + len(draft.tokens))

    with pytest.raises(AssertionError, match="goes wrong where the drafter proposes fewer than K tokens"):
        check_sampler(ReckonsWithK)


def test_language_models_pass(tiny_pair):
    check_language_model(TableModel.random(3))
    check_language_model(random_gpt2(HParams(n_vocab=17, n_ctx=23, n_embd=15, n_head=3, n_layer=2)))
    for model in tiny_pair[:2]:
        check_language_model(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda logits: logits.astype(np.float64), "logits are float32"),
        (lambda logits: logits[0], r"logits have the shape \(n_last, n_vocab\) = \(1, 3\); yours have \(3,\)"),
        (lambda logits: logits * np.float32(np.nan), "your logits are NaN"),
    ],
)
def test_language_models_of_the_wrong_form(change, message):
    model = TableModel.random(3)
    wrong = SimpleNamespace(n_vocab=3, n_ctx=64)
    caller = type(
        "Wrong", (SimpleNamespace,), {"__call__": lambda self, tokens, n_last=1: change(model(tokens, n_last))}
    )
    with pytest.raises(AssertionError, match=message):
        check_language_model(caller(**vars(wrong)))


@pytest.mark.parametrize(("name", "value"), [("n_vocab", 1), ("n_vocab", None), ("n_ctx", 3), ("n_ctx", "64")])
def test_a_language_model_too_small_for_the_grader(name, value):
    model = TableModel.random(3)
    setattr(model, name, value)
    with pytest.raises(AssertionError, match=f"{name} is a whole number, and at least .* yours is {value!r}"):
        check_language_model(model)


def test_a_model_that_writes_to_the_tokens_is_caught():
    class Writes(TableModel):
        def __call__(self, tokens, n_last=1):
            tokens[0] = 0
            return super().__call__(tokens, n_last)

    with pytest.raises(AssertionError, match="your model writes to its arguments"):
        check_language_model(Writes([[0.5, 0.5], [0.2, 0.8]]))
