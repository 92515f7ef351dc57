"""Mistakes in verifiers. p is the target's distribution, q the draft's, both [n_vocab].

`rule()` is rejection sampling of a chain or a tree; its arguments replace its parts. Most entries replace one:

    accepts(f)     f(p, q) [n_vocab]: the probability of accepting each token, given that it was drafted
    replaces(f)    f(p, q) [n_vocab]: the weights, in place of p, of the token that is drawn after a rejection
    bonus(f)       f(s) [n_vocab]: the weights of the token after a draft token that nothing follows

Block and traversal verification have separate functions, which are also made of parts.
"""

from types import SimpleNamespace

import numpy as np

from ...interfaces import Draft, Verdict
from ...logits.probs import residual, sample_token
from ...theory.candidates import k_seq_divisor
from ...verifiers.rejection import rejection
from ...verifiers.typical import Typical
from . import Mistake

# ------------------------------------------------------------------------------------------------ the rule


def rule(
    part="all", *, accept=lambda s: s.p[s.x] / s.q[s.x], test=lambda s, share: s.u < share,
    rest=lambda s: residual(s.p, s.q), bonus=lambda s: s.row,
    draw=lambda weights, s: sample_token(weights, s.rng), number=lambda s: s.rng.random(), row=lambda s: s.own,
    order=lambda s, nodes: nodes, verdict=lambda s, token: Verdict(s.accepted, token), always=False,
    own_row=lambda s: s.rows[s.node + 1],
):  # fmt: skip
    """Rejection sampling with these parts, functions of the state s; `part` names the part that is replaced.

    The state contains s.draft, s.rows (the target's), s.rng, s.accepted, s.node (the last accepted node) and s.row (the
    target's row after it). For the draft token under test it also contains s.i (its index among its siblings), s.x,
    s.q, and s.p (the rest of s.row). With `always`, the bonus is also drawn where nothing is drafted.
    """

    def verifier(draft, rows, rng):
        s = SimpleNamespace(draft=draft, rows=rows, rng=rng, node=-1, accepted=[], k=len(draft.tokens), u=None, q=None)
        while True:
            s.row = s.p = own_row(s)
            s.below = order(s, draft.children(s.node))
            for i, child in enumerate(s.below):
                s.i, s.child = i, child
                s.x, s.own = draft.tokens[s.child], draft.probs[s.child]
                s.q, s.u = row(s), number(s)
                with np.errstate(all="ignore"):
                    if test(s, accept(s)):
                        break
                    s.p = rest(s)
            else:
                weights = s.p if s.below else bonus(s) if s.accepted or always else s.row
                return verdict(s, draw(weights if np.any(weights) else s.row, s))
            s.node = s.child
            s.accepted.append(s.node)

    verifier.part = part
    return verifier


def accepts(f, **parts):
    return rule("accept", accept=lambda s: f(s.p, s.q)[s.x], **parts)


def replaces(f, **parts):
    return rule("rest", rest=lambda s: f(s.p, s.q), **parts)


def bonus(f, **parts):
    return rule("bonus", bonus=f, **parts)


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


def excess(p, q):
    return np.maximum(p - q, 0)


def most_probable(n, row):
    return np.where(row >= np.sort(row)[-n:][0], row, 0)


def one_hot(i, row):
    return np.eye(len(row))[i]


def ratio(p, q):
    return np.minimum(1, p / q)


def only(when, draw):
    """`draw` for the bonus only or for a replacement only; the other is drawn correctly."""
    return lambda weights, s: (draw if bool(s.below) == (when == "rest") else draws)(weights, s)


def draws(weights, s):
    return sample_token(weights, s.rng)


def with_the_same_number(weights, s):
    return sample_token(weights, SimpleNamespace(random=lambda: s.u)) if s.u is not None else draws(weights, s)


def new_number_each(weights, s):
    return next((i for i, c in enumerate(np.cumsum(weights)[:-1]) if s.rng.random() < c), len(weights) - 1)


def first_number(s):
    s.first = s.first if hasattr(s, "first") else s.rng.random()
    return s.first


EPSILONS = [10.0**-i for i in (8, *range(3, 16))] + [2.0**-23, 2.0**-52]
PROBABILITIES = "target_probs and draft.probs are probabilities already: apply no softmax, exp or temperature to them"
NORMALISE = "your residual is not normalised: divide max(0, p - q) by its sum before you draw"
NEW_NUMBERS = (
    "you draw a new uniform number for each step of the cumulative sum; a token is drawn with one number for all"
)
EPSILON = "an epsilon makes the ratio p / q wrong: add none, for a token that was drafted has q(x) > 0"
EPSILON_IN_RESIDUAL = (
    "your residual is off by an epsilon: add none to max(0, p - q), and where its sum is 0, take p in its place"
)

# ------------------------------------------------------------------------------------------------ one draft token

WHOLE = [
    Mistake("on a rejection you count the rejected token as accepted; n_accepted is the number of draft tokens before "
            "it (i, not i + 1)", rule(verdict=lambda s, x: Verdict(min(len(s.accepted) + 1, s.k), x))),
    Mistake("n_accepted is one too small where all draft tokens are accepted; it is their number k, and next_token "
            "the bonus", rule(verdict=lambda s, x: Verdict(min(len(s.accepted), max(0, s.k - 1)), x))),
    Mistake("after a match that failed you drew once more; the draw that did not match is the token to keep",
            rule(accept=lambda s: s.p[s.x], rest=lambda s: s.p), name="drawn again after a mismatch",
            seen="https://github.com/romsto/Speculative-Decoding/blob/HEAD/ngram_assisted/ngram_assisted.py"),
    Mistake("you have p and q swapped, in the ratio (it is upside down) and in the residual: accept with probability "
            "min(1, p / q), replace from max(0, p - q), p the target and q the draft",
            rule(accept=lambda s: s.q[s.x] / s.p[s.x], rest=lambda s: residual(s.q, s.p))),
    Mistake("your verifier draws nothing from rng, and accepts every draft token above a threshold: typical "
            "acceptance, which is LOSSY; accept with probability min(1, p / q)", Typical()),
]  # fmt: skip
ACCEPT = [
    Mistake(PROBABILITIES, [accepts(lambda p, q: softmax(p) / softmax(q)), accepts(lambda p, q: softmax(p) / q),
                            accepts(lambda p, q: np.exp(p - q)), accepts(lambda p, q: p / softmax(q))]),
    Mistake("you never accept a draft token; accept a draft token x with probability min(1, p(x) / q(x))",
            accepts(lambda p, q: 0 * p)),
    Mistake("you accept with the square of the ratio, as two tests of one draft token do; accept with min(1, p / q), "
            "tested once", accepts(lambda p, q: ratio(p, q) ** 2)),
    Mistake("you have the ratio upside down: accept with probability min(1, p / q), p the target and q the draft",
            accepts(lambda p, q: q / p), name="ratio upside down",
            why="Accepts with min(1, q / p): p and q are swapped. Leviathan et al. write p for the target, Chen et "
            "al. q."),
    Mistake("you accept every draft token, whatever the target says; accept a draft token x with probability min(1, "
            "p(x) / q(x))", accepts(lambda p, q: 1 + 0 * p)),
    Mistake("you accept only the target's most probable token; that is right for temperature 0 alone",
            accepts(lambda p, q: one_hot(p.argmax(), p))),
    Mistake("you accept exactly if p(x) >= q(x); if p(x) is less, accept with probability p(x) / q(x)",
            accepts(lambda p, q: p >= q)),
    Mistake("you accept where you should reject, and the other way round: accept if u < p / q",
            accepts(lambda p, q: 1 - ratio(p, q))),
    Mistake("you accept where you should reject, with the ratio upside down: accept with probability min(1, p / q)",
            accepts(lambda p, q: 1 - ratio(q, p))),
    Mistake("you accept a draft token x with the target's probability p(x) alone; divide by the draft's: min(1, p(x) "
            "/ q(x))", accepts(lambda p, q: p)),
    Mistake("you accept a draft token x with the draft's probability q(x); it is min(1, p(x) / q(x))",
            accepts(lambda p, q: q)),
    Mistake("you accept with probability min(p(x), q(x)), which is how often x is drafted and accepted; given that it "
            "is drafted, accept with min(1, p(x) / q(x))", accepts(np.minimum)),
    Mistake("you accept with probability p(x) - q(x); it is the ratio min(1, p(x) / q(x))",
            accepts(lambda p, q: p - q)),
    Mistake("you accept with probability |p(x) - q(x)|; it is the ratio min(1, p(x) / q(x))",
            accepts(lambda p, q: abs(p - q))),
    Mistake("you accept with probability p / (p + q); it is min(1, p / q)", accepts(lambda p, q: p / (p + q))),
    Mistake("you compare a uniform number with log p - log q; take its logarithm as well: log u < log p(x) - log q(x)",
            accepts(lambda p, q: np.log(p / q))),
    Mistake("draft token i is tested against row i of the target; yours is tested against row i + 1 or i - 1",
            rule("accept", accept=lambda s: s.rows[s.child + 1][s.x] / s.q[s.x])),
    Mistake(EPSILON, [accepts(f) for e in EPSILONS for f in (
        lambda p, q, e=e: p / (q + e), lambda p, q, e=e: (p + e) / (q + e), lambda p, q, e=e: p / q + e,
        lambda p, q, e=e: (p + e) / q)]),
]  # fmt: skip
REST = [
    Mistake("a rejected token is replaced by some of the most probable tokens of the residual alone; draw from all of "
            "max(0, p - q), normalised", [replaces(lambda p, q, n=n: most_probable(n, residual(p, q)))
                                          for n in (2, 3, 4, 5, 6)]),
    Mistake("on a rejection you drew from the target; draw from max(0, p - q), normalised", replaces(lambda p, q: p),
            name="residual from the target", why="A rejected token is replaced by a draw from p. But min(p, q) was "
            "accepted already: draw from max(0, p - q).", seen="skip_sample_adjustment in "
            "https://github.com/romsto/Speculative-Decoding/blob/HEAD/sampling/speculative_decoding.py"),
    Mistake("on a rejection you drew from the draft; draw from max(0, p - q), normalised", replaces(lambda p, q: q)),
    Mistake("you drew from |p - q|; the residual keeps only where the target has more: max(0, p - q)",
            replaces(lambda p, q: abs(p - q)), name="residual not clipped",
            why="The residual is |p - q|: it brings back tokens that the draft proposes too often."),
    Mistake("your residual is the wrong way round; it is max(0, p - q), p the target and q the draft",
            replaces(lambda p, q: excess(q, p)), name="residual upside down", why="The residual is max(0, q - p): p "
            "and q are swapped. Leviathan et al. write p for the target, Chen et al. q."),
    Mistake("you took the most probable token of the residual or of the target; draw from max(0, p - q), normalised",
            [replaces(lambda p, q: one_hot((p - q).argmax(), p)), replaces(lambda p, q: one_hot(p.argmax(), p))]),
    Mistake("the rejected token is returned anyway; draw from max(0, p - q), normalised",
            rule("rest", rest=lambda s: one_hot(s.x, s.p))),
    Mistake("you drew from the target without the rejected token, which is right for a one-hot draft alone; draw from "
            "max(0, p - q), normalised", rule("rest", rest=lambda s: s.p * (1 - one_hot(s.x, s.p)))),
    Mistake("you drew from min(p, q), what is accepted already; draw from what is missing, max(0, p - q), normalised",
            replaces(np.minimum)),
    Mistake("on a rejection you drew from all tokens with equal probability; draw from max(0, p - q), normalised",
            replaces(lambda p, q: 0 * p + 1)),
    Mistake(NORMALISE, [rule("rest", rest=lambda s: excess(s.p, s.q), draw=only("rest", draw)) for draw in (
        lambda w, s: min(int(np.searchsorted(np.cumsum(w), s.rng.random(), side="right")), len(w) - 1),
        lambda w, s: int(np.argmax(np.cumsum(w) > s.rng.random())))]),
    Mistake(NEW_NUMBERS, [rule("rest", rest=f, draw=only("rest", new_number_each)) for f in (
        lambda s: residual(s.p, s.q), lambda s: excess(s.p, s.q))]),
    Mistake("the residual of draft token i is of row i of target and draft; yours takes the target's row after it, i "
            "+ 1", rule("rest", rest=lambda s: excess(s.rows[s.child + 1], s.q))),
    Mistake("on a rejection you drew from the target's last row; draw from max(0, p - q) of row i",
            rule("rest", rest=lambda s: s.rows[-1])),
    Mistake("you drew with equal probability from all tokens with p > q; their weights are max(0, p - q)",
            replaces(lambda p, q: p > q)),
    Mistake("you drew from p / q; the residual is the difference max(0, p - q), normalised",
            replaces(lambda p, q: p / q)),
    Mistake("you drew from p where it is more than q; the residual is the difference max(0, p - q), normalised",
            replaces(lambda p, q: np.where(p > q, p, 0))),
    Mistake(PROBABILITIES, replaces(lambda p, q: softmax(p))),
    Mistake("you put a softmax over the residual; divide max(0, p - q) by its sum: these are probabilities, not logits",
            replaces(lambda p, q: softmax(excess(p, q))), name="softmax of the residual",
            seen="https://github.com/huggingface/transformers/pull/28508 (before it)"),
    Mistake("you put a softmax over p - q; the residual is max(0, p - q), divided by its sum",
            replaces(lambda p, q: softmax(p - q))),
    Mistake("what replaces a rejected token is not drawn from max(0, p - q), normalised, of the p and q tested with: "
            "the temperature is applied to them a second time",
            [replaces(lambda p, q, t=t: residual(p**t / (p**t).sum(), q**t / (q**t).sum())) for t in (2, 0.5, 1 / 0.7)],
            name="temperature twice", seen="https://github.com/OptimalScale/LMFlow/issues/920 (a second time to all "
            "rows)"),
    Mistake("the uniform number that rejected the draft token also draws its replacement: draw a new one",
            rule("rest", draw=only("rest", with_the_same_number))),
    Mistake(EPSILON_IN_RESIDUAL, [replaces(lambda p, q, e=e: excess(p, q) + e) for e in EPSILONS],
            name="epsilon in the residual", why="1e-8 is added against a division by zero, so tokens of residual 0 "
            "are drawn. If the mass is 0, take p."),
    Mistake("your residual subtracts the probabilities of different tokens: max(0, p - q) goes by token id, not by "
            "place in two lists that leave out the tokens of probability 0", replaces(lambda p, q: by_place(p, q)),
            name="residual by place in a list", options={"way": "the most likely", "kind": "trees"},
            seen="https://github.com/ggml-org/llama.cpp/blob/HEAD/examples/speculative/speculative.cpp"),
]  # fmt: skip


def by_place(p, q):
    kept, drafted = np.flatnonzero(p), np.flatnonzero(q)[: np.count_nonzero(p)]
    rest = p.copy()
    rest[kept[: len(drafted)]] -= q[drafted]  # pairs the i-th entry of one list with the i-th of the other
    rest = np.maximum(rest, 0)
    return rest / rest.sum() if rest.any() else p


BONUS = [
    Mistake("the bonus is drawn from some of the most probable tokens of the target's last row: draw from the row as "
            "it is, after temperature, top-k and top-p",
            [bonus(lambda s, n=n: most_probable(n, s.row)) for n in (2, 3, 4, 5, 6)]),
    Mistake("you took the most probable token as the bonus; draw it from the target's last row",
            [bonus(lambda s: one_hot(s.row.argmax(), s.row), always=a) for a in (False, True)], name="bonus by argmax",
            seen="https://github.com/shreyansh26/Speculative-Decoding/blob/HEAD/common/verification.py"),
    Mistake("you drew the bonus from the draft; draw it from the target's last row", bonus(lambda s: s.q),
            name="bonus from the draft"),
    Mistake("you drew the bonus from the row of the last draft token; the row after all draft tokens is "
            "target_probs[k]",
            bonus(lambda s: s.rows[s.draft.parents[s.node] + 1]), name="bonus from the row before",
            why="If all draft tokens pass, the bonus is drawn from the row of the last one. Row j predicts token j + "
            "1."),
    Mistake("where all draft tokens are accepted you return the last draft token once more; draw a bonus from the "
            "target's last row", bonus(lambda s: one_hot(s.x, s.row))),
    Mistake(PROBABILITIES, bonus(lambda s: softmax(s.row))),
    Mistake("you drew the bonus from all tokens with equal probability; draw it from the target's last row",
            bonus(lambda s: 0 * s.row + 1)),
    Mistake(NEW_NUMBERS, rule("bonus", draw=only("bonus", new_number_each))),
    Mistake("you drew the bonus from the residual; where all draft tokens are accepted it is the target's last row as "
            "it is", bonus(lambda s: excess(s.rows[s.draft.parents[s.node] + 1], s.q))),
    Mistake("you drew the bonus from a residual; the target's last row has no draft: draw from it as it is",
            bonus(lambda s: excess(s.row, s.q))),
    Mistake("the uniform number that decided on the draft token also draws the bonus: draw a new one",
            rule("bonus", draw=only("bonus", with_the_same_number))),
]  # fmt: skip

# ------------------------------------------------------------------------------------------------ several draft tokens


def goes_on(counts):
    """Also tests draft tokens after a rejected one; `counts` turns the list of passes (bool) into a number to keep."""

    def verifier(draft, rows, rng):
        passed = [rng.random() * q[x] < p[x] for x, p, q in zip(draft.tokens, rows, draft.probs)]
        n = counts(passed)
        return Verdict(n, sample_token(rows[n] if n == len(passed) else residual(rows[n], draft.probs[n]), rng))

    verifier.part = "accept"
    return verifier


def all_or_none(draft, rows, rng):
    verdict = rejection(draft, rows, rng)
    all_of_them = verdict.n_accepted == len(draft.tokens)
    return verdict if all_of_them else Verdict(0, sample_token(residual(rows[0], draft.probs[0]), rng))


all_or_none.part = "accept"


def of_the_first_row(s):
    return s.rows[0][s.x] / s.draft.probs[0][s.x]


def up_to_here(s):
    return np.prod([s.rows[i, x] / s.draft.probs[i, x] for i, x in enumerate(s.draft.tokens[: s.child + 1])])


def before(s):
    return s.draft.probs[max(s.child - 1, 0)]


SEVERAL = [
    Mistake("later draft tokens are accepted without a test: each one is tested, with min(1, p / q) of its own row",
            [rule("accept", test=lambda s, share, n=n: len(s.accepted) >= n or s.u < share) for n in (1, 2, 3)]),
    Mistake("one uniform number decides on several draft tokens; draw a new one for each",
            rule("accept", number=first_number), name="one uniform for all draft tokens",
            seen="https://github.com/feifeibear/LLMSpeculativeSampling/pull/19"),
    Mistake("right for K = 1 alone: draft token i is tested against row i of the target, not always against the first",
            [rule("accept", accept=of_the_first_row),
             rule(accept=of_the_first_row, rest=lambda s: residual(s.rows[0], s.draft.probs[s.child])),
             rule(accept=lambda s: s.rows[0][s.x] / s.q[s.x], rest=lambda s: residual(s.rows[0], s.q))],
            name="the first row for all"),
    Mistake("right for K = 1, but later draft tokens are tested with the draft's row before their own: draft token i "
            "has row i",
            [rule("accept", accept=lambda s: s.p[s.x] / before(s)[s.x]), rule(row=before)]),
    Mistake("you count all draft tokens that pass; the first rejection ends the round, and what was drafted after it "
            "is dropped", goes_on(sum)),
    Mistake("you keep draft tokens after a rejected one; the first rejection ends the round, and those after it are "
            "dropped", goes_on(lambda passed: max((i + 1 for i, one in enumerate(passed) if one), default=0))),
    Mistake("you accept all draft tokens or none; keep those before the first rejection, tested one by one",
            all_or_none),
    Mistake("each draft token is tested with its own ratio p / q; yours is tested with the product of the ratios up "
            "to it",
            rule("accept", accept=up_to_here)),
    Mistake("right for K = 1, but the bonus is not drawn from target_probs[k], the row after all k draft tokens",
            bonus(lambda s: s.rows[min(1, s.k)])),
    Mistake("your residual adds up all rows of the draft; take row i alone, that of the rejected token", [
        rule("rest", rest=lambda s: excess(s.rows[:-1], s.draft.probs).sum(axis=0)),
        rule("rest", rest=lambda s: sum(residual(*both) for both in zip(s.rows, s.draft.probs))),
        rule("rest", rest=lambda s: np.maximum((s.rows[:-1] - s.draft.probs).sum(axis=0), 0))]),
    Mistake("your residual is always that of the first row; take row i of target and draft, that of the rejected token",
            rule("rest", rest=lambda s: excess(s.rows[0], s.draft.probs[0]))),
    Mistake("your residual is that of the last drafted row; take row i of target and draft, that of the rejected token",
            rule("rest", rest=lambda s: excess(s.rows[-2], s.draft.probs[-1]))),
]  # fmt: skip


def block(
    *, ratio=lambda before, now: min(1.0, before * now), passes=lambda S, p_hat: S / (S + 1 - p_hat), row=0,
    numbers="new", certain=True, keeps="the longest", left=lambda p_hats, n: p_hats[n], subtracted=lambda n: n,
):  # fmt: skip
    """Block verification (arXiv:2403.10444, algorithm 2), with a part of it replaced.

    p-hat_i = min(1, p-hat_(i-1) p / q) is the ratio of the first i draft tokens. For i < K they pass with probability
    h_i = S / (S + 1 - p-hat_i), where S is the sum of max(0, p-hat_i p - q) over the rows after them; all K pass with
    p-hat_K. The longest prefix that passes is kept.
    """

    def verifier(draft, rows, rng):
        k, p_hats, passed, u = len(draft.tokens), [1.0], [0], rng.random()
        for i, x in enumerate(draft.tokens, 1):
            p_hats.append(ratio(p_hats[-1], rows[i - 1, x] / draft.probs[i - 1, x]))
            h = min(p_hats[i], 1.0) if certain else p_hats[i]
            if i < k and (h < 1 or not certain):  # where p-hat is 1, prefix i passes
                at = min(max(i + row, 0), k - 1)
                h = passes(np.maximum(h * rows[at] - draft.probs[at], 0).sum(), h)
            if (u if numbers == "one" else rng.random()) < h:
                passed.append(i)
                if keeps == "the first":
                    break
            elif keeps == "until one fails":
                break
        n = passed[-1]
        weights = rows[k] if n == k else residual(left(p_hats, n) * rows[n], draft.probs[subtracted(n)])
        return Verdict(n, sample_token(weights, rng))

    verifier.part = "all"
    return verifier


BLOCK_S = "in block verification prefix i passes with S / (S + 1 - p-hat); yours "
BLOCK_ROWS = (
    "in block verification S is the sum of max(0, p-hat p - q) over the rows after prefix i, target_probs[i] and "
    "draft.probs[i]; yours takes "
)
BLOCK_REST = "after block verification the residual is max(0, p-hat p - q), with the "
BLOCK = [
    Mistake("block verification keeps the longest prefix that passes; do not stop at the first that does not",
            block(keeps="until one fails"), name="block, stopped at the first failure",
            seen="https://github.com/vllm-project/vllm-ascend/pull/11985 (asked for in its review)"),
    Mistake("block verification keeps the longest prefix that passes; yours stops at the first that does",
            block(keeps="the first")),
    Mistake("block verification caps the ratio of the whole prefix at 1, in each step",
            [block(ratio=lambda a, b: a * b), block(ratio=lambda a, b: a * b, certain=False)],
            name="block, ratio not held at 1"),
    Mistake("in block verification p-hat is the ratio of the whole prefix, min(1, p-hat p / q) with the p-hat of the "
            "step before; yours is the ratio of one draft token", block(ratio=lambda before, now: min(1.0, now))),
    Mistake("in block verification each prefix is tested with a uniform number of its own; yours has one for all",
            block(numbers="one")),
    *(Mistake(hint, [block(passes=f, certain=c) for c in (True, False)]) for hint, f in (
        (BLOCK_S + "leaves out - p-hat, S / (S + 1)", lambda S, p_hat: S / (S + 1)),
        (BLOCK_S + "passes with S alone", lambda S, p_hat: S),
        ("in block verification prefix i passes with S / (S + 1 - p-hat) where i < K; with p-hat only where i = K",
         lambda S, p_hat: p_hat))),
    Mistake(BLOCK_ROWS + "those before its last token", block(row=-1)),
    Mistake(BLOCK_ROWS + "later ones", block(row=1)),
    Mistake(BLOCK_REST + "ratio p-hat of what is kept", block(left=lambda p_hats, n: 1.0), name="block, plain residual",
            seen="https://github.com/vllm-project/vllm-ascend/issues/7807"),
    Mistake(BLOCK_REST + "p-hat of the kept prefix; yours takes that of the whole draft",
            block(left=lambda p_hats, n: p_hats[-1])),
    Mistake(BLOCK_REST + "p-hat of the kept prefix; yours takes that of one draft token more",
            block(left=lambda p_hats, n: p_hats[n + 1])),
    Mistake("after block verification the residual is of the rows after the kept prefix; yours subtracts the last row "
            "of the draft", block(subtracted=lambda n: -1)),
]  # fmt: skip

# ------------------------------------------------------------------------------------------------ trees


def first_row(s):
    return s.draft.probs[s.below[0]]


def first_row_without_elder(s):
    row = first_row(s).copy()
    row[s.draft.tokens[s.below[: s.i]]] = 0
    return row / row.sum() if row.any() else s.own


def mean_row(s):
    return s.draft.probs[s.below].mean(axis=0)


def not_normalised(s):
    return excess(s.p, s.q) if (s.p > s.q).any() else s.p


def skips_duplicates(s, nodes):
    first = {int(s.draft.tokens[node]): node for node in reversed(nodes)}
    return [node for node in nodes if node == first[int(s.draft.tokens[node])]]


def sorted_by(value):
    return rule("accept", order=lambda s, nodes: sorted(nodes, key=lambda node: value(s, node, s.draft.tokens[node])))


def last_of_all(f, before=lambda s: residual(s.p, s.q), part="rest", **parts):
    """f(s) replaces p at the last of several siblings."""

    def rest(s):
        if 0 < s.i == len(s.below) - 1:
            return f(s)
        return before(s) if s.below[1:] else residual(s.p, s.q)

    return rule(part, rest=rest, **parts)


def walk(part="all"):
    """A verifier of trees from choose(p, children, rng) -> (accepted child or None, row of the next token)."""

    def decorate(choose):
        def verifier(draft, rows, rng):
            node, accepted = -1, []
            while True:
                children = [(child, draft.tokens[child], draft.probs[child]) for child in draft.children(node)]
                node, row = choose(rows[node + 1], children, rng)
                if node is None:
                    return Verdict(accepted, sample_token(row, rng))
                accepted.append(node)

        verifier.part = part
        return verifier

    return decorate


@walk()
def running_sum(p, children, rng):
    u, total, rest = rng.random(), 0.0, p.copy()
    for node, x, _ in children:
        total += p[x]
        if u < total:
            return node, None
        rest[x] = 0
    return None, rest if rest.any() else p


def k_seq(divisor):
    @walk()
    def verifier(p, children, rng):
        if not children:
            return None, p
        q, k = children[0][2], len(children)
        rho = divisor(p, q, k)
        for node, x, _ in children:
            if rng.random() * rho * q[x] < p[x]:
                return node, None
        kept = np.minimum(p / rho, q)
        missed = 1 - (1 - kept.sum()) ** k
        rest = np.maximum(p - kept * missed / kept.sum(), 0) if kept.any() else p
        return None, rest if rest.any() else p

    return verifier


def paths_apart(draft, rows, rng):
    def paths(node):
        below = draft.children(node)
        return [[child, *rest] for child in below for rest in paths(child)] if below else [[]]

    best = None
    for path in paths(-1):
        verdict = rejection(Draft(draft.tokens[path], draft.probs[path]), rows[[0, *(node + 1 for node in path)]], rng)
        if best is None or verdict.n_accepted > len(best[0]):
            best = path[: verdict.n_accepted], verdict.next_token
    return Verdict(*best)


def traversal_with_stale_share(draft, rows, rng):
    def visit(node, share, above):
        p, mass = rows[node + 1], None
        for child in draft.children(node):
            x, q = draft.tokens[child], draft.probs[child]
            if found := visit(child, min(share * p[x] / q[x], 1.0), (*above, child)):
                return found
            mass, p = np.maximum(share * p - q, 0).sum(), residual(share * p, q)
        if mass is not None and share < 1:
            share = mass / (mass + 1 - share)
        return (above, p) if node < 0 or rng.random() < share else None

    accepted, p = visit(-1, 1.0, ())
    return Verdict(accepted, sample_token(p / p.sum(), rng))


def leaves_an_accepted_node(decisions):
    """Whether the second sibling's path is taken where the first is always accepted (the probes of trees)."""
    taken = [nodes for nodes, _ in decisions[3] if nodes[:1] == (2,)]
    return {nodes for nodes, _ in decisions[2]} == {(0,)} and bool(taken) and min(map(len, taken)) > 1


I_I_D, DISTINCT, RANKED = "drawn independently", "drawn without replacement", "the most likely"
MATCH = {"accept": lambda s: s.row[s.x], "rest": lambda s: s.row}
NOT_NORMALISED = (
    "the residual is not renormalised before the next sibling is tested: max(0, p - q) divided by its sum takes p's "
    "place"
)
TREES = [
    Mistake("in a tree a verdict says which draft tokens are accepted: Verdict(nodes, next_token); yours only says "
            "how many",
            rule(verdict=lambda s, x: Verdict(len(s.accepted), x))),
    Mistake("each path is verified on its own and the longest is kept; walk down one tree instead: once a node is "
            "accepted, its siblings are out, and a sibling is tested only after its elder ones were rejected",
            paths_apart,
            name="best of several chains", options={"way": I_I_D}, tell=leaves_an_accepted_node),
    Mistake("right for chains, but a node of a tree is tested against the target's row of another node at its depth: "
            "the row after node i is target_probs[i + 1], not target_probs[its depth + 1]",
            rule(own_row=lambda s: s.rows[len(s.accepted)])),
    Mistake("siblings are tested in a different order than they were drawn in (sorted by q?); their order is part of "
            "the distribution: row j is that of sibling j given the siblings before it",
            [sorted_by(value) for value in (
                lambda s, node, x: -node, lambda s, node, x: -s.draft.probs[node][x],
                lambda s, node, x: s.draft.probs[node][x], lambda s, node, x: -s.row[x], lambda s, node, x: s.row[x])]),
    Mistake("you draw the target's own token for each sibling again, so each has a new chance to match; draw it once "
            "for all of them, and keep it as the next token if none is equal", rule("accept", **MATCH),
            name="the target's draw for every sibling", options={"way": RANKED, "said": "after a match that failed"},
            seen="get_nucleus_posterior_mask in "
            "https://github.com/FasterDecoding/Medusa/blob/HEAD/medusa/model/utils.py"),
    Mistake("siblings with the same token are counted twice in the running sum of p; a token can be matched only "
            "once: skip the second, or draw the target's own token and compare", running_sum,
            name="duplicates counted twice", options={"way": I_I_D}),
    Mistake("right for siblings drawn independently from one row (this is k-SEQ), but not for others: drawn without "
            "replacement or deterministic ones need a different rule, p replaced by its residual after each rejection",
            k_seq(k_seq_divisor), name="k-SEQ on draws without replacement", options={"way": DISTINCT}),
    Mistake("k-SEQ with rho = 1: the residual becomes negative, and too little is left for the tokens rejected; rho "
            "solves 1 - (1 - b)^k = rho b, with b = sum min(p / rho, q)", k_seq(lambda p, q, k: 1.0),
            name="k-SEQ with rho = 1", options={"way": I_I_D}),
    Mistake("every sibling is tested against the row of the first; each has a row of its own in draft.probs, its "
            "distribution given the siblings before it (drawn without replacement: q without them, renormalised)",
            rule("accept", row=first_row), name="unchanged q for every sibling", options={"way": DISTINCT}),
    Mistake("every sibling is tested against the row of the first without the tokens before it, which is right for "
            "draws without replacement alone: each has a row of its own in draft.probs",
            rule("accept", row=first_row_without_elder)),
    Mistake("every sibling is tested against the mean of their rows: each has a row of its own in draft.probs",
            [rule("accept", row=mean_row),
             last_of_all(lambda s: residual(s.row, s.q), lambda s: s.p, "accept", row=mean_row)]),
    Mistake("every sibling is tested against the target's own row; after each rejection p becomes residual(p, q), "
            "also for the next sibling",
            [last_of_all(lambda s: residual(s.row, first_row(s)), lambda s: s.p, "accept", row=row)
                                 for row in (lambda s: s.own, first_row)],
            name="stale p for siblings", options={"way": I_I_D}, seen="verifyDynamicTreeRejectionKernel in "
            "https://github.com/NVIDIA/TensorRT-LLM/blob/HEAD/cpp/tensorrt_llm/kernels/speculativeDecoding/"
            "dynamicTreeKernels.cu"),
    Mistake(NOT_NORMALISED, [rule("accept", rest=not_normalised, row=row) for row in (lambda s: s.own, first_row)],
            name="residual not renormalised between siblings", options={"way": I_I_D}),
    Mistake("one uniform number decides on all siblings; draw a new one for each",
            rule("accept", number=lambda s: s.u if s.i else s.rng.random()), name="one coin for all siblings",
            options={"way": DISTINCT}),
    Mistake("a child is tested against the row of its parent, target_probs[parent + 1], which all siblings share; "
            "yours takes the row of a different node", [rule("accept", accept=f) for f in (
                lambda s: s.rows[s.child][s.x] / s.q[s.x], lambda s: s.rows[s.child + 1][s.x] / s.q[s.x])]),
    Mistake("a sibling with a token that was rejected already is skipped; it cannot be accepted, but its rejection "
            "counts: p must become the residual once more",
            rule("rest", order=skips_duplicates), name="duplicates skipped",
            options={"way": I_I_D}),
    Mistake("each sibling is tested with its own row, but the residual takes away that of the first",
            rule("rest", rest=lambda s: residual(s.p, first_row(s))), name="residual with the full q",
            options={"way": DISTINCT}),
    Mistake("if all siblings are rejected you draw from the target; draw from the residual that is left of p",
            last_of_all(lambda s: s.row)),
    Mistake("the last rejection is missing in the residual; p becomes residual(p, q) after every rejected sibling",
            last_of_all(lambda s: s.p)),
    Mistake("the residual takes away only the row of the last sibling; it is taken after each rejection",
            last_of_all(lambda s: residual(s.row, s.q))),
    Mistake("the bonus is drawn from the row of the last node; it is the row of the accepted leaf, target_probs[node "
            "+ 1]",
            bonus(lambda s: s.rows[-1]), name="bonus from the last node", options={"way": RANKED}),
    Mistake("the bonus is drawn at a different temperature than its row", bonus(lambda s: np.sqrt(s.row)),
            name="bonus at temperature 1", options={"way": RANKED}, seen="sample_p in "
            "https://github.com/SafeAILab/EAGLE/blob/HEAD/eagle/model/utils.py"),
    Mistake("your verifier draws nothing from rng, and accepts every draft token above a threshold", Typical(),
            name="typical acceptance in a tree", options={"way": RANKED}, why="LOSSY on purpose: draft tokens above a "
            "threshold of p pass, and nothing is drawn.",
            seen="https://github.com/FasterDecoding/Medusa/blob/HEAD/medusa/model/utils.py"),
    Mistake("in traversal verification each rejected child changes its parent's row and its share; yours keeps the "
            "share: it becomes S / (S + 1 - share), with S the sum of max(0, share p - q)", traversal_with_stale_share,
            name="traversal with a stale share", options={"way": I_I_D, "parents": (-1, 0, 0)}),
]  # fmt: skip

for verifier in [wrong for mistake in TREES for wrong in mistake.variants if not isinstance(wrong, Typical)]:
    verifier.trees = True

# ------------------------------------------------------------------------------------------------ seen by other checks


def in_place(s):
    s.p -= s.q
    return np.maximum(s.p, 0, out=s.p)


def cut_at_forbidden(draft, rows, rng):
    forbidden = (i for i, x in enumerate(draft.tokens) if rows[i, x] == 0)
    n = next(forbidden, len(draft.tokens))
    return rejection(Draft(draft.tokens[:n], draft.probs[:n]), rows[: n + 1], rng)


ZERO = "a token of target probability 0 passes where the uniform number is 0: test u < p / q, not u <= p / q"
OTHERWISE = [
    Mistake("your verifier writes to its arguments: work on a copy", rule("", rest=in_place), name="residual in place",
            why="p -= q writes into the target's rows, which others still read. The distribution of this round is "
            "right.",
            seen="https://github.com/NJUNLP/MCSD/issues/5 (a reader's question)"),
    Mistake(ZERO, rule("", test=lambda s, share: s.u <= share), name="accepted at equality", why="u <= p / q: if u is "
            "0, a token of target probability 0 passes. A float32 u is 0 once in 16 million draws.",
            seen="https://github.com/pytorch/pytorch/issues/16706, for which vLLM draws its uniforms in float64; "
            "accept_step in https://github.com/Infini-AI-Lab/Sequoia/blob/HEAD/Tree/SpecInferTree.py (in half "
            "precision)"),
    Mistake("right, but not where the target has a token of probability 0: such a token must never be returned",
            cut_at_forbidden, name="cut at the first forbidden token", options={"kind": "engines"},
            why="The draft is cut at its first token that a mask forbids, and the rest is verified. But that token "
            "was drawn, and rejected: the next one comes from the residual. Right for drafts that are masked, or "
            "greedy.",
            seen="https://github.com/vllm-project/vllm/pull/14702 (for greedy drafts)"),
]  # fmt: skip
CHAINS = [*WHOLE, *ACCEPT, *REST, *BONUS, *SEVERAL, *BLOCK, *OTHERWISE]
