"""The checks of the exercises, by notebook: what they say to wrong answers, and that other ways to be right pass."""

import functools
import itertools
import math
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT

import gpt2np
import gpt2np.files.crc32c
import gpt2np.reference
import gpt2np.tokenizer
import speculative
import speculative.theory
from speculative import Draft, Sampling, Verdict, residual, sample_token, tree
from speculative.probs import sample_distinct

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks

WORDS = 'words = ["king"'
CELLS = {  # the cells that a check needs, by a part of their text
    "check_encode_piece": ("text = ", "sentence = ", "texts = {", "tokenizer = gpt2np"),
    "check_layer_norm": ("model_size =", "n_seq, n_embd, n_head, d_head =", "def explain("),
    "check_head": ("model_size =", "n_seq, n_embd, n_head, d_head =", "def explain("),
    "check_whole_block": ("model_size =", "def explain("),
    "check_cached_model": ("target_size", "tokens = tokenizer.encode('The"),
    "check_block": ("def expected(rule", "target, tokenizer"),
    "check_distribution": (WORDS, "def accepted(", "def distribution_of(", "target, tokenizer"),
    "n_needed": ("target_size, draft_size =", "exhibit = EXHIBITS", "def distribution_of(make)"),
    "check_without_replacement": ("def in_turn", "def distribution_and_acceptance", "words = "),
    "check_hydra_head": ("target, tokenizer = ", "def read_off", "def silu"),
    "check_match_gradient": ("def softmax", "def gradient("),
    "check_audit": ("def verify_batch",),
    "check_match_batch": ("def verify_batch", "def greedy_guesses"),
}


@dataclass(frozen=True)
class Of:
    """An answer made of the solution of this name."""

    name: str
    make: object = lambda right: right


@dataclass(frozen=True)
class Within:
    """An answer made of the names in the notebook."""

    make: object


@pytest.fixture
def graded(check, solution, tmp_path):
    """graded(number, name, answer): run a check on an answer."""

    def run(number, name, answer):
        grade = check(number, name, *CELLS.get(name, ()))
        names = grade.__globals__
        if "scratch" in names:
            names["scratch"].cleanup()
            names.update(folder=tmp_path, index=b"any bytes")
        if name == "check_recycler":  # the last lines need the models
            names.update(per_call=lambda *_, **__: np.nan, target=type("Small", (), {"n_vocab": 12, "n_ctx": 64}))
        if name == "check_bigram":
            rows, contexts = np.full((3, 4), 0.25), np.array([[1, 0], [2, 1], [1, 2]])
            names.update(contexts=contexts, contexts_new=contexts, p_train=rows, p_new=rows)
            names.update(target=type("Small", (), {"n_vocab": 4}))
        if isinstance(answer, Of):
            answer = answer.make(solution(number, answer.name))
        elif isinstance(answer, Within):
            answer = answer.make(names)
        with np.errstate(all="ignore"):
            grade(answer)

    return run


# ------------------------------------------------------------------------------------------------ 01 to 03


def by_strings(piece, ranks, vocabulary):
    line = " ".join(gpt2np.tokenizer.byte_symbols()[byte] for byte in piece.encode("utf-8"))
    while pairs := [pair for pair in zip(line.split(), line.split()[1:]) if pair in ranks]:
        pair = min(pairs, key=ranks.get)
        line = line.replace(" ".join(pair), "".join(pair))
    return [vocabulary[symbol] for symbol in line.split()]


def norm(of):
    """Layer normalisation with (mean, deviation) = of(x, eps), and with or without the shift."""

    def my_norm(x, g, b, eps=1e-5):
        mean, spread, *without_shift = of(x, eps)
        return g * (x - mean) / spread + (0 if without_shift else b)

    return my_norm


def deviation(x, eps, axis=-1, **options):
    return np.sqrt(x.var(axis, **options) + eps)


def head(scores_of=lambda q, k: q @ k.T, mask=None, root=np.sqrt, axis=-1, bias=1, number=None):
    """A head with one thing changed."""

    def my_head(x, w, b, head, n_head):
        head = head if number is None else number
        n_seq, d = len(x), x.shape[1] // n_head
        q, k, v = (part[:, head * d : (head + 1) * d] for part in np.split(x @ w + bias * b, 3, axis=1))
        scores = scores_of(q, k) / root(d)
        scores = mask(scores) if mask else np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis, keepdims=True))
        return weights / weights.sum(axis, keepdims=True) @ v

    return my_head


def block_of(mlp_reads=lambda after, x, norm: norm(after, "ln_2"), result=lambda after, of_mlp: after + of_mlp):
    """A block with one thing changed."""

    from gpt2np.reference import attention, layer_norm, mlp

    def my_block(x, params, n_head):
        norm = lambda x, name: layer_norm(x, **params[name])  # noqa: E731
        after = x + attention(norm(x, "ln_1"), **params["attn"], n_head=n_head)
        return result(after, mlp(mlp_reads(after, x, norm), **params["mlp"]))

    return my_block


def attend(weights):
    def my_attend(q, k, v):
        seen = np.tri(len(k), dtype=bool)[-len(q) :]
        return weights(q @ k.T / math.sqrt(k.shape[1]), seen) @ v

    return my_attend


def off_by(shift):
    def weights(scores, seen):
        n, m = scores.shape
        return gpt2np.reference.softmax(np.where(np.tri(n, m, m - n + shift, dtype=bool), scores, -np.inf))

    return weights


def weighted(subtracted):
    def weights(scores, seen):
        e = np.where(seen, np.exp(scores - subtracted(scores)), 0)
        return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))

    return weights


def never_truncated(right):
    class Forgetful(right):
        def __init__(self, params, hparams):
            super().__init__(params, hparams)
            self.cache.truncate = lambda length: None  # as if the line were missing

        def __call__(self, tokens, n_last=1):
            return gpt2np.forward(tokens[self.cache.length :], self.params, self.hparams.n_head, n_last, self.cache)

    return Forgetful


OVERFLOWS = "exp overflows: subtract from each row of"
RIGHT = [
    ("01", "check_merge", Of("merge", lambda right: lambda symbols, pair: tuple(right(symbols, pair)))),
    ("01", "check_encode_piece", Of("encode_piece", lambda right: lambda *given: np.array(right(*given)))),
    ("02", "check_head", Of("my_head")),
    ("02", "check_head", head()),
    ("02", "check_whole_block", Of("my_block")),
    ("03", "check_attend", Of("attend")),
    ("03", "check_cached_model", Of("CachedModel")),
]
WRONG = {
    ("01", "check_merge"): [
        ("compare whole symbols",
         lambda symbols, pair: " ".join(symbols).replace(" ".join(pair), "".join(pair)).split()),
    ],
    ("01", "check_encode_piece"): [("compare whole symbols", by_strings)],
    ("02", "check_layer_norm"): [
        ("shift b is missing", norm(lambda x, eps: (x.mean(-1, keepdims=True), deviation(x, eps, keepdims=True), 0))),
        ("of the whole array", norm(lambda x, eps: (x.mean(), deviation(x, eps, None)))),
        ("normalised each column", norm(lambda x, eps: (x.mean(0), deviation(x, eps, 0)))),
        ("this is an RMS norm", norm(lambda x, eps: (0, np.sqrt((x**2).mean(-1, keepdims=True) + eps)))),
    ],
    ("02", "check_head"): [
        ("masked scores are -inf, not 0", head(mask=np.tril)),
        ("with a strict mask", head(mask=lambda s: np.where(np.tri(len(s), k=-1, dtype=bool), s, -np.inf))),
        ("mask with -inf, a number such as", head(mask=lambda s: np.where(np.tri(len(s), dtype=bool), s, -1000))),
        ("over the keys", head(axis=0)),
        ("bias b is missing", head(bias=0)),
        ("you computed k @ q.T", head(scores_of=lambda q, k: k @ q.T)),
        ("this is head 0", head(number=0)),
        ("not by d_head", head(root=lambda d: d)),
    ],
    ("02", "check_whole_block"): [
        ("MLP's result is added", block_of(result=lambda after, of_mlp: of_mlp)),
        ("the MLP comes after it", block_of(result=lambda after, of_mlp: after)),
        ("after attention was added", block_of(lambda after, x, norm: norm(x, "ln_2"))),
        ("reads the normalised stream: ln_2", block_of(lambda after, x, norm: after)),
        ("not ln_1", block_of(lambda after, x, norm: norm(after, "ln_1"))),
    ],
    ("03", "check_attend"): [
        ("must not see the next one", attend(off_by(1))),
        ("sees itself, too", attend(off_by(-1))),
        (OVERFLOWS, attend(weighted(lambda scores: 0))),
        (OVERFLOWS, attend(weighted(np.max))),
        (OVERFLOWS, attend(weighted(lambda scores: scores.max(axis=-1, keepdims=True)))),  # of what is masked as well
    ],
    ("03", "check_cached_model"): [("at least one new token", Of("CachedModel", never_truncated))],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 04


def one_too_many(probs, top_p):
    order = np.argsort(-probs, kind="stable")
    n = np.searchsorted(np.cumsum(probs[order]), top_p, side="right") + 1
    kept = np.zeros(len(probs))
    kept[order[:n]] = probs[order[:n]]
    return kept / kept.sum()


def with_all_ties(right):
    def my_top_p(probs, top_p):
        kept = np.where(probs >= probs[right(probs, top_p) > 0].min(), probs, 0)
        return kept / kept.sum()

    return my_top_p


def in_place(probs, u):
    for i in range(1, len(probs)):
        probs[i] += probs[i - 1]
    return int(np.searchsorted(probs, u * probs[-1], side="right"))


def softmax_by(exponents, dtype=np.float64, epsilon=0.0):
    """A softmax of float64 logits z at temperature T, of the exponents(z, T)."""

    def my_probs(logits, temperature):
        if temperature == 0:
            return np.eye(len(logits))[logits.argmax()]
        e = np.exp(exponents(logits.astype(np.float64), temperature).astype(dtype))
        return (e / (e.sum() + epsilon)).astype(np.float64)

    return my_probs


RIGHT += [
    ("04", "check_top_p", Of("my_top_p")),
    ("04", "check_top_p", Of("my_top_p", lambda right: lambda probs, top_p: right(probs[::-1], top_p)[::-1])),  # a tie
    ("04", "check_draw", in_place),
]
WRONG |= {
    ("04", "check_top_p"): [
        ("here the first one reaches it", one_too_many),
        ("of two equal tokens one stays", Of("my_top_p", with_all_ties)),
    ],
    ("04", "check_probs"): [
        ("float64, whatever the logits are, got float32",
         Of("my_probs", lambda right: lambda logits, T: right(logits, T).astype(np.float32))),
        ("subtract the largest logit, then divide by", softmax_by(lambda z, T: z / T - z.max())),
        (r"exp\(-1000\) is 0: subtract", softmax_by(lambda z, T: (z - max(0, z.max())) / T)),
        ("above 1 it flattens", softmax_by(lambda z, T: (z - z.max()) / min(T, 1))),
        ("make the logits float64 before anything else", softmax_by(lambda z, T: (z - z.max()) / T, np.float32)),
        ("add no epsilon", softmax_by(lambda z, T: (z - z.max()) / T, epsilon=1e-8)),
    ],
    ("04", "check_draw"): [
        ("one token id, a whole number", Of("my_draw", lambda right: lambda probs, u: [right(probs, u)])),
        ("one token id, a whole number", Of("my_draw", lambda right: lambda probs, u: float(right(probs, u)))),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 05


def missing(p, q, epsilon=0.0):
    rest = np.maximum(p - q, 0)
    return rest / (rest.sum() + epsilon)


def residual_by(change):
    def mine(p, q):
        d = change(np.maximum(p - q, 0), p, q)
        return d / d.sum() if d.any() else p

    return mine


def verifier(wrong_count=0, first_rejection=True, source=None):
    """Rejection with one thing changed."""

    def my_verifier(draft, target_probs, rng):
        rng, n = source or rng, 0
        for i, x in enumerate(draft.tokens):
            p, q = target_probs[i], draft.probs[i]
            if rng.random() * q[x] < p[x]:
                n += 1
            elif first_rejection:
                return Verdict(i + wrong_count, sample_token(residual(p, q), rng))
        if n == len(draft.tokens):
            return Verdict(n, sample_token(target_probs[-1], rng))
        return Verdict(n, sample_token(residual(target_probs[n], draft.probs[n]), rng))

    return my_verifier


def by_recursion(draft, target_probs, rng, done=0):
    if done == len(draft.tokens):
        return Verdict(done, sample_token(target_probs[done], rng))
    x, p, q = draft.tokens[done], target_probs[done], draft.probs[done]
    if rng.random() < min(1, p[x] / q[x]):
        return by_recursion(draft, target_probs, rng, done + 1)
    return Verdict(done, int(rng.choice(len(p), p=residual(p, q))))


def own_matching(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        drawn = sample_token(target_probs[i], rng)
        if drawn != token:
            return Verdict(i, drawn)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def until_accepted(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if rng.random() * q[x] >= p[x]:
            while True:
                x = sample_token(q, rng)
                if rng.random() * q[x] < p[x]:
                    return Verdict(i, x)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def loop(rest=1, bonus=True, of_the_prompt=False, rows=lambda sampling, logits, tokens: sampling(logits, tokens)):
    """The loop with one thing changed."""

    class MySampler:
        def __init__(self, target, drafter, K=4, sampling=None):
            self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling or Sampling()

        def generate(self, prompt, n_tokens, rng):
            tokens, n_end = list(prompt), len(prompt) + n_tokens
            while len(tokens) < n_end:
                k = max(0, min(self.K, n_end - len(tokens) - rest, self.target.n_ctx - len(tokens) - 1))
                draft = self.drafter.propose(list(prompt if of_the_prompt else tokens), k, rng)
                extended = [*tokens, *draft.tokens.tolist()]
                logits = self.target(extended, n_last=len(draft.tokens) + 1)
                verdict = speculative.rejection(draft, rows(self.sampling, logits, extended), rng)
                tokens += draft.tokens[: verdict.n_accepted].tolist()
                if bonus or verdict.n_accepted < len(draft.tokens) or not k:
                    tokens.append(verdict.next_token)
            return tokens[len(prompt) :]

    return MySampler


def sampler(change):
    """The solution's class, whose `generate` is changed: change(generate, prompt, n_tokens, rng)."""

    def make(right):
        class Wrong(right):
            def generate(self, *given):
                return change(super().generate, *given)

        return Wrong

    return Of("MySampler", make)


RIGHT += [
    ("05", "exercise_2", Of("my_residual")),
    ("05", "exercise_2",  # the proof's denominator
     lambda p, q: np.maximum(p - q, 0) / (1 - np.minimum(p, q).sum()) if (p != q).any() else p),
    ("05", "exercise_2",  # in plain Python
     lambda p, q: [max(a - b, 0) / s for a, b in zip(p, q)] if (s := sum(max(a - b, 0) for a, b in zip(p, q))) else p),
    ("05", "exercise_1", lambda p, q: 1 - abs(p - q).sum() / 2),
    ("05", "exercise_1", lambda p, q: sum(b * min(1, a / b) for a, b in zip(p, q) if b)),
    ("05", "exercise_3", Of("my_verifier")),
    ("05", "exercise_3", by_recursion),
    ("05", "exercise_4", Of("MySampler")),
]  # fmt: skip
WRONG |= {
    ("05", "exercise_2"): [
        ("close to p = q the residual is not p", lambda p, q: p if np.allclose(p, q) else missing(p, q)),
        ("without an epsilon", lambda p, q: p if (p == q).all() else missing(p, q, 1e-10)),
        ("has the surplus in it", lambda p, q: p if (p == q).all() else abs(p - q) / abs(p - q).sum()),
        ("q - p is the surplus", lambda p, q: p if (p == q).all() else missing(q, p)),
        ("q - p is the surplus", lambda p, q: np.maximum(q - p, 0)),
        ("has the surplus in it", lambda p, q: abs(p - q) / 2),
        ("that is p itself", lambda p, q: p),
        ("that is the common part", lambda p, q: np.minimum(p, q) / np.minimum(p, q).sum()),
        ("only p - q is missing", lambda p, q: residual_by(lambda d, p, q: np.where(d > 0, p, 0))(p, q)),
        ("where p = q return p itself", lambda p, q: missing(p, q) if (p != q).any() else np.full(len(p), 1 / len(p))),
        ("have probability 0", lambda p, q: np.exp(p - q) / np.exp(p - q).sum()),
        ("a negative probability|before the sum", lambda p, q: p if (p == q).all() else (p - q) / (p - q).sum()),
        ("return p where the sum is 0", missing),
        ("a token with q = 0 is missing altogether: all of p", residual_by(lambda d, p, q: np.where(q > 0, d, 0))),
        ("only where nothing at all is missing", residual_by(lambda d, p, q: d if d.sum() > 1e-7 else p)),
        ("off by .e-.*: compute in float64", residual_by(lambda d, p, q: d.astype(np.float32))),
        ("is a return missing", lambda p, q: None),
    ],
    ("05", "exercise_1"): [
        ("weigh with q, not with p", lambda p, q: p @ np.nan_to_num(np.minimum(1, p / q))),
        ("not drafted equally often: weigh with q", lambda p, q: np.nan_to_num(np.minimum(1, p / q)).sum()),
        ("counts each rejected draft token twice", lambda p, q: 1 - abs(p - q).sum()),
        ("independent draws", lambda p, q: float(p @ q)),
        ("a sum, not a mean", lambda p, q: np.minimum(p, q).mean()),
        ("the probability of a rejection", lambda p, q: np.maximum(p - q, 0).sum()),
        ("accepted with probability p", lambda p, q: q[p >= q].sum()),
        ("how often each is drafted and accepted", lambda p, q: np.sqrt(p * q).sum()),
        ("estimate from random draws", Of("acceptance_probability", lambda right: lambda p, q: right(p, q) - 0.005)),
        (r"it is 0\.600000, not 0\.6002", Of("acceptance_probability", lambda right: lambda p, q: right(p, q) + 2e-4)),
    ],
    ("05", "exercise_3"): [
        (r"it accepts 0\.000 on average", lambda draft, rows, rng: Verdict(0, sample_token(rows[0], rng))),
        ("counts the rejected|n_accepted", verifier(wrong_count=1)),
        ("first rejection", verifier(first_rejection=False)),
        ("np.random|rng", verifier(source=np.random)),
        ("it accepts 0.* on average", own_matching),
        ("endless loop", until_accepted),
    ],
    ("05", "exercise_4"): [
        ("returns 3 tokens where 2 were asked for", loop(rest=0)),
        ("calls of the target for 9 tokens", loop(bonus=False)),
        ("continues the text so far", loop(of_the_prompt=True)),
        ("ignores sampling.top_k", loop(rows=lambda sampling, *given: Sampling(sampling.temperature)(*given))),
        ("prompt", sampler(lambda generate, prompt, n, rng: [*prompt, *generate(prompt, n, rng)])),
        ("return", sampler(lambda generate, prompt, n, rng: None)),
        ("writes to its arguments",
         sampler(lambda generate, prompt, n, rng: [prompt.append(0), generate(prompt, n, rng)][1])),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 06 and 07


def until_it_does_not_help(alpha, c, v):
    gains = [sum(alpha**i for i in range(K + 1)) / (K * c + v[K]) for K in range(len(v))]
    return next((K for K in range(len(v) - 1) if gains[K + 1] <= gains[K]), len(v) - 1)


def K_by(time, tokens=lambda alpha, K: sum(alpha**i for i in range(K + 1)), take_off=0):
    """The K with the most tokens for the time(K, c, v)."""
    return lambda alpha, c, v: max(range(len(v) - take_off), key=lambda K: tokens(alpha, K) / time(K, c, v))


@functools.cache
def recursive(alpha, K):
    return 1 if K == 0 else 1 + alpha * recursive(alpha, K - 1)


class Called:
    """An object that is called, in place of a function."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, *given):
        return self.fn(*given)


def cyclic(tokens, K, n_vocab):
    earlier = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
    copied = [tokens[(earlier[-1] + 1 + i) % len(tokens)] for i in range(K)] if earlier else []
    return Draft(np.array(copied, np.int64), np.eye(n_vocab)[np.array(copied, np.int64)])


def from_behind(tokens, K, n_vocab):
    place = next((i for i in reversed(range(len(tokens) - 1)) if tokens[i] == tokens[-1]), len(tokens) - 1)
    copied = tokens[place + 1 : place + 1 + K]
    rows = [np.arange(n_vocab) == token for token in copied]
    return Draft(np.array(copied, int), np.reshape(rows, (len(copied), n_vocab)).astype(float))


def mixed_by(formula):
    return lambda c, s: formula(c, s, c.sum(), np.count_nonzero(c)) if c.any() else s


def one_of_three(i, formula):
    """The solution with another formula for the i-th of the three numbers."""
    return Of("acceptances", lambda right: lambda p, q: [*right(p, q)[:i], formula(p, q), *right(p, q)[i + 1 :]])


def copy(earlier, shift, which=-1):
    def copied(tokens, K, n_vocab):
        found = [i for i in range(len(tokens) - earlier) if tokens[i] == tokens[-1]]
        guesses = np.array(tokens[found[which] + shift :][:K] if found else [], dtype=np.int64)
        return Draft(guesses, np.eye(n_vocab)[guesses])

    return copied


RIGHT += [
    *(("06", "exercise_1", Of("my_expected_tokens", way)) for way in (functools.partial, functools.cache, Called)),
    ("06", "exercise_1", recursive),
    ("06", "exercise_1", lambda alpha, K: np.polyval(np.ones(K + 1), alpha)),
    ("06", "exercise_2", Of("my_best_K")),
    (
        "06",
        "exercise_2",
        lambda a, c, v: np.argmax(np.cumsum(a ** np.arange(len(v))) / (np.arange(len(v)) * c + np.array(v))),
    ),
    ("06", "exercise_3", Of("my_alpha")),
    (
        "06",
        "exercise_3",
        lambda r: np.divide(*np.sum([(n, min(k, n + 1)) for k, n in r] or [(0, 0)], axis=0, dtype=float)),
    ),
    ("07", "exercise_1", Of("copy_after_last")),
    ("07", "exercise_1", from_behind),
    ("07", "exercise_2", Of("mixed")),
    (
        "07",
        "exercise_2",
        lambda c, s: [(a + np.sum(c > 0) * b) / (sum(c) + np.sum(c > 0)) if sum(c) else b for a, b in zip(c, s)],
    ),
    ("07", "exercise_3", Of("acceptances", lambda right: lambda p, q: np.array(right(p, q)))),
]
WRONG |= {
    ("06", "exercise_1"): [
        ("alpha = 1 must work as well", lambda alpha, K: (1 - alpha ** (K + 1)) / (1 - alpha)),
        ("own token is missing", lambda alpha, K: sum(alpha**i for i in range(1, K + 1))),
        ("one power of alpha is missing", lambda alpha, K: sum(alpha**i for i in range(max(K, 1)))),
        ("one power of alpha too many", lambda alpha, K: sum(alpha**i for i in range(K + 2))),
        ("never tested", lambda alpha, K: 1 + K * alpha),
        ("that all are accepted; fewer count", lambda alpha, K: K * alpha**K),
        ("each power counts once", lambda alpha, K: 1 + K * alpha**K),
        ("a sum without end", lambda alpha, K: 1 / (1 - alpha) if alpha < 1 else K + 1),
        ("not the mean", lambda alpha, K: K + 1),
        ("is a sum missing", lambda alpha, K: alpha ** np.arange(K + 1)),
        ("estimate from random draws", lambda alpha, K: sum(alpha**i for i in range(K + 1)) - 0.01),
    ],
    ("06", "exercise_2"): [
        (r"K \+ 1 tokens: v\[K\]", K_by(lambda K, c, v: K * c + v[K + 1], take_off=1)),
        (r"draft tokens costs K \* c|does not pay", K_by(lambda K, c, v: (K + 1) * c + v[K])),
        (r"draft tokens costs K \* c|does not pay", K_by(lambda K, c, v: (K + (K > 0)) * c + v[K])),
        ("each draft token costs c", K_by(lambda K, c, v: v[K])),
        ("each draft token costs c", K_by(lambda K, c, v: v[K] + c)),
        ("and not the speedup",
         lambda a, c, v: max(sum(a**i for i in range(K + 1)) / (K * c + v[K]) for K in range(len(v)))),
        ("not the cost, .* own token is missing",
         K_by(lambda K, c, v: v[K] + K * c, lambda a, K: sum(a**i for i in range(K)) or 1)),
        ("not the cost, .* never tested", K_by(lambda K, c, v: v[K] + K * c, lambda a, K: 1 + K * a)),
        ("not the cost, .* with alpha", K_by(lambda K, c, v: v[K] + K * c, lambda a, K: 1 + K * a**K)),
        ("number of tokens in the pass: return K", Of("my_best_K", lambda right: lambda *given: right(*given) + 1)),
        ("do not subtract",
         lambda a, c, v: max(range(len(v)), key=lambda K: sum(a**i for i in range(K + 1)) - v[K] - K * c)),
        ("not the smallest",
         lambda a, c, v: min(range(len(v)), key=lambda K: sum(a**i for i in range(K + 1)) / (v[K] + K * c))),
        ("look at all K", until_it_does_not_help),
    ],
    ("06", "exercise_3"): [
        ("if nothing was tested the answer is nan", Of("my_alpha", lambda right: lambda r: right(r) if r else 0.0)),
        ("if nothing was tested the answer is nan",
         lambda r: sum(n for _, n in r) / sum(min(k, n + 1) for k, n in r)),
        ("never tested", lambda r: sum(n for _, n in r) / sum(k for k, _ in r)),
        ("accepted per round", lambda r: sum(n for _, n in r) / len(r)),
        ("has no rejection", lambda r: sum(n for _, n in r) / sum(n + 1 for _, n in r)),
        ("not the mean of the rounds' shares", lambda r: np.mean([n / min(k, n + 1) for k, n in r if k])),
    ],
    ("07", "exercise_3"): [
        *((rf"\({'abc'[i]}\) {hint}", one_of_three(i, formula)) for i, hint, formula in [
            (0, "with the row q", lambda p, q: p @ q),
            (0, ".* counts each rejected draft token twice", lambda p, q: 1 - abs(p - q).sum()),
            (1, "takes the most likely token of q", lambda p, q: p.max()),
            (1, "divides by the row's probability", lambda p, q: min(1, p[q.argmax()] / q.max())),
            (1, "q.x. is how likely the draft is", lambda p, q: q.max()),
            (1, "both factors", lambda p, q: (p * q)[q.argmax()]),
            (2, r"is not \(a\)", lambda p, q: np.minimum(p, q).sum()),
            (2, r"is not \(b\)", lambda p, q: p[q.argmax()]),
            (2, ".* weigh the tokens with q", lambda p, q: p.mean()),
        ]),
        *((f"expected three numbers.* got {n}",
           Of("acceptances", lambda right, n=n: lambda p, q: [*right(p, q), 0][:n])) for n in (2, 4)),
    ],
    ("07", "exercise_2"): [
        ("not half of each", lambda c, s: (c / c.sum() + s) / 2 if c.any() else s),
        ("that is add-one", lambda c, s: (c + 1) / (c.sum() + len(c)) if c.any() else s),
        ("0 / 0", lambda c, s: (c + np.count_nonzero(c) * s) / (c.sum() + np.count_nonzero(c))),
        *((hint, mixed_by(formula)) for hint, formula in [
            ("the weights are swapped", lambda c, s, n, t: (t * c / n + n * s) / (n + t)),
            ("counts as t.h. tokens, not as one", lambda c, s, n, t: (c + s) / (n + 1)),
            ("not the whole vocabulary", lambda c, s, n, t: (c + len(c) * s) / (n + len(c))),
            ("not only for the unseen ones", lambda c, s, n, t: np.where(c, c, t * s) / (n + t)),
            (r"divide by c\(h\) \+ t\(h\)", lambda c, s, n, t: c + t * s),
            ("must keep a probability", lambda c, s, n, t: c / n),
        ]),
    ],
    ("07", "exercise_1"): [
        ("the copy ends where the text ends", cyclic),
        ("copy up to K tokens", Of("copy_after_last", lambda right: lambda tokens, K, n: right(tokens, min(K, 1), n))),
        ("there is nothing to copy", Of("copy_after_last", lambda right: lambda tokens, K, n: (
            right(tokens, K, n) if tokens[-1] in tokens[:-1] else Draft(np.array(tokens[:K]), np.eye(n)[tokens[:K]])))),
        ("its row is not one-hot", Of("copy_after_last", lambda right: lambda *given: (
            Draft(tokens := right(*given).tokens, np.full((len(tokens), given[2]), 1 / given[2]))))),
        ("not the first", copy(1, 1, which=0)),
        ("copy what followed the token, not the token itself", copy(1, 0)),
        ("the last one itself does not count", copy(0, 1)),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 08 to 10


def lenient_by(p, q, lenience, weights):
    kept = np.minimum(q, p / lenience)
    rest = np.maximum(weights(kept), 0)
    return kept + (1 - kept.sum()) * rest / rest.sum(), kept.sum()


def matched(
    correction=lambda p, q, x, y, rng: y, bonus=None, drawn=lambda p, q, rng: sample_token(p, rng)
):  # fmt: skip
    """The match rule with one thing changed."""

    def match(draft, target_probs, rng):
        for i, x in enumerate(draft.tokens.tolist()):
            y = drawn(target_probs[i], draft.probs[i], rng)
            if y != x:
                return Verdict(i, correction(target_probs[i], draft.probs[i], x, y, rng))
        return Verdict(len(draft.tokens), bonus(target_probs[-1]) if bonus else sample_token(target_probs[-1], rng))

    return match


def block(
    guard=True, last_ratio=False, one_number=False, before=lambda ratio: ratio,
    h=lambda excess, ratio: excess / (excess + 1 - ratio),
):  # fmt: skip
    """Block verification with one thing changed."""

    def my_block(draft, target_probs, rng):
        k, longest, ratio_there, ratio, u = len(draft.tokens), 0, 1.0, 1.0, rng.random()
        for i, token in enumerate(draft.tokens, 1):
            ratio = min(1.0, before(ratio) * target_probs[i - 1, token] / draft.probs[i - 1, token])
            passes = ratio
            if i < k and (ratio < 1 or not guard):
                excess = np.maximum(ratio * target_probs[i] - draft.probs[i], 0).sum()
                passes = h(excess, ratio)
            if (u if one_number else rng.random()) < passes:
                longest, ratio_there = i, ratio
        if longest == k:
            return Verdict(k, sample_token(target_probs[k], rng))
        there = ratio if last_ratio else ratio_there
        return Verdict(longest, sample_token(residual(there * target_probs[longest], draft.probs[longest]), rng))

    return my_block


def before_drawing(model, tokens, K, rng, floor=0.3):
    tokens, guesses, rows = [int(token) for token in tokens], [], []
    for _ in range(K):
        row = Sampling()(model(tokens))[0]
        if row.max() < floor:
            break
        guess = sample_token(row, rng)
        guesses, rows, tokens = [*guesses, guess], [*rows, row], [*tokens, guess]
    return Draft(np.array(guesses, np.int64), np.reshape(rows, (len(guesses), model.n_vocab)))


def in_one_type(right):
    return lambda path, tensors: right(path, {name: a.astype(np.float32) for name, a in tensors.items()})


RIGHT += [
    ("08", "check_block", Of("my_block")),
    ("09", "check_sure", Of("propose_while_sure")),
    ("10", "check_write", Of("write_safetensors")),
    ("10", "check_crc", Of("my_crc32c")),
]
WRONG |= {
    ("08", "check_distribution"): [
        (r"not from \(p - q\)\+", lambda p, q, lenience: lenient_by(p, q, lenience, lambda kept: p - kept)),
    ],
    ("08", "check_block"): [
        ("0 / 0", block(guard=False)),
        ("a uniform number of its own", block(one_number=True)),
        ("yours is the ratio of one draft token", block(before=lambda ratio: 1.0)),
        (r"yours leaves out - p-hat", block(h=lambda excess, ratio: excess / (excess + 1))),
        ("p-hat of the kept prefix", block(last_ratio=True)),
    ],
    ("09", "check_match"): [
        ("you drew once more; the draw that did not match", matched(lambda p, q, x, y, rng: sample_token(p, rng))),
        ("is the next token; yours", matched(lambda p, q, x, y, rng: sample_token(residual(p, q), rng))),
        ("the guess that did not match is returned", matched(lambda p, q, x, y, rng: x)),
        ("comes a bonus", matched(bonus=np.argmax)),
        ("not from the draft's", matched(drawn=lambda p, q, rng: sample_token(q, rng))),
        ("right at temperature 0 only", matched(drawn=lambda p, q, rng: p.argmax())),
    ],
    ("09", "check_sure"): [
        ("a rule that looks at it does nothing", before_drawing),
        ("always stops after the first guess",
         lambda model, tokens, K, rng: speculative.ModelDrafter(model).propose(tokens, min(K, 1), rng)),
    ],
    ("10", "check_write"): [("write each tensor in its own type", Of("write_safetensors", in_one_type))],
    ("10", "check_crc"): [("negative", Of("my_crc32c", lambda right: lambda data: ~(right(data) ^ 0xFFFFFFFF)))],
}  # fmt: skip


def at_least(n, k, share):
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))


def test_small_sample_sizes_keep_both_promises(check):
    """In the museum: one false alarm in 1,000, nine of ten mistakes found, with as few texts as possible."""
    n_needed = check("09", "n_needed", *CELLS["n_needed"])

    def found(n, a, b):
        k = next((k for k in range(n + 1) if at_least(n, k, a) <= 1 / 1000), n + 1)
        return at_least(n, k, b)

    for a, b in (0.5, 0.97), (0.3, 0.6), (0.1, 0.5), (0.4, 1.0):
        n = n_needed(np.array([a, 1 - a]), np.array([b, 1 - b]))
        assert found(n, a, b) >= 0.9 and max(found(m, a, b) for m in range(1, n)) < 0.9


def test_an_exhibit_that_needs_many_texts_is_not_simulated(cells_of, capsys):
    [cell] = [cell for cell in cells_of("09") if "def n_needed(" in cell]
    one, other = np.array([0.5, 0.5]), np.array([0.5 + 1e-9, 0.5 - 1e-9])
    names = {"np": np, "math": math, "itertools": itertools, "exhibit": SimpleNamespace(name="some"), "error": 1e-9}
    exec(cell, {**names, "p_texts": one, "distribution": other})
    assert re.search(r"^some: [\d,]{18,} texts$", capsys.readouterr().out)


# ------------------------------------------------------------------------------------------------ 11


def in_turn(q, k, rng, *, draw=lambda left: left / left.sum(), row=lambda left: left / left.sum(), forget=True):
    left, found = q.copy(), []
    while len(found) < k and left.any():
        token = sample_token(draw(left), rng)
        found.append((token, row(left)))
        if forget:
            left[token] = 0
    return found


def one_array(left, rows):
    """The same array each time, with the row in it."""
    rows[:] = rows or [left.copy()]
    rows[0][:] = left / left.sum()
    return rows[0]


def chosen_at_once(q, k, rng):
    return [(token, np.eye(1, len(q), token)[0]) for token, _ in in_turn(q, k, rng)]


def sorted_afterwards(q, k, rng):
    pairs = in_turn(q, k, rng)
    return sorted(pairs, key=lambda pair: -q[pair[0]]) if len(pairs) == 2 else pairs


def sorted_with_honest_rows(q, k, rng):
    """As if the likelier one had been drawn first."""
    tokens = sorted((token for token, _ in in_turn(q, k, rng)), key=lambda token: -q[token])
    rows, left = [], q
    for token in tokens:
        rows.append(left / left.sum())
        left = np.where(np.arange(len(q)) == token, 0, left)
    return list(zip(tokens, rows))


def writing_to_q(q, k, rng):
    found = []
    for _ in range(k):
        row = q / q.sum()
        found.append((sample_token(row, rng), row))
        q[found[-1][0]] = 0
    return found


def without_the_last(q, k, rng):
    found, row = [], q
    for _ in range(min(k, np.count_nonzero(q))):
        x = int(rng.choice(len(q), p=row))
        found.append((x, row))
        row = np.where(np.arange(len(q)) == x, 0, q)
        row = row / row.sum() if row.any() else row
    return found


def uniform_after_the_first(left):
    """The second token is drawn from all that are left alike, and not from its row."""
    return left / left.sum() if abs(left.sum() - 1) < 1e-9 else (left > 0) / (left > 0).sum()


def never_fewer(q, k, rng):
    found = in_turn(q, k, rng)
    return found + [found[-1]] * (k - len(found))


def mask_of(seen):
    """A mask from seen(parents, i, j): whether node i sees node j."""

    def mask(parents, n_text):
        n = len(parents)
        nodes = [[seen(parents, i, j) for j in range(n)] for i in range(n)]
        return np.concatenate([np.ones((n, n_text), bool), np.reshape(nodes, (n, n)).astype(bool)], axis=1)

    return mask


def above(parents, i, j):
    while i > j:
        i = parents[i]
    return i == j


def path(parents, node):  # a name that the library has as well
    return [] if node < 0 else [*path(parents, parents[node]), node]


right_mask = mask_of(above)


def grown(*, sibling=True, child=True, take=max, value=np.prod):
    """Without a heap: the best of all nodes whose parent and elder sibling are there."""

    def valuable(n, w):
        found, open_nodes = [], {(0,)}
        while len(found) < n and open_nodes:
            node = take(open_nodes, key=lambda node: (value([w[rank] for rank in node]), node))
            open_nodes.remove(node)
            found.append(node)
            if child:
                open_nodes.add((*node, 0))
            if sibling and node[-1] + 1 < len(w):
                open_nodes.add((*node[:-1], node[-1] + 1))
        return found

    return valuable


RIGHT += [
    ("11", "check_without_replacement", Of("without_replacement")),
    ("11", "check_without_replacement", in_turn),
    ("11", "check_without_replacement", lambda q, k, rng: (pair for pair in in_turn(q, k, rng))),
    ("11", "check_my_mask", Of("my_mask")),
    ("11", "check_my_mask", lambda parents, n_text: right_mask(parents, n_text).astype(int).tolist()),
    ("11", "check_my_mask", mask_of(lambda parents, i, j: j in path(parents, i))),
    ("11", "check_most_valuable", Of("most_valuable")),
    ("11", "check_most_valuable", grown()),
]  # fmt: skip
WRONG |= {
    ("11", "check_without_replacement"): [
        ("the second row is still q", lambda q, k, rng: in_turn(q, k, rng, row=lambda left: q)),
        ("renormalise what is left", lambda q, k, rng: in_turn(q, k, rng, row=lambda left: left.copy())),
        ("append row.copy", lambda q, k, rng: in_turn(q, k, rng, row=lambda left, rows=[]: one_array(left, rows))),
        ("was drawn twice", lambda q, k, rng: in_turn(q, k, rng, forget=False)),
        ("the first candidate was drawn from q", chosen_at_once),
        ("the first candidate was drawn from q: its", sorted_afterwards),
        ("Keep the order of the draws", sorted_with_honest_rows),
        ("q was written to", writing_to_q),
        ("one possible token", never_fewer),
        ("expected 2 candidates", lambda q, k, rng: in_turn(q, k - 1, rng)),
        ("of three candidates two are the same", without_the_last),
        ("drawing the second from another row than it reports",
         lambda q, k, rng: in_turn(q, k, rng, draw=uniform_after_the_first)),
        ("draw with the rng that is passed in", lambda q, k, rng: in_turn(q, k, np.random.default_rng(0))),
    ],
    ("11", "check_my_mask"): [
        ("sees its sibling|on another path", mask_of(lambda parents, i, j: j <= i)),
        ("not only the parent counts", mask_of(lambda parents, i, j: i == j or parents[i] == j)),
        ("a node sees itself", mask_of(lambda parents, i, j: i != j and above(parents, i, j))),
        ("which comes after it", mask_of(lambda parents, i, j: above(parents, i, j) or above(parents, j, i))),
        ("its sibling",
         mask_of(lambda parents, i, j: above(parents, i, j) or (parents[i] == parents[j] and j < i))),
        ("comes with the library", lambda parents, n_text: tree.visible(parents)),
        ("not yet the 0 and -inf", lambda parents, n_text: np.where(right_mask(parents, n_text), 0, -np.inf)),
        (r"expected \[n, n_text \+ n\]", lambda parents, n_text: right_mask(parents, n_text)[:, n_text:]),
        ("whole text",
         lambda parents, n_text: right_mask(parents, n_text) & (np.arange(n_text + len(parents)) > 0)),
    ],
    ("11", "check_most_valuable"): [
        ("push the next sibling", grown(sibling=False)),
        ("expected 4 nodes|push the first child", grown(child=False)),
        ("largest product|first child", grown(take=min)),
        ("by the product along its path", grown(value=lambda values: values[-1])),
        ("without its parent", lambda n, w: [(0,), (1, 0), (0, 0), (1, 1)][:n]),
        ("there twice", lambda n, w: [(0,)] * n),
        ("expected 4 nodes", lambda n, w: [(0,)]),
        ("the text is no node", Of("most_valuable", lambda right: lambda n, w: [(), *right(n - 1, w)])),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 12


def by_rank(logits, tokens, n_ranks, order=-1, shift=0):
    ranks = [np.argsort(order * row).tolist().index(token) + shift for row, token in zip(logits, tokens)]
    return np.array([np.mean(np.array(ranks) == rank) for rank in range(n_ranks)])


def in_order(h, embeddings):
    return np.concatenate([h, *embeddings], axis=1)


def hydra(x_of=in_order, y_of=lambda head, x, h, silu: x @ head["a"] + silu(x @ head["w"])):
    def make(names):
        wte, silu, read_off = (names[name] for name in ("wte", "silu", "read_off"))
        return lambda head, h, seen: read_off(y_of(head, x_of(h, [wte[tokens] for tokens in seen.T]), h, silu))

    return Within(make)


def recycler(*, shift=0, keep_all=True, pass_parents=True, order=-1, deeper=0, change=lambda draft: draft):
    """The solution's class with mistakes."""

    def make(right):
        class Recycler(right):
            def __call__(self, tokens, n_last=1, parents=()):
                how = {"parents": parents} if pass_parents and len(parents) else {}
                logits = self.target(tokens, n_last=n_last, **how)
                end = len(tokens) - shift
                for token, row in list(zip(tokens[end - n_last : end], logits))[0 if keep_all else -1 :]:
                    self.followers[int(token)] = np.argsort(order * row, kind="stable")[: self.n_followers].tolist()
                return logits

            def propose(self, tokens, K, rng):
                return change(super().propose(tokens, K + deeper, rng))

        return Recycler

    return Of("Recycler", make)


def soft(draft):
    return Draft(draft.tokens, np.full(draft.probs.shape, 1 / 12), draft.parents)


RIGHT += [
    ("12", "check_accepted_by_rank", Of("accepted_by_rank")),
    ("12", "check_accepted_by_rank", lambda *case: by_rank(*case).tolist()),
    ("12", "check_hydra_head", hydra()),
    ("12", "check_recycler", Of("Recycler")),
    ("12", "check_recycler", recycler()),
]
WRONG |= {
    ("12", "check_accepted_by_rank"): [
        ("each rank by itself", lambda *case: np.cumsum(by_rank(*case))),
        ("divide by the number of places", lambda *case: by_rank(*case) * len(case[0])),
        ("the likeliest token has rank 0", lambda *case: by_rank(*case, order=1)),
        ("the first choice has rank 0", lambda *case: by_rank(*case, shift=1)),
        ("divide by all places", lambda *case: by_rank(*case) / by_rank(*case).sum()),
        ("a share for each", lambda *case: by_rank(*case)[:1]),
    ],
    ("12", "check_hydra_head"): [
        ("the hidden state comes first", hydra(lambda h, e: np.concatenate([*e, h], axis=1))),
        ("in the order of the text", hydra(lambda h, e: np.concatenate([h, *e[::-1]], axis=1))),
        ("x A is missing", hydra(y_of=lambda head, x, h, silu: silu(x @ head["w"]))),
        ("silu is missing", hydra(y_of=lambda head, x, h, silu: x @ head["a"] + x @ head["w"])),
        ("that is Medusa's", hydra(y_of=lambda head, x, h, silu: h + silu(x @ head["w"]))),
    ],
    ("12", "check_recycler"): [
        ("row i follows tokens", recycler(shift=1)),
        ("row i follows tokens", recycler(keep_all=False)),
        ("pass parents on", recycler(pass_parents=False)),
        ("the likeliest follower first", recycler(order=1)),
        ("K = 2 allows two levels", recycler(deeper=5)),
        ("rows are one-hot", recycler(change=soft)),
        ("None: a draft without tokens", recycler(change=lambda draft: draft if len(draft.tokens) else None)),
        ("the draft is a tree", recycler(change=lambda draft: Draft(draft.tokens, draft.probs))),
    ],
}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"self.followers\[int\(token\)\] = (.*)", r"self.followers.setdefault(int(token), \1)", "the latest row of a"),
        (r"(zip\(tokens\[len\(tokens\) - n_last :\], logits\))", r"reversed(list(\1))", "the latest row of a token"),
        (r"parents.append\(above\)", "parents.append(parent)", "the parents count the nodes that are there"),
    ],
)
def test_wrong_lines_of_the_recycler(old, new, message, graded):
    source = next((ROOT / "notebooks" / "solutions").glob("12_*.py")).read_text(encoding="utf-8")
    exec(re.sub(old, new, source), names := {})
    assert re.sub(old, new, source) != source
    with pytest.raises(AssertionError, match=message):
        graded("12", "check_recycler", names["Recycler"])


# ------------------------------------------------------------------------------------------------ 13


def bigram(*, unseen=None, divide=True, add_at=True):
    def table_of(last, p, n_vocab):
        table, n_contexts = np.zeros((n_vocab, n_vocab)), np.bincount(last, minlength=n_vocab)
        if add_at:
            np.add.at(table, last, p)
        else:
            table[last] += p
        if divide:
            table /= np.maximum(n_contexts, 1)[:, None]
        table[n_contexts == 0] = p.mean(axis=0) if unseen is None else unseen
        return table

    return table_of


def in_a_loop(last, p, n_vocab):
    rows = [[row for token, row in zip(last, p) if token == a] for a in range(n_vocab)]
    return [np.mean(some, axis=0) if some else np.mean(p, axis=0) for some in rows]


def softmax(z):
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


def row_by_row(z, p):
    jacobians = [np.diag(q) - np.outer(q, q) for q in softmax(z)]
    return np.array([-jacobian @ row for jacobian, row in zip(jacobians, p)])


RIGHT += [
    ("13", "check_my_alpha", lambda p, q: 1 - abs(p - q).sum(axis=1).mean() / 2),
    ("13", "check_my_alpha", lambda p, q: sum(min(a, b) for rows in zip(p, q) for a, b in zip(*rows)) / len(p)),
    ("13", "check_bigram", Of("bigram_from_rows")),
    ("13", "check_bigram", in_a_loop),  # a list
    ("13", "check_match_gradient", row_by_row),
]
WRONG |= {
    ("13", "check_my_alpha"): [
        ("needs no division", lambda p, q: (q * np.minimum(1, p / q)).sum(axis=1).mean()),
        ("divide by their number", lambda p, q: np.minimum(p, q).sum()),
        ("the p of its own position", lambda p, q: np.minimum(p.mean(axis=0), q.mean(axis=0)).sum()),
        ("independent draws agree", lambda p, q: (p * q).sum(axis=1).mean()),
        ("add up over the vocabulary", lambda p, q: np.minimum(p, q).mean()),
        ("add up over the vocabulary, average over positions", lambda p, q: np.minimum(p, q).sum(axis=0).mean()),
        ("counts each rejected guess twice", lambda p, q: 1 - abs(p - q).sum(axis=1).mean()),
        ("the rejected share", lambda p, q: np.maximum(p - q, 0).sum(axis=1).mean()),
        ("one number, the mean over the positions", lambda p, q: np.minimum(p, q).sum(axis=1)),
    ],
    ("13", "check_bigram"): [
        ("adds once for each different token", bigram(add_at=False)),
        ("divide by the number of contexts", bigram(divide=False)),
        ("0 / 0", bigram(unseen=np.nan)),
        ("no distribution", bigram(unseen=0)),
        ("not the uniform row", bigram(unseen=1 / 5)),
        ("rows and columns", lambda *given: bigram()(*given).T),
    ],
    ("13", "check_match_gradient"): [
        ("the sign", lambda z, p: -row_by_row(z, p)),
        ("do not divide by n", lambda z, p: row_by_row(z, p) / len(z)),
        ("the softmax is missing", lambda z, p: -p),
        ("the term with the sum", lambda z, p: -softmax(z) * p),
        ("the cross-entropy", lambda z, p: softmax(z) - p),
        (r"1 - sum min\(p, q\)", lambda z, p: row_by_row(z, softmax(z) < p)),
        ("one gradient for each row", lambda z, p: row_by_row(z, p)[0]),
    ],
}


# ------------------------------------------------------------------------------------------------ 14


def auditing(prompts, n_tokens, together=True):
    """An audit like the solution's, of these texts."""

    def make(names):
        def audit(verify):
            found = names["exact_distribution"](lambda rng: names["serve"](verify, prompts, n_tokens, rng))
            errors, right = [], {(): 1.0}
            for i, (prompt, n) in enumerate(zip(prompts, n_tokens)):
                one = names["small_target"].distribution(prompt, n)
                right = {(*texts, text): a * b for texts, a in right.items() for text, b in one.items()}
                alone = {text: sum(p for texts, p in found.items() if texts[i] == text) for text in one}
                errors += [abs(alone[text] - one[text]) for text in one]
            if together:
                errors += [abs(found.get(texts, 0) - right.get(texts, 0)) for texts in {*found, *right}]
            return max(errors)

        return audit

    return Within(make)


def matching(rows_from_text, guesses_from_first):
    def match_batch(tokens, lengths, q, p, rng):
        new, first = [], 0
        for text, length in enumerate(lengths):
            kept = []
            for i in range(length + 1):
                row = p[first + i + text * rows_from_text]
                kept.append(int(np.argmin(rng.exponential(size=len(row)) / row)))
                if i == length or kept[-1] != tokens[i + first * guesses_from_first]:
                    break
            new.append(kept)
            first += length
        return new

    return match_batch


OTHER_ROWS = r"where do those of the second text start\?|with its own guesses\?"
RIGHT += [
    *(("14", "check_most_texts", Of("most_texts", way)) for way in (functools.partial, functools.cache, Called)),
    ("14", "check_most_texts", lambda F, B, b, K: max(n for n in range(1000) if 2 * n * (K + 1) / F <= b / B)),
    ("14", "check_audit", auditing([[0], [1]], [3, 2])),
    ("14", "check_audit", auditing([[1], [1]], [3, 3])),
    ("14", "check_match_batch", Of("match_batch")),
    ("14", "check_match_batch", matching(True, True)),
]
WRONG |= {
    ("14", "check_most_texts"): [
        (r"K \+ 1 tokens", lambda F, B, b, K: int(b * F / (2 * B) // K)),
        ("tokens in one pass", lambda F, B, b, K: int(b * F / (2 * B))),
        ("weights of 4 bytes", lambda F, B, b, K: int(2 * F / B // (K + 1))),
        ("weights of 2 bytes", lambda F, B, b, K: int(F / B // (K + 1))),
        ("round down", lambda F, B, b, K: -int(-b * F / (2 * B) // (K + 1))),
        ("a whole number", lambda F, B, b, K: b * F / (2 * B) / (K + 1)),
        (r"^(?!.*this is m\*)", lambda F, B, b, K: int(2 * F / (b * B) // (K + 1))),  # the bytes on the wrong side
    ],
    ("14", "check_audit"): [
        ("two guesses are checked", auditing([[0]], [2])),
        ("put a second text into the batch, with guesses", auditing([[0]], [3])),
        ("both texts together", auditing([[0], [1]], [3, 2], together=False)),
        ("compare probabilities of whole texts", lambda verify: 0.0),
        ("the audit says", lambda verify: 0.1),
        ("one number", lambda verify: np.nan),
    ],
    ("14", "check_match_batch"): [
        (OTHER_ROWS, matching(*rows)) for rows in ((False, True), (True, False), (False, False))
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ all of them


def delegating(right):
    class MySampler(right):
        def generate(self, prompt, n_tokens, rng):
            inside = speculative.SpeculativeSampler(self.target, self.drafter, K=self.K, sampling=self.sampling)
            return inside.generate(prompt, n_tokens, rng).tokens.tolist()

    return MySampler


OF_THE_LIBRARY = [
    ("01", "check_merge", gpt2np.tokenizer.merge_pair),
    ("01", "check_stream", gpt2np.StreamDecoder),
    ("02", "check_layer_norm", gpt2np.reference.layer_norm),
    ("02", "check_head", lambda x, w, b, head, n_head: gpt2np.reference.attention(x, w, b, n_head)),
    ("02", "check_whole_block", gpt2np.reference.block),
    ("04", "check_probs", lambda logits, temperature: speculative.Sampling(temperature)(logits[None])[0]),
    ("04", "check_draw", speculative.sample_token),
    ("05", "exercise_2", speculative.residual),
    ("05", "exercise_3", speculative.rejection),
    ("05", "exercise_3", lambda *given: speculative.rejection(*given)),
    ("06", "exercise_1", speculative.theory.expected_tokens),
    *(("06", "exercise_2", way(lambda alpha, c, v: speculative.theory.best_K(alpha, c, v)))
      for way in (lambda fn: fn, functools.partial, functools.cache)),
    ("08", "check_block", lambda *given: speculative.block(*given)),
    ("05", "exercise_3", lambda *given: next(speculative.rejection(*given) for _ in "1")),
    ("05", "exercise_4", speculative.SpeculativeSampler),
    ("05", "exercise_4", type("MySampler", (speculative.SpeculativeSampler,), {})),
    ("05", "exercise_4", Of("MySampler", delegating)),
    ("10", "check_crc", gpt2np.files.crc32c.crc32c),
    ("11", "check_without_replacement",
     lambda q, k, rng: [(int(token), row) for token, row in zip(*sample_distinct(q, k, rng))]),
]  # fmt: skip
RETURNS = [
    ("04", "check_top_p"), ("04", "check_draw"), ("06", "exercise_2"), ("06", "exercise_3"), ("07", "exercise_2"),
    ("08", "check_draw"), ("08", "check_distribution"), ("11", "check_without_replacement"),
    ("11", "check_most_valuable"), ("14", "check_most_texts"), ("14", "check_audit"),
]  # fmt: skip


def nothing(*_):
    """An answer without a return."""


def name_of(value):
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("number", "name", "answer"), RIGHT, ids=name_of)
def test_a_right_answer_passes_in_any_form(number, name, answer, graded):
    graded(number, name, answer)


@pytest.mark.parametrize(
    ("number", "name", "message", "answer"),
    [(*check, *wrong) for check, answers in WRONG.items() for wrong in answers],
    ids=name_of,
)
def test_a_wrong_answer_is_told_its_mistake(number, name, message, answer, graded):
    with pytest.raises(AssertionError, match=message):
        graded(number, name, answer)


@pytest.mark.parametrize(("number", "name", "answer"), OF_THE_LIBRARY, ids=name_of)
def test_the_library_is_no_answer(number, name, answer, graded):
    with pytest.raises(AssertionError, match=r"comes with the library|the library's"):
        graded(number, name, answer)


@pytest.mark.parametrize(("number", "name"), RETURNS)
def test_an_answer_without_a_return_is_told_so(number, name, graded):
    with pytest.raises(AssertionError, match="nothing came back: is a return missing"):
        graded(number, name, nothing)
