"""The checks of the exercises, by notebook: what they say to wrong answers, and that other ways to be right pass."""

import codecs
import functools
import itertools
import math
import re
from collections import Counter
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
from gpt2np.heads import silu
from speculative import Draft, Sampling, Verdict, residual, sample_token, tree
from speculative.logits.probs import sample_distinct

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks


@dataclass(frozen=True)
class Of:
    """An answer made of the solution of this name."""

    name: str
    make: object = lambda right: right


@pytest.fixture
def graded(check, solution):
    """graded(number, name, answer): run a check on an answer."""

    def run(number, name, answer):
        if isinstance(answer, Of):
            answer = answer.make(solution(number, answer.name))
        with np.errstate(all="ignore"):
            check(number, name)(answer)

    return run


# ------------------------------------------------------------------------------------------------ 01 to 03


def by_strings(piece, ranks, vocabulary):
    line = " ".join(gpt2np.tokenizer.byte_symbols()[byte] for byte in piece.encode("utf-8"))
    while pairs := [pair for pair in zip(line.split(), line.split()[1:]) if pair in ranks]:
        pair = min(pairs, key=ranks.get)
        line = line.replace(" ".join(pair), "".join(pair))
    return [vocabulary[symbol] for symbol in line.split()]


def longest_first(piece, ranks, vocabulary):
    symbols, found = "".join(gpt2np.tokenizer.byte_symbols()[byte] for byte in piece.encode("utf-8")), []
    while symbols:
        found.append(next(symbols[:n] for n in range(len(symbols), 0, -1) if symbols[:n] in vocabulary))
        symbols = symbols[len(found[-1]) :]
    return [vocabulary[symbol] for symbol in found]


def in_one_go(symbols, pair):
    places = iter(range(len(symbols)))
    for i in places:
        joined = tuple(symbols[i : i + 2]) == pair
        yield "".join(symbols[i : i + 1 + joined])
        if joined:
            next(places)


def decoder(push):
    """A stream decoder of push(the bytes held back, new bytes) -> (text, the bytes held back)."""

    class MyStreamDecoder:
        def __init__(self, bytes_of):
            self.bytes_of, self.held = bytes_of, b""

        def push(self, token):
            text, self.held = push(self.held, self.bytes_of(token))
            return text

    return MyStreamDecoder


def incrementally(held, new):
    text, n = codecs.utf_8_decode(held + new, "strict", False)
    return text, (held + new)[n:]


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


def block_of(
    mlp_reads=lambda after, x, norm: norm(after, "ln_2"), result=lambda after, of_mlp: after + of_mlp,
    attend=lambda q, k, v: attended(q, k, v, 0), act=gpt2np.reference.gelu,
):  # fmt: skip
    """A block with one thing changed."""

    from gpt2np.reference import layer_norm, linear

    def my_block(x, params, n_head):
        norm = lambda x, name: layer_norm(x, **params[name])  # noqa: E731
        qkv = linear(norm(x, "ln_1"), **params["attn"]["c_attn"]).reshape(len(x), 3, n_head, -1).transpose(1, 2, 0, 3)
        after = x + linear(attend(*qkv).transpose(1, 0, 2).reshape(x.shape), **params["attn"]["c_proj"])
        wide = act(linear(mlp_reads(after, x, norm), **params["mlp"]["c_fc"]))
        return result(after, linear(wide, **params["mlp"]["c_proj"]))

    return my_block


def attended(q, k, v, shift):
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    return gpt2np.reference.softmax(np.where(np.tri(q.shape[1], k=shift, dtype=bool), scores, -np.inf)) @ v


def post_norm(x, params, n_head):
    from gpt2np.reference import gelu, layer_norm, linear

    norm = lambda x, name: layer_norm(x, **params[name])  # noqa: E731
    q, k, v = linear(x, **params["attn"]["c_attn"]).reshape(len(x), 3, n_head, -1).transpose(1, 2, 0, 3)
    heads = attended(q, k, v, 0)
    x = norm(x + linear(heads.transpose(1, 0, 2).reshape(x.shape), **params["attn"]["c_proj"]), "ln_1")
    wide = gelu(linear(x, **params["mlp"]["c_fc"]))
    return norm(x + linear(wide, **params["mlp"]["c_proj"]), "ln_2")


def counted(tables=1, positions=1, of_norm=2, weights=12, shifts=13):
    def my_count(n_vocab, n_ctx, n_embd, n_head, n_layer):
        vectors = tables * n_vocab + positions * n_ctx + of_norm
        return (vectors + n_layer * (weights * n_embd + shifts)) * n_embd

    return my_count


def in_common(cached, tokens):
    return next((i for i, (a, b) in enumerate(zip(cached, tokens)) if a != b), min(len(cached), len(tokens)))


def masked(number, softmax=gpt2np.reference.softmax):
    return lambda scores, seen: softmax(np.where(seen, scores, number))


def cached(which, keep=list, run=lambda model, new, n_last: model.run(new, n_last)):
    """A model with a cache of which which(model's tokens, tokens, n_last) tokens stay."""

    def make(right):
        class CachedModel(right):
            def run(self, new, n_last):
                return gpt2np.forward(new, self.params, self.hparams.n_head, n_last, self.cache)

            def __call__(self, tokens, n_last=1):
                n = which(self.tokens, tokens, n_last)
                self.cache.truncate(n)
                self.tokens = keep(tokens)
                return run(self, tokens[n:], n_last)

        return CachedModel

    return Of("CachedModel", make)


def stay(tokens, wanted, n_last):
    return min(in_common(tokens, wanted), len(wanted) - n_last)


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
    ("01", "exercise_1", Of("merge", lambda right: lambda symbols, pair: tuple(right(symbols, pair)))),
    ("01", "exercise_1", in_one_go),  # a generator
    ("01", "exercise_2", Of("encode_piece", lambda right: lambda *given: np.array(right(*given)))),
    ("01", "exercise_3", decoder(incrementally)),
    ("02", "exercise_1", Of("my_layer_norm", lambda right: lambda x, g, b: right(x.astype(float), g, b).tolist())),
    ("02", "exercise_2", Of("my_head")),
    ("02", "exercise_2", head()),
    ("02", "exercise_2", head(mask=lambda s: np.where(np.tri(len(s), dtype=bool), s, np.finfo(np.float32).min))),
    ("02", "exercise_3", Of("my_block")),
    ("02", "exercise_3", block_of()),
    ("02", "exercise_4", Of("my_count", lambda right: lambda **shape: float(right(**shape)))),
    ("03", "exercise_1", lambda *given: np.int64(stay(*given))),
    ("03", "exercise_2", Of("attend")),
    ("03", "exercise_2", attend(masked(-1e9))),
    ("03", "exercise_3", Of("CachedModel")),
    ("03", "exercise_3", cached(stay, keep=tuple)),
    ("03", "exercise_3", cached(lambda *given: np.int64(stay(*given)))),
]
WRONG = {
    ("01", "exercise_1"): [
        ("compare whole symbols",
         lambda symbols, pair: " ".join(symbols).replace(" ".join(pair), "".join(pair)).split()),
        ("is a return missing", lambda symbols, pair: None),
    ],
    ("01", "exercise_2"): [("compare whole symbols", by_strings), ("longest entry of the vocabulary", longest_first)],
    ("01", "exercise_3"): [
        ("kept for the next call, not dropped", decoder(lambda held, new: (new.decode("utf-8", "ignore"), b""))),
        ("half a character: hold it back", decoder(lambda held, new: (new.decode("utf-8"), b""))),
        ("must not be shown again", decoder(lambda held, new: ((held + new).decode("utf-8", "ignore"), held + new))),
        ("push returned None", decoder(lambda held, new: (None, b""))),
    ],
    ("02", "exercise_1"): [
        ("shift b is missing", norm(lambda x, eps: (x.mean(-1, keepdims=True), deviation(x, eps, keepdims=True), 0))),
        ("of the whole array", norm(lambda x, eps: (x.mean(), deviation(x, eps, None)))),
        ("normalised each column", norm(lambda x, eps: (x.mean(0), deviation(x, eps, 0)))),
        ("this is an RMS norm", norm(lambda x, eps: (0, np.sqrt((x**2).mean(-1, keepdims=True) + eps)))),
        ("and add b: this is an RMS norm", norm(lambda x, eps: (0, np.sqrt((x**2).mean(-1, keepdims=True) + eps), 0))),
        ("the length of a row",
         norm(lambda x, eps: (x.mean(-1, keepdims=True), 5**0.5 * deviation(x, eps, keepdims=True)))),
        ("g is not for the shift", Of("my_layer_norm", lambda right: lambda x, g, b: g * (right(x, 1, 0) + b))),
    ],
    ("02", "exercise_2"): [
        ("masked scores are -inf, not 0", head(mask=np.tril)),
        ("with a strict mask", head(mask=lambda s: np.where(np.tri(len(s), k=-1, dtype=bool), s, -np.inf))),
        ("mask with -inf, a number such as", head(mask=lambda s: np.where(np.tri(len(s), dtype=bool), s, -1000))),
        ("must not see the next", head(mask=lambda s: np.where(np.tri(len(s), k=1, dtype=bool), s, -np.inf))),
        ("may be \\+inf", head(mask=lambda s: s * np.where(np.tri(len(s), dtype=bool), 1, -np.inf))),
        ("all weights together", head(axis=(0, 1))),
        ("over the keys", head(axis=0)),
        ("bias b is missing", head(bias=0)),
        ("you computed k @ q.T", head(scores_of=lambda q, k: k @ q.T)),
        ("this is head 0", head(number=0)),
        ("not by d_head", head(root=lambda d: d)),
    ],
    ("02", "exercise_3"): [
        ("MLP's result is added", block_of(result=lambda after, of_mlp: of_mlp)),
        ("the MLP comes after it", block_of(result=lambda after, of_mlp: after)),
        ("after attention was added", block_of(lambda after, x, norm: norm(x, "ln_2"))),
        ("reads the normalised stream: ln_2", block_of(lambda after, x, norm: after)),
        ("not ln_1", block_of(lambda after, x, norm: norm(after, "ln_1"))),
        ("the layout of 2017", post_norm),
        ("not a relu", block_of(act=lambda x: np.maximum(x, 0))),
        ("must not see the next", block_of(attend=lambda q, k, v: attended(q, k, v, 1))),
        ("sees itself, too", block_of(attend=lambda q, k, v: attended(q, k, v, -1))),
        ("not divided by √d_head", block_of(attend=lambda q, k, v: attended(q * q.shape[2] ** 0.5, k, v, 0))),
    ],
    ("02", "exercise_4"): [
        ("^wpe, the embeddings of the positions, is missing", counted(positions=0)),
        ("two things: wpe.*; the logits use wte again", counted(tables=2, positions=0)),
        ("the shifts of the linear layers and the norms", counted(shifts=0, of_norm=0)),
        ("c_attn computes three vectors", counted(weights=10, shifts=11)),
        ("this is one layer", lambda *, n_layer, **shape: counted()(n_layer=1, **shape)),
    ],
    ("03", "exercise_1"): [
        ("the cache has no logits", lambda cached, tokens, n_last: in_common(cached, tokens)),
        ("not taken off the common prefix", lambda cached, tokens, n_last: max(0, in_common(cached, tokens) - n_last)),
        ("after the first difference", lambda cached, tokens, n_last: min(len(cached), len(tokens) - n_last)),
    ],
    ("03", "exercise_2"): [
        ("must not see the next one", attend(off_by(1))),
        ("sees itself, too", attend(off_by(-1))),
        (OVERFLOWS, attend(weighted(lambda scores: 0))),
        (OVERFLOWS, attend(weighted(np.max))),
        (OVERFLOWS, attend(weighted(lambda scores: scores.max(axis=-1, keepdims=True)))),  # of what is masked as well
        ("-inf, not 0", attend(masked(0))),
        *(("such as -1000 may be the largest", attend(masked(number))) for number in (-100, -1000, -10_000)),
        ("the softmax is missing", attend(masked(0, softmax=lambda scores: scores))),
        ("is √64 in GPT-2 but not here", lambda q, k, v: attend(masked(-np.inf))(q * q.shape[1] ** 0.5 / 8, k, v)),
        ("see the cached ones as well", lambda q, k, v: attend(masked(-np.inf))(q, k[-len(q) :], v[-len(q) :])),
    ],
    ("03", "exercise_3"): [
        ("at least one new token", Of("CachedModel", never_truncated)),
        ("keep the common prefix in the cache", cached(lambda *given: 0)),
        ("depends on what it was asked before", cached(lambda old, new, n_last: min(len(old), len(new) - n_last))),
        ("ran \\[17, 5, 2\\]", cached(lambda *given: max(0, stay(*given) - 1))),
        ("np.asarray of an array is that array", cached(stay, keep=np.asarray)),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 04


def one_too_many(probs, top_p):
    order = np.argsort(-probs, kind="stable")
    n = np.searchsorted(np.cumsum(probs[order]), top_p, side="right") + 1
    kept = np.zeros(len(probs))
    kept[order[:n]] = probs[order[:n]]
    return kept / kept.sum()


def those_above(least, probs):
    kept = np.where(probs >= least, probs, 0)
    return kept / kept.sum()


def sorted_by(order, probs, top_p):
    kept = np.zeros(len(probs))
    n = np.searchsorted(np.cumsum(probs[order]), top_p) + 1
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
    ("04", "exercise_2", Of("my_top_p")),
    ("04", "exercise_2", Of("my_top_p", lambda right: lambda probs, top_p: right(probs[::-1], top_p)[::-1])),  # a tie
    ("04", "exercise_3", in_place),
    ("04", "exercise_1", softmax_by(lambda z, T: (z - z.max()) / T)),
    ("04", "exercise_1", Of("my_probs", lambda right: lambda *given: right(*given).tolist())),
    ("04", "exercise_3", Of("my_draw", lambda right: lambda *given: np.array(right(*given)))),
]
WRONG |= {
    ("04", "exercise_2"): [
        ("here the first one reaches it", one_too_many),
        ("of two equal tokens one stays", Of("my_top_p", with_all_ties)),
        ("0.4 alone reaches 0.3", lambda probs, top_p: those_above(top_p * probs.max(), probs)),
        ("not on each probability", lambda probs, top_p: those_above(top_p, probs)),
        ("sort first", lambda probs, top_p: sorted_by(np.arange(len(probs)), probs, top_p)),
        ("least probable", lambda probs, top_p: sorted_by(probs.argsort(), probs, top_p)),
    ],
    ("04", "exercise_1"): [
        ("float64, whatever the logits are, got float32",
         Of("my_probs", lambda right: lambda logits, T: right(logits, T).astype(np.float32))),
        ("subtract the largest logit, then divide by", softmax_by(lambda z, T: z / T - z.max())),
        (r"exp\(-1000\) is 0: subtract", softmax_by(lambda z, T: (z - max(0, z.max())) / T)),
        ("above 1 it flattens", softmax_by(lambda z, T: (z - z.max()) / min(T, 1))),
        ("make the logits float64 before anything else", softmax_by(lambda z, T: (z - z.max()) / T, np.float32)),
        ("of equal ones the first", Of("my_probs", lambda right: lambda logits, T: right(logits[::-1], T)[::-1])),
        ("add no epsilon", softmax_by(lambda z, T: (z - z.max()) / T, epsilon=1e-8)),
    ],
    ("04", "exercise_3"): [
        ("one token id, a whole number", Of("my_draw", lambda right: lambda probs, u: [right(probs, u)])),
        ("one token id, a whole number", Of("my_draw", lambda right: lambda probs, u: float(right(probs, u)))),
        ("draw no other", lambda probs, u: np.random.default_rng().choice(6, p=probs / probs.sum())),
        ("do not sort",
         Of("my_draw", lambda right: lambda probs, u: int(np.argsort(-probs)[right(-np.sort(-probs), u)]))),
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


def all_at_once(draft, target_probs, rng):
    draws = [sample_token(row, rng) for row in target_probs]
    n = next((i for i, x in enumerate(draft.tokens) if x != draws[i]), len(draft.tokens))
    return Verdict(n, draws[n])


def matches_counted(draft, target_probs, rng):
    draws = [sample_token(row, rng) for row in target_probs]
    n = int((draws[:-1] == draft.tokens).sum())
    return Verdict(n, draws[n])


def coin_with_p(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        if rng.random() >= target_probs[i, x]:
            others = np.where(np.arange(target_probs.shape[1]) == x, 0, target_probs[i])
            return Verdict(i, sample_token(others, rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def rejecting(draft, target_probs, rng):
    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if not rng.random() * q[x] < p[x]:
            return Verdict(i, sample_token(residual(p, q), rng))
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def before_drawing(model, tokens, K, rng, floor=0.3):
    tokens, guesses, rows = [int(token) for token in tokens], [], []
    for _ in range(K):
        row = Sampling()(model(tokens))[0]
        if row.max() < floor:
            break
        guess = sample_token(row, rng)
        guesses, rows, tokens = [*guesses, guess], [*rows, row], [*tokens, guess]
    return Draft(np.array(guesses, np.int64), np.reshape(rows, (len(guesses), model.n_vocab)))


def rewritten(change):
    """write_safetensors, with change(the length of the header, the bytes after it) in place of the file."""

    def make(right):
        def write(path, tensors):
            right(path, tensors)
            content = path.read_bytes()
            path.write_bytes(change(int.from_bytes(content[:8], "little"), content[8:]))

        return write

    return make


def varint(mask=127, n_bits=7, join=lambda value, part, shift: value | part << shift):
    def read(data, position):
        value = shift = 0
        while True:
            value, shift, position = join(value, data[position] & mask, shift), shift + n_bits, position + 1
            if data[position - 1] < 128:
                return value, position

    return read


def crc(
    step=lambda r, poly: r >> 1 ^ (poly if r & 1 else 0), start=0xFFFFFFFF, end=0xFFFFFFFF, poly=0x82F63B78, n_shifts=8
):  # fmt: skip
    def my_crc(data):
        register = start
        for byte in data:
            register ^= byte
            for _ in range(n_shifts):
                register = step(register, poly)
        return register ^ end

    return my_crc


def in_one_type(right):
    return lambda path, tensors: right(path, {name: a.astype(np.float32) for name, a in tensors.items()})


def by_arrays(draft, target_probs, rng):
    """Block verification without a loop over its tests."""
    k = len(draft.tokens)
    ratios = target_probs[range(k), draft.tokens] / draft.probs[range(k), draft.tokens]
    p_hat = np.array(list(itertools.accumulate(ratios, lambda before, now: min(1.0, before * now), initial=1.0)))
    M = np.minimum(p_hat[:k, None] * target_probs[:k], draft.probs).sum(axis=1)
    h = np.append(np.where(p_hat[:k] == 1, 1, (p_hat[:k] - M) / np.where(p_hat[:k] == 1, 1, 1 - M)), p_hat[k])
    n = np.flatnonzero(np.append(0, rng.random(k)) < h)[-1]
    return Verdict(
        n, sample_token(target_probs[k] if n == k else residual(p_hat[n] * target_probs[n], draft.probs[n]), rng)
    )


RIGHT += [
    ("08", "exercise_1", lambda E, p: int(np.argmax(np.log(p) - np.log(E)))),
    ("08", "exercise_1", lambda E, p: min((e / x, i) for i, (e, x) in enumerate(zip(E, p)) if x > 0)[1]),
    ("08", "exercise_2", lambda p, q, lenience: list(lenient_by(p, q, lenience, lambda kept: p / lenience - q))),
    ("08", "exercise_3", by_arrays),
    ("08", "exercise_3", Of("my_block")),
    ("09", "exercise_1", all_at_once),
    ("09", "exercise_1", coin_with_p),
    ("09", "exercise_2", Of("propose_while_sure")),
    ("10", "exercise_1", Of("write_safetensors")),
    (
        "10",
        "exercise_1",  # the header's length may be rounded up
        Of(
            "write_safetensors", rewritten(lambda n, rest: (n + 3).to_bytes(8, "little") + rest[:n] + b"   " + rest[n:])
        ),
    ),
    ("10", "exercise_2", lambda *given: [*varint()(*given)]),
    ("10", "exercise_3", Of("my_crc32c", lambda right: lambda data: np.uint32(right(data)))),
    ("10", "exercise_3", Of("my_crc32c")),
]
WRONG |= {
    ("08", "exercise_1"): [
        ("a cumulative sum with one of the numbers", lambda E, p: int(np.searchsorted(p[:-1].cumsum(), E[0]))),
        ("the largest E / p", lambda E, p: (E / p).argmax()),
        ("the smallest E p", lambda E, p: (E * p).argmin()),
        ("whatever p is", lambda E, p: E.argmin()),
        ("whatever E is", lambda E, p: p.argmax()),
        ("the Gumbel number is -log E", lambda E, p: (np.log(p) + E).argmax()),
        ("expected a token id", lambda E, p: (E / p).min()),
        ("with `noise` alone", lambda E, p: np.random.default_rng().choice(len(p), p=p)),
        ("a token of probability 0", lambda E, p: (E / (p + 1e-9)).argmin()),
    ],
    ("08", "exercise_2"): [
        (r"not from \(p - q\)\+", lambda p, q, lenience: lenient_by(p, q, lenience, lambda kept: p - kept)),
        ("not from p$", lambda p, q, lenience: lenient_by(p, q, lenience, lambda kept: p)),
        ("too much of", lambda p, q, lenience: lenient_by(p, q, lenience, lambda kept: lenience * q - p)),
        ("accepted tokens alone", lambda p, q, lenience: ((kept := np.minimum(q, p / lenience)) / kept.sum(), 0.5)),
        ("weigh with q$", lambda p, q, lenience: (q, np.minimum(1, p / (lenience * q)).mean())),
        ("is l times what is accepted", lambda p, q, lenience: (q, np.minimum(p, lenience * q).sum())),
        ("how often it is rejected", lambda p, q, lenience: (q, 1 - np.minimum(p / lenience, q).sum())),
        ("expected two things", lambda p, q, lenience: q),
    ],
    ("08", "exercise_3"): [
        ("0 / 0", block(guard=False)),
        ("a uniform number of its own", block(one_number=True)),
        ("yours is the ratio of one draft token", block(before=lambda ratio: 1.0)),
        (r"yours leaves out - p-hat", block(h=lambda excess, ratio: excess / (excess + 1))),
        ("p-hat of the kept prefix", block(last_ratio=True)),
        ("passes with h = 0.375; yours with 0.6", block(h=lambda excess, ratio: excess / (1 - ratio))),
    ],
    ("09", "exercise_1"): [
        ("you drew once more; the draw that did not match", matched(lambda p, q, x, y, rng: sample_token(p, rng))),
        ("is the next token; yours", matched(lambda p, q, x, y, rng: sample_token(residual(p, q), rng))),
        ("the draft token that did not match is returned", matched(lambda p, q, x, y, rng: x)),
        ("comes a bonus", matched(bonus=np.argmax)),
        ("not from the draft's", matched(drawn=lambda p, q, rng: sample_token(q, rng))),
        ("right at temperature 0 only", matched(drawn=lambda p, q, rng: p.argmax())),
        ("right for one draft token, but not for several", matches_counted),
        ("accepted with 1/2, here with 0.667", rejecting),
    ],
    ("09", "exercise_2"): [
        ("a rule that looks at it does nothing", before_drawing),
        ("always stops after the first draft token",
         lambda model, tokens, K, rng: speculative.ModelDrafter(model).propose(tokens, min(K, 1), rng)),
        ("a draft is empty", lambda model, tokens, K, rng: Draft(np.empty(0, np.int64), np.empty((0, 3)))),
    ],
    ("09", "exercise_3"): [
        ("it only costs time", Of("seen_by", lambda right: lambda: {**right(), "a": "check_drafter"})),
        ("check_sampler says", Of("seen_by", lambda right: lambda: {**right(), "f": "none"})),
        ("a: expected one of check_verifier", Of("seen_by", lambda right: lambda: {**right(), "a": None})),
    ],
    ("10", "exercise_1"): [
        ("write each tensor in its own type", Of("write_safetensors", in_one_type)),
        ("takes 8 bytes, not 4", Of("write_safetensors", rewritten(lambda n, rest: n.to_bytes(4, "little") + rest))),
        ("lowest byte comes first", Of("write_safetensors", rewritten(lambda n, rest: n.to_bytes(8, "big") + rest))),
        ("are not JSON", Of("write_safetensors", rewritten(lambda n, rest: (n + 8).to_bytes(8, "little") + rest))),
    ],
    ("10", "exercise_2"): [
        ("102 \\+ 6 \\* 128, not 102 \\* 128", varint(join=lambda value, part, shift: value << 7 | part)),
        ("102, not 230", varint(mask=255)),
        ("not 256 times", varint(n_bits=8)),
        ("the number comes first", lambda data, position: varint()(data, position)[::-1]),
        ("counts from the start", lambda data, position: varint()(data[position:], 0)),
    ],
    ("10", "exercise_3"): [
        ("negative", Of("my_crc32c", lambda right: lambda data: ~(right(data) ^ 0xFFFFFFFF))),
        ("shift first, then xor", crc(lambda r, poly: (r ^ poly if r & 1 else r) >> 1)),
        ("test the lowest bit before the shift", crc(lambda r, poly: r >> 1 ^ (poly if r & 2 else 0))),
        ("flip all 32 bits at the end", crc(end=0)),
        ("all ones, 0xFFFFFFFF$", crc(start=0)),
        ("the CRC-32 of zip files", crc(poly=0xEDB88320)),
        ("in reverse", crc(poly=0x1EDC6F41)),
        ("it takes 8", crc(n_shifts=1)),
        ("a whole number", Of("my_crc32c", lambda right: lambda data: hex(right(data)))),
    ],
}  # fmt: skip


def at_least(n, k, share):
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))


@pytest.fixture
def n_needed_cell():
    notebook = nbformat.read(ROOT / "notebooks" / "09_the_museum.ipynb", as_version=4)
    [cell] = [cell.source for cell in notebook.cells if "def n_needed(" in cell.source]
    return cell


def running(cell, error, p_texts, distribution):
    """The names after the cell ran for one exhibit."""
    names = {"np": np, "math": math, "itertools": itertools, "exhibit": SimpleNamespace(name="some"), "error": error}
    names |= {"p_texts": p_texts, "distribution": distribution}
    exec(cell, names)
    return names


def test_small_sample_sizes_keep_both_promises(n_needed_cell):
    """In the museum: one false alarm in 1,000, nine of ten mistakes found, with as few texts as possible."""
    one, other = np.array([0.5, 0.5]), np.array([0.5 + 1e-9, 0.5 - 1e-9])
    n_needed = running(n_needed_cell, 1e-9, one, other)["n_needed"]

    def found(n, a, b):
        k = next((k for k in range(n + 1) if at_least(n, k, a) <= 1 / 1000), n + 1)
        return at_least(n, k, b)

    for a, b in (0.5, 0.97), (0.3, 0.6), (0.1, 0.5), (0.4, 1.0):
        n = n_needed(np.array([a, 1 - a]), np.array([b, 1 - b]))
        assert found(n, a, b) >= 0.9 and max(found(m, a, b) for m in range(1, n)) < 0.9


def test_an_exhibit_that_needs_many_texts_is_not_simulated(n_needed_cell, capsys):
    running(n_needed_cell, 1e-9, np.array([0.5, 0.5]), np.array([0.5 + 1e-9, 0.5 - 1e-9]))
    assert re.search(r"^some: [\d,]{18,} texts$", capsys.readouterr().out)


# ------------------------------------------------------------------------------------------------ 15

FOUR = ["rows_of_a_round", "counts_of_a_round", "verify_masked", "end_of_round"]


def looking_at(tokens):
    """Rows of which row i looks back at tokens(text, drafted, i)."""

    def rows(sampling, logits, text, drafted):
        return np.array([sampling(row[None], tokens(text, drafted, i))[0] for i, row in enumerate(logits)])

    return rows


def counting(tokens):
    """Counts of which row i adds tokens(last, drafted, i)."""

    def counts_of_a_round(counts, last, drafted):
        return np.array([counts + np.bincount(tokens(last, drafted, i), minlength=3) for i in range(len(drafted) + 1)])

    return counts_of_a_round


def added_in_place(counts, last, drafted):
    rows = [counts.copy()]
    for token in drafted:
        counts[token] += 1
        rows.append(counts.copy())
    return rows


def one_after_the_other(counts, last, drafted):
    return list(itertools.accumulate(drafted, lambda row, token: row + (np.arange(3) == token), initial=counts))


def with_mask(after):
    """Rejection of a draft that is cut at its first forbidden token, followed by a draw from after(p, q, x)."""

    def verify(draft, target_probs, rng):
        forbidden = [i for i, x in enumerate(draft.tokens) if target_probs[i, x] == 0]
        n = forbidden[0] if forbidden else len(draft.tokens)
        for i, x in enumerate(draft.tokens[:n]):
            p, q = target_probs[i], draft.probs[i]
            if not rng.random() * q[x] < p[x]:
                return Verdict(i, sample_token(residual(p, q), rng))
        weights = after(target_probs[n], draft.probs[n], draft.tokens[n]) if forbidden else target_probs[n]
        return Verdict(n, sample_token(weights, rng))

    return verify


def cut(tokens, stop):
    return tokens[: tokens.index(stop) + 1] if stop in tokens else tokens


@pytest.mark.parametrize(
    ("i", "answer"),
    [
        (0, lambda sampling, logits, text, drafted: sampling(logits, [*text, *drafted])),
        (1, one_after_the_other),
        (2, with_mask(lambda p, q, x: residual(p, q))),
        (3, lambda tokens, n, stop: [tuple(cut(tokens, stop)), sum(i < n for i, _ in enumerate(cut(tokens, stop)))]),
    ],
)
def test_engines_repaired_in_another_way(i, answer, check, solution):
    answers = [solution("15", name) for name in FOUR]
    answers[i] = answer
    assert check("15", "exercise_1")(*answers).startswith("right")


@pytest.mark.parametrize(
    ("i", "message", "answer"),
    [
        (0, "A: the bonus is drawn without regard",
         looking_at(lambda text, drafted, i: text if i == len(drafted) else [*text, *drafted[:i]])),
        (0, "A: all rows of a round", looking_at(lambda text, drafted, i: text)),
        (0, "A: every row is given all", looking_at(lambda text, drafted, i: [*text, *drafted])),
        (0, r"A: expected k \+ 1 rows", lambda sampling, logits, *tokens: logits[:-1]),
        (1, "B: the last token of the text is in `counts` already, and is added once more",
         counting(lambda last, drafted, i: [last, *drafted[:i]] if i else [])),
        (1, "B: row i counts draft token i", counting(lambda last, drafted, i: drafted[: i + 1])),
        (1, "B: all rows have the counts of the text", counting(lambda last, drafted, i: [])),
        (1, "B: `counts` was written to", added_in_place),
        (2, "C: a draft token that the mask forbids is cut away", with_mask(lambda p, q, x: p)),
        (2, "C: a token that the mask forbids is accepted",
         lambda draft, rows, rng: Verdict(len(draft.tokens), sample_token(rows[-1], rng))),
        (2, "C: .* comes with the library", lambda *given: speculative.rejection(*given)),
        (3, "D: tokens after the stop token are still counted", lambda tokens, n, stop: (cut(tokens, stop), n)),
        (3, "D: the last token of a round is no draft token",
         lambda tokens, n, stop: (cut(tokens, stop), len(cut(tokens, stop)))),
        (3, "D: the text ends with the first stop token", lambda tokens, n, stop: (tokens, n)),
    ],
)  # fmt: skip
def test_engines_not_repaired(i, message, answer, check, solution):
    answers = [solution("15", name) for name in FOUR]
    answers[i] = answer
    with pytest.raises(AssertionError, match=message):
        check("15", "exercise_1")(*answers)


def judging(
    verdict=lambda low, high: "identical" if low == 0 else "rounding" if high < low / 1000 else "bug",
    widths=(2, 3, 4), rows=slice(None), largest=lambda differences: abs(differences).max(),
):  # fmt: skip
    """rounding_or_bug with one thing changed."""

    def rounding_or_bug(low, high, tokens):
        def D(model):
            alone = np.array([model(tokens[:n])[0] for n in range(1, len(tokens) + 1)])
            places = [(m, n) for m in widths for n in range(m, len(tokens) + 1)]
            found = [(model(tokens[:n], n_last=m) - alone[n - m : n])[rows].ravel() for m, n in places]
            return largest(np.concatenate(found))

        return verdict(D(low), D(high)), D(low), D(high)

    return rounding_or_bug


RIGHT += [
    ("15", "exercise_2", judging(lambda low, high: "identical" if low == 0 else "rounding" if high < 1e-4 else "bug")),
]
WRONG |= {
    ("15", "exercise_2"): [
        ("yours is that of m = 2", judging(widths=(2,))),
        ("yours is that of m = 4", judging(widths=(4,))),
        ("yours is the first alone", judging(rows=slice(1))),
        ("yours is the last alone", judging(rows=slice(-1, None))),
        ("take absolute values", judging(largest=np.max)),
        ("not the mean", judging(largest=lambda differences: abs(differences).mean())),
        ("a bug hides below the rounding",
         judging(lambda low, high: "identical" if low == 0 else "rounding" if low < 0.1 else "bug")),
        ("is judged 'bug', not 'identical'", judging(lambda low, high: "bug")),
    ],
}  # fmt: skip


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


def recursively(q, k, rng):
    if not k or not q.any():
        return []
    token = int(rng.multinomial(1, row := q / q.sum()).argmax())
    return [(token, row), *recursively(np.where(np.arange(len(q)) == token, 0, q), k - 1, rng)]


def at_once(q, k, rng):
    tokens = rng.choice(len(q), size=k, replace=False, p=q).tolist()
    return [(token, q) for token in tokens]


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


def of_the_last_row(parents, n_text):
    """The parent's row is copied, also where the parent is -1."""
    nodes = np.eye(len(parents), dtype=bool)
    for i, parent in enumerate(parents):
        nodes[i] |= nodes[parent]
    return np.concatenate([np.ones((len(parents), n_text), bool), nodes], axis=1)


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


def of_elder_siblings(n, w):
    """A sibling's value is its elder sibling's times its own w."""
    return grown(value=np.prod)(n, np.cumprod(w).tolist())


RIGHT += [
    ("11", "exercise_1", Of("without_replacement")),
    ("11", "exercise_1", in_turn),
    ("11", "exercise_1", lambda q, k, rng: (pair for pair in in_turn(q, k, rng))),
    ("11", "exercise_1", lambda q, k, rng: [[x, row.tolist()] for x, row in in_turn(q, k, rng)]),
    ("11", "exercise_1", recursively),
    ("11", "exercise_2", Of("my_mask")),
    ("11", "exercise_2", lambda parents, n_text: right_mask(parents, n_text).astype(int).tolist()),
    ("11", "exercise_2", mask_of(lambda parents, i, j: j in path(parents, i))),
    ("11", "exercise_3", Of("most_valuable")),
    ("11", "exercise_3", grown()),
    ("11", "exercise_3", lambda n, w: (list(node) for node in reversed(grown()(n, w)))),
    ("11", "exercise_3", lambda n, w: {np.array(node).tobytes(): np.array(node) for node in grown()(n, w)}.values()),
]  # fmt: skip
WRONG |= {
    ("11", "exercise_1"): [
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
        ("one by one, each with sample_token", at_once),
        (r"a list of pairs \(token, row\)", lambda q, k, rng: tuple(zip(*in_turn(q, k, rng)))),
        (r"a list of pairs \(token, row\)", lambda q, k, rng: [token for token, _ in in_turn(q, k, rng)]),
    ],
    ("11", "exercise_2"): [
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
        ("where it does not", lambda parents, n_text: ~right_mask(parents, n_text)),
        ("rows and columns are exchanged", mask_of(lambda parents, i, j: above(parents, j, i))),
        ("the text's columns come first",
         lambda parents, n_text: np.roll(right_mask(parents, n_text), -n_text, axis=1)),
        (r"the column n_text \+ j",
         lambda parents, n_text: np.roll(right_mask(parents, n_text) & (np.arange(n_text + len(parents)) >= n_text),
                                         -n_text, axis=1) | (np.arange(n_text + len(parents)) < n_text)),
        (r"but \[-1\] is the last row", of_the_last_row),
        ("different lengths", lambda parents, n_text: [[1] * (n_text + i) for i in range(len(parents))]),
    ],
    ("11", "exercise_3"): [
        ("push the next sibling", grown(sibling=False)),
        ("expected 4 nodes|push the first child", grown(child=False)),
        ("largest product|first child", grown(take=min)),
        ("by the product along its path", grown(value=lambda values: values[-1])),
        ("by the product along its path", grown(value=sum)),
        ("divide by the elder sibling's", of_elder_siblings),
        ("counted from 0", lambda n, w: [tuple(rank + 1 for rank in node) for node in grown()(n, w)]),
        ("a node is a tuple of ranks", lambda n, w: [(0.5, node) for node in grown()(n, w)]),
        ("a node is a tuple of ranks", lambda n, w: [node[-1] for node in grown()(n, w)]),
        ("without its parent", lambda n, w: [(0,), (1, 0), (0, 0), (1, 1)][:n]),
        ("there twice", lambda n, w: [(0,)] * n),
        ("expected 4 nodes", lambda n, w: [(0,)]),
        ("w was written to", lambda n, w: [(w.pop() and 0,)] * n),
        ("the text is no node", Of("most_valuable", lambda right: lambda n, w: [(), *right(n - 1, w)])),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ 12


def by_rank(logits, tokens, n_ranks, order=-1, shift=0):
    ranks = [np.argsort(order * row).tolist().index(token) + shift for row, token in zip(logits, tokens)]
    return np.array([np.mean(np.array(ranks) == rank) for rank in range(n_ranks)])


def among_the_first(logits, tokens, n):
    ranks = (logits > np.take_along_axis(logits, tokens[:, None], axis=1)).sum(axis=1)
    return [(ranks < k).mean() for k in range(1, n + 1)]


def the_token_of_a_rank(logits, tokens, n):
    ranks = np.take_along_axis(np.argsort(-logits, axis=1), tokens[:, None], axis=1)
    return [(ranks == rank).mean() for rank in range(n)]


def in_order(h, embeddings):
    return np.concatenate([h, *embeddings], axis=1)


@functools.cache
def tiny_target():
    return gpt2np.load("tiny-target")[0]


def read_off(y):
    """Logits, as in the notebook."""
    params = tiny_target().params
    return (y * params["ln_f"]["g"] + params["ln_f"]["b"]) @ params["wte"].T


def hydra(x_of=in_order, y_of=lambda head, x, h: x @ head["a"] + silu(x @ head["w"]), logits=read_off):
    def hydra_head(head, h, seen):
        embeddings = [tiny_target().params["wte"][tokens] for tokens in seen.T]
        return logits(y_of(head, x_of(h, embeddings), h))

    return hydra_head


def with_the_notebooks_names(hydra_head):
    hydra_head.__globals__.update(wte=tiny_target().params["wte"], silu=silu, read_off=read_off)
    return hydra_head


def in_parts(head, h, seen):
    """Each part of x times its rows of the matrices, and no long vector."""
    parts, n = [h, *(tiny_target().params["wte"][tokens] for tokens in seen.T)], h.shape[1]
    by_a, by_w = (sum(x @ head[w][i * n : (i + 1) * n] for i, x in enumerate(parts)) for w in "aw")
    return read_off(by_a + silu(by_w))


def of_all(tokens, logits, parents):
    """(token, row) for each row."""
    return zip(tokens[len(tokens) - len(logits) :], logits)


def recycler(*, pairs=of_all, order=-1, deeper=0, change=lambda draft: draft):
    """The solution's class with mistakes."""

    def make(right):
        class Recycler(right):
            def observe(self, tokens, logits, parents):
                for token, row in pairs(tokens, logits, parents):
                    self.followers[token] = np.argsort(order * row, kind="stable")[: self.n_followers].tolist()

            def propose(self, tokens, K, rng):
                return change(super().propose(tokens, K + deeper, rng))

        return Recycler

    return Of("Recycler", make)


def with_a_draft_of_its_own(draft):
    """Other types, as a student may have them."""
    return Draft(draft.tokens.astype(np.int32), draft.probs.astype(np.float32), draft.parents)


def under_another_name(right):
    """The method that learns has a different name."""

    class Recycler:
        def __init__(self, *given, **named):
            self.right = right(*given, **named)
            self.followers, self.propose, self.update = self.right.followers, self.right.propose, self.right.observe

    return Recycler


def soft(draft):
    return Draft(draft.tokens, np.full(draft.probs.shape, 1 / 12), draft.parents)


RIGHT += [
    ("12", "exercise_1", Of("accepted_by_rank")),
    ("12", "exercise_1", lambda *case: by_rank(*case).tolist()),
    ("12", "exercise_1", lambda logits, tokens, n: (np.argsort(-logits)[:, :n] == tokens[:, None]).mean(axis=0)),
    ("12", "exercise_1", lambda logits, tokens, n: np.diff(among_the_first(logits, tokens, n), prepend=0)),
    ("12", "exercise_2", Of("hydra_head", with_the_notebooks_names)),
    ("12", "exercise_2", hydra()),
    ("12", "exercise_2", in_parts),
    ("12", "exercise_3", Of("Recycler")),
    ("12", "exercise_3", recycler()),
    ("12", "exercise_3", recycler(change=with_a_draft_of_its_own)),
]
WRONG |= {
    ("12", "exercise_1"): [
        ("each rank by itself", lambda *case: np.cumsum(by_rank(*case))),
        ("divide by the number of places", lambda *case: by_rank(*case) * len(case[0])),
        ("the most likely token has rank 0", lambda *case: by_rank(*case, order=1)),
        ("the first choice has rank 0", lambda *case: by_rank(*case, shift=1)),
        ("divide by all places", lambda *case: by_rank(*case) / by_rank(*case).sum()),
        ("a share for each", lambda *case: by_rank(*case)[:1]),
        ("where the token is in that list", the_token_of_a_rank),
        ("percent", lambda *case: by_rank(*case) * 100),
        (
            "sort along axis 1",
            lambda logits, tokens, n: (np.argsort(-logits, axis=0)[:, :n] == tokens[:, None]).mean(axis=0),
        ),
        (
            "not by those the lower ranks missed",
            lambda *case: by_rank(*case) / (1 - np.cumsum(by_rank(*case)) + by_rank(*case)),
        ),
        ("got a dict", lambda *case: dict(enumerate(by_rank(*case)))),
    ],
    ("12", "exercise_2"): [
        ("the hidden state comes first", hydra(lambda h, e: np.concatenate([*e, h], axis=1))),
        ("in the order of the text", hydra(lambda h, e: np.concatenate([h, *e[::-1]], axis=1))),
        ("x A is missing", hydra(y_of=lambda head, x, h: silu(x @ head["w"]))),
        ("silu is missing", hydra(y_of=lambda head, x, h: x @ head["a"] + x @ head["w"])),
        (r"silu\(x W\) is missing", hydra(y_of=lambda head, x, h: x @ head["a"])),
        ("x A is added as it is", hydra(y_of=lambda head, x, h: silu(x @ head["a"] + x @ head["w"]))),
        ("A and W are exchanged", hydra(y_of=lambda head, x, h: x @ head["w"] + silu(x @ head["a"]))),
        ("do not add it again", hydra(y_of=lambda head, x, h: h + x @ head["a"] + silu(x @ head["w"]))),
        ("that is the sigmoid", hydra(y_of=lambda head, x, h: x @ head["a"] + 1 / (1 + np.exp(-(x @ head["w"]))))),
        ("rows were mixed", hydra(lambda h, e: np.concatenate([h, np.reshape(e, (len(h), -1))], axis=1))),
        (
            "neither a norm nor positions",
            hydra(lambda h, e: np.concatenate([h, *(gpt2np.reference.layer_norm(x, 1, 0) for x in e)], axis=1)),
        ),
        ("makes logits", hydra(logits=lambda y: y)),
        ("with the norm's gain", hydra(logits=lambda y: y @ tiny_target().params["wte"].T)),
        ("not probabilities", hydra(logits=lambda y: gpt2np.reference.softmax(read_off(y)))),
        ("that is Medusa's", hydra(y_of=lambda head, x, h: h + silu(x @ head["w"]))),
    ],
    ("12", "exercise_3"): [
        (
            "after the last token of the text, not after its first",
            recycler(pairs=lambda tokens, logits, parents: zip(tokens, logits)),
        ),
        (
            r"the row after draft token i is row i \+ 1",
            recycler(pairs=lambda tokens, logits, parents: zip(tokens[len(tokens) - len(parents) :], logits)),
        ),
        ("the row after the text counts too", recycler(pairs=lambda *given: [*of_all(*given)][1:])),
        ("the rows after the draft tokens count too", recycler(pairs=lambda *given: [*of_all(*given)][:1])),
        (r"n draft tokens have n \+ 1 rows", recycler(pairs=lambda *given: [])),
        (
            "note the rows of all nodes",
            recycler(pairs=lambda tokens, logits, parents: [*of_all(tokens, logits, parents)][: 1 + parents[:1].size]),
        ),
        ("a method of the name observe", Of("Recycler", under_another_name)),
        ("the most likely follower first", recycler(order=1)),
        ("K = 2 allows two levels", recycler(deeper=5)),
        ("rows are one-hot", recycler(change=soft)),
        ("nothing is known yet", recycler(change=lambda draft: Draft(np.array([5, *draft.tokens]), draft.probs))),
        ("returns a speculative.Draft, got list", recycler(change=lambda draft: draft.tokens.tolist())),
        ("returned None: a draft without tokens", recycler(change=lambda draft: draft if len(draft.tokens) else None)),
        ("the draft is a tree", recycler(change=lambda draft: Draft(draft.tokens, draft.probs))),
    ],
}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"self.followers\[token\] = (.*)", r"self.followers.setdefault(token, \1)", "the latest row of a token"),
        (r"(zip\(tokens\[len\(tokens\) - len\(logits\) :\], logits\))", r"reversed(list(\1))", "the latest row of a"),
        (r"tokens\[len\(tokens\) - len\(logits\) :\]", "tokens[-len(parents) - 1 :][1:]", r"is row i \+ 1"),
        (r"tokens\[-1\]", "tokens[0]", "after 7 come 8 and 9"),
        (r"parents.append\(above\)", "parents.append(parent)", "the parents count the nodes that"),
        ("continue", "break", "the nodes below it are left out, and only these"),
        (r"np.argsort\(-row, kind=\"stable\"\)", "np.argpartition(-row, self.n_followers)", "in order: sort them"),
        (r"\[: self.n_followers\]", "", "keep the three most likely"),
    ],
)
def test_wrong_lines_of_the_recycler(old, new, message, graded):
    source = next((ROOT / "notebooks" / "solutions").glob("12_*.py")).read_text(encoding="utf-8")
    exec(re.sub(old, new, source), names := {})
    assert re.sub(old, new, source) != source
    with pytest.raises(AssertionError, match=message):
        graded("12", "exercise_3", names["Recycler"])


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


class Tensor:
    """What a tensor of PyTorch does to an array of NumPy: it takes over in `array - tensor`, and refuses."""

    __array_priority__ = 1000

    def __init__(self, values, requires_grad=False):
        self.values, self.requires_grad = values, requires_grad

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.values

    def __rsub__(self, array):
        raise TypeError("unsupported operand type(s)")


RIGHT += [
    ("13", "exercise_1", lambda p, q: 1 - abs(p - q).sum(axis=1).mean() / 2),
    ("13", "exercise_1", lambda p, q: sum(min(a, b) for rows in zip(p, q) for a, b in zip(*rows)) / len(p)),
    ("13", "exercise_2", Of("bigram_from_rows")),
    ("13", "exercise_2", in_a_loop),  # a list
    ("13", "exercise_3", row_by_row),
    ("13", "exercise_3", lambda z, p: Tensor(row_by_row(z, p))),
]
WRONG |= {
    ("13", "exercise_1"): [
        ("needs no division", lambda p, q: (q * np.minimum(1, p / q)).sum(axis=1).mean()),
        ("divide by their number", lambda p, q: np.minimum(p, q).sum()),
        ("the p of its own position", lambda p, q: np.minimum(p.mean(axis=0), q.mean(axis=0)).sum()),
        ("independent draws agree", lambda p, q: (p * q).sum(axis=1).mean()),
        ("add up over the vocabulary", lambda p, q: np.minimum(p, q).mean()),
        ("add up over the vocabulary, average over positions", lambda p, q: np.minimum(p, q).sum(axis=0).mean()),
        ("counts each rejected draft token twice", lambda p, q: 1 - abs(p - q).sum(axis=1).mean()),
        ("the larger of p and q", lambda p, q: np.maximum(p, q).sum(axis=1).mean()),
        ("weigh min\\(1, p / q\\) with q", lambda p, q: (p * np.nan_to_num(np.minimum(1, p / q))).sum(axis=1).mean()),
        ("the most likely tokens agree", lambda p, q: (p.argmax(axis=1) == q.argmax(axis=1)).mean()),
        ("the draft's most likely token", lambda p, q: p[np.arange(len(p)), q.argmax(axis=1)].mean()),
        ("the rejected share", lambda p, q: np.maximum(p - q, 0).sum(axis=1).mean()),
        ("one number, the mean over the positions", lambda p, q: np.minimum(p, q).sum(axis=1)),
    ],
    ("13", "exercise_2"): [
        ("adds once for each different token", bigram(add_at=False)),
        ("divide by the number of contexts", bigram(divide=False)),
        ("0 / 0", bigram(unseen=np.nan)),
        ("no distribution", bigram(unseen=0)),
        ("not the uniform row", bigram(unseen=1 / 5)),
        (
            "only the first of them",
            lambda last, p, n: p[[last.tolist().index(a) if a in last else 0 for a in range(n)]],
        ),
        ("its own contexts, not of all", lambda last, p, n: np.eye(n)[:, last] @ p / len(p)),
        ("each context counted once", lambda *given: bigram(unseen=bigram()(*given)[[0, 1, 3]].mean(axis=0))(*given)),
        ("rows and columns", lambda *given: bigram()(*given).T),
    ],
    ("13", "exercise_3"): [
        ("the sign", lambda z, p: -row_by_row(z, p)),
        ("do not divide by n", lambda z, p: row_by_row(z, p) / len(z)),
        ("the softmax is missing", lambda z, p: -p),
        ("the term with the sum", lambda z, p: -softmax(z) * p),
        ("the term with the sum", lambda z, p: -softmax(z) * (1 - softmax(z)) * p),
        ("the factor q", lambda z, p: (p * softmax(z)).sum(axis=1, keepdims=True) - p),
        (r"sum\(axis=1", lambda z, p: softmax(z) * ((p * softmax(z)).sum() - p)),
        ("the softmax is of one row", lambda z, p: row_by_row(z.T, p.T).T),
        ("detach", lambda z, p: Tensor(row_by_row(z, p), requires_grad=True)),
        ("the cross-entropy", lambda z, p: softmax(z) - p),
        (r"1 - sum min\(p, q\)", lambda z, p: row_by_row(z, softmax(z) < p)),
        ("one gradient for each row", lambda z, p: row_by_row(z, p)[0]),
    ],
}


# ------------------------------------------------------------------------------------------------ 14


def auditing(prompts, n_tokens, together=True, result=max):
    """An audit like the solution's, of these texts."""

    def audit(verify):
        from checks.beyond_one_laptop import serve, small_target

        found = speculative.exact_distribution(lambda rng: serve(verify, prompts, n_tokens, rng))
        errors, right = [], {(): 1.0}
        for i, (prompt, n) in enumerate(zip(prompts, n_tokens)):
            one = small_target.distribution(prompt, n)
            right = {(*texts, text): a * b for texts, a in right.items() for text, b in one.items()}
            alone = {text: sum(p for texts, p in found.items() if texts[i] == text) for text in one}
            errors += [abs(alone[text] - one[text]) for text in one]
        if together:
            errors += [abs(found.get(texts, 0) - right.get(texts, 0)) for texts in {*found, *right}]
        return result(errors)

    return audit


GENERATOR = np.random.default_rng(0)  # the draws go on from call to call


def by_drawing(verify):
    from checks.beyond_one_laptop import serve, small_target

    right = small_target.distribution([0], 2)
    found = Counter(str(serve(verify, [[0]], [2], GENERATOR)[0]) for _ in range(200))
    return max(abs(found[str(list(text))] / 200 - right[text]) for text in right)


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


OTHER_ROWS = r"where do those of the second text start\?|with its own draft tokens\?"
RIGHT += [
    *(("14", "exercise_1", Of("most_texts", way)) for way in (functools.partial, functools.cache, Called)),
    ("14", "exercise_1", lambda F, B, b, K: max(n for n in range(1000) if 2 * n * (K + 1) / F <= b / B)),
    ("14", "exercise_2", auditing([[0], [1]], [3, 2])),
    ("14", "exercise_2", auditing([[1], [1]], [3, 3])),
    ("14", "exercise_2", auditing([[0], [1]], [2, 3], result=sum)),
    ("14", "exercise_1", lambda F, B, b, K: np.floor((b / B) / (2 * (K + 1) / F))),
    ("14", "exercise_3", Of("match_batch")),
    ("14", "exercise_3", matching(True, True)),
]
WRONG |= {
    ("14", "exercise_1"): [
        (r"K \+ 1 tokens", lambda F, B, b, K: int(b * F / (2 * B) // K)),
        ("tokens in one pass", lambda F, B, b, K: int(b * F / (2 * B))),
        ("weights of 4 bytes", lambda F, B, b, K: int(2 * F / B // (K + 1))),
        ("weights of 2 bytes", lambda F, B, b, K: int(F / B // (K + 1))),
        ("round down", lambda F, B, b, K: -int(-b * F / (2 * B) // (K + 1))),
        ("a whole number", lambda F, B, b, K: b * F / (2 * B) / (K + 1)),
        ("round down, not to", lambda F, B, b, K: round(b * F / (2 * B) / (K + 1))),
        ("b on the other side", lambda F, B, b, K: int(2 * F / (b * B) // (K + 1))),
        ("b on the other side", lambda F, B, b, K: int(F / (2 * b * B) // (K + 1))),
        ("weights of 1 byte", lambda F, B, b, K: int(F / (2 * B) // (K + 1))),
        ("2 operations for each weight", lambda F, B, b, K: int(b * F / B // (K + 1))),
        ("exchanged", lambda F, B, b, K: int(b * B / (2 * F) // (K + 1))),
        ("one number", lambda F, B, b, K: [int(b * F / (2 * B) // (K + 1))]),
    ],
    ("14", "exercise_2"): [
        ("two draft tokens are verified", auditing([[0]], [2])),
        ("put a second text into the batch, with draft tokens", auditing([[0]], [3])),
        ("both texts together", auditing([[0], [1]], [3, 2], together=False)),
        ("never calls verify", lambda verify: 0.0),
        ("compare probabilities of whole texts", auditing([[0]], [2], result=lambda errors: 0.0)),
        ("is the expected distribution that of the same", auditing([[0]], [2], result=lambda errors: 0.1)),
        ("draw no samples", by_drawing),
        ("a number, got True", auditing([[0], [1]], [3, 2], result=lambda errors: max(errors) < 1e-12)),
        ("one number", auditing([[0]], [2], result=lambda errors: np.nan)),
    ],
    ("14", "exercise_3"): [
        *((OTHER_ROWS, matching(*rows)) for rows in ((False, True), (True, False), (False, False))),
        ("^not solved yet: two texts", matching(False, False)),
        ("is another rule", lambda *given: speculative.exact_match(*given)),
        ("wrong for a single text",
         Of("match_batch", lambda right: lambda tokens, lengths, q, p, rng: right(tokens, lengths, q, p[::-1], rng))),
    ],
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ all of them


def without_replacement_from_the_library(q, k, rng):  # as in notebook 11
    return list(zip(*sample_distinct(q, k, rng)))


def delegating(right):
    class MySampler(right):
        def generate(self, prompt, n_tokens, rng):
            inside = speculative.SpeculativeSampler(self.target, self.drafter, K=self.K, sampling=self.sampling)
            return inside.generate(prompt, n_tokens, rng).tokens.tolist()

    return MySampler


OF_THE_LIBRARY = [
    ("01", "exercise_1", gpt2np.tokenizer.merge_pair),
    ("01", "exercise_3", gpt2np.StreamDecoder),
    ("02", "exercise_1", gpt2np.reference.layer_norm),
    ("02", "exercise_2", lambda x, w, b, head, n_head: gpt2np.reference.attention(x, w, b, n_head)),
    ("02", "exercise_3", gpt2np.reference.block),
    ("04", "exercise_1", lambda logits, temperature: speculative.Sampling(temperature)(logits[None])[0]),
    ("04", "exercise_3", speculative.sample_token),
    ("05", "exercise_2", speculative.residual),
    ("05", "exercise_3", speculative.rejection),
    ("05", "exercise_3", lambda *given: speculative.rejection(*given)),
    ("06", "exercise_1", speculative.theory.expected_tokens),
    *(("06", "exercise_2", way(lambda alpha, c, v: speculative.theory.best_K(alpha, c, v)))
      for way in (lambda fn: fn, functools.partial, functools.cache)),
    ("08", "exercise_3", lambda *given: speculative.block(*given)),
    ("05", "exercise_3", lambda *given: next(speculative.rejection(*given) for _ in "1")),
    ("05", "exercise_4", speculative.SpeculativeSampler),
    ("05", "exercise_4", type("MySampler", (speculative.SpeculativeSampler,), {})),
    ("05", "exercise_4", Of("MySampler", delegating)),
    ("10", "exercise_3", gpt2np.files.crc32c.crc32c),
    ("11", "exercise_3", lambda n, w: speculative.Shape.best(n, w)),
    ("12", "exercise_2",
     lambda head, h, seen: gpt2np.load_heads("tiny-target").logits(tiny_target(), h, seen)),
    ("12", "exercise_3", type("Recycler", (speculative.RecyclingDrafter,), {})),
    ("11", "exercise_1", lambda q, k, rng: without_replacement_from_the_library(q, k, rng)),
    ("11", "exercise_1",
     lambda q, k, rng: [(int(token), row) for token, row in zip(*sample_distinct(q, k, rng))]),
]  # fmt: skip
RETURNS = [
    ("04", "exercise_2"), ("04", "exercise_3"), ("06", "exercise_2"), ("06", "exercise_3"), ("07", "exercise_2"),
    ("08", "exercise_1"), ("08", "exercise_2"), ("09", "exercise_3"), ("11", "exercise_1"),
    ("11", "exercise_2"), ("11", "exercise_3"), ("12", "exercise_1"), ("12", "exercise_2"),
    ("13", "exercise_1"), ("13", "exercise_2"), ("13", "exercise_3"), ("14", "exercise_1"), ("14", "exercise_2"),
    ("15", "exercise_2"),
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
