"""The checks in the notebooks: what they say to wrong answers, and that other ways to be right pass."""

import functools
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT

import speculative

nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebooks]'")
pytestmark = pytest.mark.notebooks


def test_merging_strings_is_no_merge_of_symbols(check, solution):
    merge, right = check("01", "check_merge"), solution("01", "merge")
    merge(lambda symbols, pair: tuple(right(symbols, pair)))
    with pytest.raises(AssertionError, match="compare whole symbols"):
        merge(lambda symbols, pair: " ".join(symbols).replace(" ".join(pair), "".join(pair)).split())


def test_top_p_stops_where_the_sum_is_reached(check, solution):
    top_p = check("04", "check_top_p")
    top_p(solution("04", "my_top_p"))

    def one_too_many(probs, top_p):
        order = np.argsort(-probs, kind="stable")
        n = np.searchsorted(np.cumsum(probs[order]), top_p, side="right") + 1
        kept = np.zeros(len(probs))
        kept[order[:n]] = probs[order[:n]]
        return kept / kept.sum()

    with pytest.raises(AssertionError, match="here the first one reaches it"):
        top_p(one_too_many)

    def with_all_ties(probs, top_p):
        kept = np.where(probs >= probs[right(probs, top_p) > 0].min(), probs, 0)
        return kept / kept.sum()

    right = solution("04", "my_top_p")
    with pytest.raises(AssertionError, match="of two equal tokens one stays"):
        top_p(with_all_ties)
    top_p(lambda probs, top_p: right(probs[::-1], top_p)[::-1])  # keeps the other one


def test_probabilities_are_float64(check, solution):
    right = solution("04", "my_probs")
    with pytest.raises(AssertionError, match="float64, whatever the logits are, got float32"):
        check("04", "check_probs")(lambda logits, temperature: right(logits, temperature).astype(np.float32))


def missing(p, q, epsilon=0.0):
    rest = np.maximum(p - q, 0)
    return rest / (rest.sum() + epsilon)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p, q: p if np.allclose(p, q) else missing(p, q), "close to p = q the residual is not p"),
        (lambda p, q: p if (p == q).all() else missing(p, q, 1e-10), "without an epsilon"),
        (lambda p, q: p if (p == q).all() else abs(p - q) / abs(p - q).sum(), "has the surplus in it"),
        (lambda p, q: p if (p == q).all() else missing(q, p), "q - p is the surplus"),
        (missing, "return p where the sum is 0"),
    ],
)
def test_wrong_residuals(answer, message, check, solution):
    residual = check("05", "check_residual", 'words = ["king"')
    residual(solution("05", "my_residual"))
    with pytest.raises(AssertionError, match=message):
        residual(answer)


def test_a_verifier_that_never_accepts_is_exact_and_not_the_rule(check, solution):
    from speculative import Verdict, rejection, sample_token

    verifier = check("05", "check_my_verifier", 'words = ["king"')
    verifier(solution("05", "my_verifier"))
    with pytest.raises(AssertionError, match=r"it keeps 0\.000 on average"):
        verifier(lambda draft, rows, rng: Verdict(0, sample_token(rows[0], rng)))
    with pytest.raises(AssertionError, match="comes with the library"):
        verifier(rejection)


@pytest.mark.parametrize("n", [2, 4])
def test_three_acceptances_are_three(n, check, solution):
    acceptances, right = check("07", "check_acceptances"), solution("07", "acceptances")
    acceptances(lambda p, q: np.array(right(p, q)))
    with pytest.raises(AssertionError, match=f"expected three numbers.* got {n}"):
        acceptances(lambda p, q: [*right(p, q), 0][:n])


# Right answers in another form


def test_arrays_are_token_ids_as_well(check, solution):
    from gpt2np.tokenizer import byte_symbols

    cells = "text = ", "sentence = ", "texts = {", "tokenizer = gpt2np"
    encode, right = check("01", "check_encode_piece", *cells), solution("01", "encode_piece")
    encode(lambda *given: np.array(right(*given)))

    def by_strings(piece, ranks, vocabulary):
        line = " ".join(byte_symbols()[byte] for byte in piece.encode("utf-8"))
        while pairs := [pair for pair in zip(line.split(), line.split()[1:]) if pair in ranks]:
            pair = min(pairs, key=ranks.get)
            line = line.replace(" ".join(pair), "".join(pair))
        return [vocabulary[symbol] for symbol in line.split()]

    with pytest.raises(AssertionError, match="compare whole symbols"):
        encode(by_strings)


# Wrong answers, and what is said to them


def normalised(x, mean, spread, g=1, b=0):
    return g * (x - mean) / spread + b


def deviation(x, eps, axis=-1, **options):
    return np.sqrt(x.var(axis, **options) + eps)


LAYER_NORMS = {
    "shift b is missing": lambda x, g, b, eps: normalised(x, *row_of(x, eps), g),
    "of the whole array": lambda x, g, b, eps: normalised(x, x.mean(), deviation(x, eps, None), g, b),
    "expected the shape|could not be broadcast": lambda x, g, b, eps: normalised(
        x, x.mean(-1), deviation(x, eps), g, b
    ),
    "normalised each column": lambda x, g, b, eps: normalised(x, x.mean(0), deviation(x, eps, 0), g, b),
}


def row_of(x, eps):
    return x.mean(-1, keepdims=True), deviation(x, eps, keepdims=True)


@pytest.mark.parametrize("message", LAYER_NORMS)
def test_wrong_layer_norms(message, check):
    norm = check("02", "check_layer_norm", "model_size =", "n_seq, n_embd, n_head, d_head =", "def explain(")
    with pytest.raises((AssertionError, ValueError), match=message):
        norm(lambda x, g, b, eps=1e-5: LAYER_NORMS[message](x, g, b, eps))


def head_with(scores_of=lambda q, k: q @ k.T, mask=None, root=np.sqrt, axis=-1, bias=1, number=None):
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


HEADS = {
    "masked scores are -inf, not 0": head_with(mask=np.tril),
    "over the keys": head_with(axis=0),
    "bias b is missing": head_with(bias=0),
    "you computed k @ q.T": head_with(scores_of=lambda q, k: k @ q.T),
    "this is head 0": head_with(number=0),
    "not by d_head": head_with(root=lambda d: d),
}


@pytest.mark.parametrize("message", HEADS)
def test_wrong_heads(message, check, solution):
    head = check("02", "check_head", "model_size =", "n_seq, n_embd, n_head, d_head =", "def explain(")
    head(solution("02", "my_head"))
    with pytest.raises(AssertionError, match=message):
        head(HEADS[message])


@pytest.mark.parametrize(("shift", "message"), [(1, "must not see the next one"), (-1, "sees itself, too")])
def test_masks_that_are_off_by_one(shift, message, check, solution):
    from gpt2np.reference import softmax

    attend = check("03", "check_attend")
    attend(solution("03", "attend"))

    def off(q, k, v):
        visible = np.tri(len(q), len(k), len(k) - len(q) + shift, dtype=bool)
        with np.errstate(invalid="ignore"):
            return softmax(np.where(visible, q @ k.T / np.sqrt(q.shape[1]), -np.inf)) @ v

    with pytest.raises(AssertionError, match=message):
        attend(off)


def test_a_cache_that_is_never_truncated(check, solution):
    cells = "target_size", "tokens = tokenizer.encode('The"
    model, right = check("03", "check_cached_model", *cells), solution("03", "CachedModel")
    model(right)

    class Forgetful(right):
        def __init__(self, params, hparams):
            right.__init__(self, params, hparams)
            self.cache.truncate = lambda length: None  # as if the line were missing

        def __call__(self, tokens, n_last=1):
            import gpt2np

            return gpt2np.forward(tokens[self.cache.length :], self.params, self.hparams.n_head, n_last, self.cache)

    with pytest.raises(AssertionError, match="at least one new token"):
        model(Forgetful)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p, q: p @ np.nan_to_num(np.minimum(1, p / q)), "weigh with q, not with p"),
        (lambda p, q: 1 - abs(p - q).sum(), "counts each rejected guess twice"),
        (lambda p, q: float(p @ q), "independent draws"),
    ],
)
def test_wrong_acceptance_probabilities(answer, message, check):
    chance = check("05", "check_chance", 'words = ["king"', "def speculate(")
    with pytest.raises(AssertionError, match=message):
        chance(answer)


def test_an_estimate_is_not_the_probability(check, solution):
    chance, right = (
        check("05", "check_chance", 'words = ["king"', "def speculate("),
        solution("05", "chance_to_be_kept"),
    )
    with pytest.raises(AssertionError, match=r"it is 0\.600000, not 0\.6002"):
        chance(lambda p, q: right(p, q) + 2e-4)


def verifier_with(wrong_count=0, first_rejection=True, source=None):
    """Rejection with one thing changed."""

    def my_verifier(draft, target_probs, rng):
        from speculative import Verdict, residual, sample_token

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


def own_matching(draft, target_probs, rng):
    from speculative import Verdict, sample_token

    for i, token in enumerate(draft.tokens):
        drawn = sample_token(target_probs[i], rng)
        if drawn != token:
            return Verdict(i, drawn)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


def until_accepted(draft, target_probs, rng):
    from speculative import Verdict, sample_token

    for i, x in enumerate(draft.tokens):
        p, q = target_probs[i], draft.probs[i]
        if rng.random() * q[x] >= p[x]:
            while True:
                x = sample_token(q, rng)
                if rng.random() * q[x] < p[x]:
                    return Verdict(i, x)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (verifier_with(wrong_count=1), "counts the rejected|n_accepted"),
        (verifier_with(first_rejection=False), "first rejection"),
        (verifier_with(source=np.random), "np.random|rng"),
        (own_matching, "it keeps 0.* on average"),
        (until_accepted, "endless loop"),
    ],
)
def test_wrong_verifiers(answer, message, check):
    verifier = check("05", "check_my_verifier", 'words = ["king"')
    with pytest.raises(AssertionError, match=message) as found:
        verifier(answer)
    print(str(found.value).splitlines()[0])


def test_a_price_of_another_pass(check, solution):
    best = check("06", "check_best_K")
    best.__globals__["best_K"] = solution("06", "my_best_K")
    best(solution("06", "my_best_K"))

    def one_further(alpha, c, v):
        return max(range(len(v) - 1), key=lambda K: sum(alpha**i for i in range(K + 1)) / (K * c + v[K + 1]))

    with pytest.raises(AssertionError, match=r"K \+ 1 tokens: v\[K\]"):
        best(one_further)

    def one_more_draft(alpha, c, v):
        return max(range(len(v)), key=lambda K: sum(alpha**i for i in range(K + 1)) / ((K + 1) * c + v[K]))

    def one_more_draft_if_any(alpha, c, v):
        return max(range(len(v)), key=lambda K: sum(alpha**i for i in range(K + 1)) / ((K + (K > 0)) * c + v[K]))

    for wrong in (one_more_draft, one_more_draft_if_any):
        with pytest.raises(AssertionError, match=r"drafts K tokens: K \* c|does not pay"):
            best(wrong)


def block_with(guard=True, last_ratio=False):
    """Block verification, without the case p-hat = 1 or with the residual of the last ratio."""

    def my_block(draft, target_probs, rng):
        from speculative import Verdict, residual, sample_token

        k, longest, ratio_there, ratio = len(draft.tokens), 0, 1.0, 1.0
        for i, token in enumerate(draft.tokens, 1):
            ratio = min(1.0, ratio * target_probs[i - 1, token] / draft.probs[i - 1, token])
            passes = ratio
            if i < k and (ratio < 1 or not guard):
                excess = np.maximum(ratio * target_probs[i] - draft.probs[i], 0).sum()
                passes = excess / (excess + 1 - ratio)
            if rng.random() < passes:
                longest, ratio_there = i, ratio
        if longest == k:
            return Verdict(k, sample_token(target_probs[k], rng))
        there = ratio if last_ratio else ratio_there
        return Verdict(longest, sample_token(residual(there * target_probs[longest], draft.probs[longest]), rng))

    return my_block


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (block_with(guard=False), "0 / 0"),
        (block_with(last_ratio=True), "p-hat of the kept prefix"),
    ],
)
def test_wrong_blocks(answer, message, check, solution):
    block = check("08", "check_block", "def expected(rule", "target, tokenizer")
    block(solution("08", "my_block"))
    with pytest.raises(AssertionError, match=message):
        block(answer)


def test_a_rule_that_never_stops(check, solution):
    sure = check("09", "check_sure")
    sure(solution("09", "propose_while_sure"))

    def before_drawing(model, tokens, K, rng, floor=0.3):
        from speculative import Draft, Sampling, sample_token

        tokens, guesses, rows = [int(token) for token in tokens], [], []
        for _ in range(K):
            row = Sampling()(model(tokens))[0]
            if row.max() < floor:
                break
            guess = sample_token(row, rng)
            guesses, rows, tokens = [*guesses, guess], [*rows, row], [*tokens, guess]
        return Draft(np.array(guesses, np.int64), np.reshape(rows, (len(guesses), model.n_vocab)))

    with pytest.raises(AssertionError, match="a rule that looks at it does nothing"):
        sure(before_drawing)


def test_files_with_one_type(check, solution, tmp_path):
    write, right = check("10", "check_write"), solution("10", "write_safetensors")
    write.__globals__["scratch"].cleanup()
    write.__globals__["folder"] = tmp_path
    write(right)
    with pytest.raises(AssertionError, match="write each tensor in its own type"):
        write(lambda path, tensors: right(path, {name: a.astype(np.float32) for name, a in tensors.items()}))


def test_a_checksum_is_not_negative(check, solution):
    crc, right = check("10", "check_crc"), solution("10", "my_crc32c")
    crc.__globals__["scratch"].cleanup()
    crc.__globals__["index"] = b"any bytes"
    crc(right)
    with pytest.raises(AssertionError, match="negative"):
        crc(lambda data: ~(right(data) ^ 0xFFFFFFFF))


def block_of(**changes):
    """A block with one thing changed."""
    from gpt2np.reference import attention, layer_norm, mlp

    def my_block(x, params, n_head):
        after = x + attention(layer_norm(x, **params["ln_1"]), **params["attn"], n_head=n_head)
        read = after if changes.get("unnormalised") else layer_norm(after, **params[changes.get("ln", "ln_2")])
        if changes.get("early"):
            read = layer_norm(x, **params["ln_2"])
        result = mlp(read, **params["mlp"])
        return result if changes.get("replaced") else after if changes.get("attention_alone") else after + result

    return my_block


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replaced": True}, "MLP's result is added"),
        ({"attention_alone": True}, "the MLP comes after it"),
        ({"early": True}, "after attention was added"),
        ({"unnormalised": True}, "reads the normalised stream: ln_2"),
        ({"ln": "ln_1"}, "not ln_1"),
    ],
)
def test_wrong_blocks_of_a_transformer(changes, message, check, solution):
    whole = check("02", "check_whole_block", "model_size =", "def explain(")
    whole(solution("02", "my_block"))
    with pytest.raises(AssertionError, match=message):
        whole(block_of(**changes))


def sampler_with(rest=1, bonus=True):
    """The loop with one thing changed."""

    class MySampler:
        def __init__(self, target, drafter, K=4, sampling=None):
            from speculative import Sampling

            self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling or Sampling()

        def generate(self, prompt, n_tokens, rng):
            from speculative import rejection

            tokens, n_end = list(prompt), len(prompt) + n_tokens
            while len(tokens) < n_end:
                k = max(0, min(self.K, n_end - len(tokens) - rest, self.target.n_ctx - len(tokens) - 1))
                draft = self.drafter.propose(list(tokens), k, rng)
                extended = [*tokens, *draft.tokens.tolist()]
                logits = self.target(extended, n_last=len(draft.tokens) + 1)
                verdict = rejection(draft, self.sampling(logits, extended), rng)
                tokens += draft.tokens[: verdict.n_accepted].tolist()
                if bonus or verdict.n_accepted < len(draft.tokens) or not k:
                    tokens.append(verdict.next_token)
            return tokens[len(prompt) :]

    return MySampler


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"rest": 0}, "returns 3 tokens where 2 were asked for"), ({"bonus": False}, "calls of the target for 9 tokens")],
)
def test_wrong_loops(changes, message, check, solution):
    cells = 'words = ["king"', "small_target = TableModel.random", "as_it_is, greedy ="
    loop = check("05", "check_my_sampler", *cells)
    loop(solution("05", "MySampler"))
    with pytest.raises(AssertionError, match=message):
        loop(sampler_with(**changes))


def answered_by_the_library():
    import gpt2np.files.crc32c
    import gpt2np.reference
    import gpt2np.tokenizer
    import speculative.theory

    return [
        ("01", "check_merge", gpt2np.tokenizer.merge_pair),
        ("01", "check_stream", gpt2np.StreamDecoder),
        ("02", "check_layer_norm", gpt2np.reference.layer_norm),
        ("02", "check_head", lambda x, w, b, head, n_head: gpt2np.reference.attention(x, w, b, n_head)),
        ("02", "check_whole_block", gpt2np.reference.block),
        ("04", "check_probs", lambda logits, temperature: speculative.Sampling(temperature)(logits[None])[0]),
        ("04", "check_draw", speculative.sample_token),
        ("05", "check_residual", speculative.residual),
        ("05", "check_my_verifier", lambda *given: speculative.rejection(*given)),
        ("06", "check_expected_tokens", speculative.theory.expected_tokens),
        ("06", "check_best_K", lambda *given: speculative.theory.best_K(*given)),
        ("08", "check_block", lambda *given: speculative.block(*given)),
        ("10", "check_crc", gpt2np.files.crc32c.crc32c),
    ]


@pytest.mark.parametrize(("number", "name", "answer"), answered_by_the_library(), ids=lambda one: str(one)[:20])
def test_the_library_is_no_answer(number, name, answer, check):
    grade = check(number, name)
    if "scratch" in grade.__globals__:
        grade.__globals__["scratch"].cleanup()
    with pytest.raises(AssertionError, match=r"comes with the library|the library's"):
        grade(answer)


def at_least(n, k, share):
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))


def test_small_sample_sizes_keep_both_promises(check):
    """In the museum: one false alarm in 1,000, nine of ten mistakes found, with as few texts as possible."""
    n_needed = check("09", "n_needed", "target_size, draft_size =", "exhibit = EXHIBITS", "def distribution_of(make)")

    def found(n, a, b):
        k = next((k for k in range(n + 1) if at_least(n, k, a) <= 1 / 1000), n + 1)
        return at_least(n, k, b)

    for a, b in (0.5, 0.97), (0.3, 0.6), (0.1, 0.5), (0.4, 1.0):
        n = n_needed(np.array([a, 1 - a]), np.array([b, 1 - b]))
        assert found(n, a, b) >= 0.9 and max(found(m, a, b) for m in range(1, n)) < 0.9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            r"self.followers\[int\(token\)\] = (.*)",
            r"self.followers.setdefault(int(token), \1)",
            "the latest row of a token",
        ),
        (r"(zip\(tokens\[len\(tokens\) - n_last :\], logits\))", r"reversed(list(\1))", "the latest row of a token"),
        (r"parents.append\(above\)", "parents.append(parent)", "the parents count the nodes that are there"),
    ],
)
def test_wrong_recyclers(old, new, message, check):
    source = next((ROOT / "notebooks" / "solutions").glob("12_*.py")).read_text(encoding="utf-8")
    grade = check("12", "check_recycler")
    exec(re.sub(old, new, source), names := {})
    assert re.sub(old, new, source) != source
    with pytest.raises(AssertionError, match=message):
        grade(names["Recycler"])


def softmax_by(change):
    def wrong(logits, temperature):
        if temperature == 0:
            return np.eye(len(logits))[logits.argmax()]
        return change(logits.astype(np.float64), temperature)

    return wrong


def normalised_exp(z):
    return np.exp(z) / np.exp(z).sum()


def in_float32(z, T):
    e = np.exp(((z - z.max()) / T).astype(np.float32))
    return (e / e.sum()).astype(np.float64)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (softmax_by(lambda z, T: normalised_exp(z / T - z.max())), "subtract the largest logit, then divide by"),
        (
            softmax_by(lambda z, T: normalised_exp((z - max(0, z.max())) / T)),
            r"exp\(-1000\) is 0: subtract",
        ),
        (softmax_by(lambda z, T: normalised_exp((z - z.max()) / min(T, 1))), "above 1 it flattens"),
        (softmax_by(in_float32), "make the logits float64 before anything else"),
    ],
)
def test_softmaxes_that_are_wrong_only_at_times(check, wrong, message):
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=message):
        check("04", "check_probs")(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda d, p, q: np.where(q > 0, d, 0), "a token with q = 0 is missing altogether: all of p"),
        (lambda d, p, q: d if d.sum() > 1e-7 else p, "only where nothing at all is missing"),
        (lambda d, p, q: d.astype(np.float32), "off by .e-.*: compute in float64"),
        (lambda d, p, q: None, "is a return missing"),
    ],
)
def test_residuals_that_are_wrong_only_at_times(check, wrong, message):
    def mine(p, q):
        d = wrong(np.maximum(p - q, 0), p, q)
        if d is None or not d.any():
            return d if d is None else p
        return d / d.sum()

    with pytest.raises(AssertionError, match=message):
        check("05", "check_residual", 'words = ["king"')(mine)


def sampler_changed(change, solution):
    right = solution("05", "MySampler")

    class Wrong(right):
        def generate(self, prompt, n_tokens, rng):
            return change(super().generate, prompt, n_tokens, rng)

    return Wrong


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda generate, prompt, n, rng: [*prompt, *generate(prompt, n, rng)], "prompt"),
        (lambda generate, prompt, n, rng: [generate(prompt, n, rng), None][1], "return"),
        (lambda generate, prompt, n, rng: [prompt.append(0), generate(prompt, n, rng)][1], "writes to its arguments"),
    ],
)
def test_the_sampler_is_told_what_the_grader_would_tell_it(check, solution, change, message):
    cells = 'words = ["king"', "small_target = TableModel.random", "as_it_is, greedy ="
    with pytest.raises(AssertionError, match=message):
        check("05", "check_my_sampler", *cells)(sampler_changed(change, solution))


def test_three_candidates_are_different(check):
    def without_the_last(q, k, rng):
        found, row = [], q
        for _ in range(min(k, np.count_nonzero(q))):
            x = int(rng.choice(len(q), p=row))
            found.append((x, row))
            row = np.where(np.arange(len(q)) == x, 0, q)
            row = row / row.sum() if row.any() else row
        return found

    with pytest.raises(AssertionError, match="of three candidates two are the same"):
        check("11", "check_without_replacement", "def distribution_and_acceptance", "words = ")(without_the_last)


def attend_by(scores_to_weights):
    def attend(q, k, v):
        seen = np.tri(len(k), dtype=bool)[-len(q) :]
        return scores_to_weights(q @ k.T / math.sqrt(k.shape[1]), seen) @ v

    return attend


def overflowing(scores, seen):
    e = np.where(seen, np.exp(scores), 0)
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))


def largest_of_all(scores, seen):
    e = np.where(seen, np.exp(scores - scores.max()), 0)
    return e / e.sum(axis=-1, keepdims=True)


def largest_before_the_mask(scores, seen):
    e = np.where(seen, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0)
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("weights", [overflowing, largest_of_all, largest_before_the_mask])
def test_attention_that_overflows(check, weights):
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="exp overflows: subtract from each row of"):
        check("03", "check_attend")(attend_by(weights))


def test_a_cached_function_is_a_function(check):
    @functools.cache
    def expected(a, K):
        return 1 if K == 0 else 1 + a * expected(a, K - 1)

    check("06", "check_expected_tokens")(expected)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (lambda a, K: sum(a**i for i in range(K)) or 1, "not the cost, .* own token is missing"),
        (lambda a, K: 1 + K * a, "not the cost, .* never tested"),
    ],
)
def test_a_wrong_number_of_tokens_is_no_wrong_cost(check, tokens, message):
    with pytest.raises(AssertionError, match=message):
        check("06", "check_best_K")(lambda a, c, v: max(range(len(v)), key=lambda K: tokens(a, K) / (v[K] + K * c)))


def test_a_draft_of_one_guess_does_stop_early(check):
    def one(model, tokens, K, rng):
        return speculative.ModelDrafter(model).propose(tokens, min(K, 1), rng)

    with pytest.raises(AssertionError, match="always stops after the first guess"):
        check("09", "check_sure")(one)


def test_an_exhibit_that_needs_many_texts_is_not_simulated(cells_of, capsys):
    [cell] = [cell for cell in cells_of("09") if "def n_needed(" in cell]
    one, other = np.array([0.5, 0.5]), np.array([0.5 + 1e-9, 0.5 - 1e-9])
    names = {"np": np, "math": math, "itertools": itertools, "exhibit": SimpleNamespace(name="some"), "error": 1e-9}
    exec(cell, {**names, "p_texts": one, "distribution": other})
    assert re.search(r"^some: [\d,]{18,} texts$", capsys.readouterr().out)
