"""The exercises of notebook 02."""

import math
from dataclasses import asdict

import numpy as np

import gpt2np
from checks import drawing, exercise, refuse_library
from gpt2np.files.params import param_shapes
from gpt2np.reference import attention, block, gelu, layer_norm, linear, softmax

EPS = 1e-5


def explain(yours, right, mistakes):
    """AssertionError unless `yours` is `right`, with the name of a known mistake."""
    assert yours is not None, "nothing came back: is a return missing?"
    yours = np.asarray(yours)
    assert yours.shape == right.shape, f"expected the shape {right.shape}, got {yours.shape}"
    if np.allclose(yours, right, 1e-4, 1e-4):
        return
    for hint, wrong in mistakes.items():
        assert not np.allclose(yours, wrong, 1e-4, 1e-4, equal_nan=True), hint
    row = np.flatnonzero(~np.isclose(yours, right, 1e-4, 1e-4).all(axis=-1))[0]
    raise AssertionError(f"row {row} is wrong: expected {right[row].round(3)}, got {yours[row].round(3)}")


@exercise
def exercise_1(fn):
    refuse_library(fn, "layer_norm")
    rng = drawing(0)
    x, g, b = rng.normal(2, 3, (4, 5)).astype(np.float32), *rng.normal(1, 0.5, (2, 5)).astype(np.float32)
    x.setflags(write=False)  # writing to x is an error
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    explain(fn(x, g, b), layer_norm(x, g, b), {
        "you normalised each column; a layer norm takes each token (each row) by itself":
            layer_norm(x.T, 1, 0).T * g + b,
        "divide by the standard deviation, the root of the variance": (x - mean) / (var + EPS) * g + b,
        "the variance is the mean of the squares, over n_embd; you divided by n_embd - 1":
            (x - mean) / x.std(-1, keepdims=True, ddof=1) * g + b,
        "subtract the mean first: this is an RMS norm, which other models have":
            x / np.sqrt((x**2).mean(-1, keepdims=True) + EPS) * g + b,
        "subtract the mean first, and add b: this is an RMS norm, which other models have":
            x / np.sqrt((x**2).mean(-1, keepdims=True) + EPS) * g,
        "scale by g first, then shift by b: g is not for the shift": (layer_norm(x, 1, 0) + b) * g,
        "the learned scale g and shift b are missing": layer_norm(x, 1, 0),
        "the learned shift b is missing": layer_norm(x, g, 0),
        "the learned scale g is missing": layer_norm(x, 1, b),
        "you took the mean and the variance of the whole array; take those of each row":
            (x - x.mean()) / np.sqrt(x.var() + EPS) * g + b,
        "the mean is subtracted; the division by the standard deviation is missing": (x - mean) * g + b,
        "the length of a row is not its standard deviation: that is the root of the mean of the squares":
            (x - mean) / np.linalg.norm(x - mean, axis=-1, keepdims=True) * g + b,
    })  # fmt: skip
    with np.errstate(all="ignore"):
        equal = fn(np.ones((2, 5), np.float32), g, b)
    assert np.isfinite(equal).all(), "a row of equal numbers has variance 0: eps keeps it from 0 / 0"
    small = x / 1000  # with a variance of about eps
    explain(fn(small, g, b), layer_norm(small, g, b), {
        "eps is added to the variance, under the root":
            (x - mean) / (x.std(-1, keepdims=True) + 1000 * EPS) * g + b,
    })  # fmt: skip
    far = x + np.float32(5000)
    hint = "mean(x²) - mean(x)² loses its digits where the mean is large: subtract the mean first"
    assert np.allclose(fn(far, g, b), layer_norm(far, g, b), atol=0.01), hint
    return "right: each row by itself, divided by the root of variance + eps"


@exercise
def exercise_2(fn, n_seq=5, n_head=3, d_head=4):
    refuse_library(fn, "attention", "block")
    rng, n_embd = drawing(1), n_head * d_head
    x, w, b = (rng.standard_normal(shape).astype(np.float32)
               for shape in ((n_seq, n_embd), (n_embd, 3 * n_embd), 3 * n_embd))  # fmt: skip
    qkv = x @ w + b
    q, k, v = qkv.reshape(n_seq, 3, n_head, d_head).transpose(1, 2, 0, 3)
    q0, k0, v0 = (x @ w).reshape(n_seq, 3, n_head, d_head).transpose(1, 2, 0, 3)
    scores, root = q @ k.transpose(0, 2, 1), math.sqrt(d_head)
    mask = np.where(np.tri(n_seq, dtype=bool), 0, -np.inf)
    strict = np.where(np.tri(n_seq, k=-1, dtype=bool), scores / root, -np.inf)  # row 0 sees nothing: NaN
    other = qkv.reshape(n_seq, n_head, 3, d_head).transpose(2, 1, 0, 3)  # columns misread
    apart = qkv.reshape(n_seq, 3, d_head, n_head).transpose(1, 3, 0, 2)
    with np.errstate(all="ignore"):
        wrong = {
            "no mask: a token must not see later tokens": softmax(scores / root) @ v,
            "the mask is transposed: token i sees tokens 0 to i": softmax(scores / root + mask.T) @ v,
            "a token also sees itself: with a strict mask the first one sees nothing, 0 / 0": softmax(strict) @ v,
            "in c_attn's result the values come last: q, k, v; yours takes the keys as values":
                softmax(q @ v.transpose(0, 2, 1) / root + mask) @ k,
            "mask the scores before the softmax, or the weights of a row do not sum to 1":
                np.tril(softmax(scores / root)) @ v,
            "the mask is off by one: a token must not see the next one":
                softmax(np.where(np.tri(n_seq, k=1, dtype=bool), scores / root, -np.inf)) @ v,
            "a score times -inf may be +inf: add -inf, or choose with np.where":
                softmax(scores / root * np.where(mask, -np.inf, 1)) @ v,
            "masked scores are -inf, not 0: exp(0) = 1 still gives them weight":
                softmax(np.tril(scores / root)) @ v,
            "the softmax is missing: a row of weights sums to 1": np.tril(scores / root) @ v,
            "the softmax is of each row of the scores; in yours all weights together sum to 1":
                softmax((scores / root + mask).reshape(n_head, -1)).reshape(scores.shape) @ v,
            "the softmax goes over the keys, along each row of the scores":
                softmax((scores / root + mask).transpose(0, 2, 1)).transpose(0, 2, 1) @ v,
            "the scores are q @ k.T, one row for each query; you computed k @ q.T":
                softmax(scores.transpose(0, 2, 1) / root + mask) @ v,
            "divide by √d_head, the head's own width": softmax(scores / math.sqrt(n_embd) + mask) @ v,
            "divide by √d_head, not by d_head": softmax(scores / d_head + mask) @ v,
            "divide by √d_head; you multiplied by it": softmax(scores * root + mask) @ v,
            "the scores are not divided by √d_head": softmax(scores + mask) @ v,
            "the three parts are q, k, v, in this order; yours are v, k, q":
                softmax(v @ k.transpose(0, 2, 1) / root + mask) @ q,
            "the columns of a head are next to each other, d_head of them; yours are n_head apart":
                softmax(apart[0] @ apart[1].transpose(0, 2, 1) / root + mask) @ apart[2],
            "all queries come first, then all keys, then all values; not q, k and v of head 0":
                softmax(other[0] @ other[1].transpose(0, 2, 1) / root + mask) @ other[2],
            "the bias b is missing": softmax(q0 @ k0.transpose(0, 2, 1) / root + mask) @ v0,
        }  # fmt: skip
    side_by_side = attention(x, {"w": w, "b": b}, {"w": np.eye(n_embd, dtype=np.float32), "b": 0}, n_head)
    for head, right in enumerate(np.split(side_by_side, n_head, axis=1)):
        mistakes = {hint: result[head] for hint, result in wrong.items()}
        mistakes["this is head 0, whatever `head` says"] = side_by_side[:, :d_head]
        mistakes["heads are counted from 0"] = np.split(side_by_side, n_head, axis=1)[head - 1]
        with np.errstate(all="ignore"):
            explain(fn(x, w, b, head, n_head), right, mistakes)
    large = attention(100 * x, {"w": w, "b": b}, {"w": np.eye(n_embd, dtype=np.float32), "b": 0}, n_head)[:, :d_head]
    with np.errstate(all="ignore"):
        yours = fn(100 * x, w, b, 0, n_head)
    assert np.isfinite(yours).all(), "exp overflows: subtract each row's largest score first"
    assert np.allclose(yours, large, atol=1e-2), (
        "wrong where scores are large: mask with -inf, a number such as -1000 may be the largest score of a row"
    )
    return f"right: all {n_head} heads, causal, weights that sum to 1"


@exercise
def exercise_3(fn, n_seq=5, n_head=3, d_head=4):
    refuse_library(fn, "block", "attention", "mlp", "forward")
    rng, n = drawing(2), n_head * d_head

    def random(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def layer(n_in, n_out):
        return {"w": random(n_in, n_out) / np.float32(math.sqrt(n_in)), "b": random(n_out)}

    ln_1, ln_2 = ({"g": random(n), "b": random(n)} for _ in range(2))
    attn = {"c_attn": layer(n, 3 * n), "c_proj": layer(n, n)}
    mlp = {"c_fc": layer(n, 4 * n), "c_proj": layer(4 * n, n)}
    x = random(n_seq, n)
    x.setflags(write=False)  # writing to x is an error

    def attended(x):
        return attention(x, **attn, n_head=n_head)

    def thought(x):
        return linear(gelu(linear(x, **mlp["c_fc"])), **mlp["c_proj"])

    def then_mlp(heads):
        """The block's result, if its heads' results are these."""
        after = x + linear(heads.transpose(1, 0, 2).reshape(n_seq, n), **attn["c_proj"])
        return after + thought(layer_norm(after, **ln_2))

    a, b = layer_norm(x, **ln_1), x + attended(layer_norm(x, **ln_1))
    post = layer_norm(x + attended(x), **ln_1)
    q, k, v = linear(a, **attn["c_attn"]).reshape(n_seq, 3, n_head, d_head).transpose(1, 2, 0, 3)
    products, mask = q @ k.transpose(0, 2, 1), np.where(np.tri(n_seq, dtype=bool), 0, -np.inf)
    scores = products / math.sqrt(d_head)
    heads = softmax(scores + mask) @ v  # [n_head, n_seq, d_head]
    jumbled = x + linear(heads.reshape(n_seq, n), **attn["c_proj"])
    unprojected = x + heads.transpose(1, 0, 2).reshape(n_seq, n)
    erf_gelu = np.vectorize(lambda z: z / 2 * (1 + math.erf(z / math.sqrt(2))))
    params = {"ln_1": ln_1, "ln_2": ln_2, "attn": attn, "mlp": mlp}
    yours = fn(x, params, n_head)
    with np.errstate(all="ignore"):
        strict = softmax(np.where(np.tri(n_seq, k=-1, dtype=bool), scores, -np.inf)) @ v  # NaN for token 0
    explain(yours, block(x, params, n_head), {
        "the MLP's result is added to the residual stream": thought(layer_norm(b, **ln_2)),
        "the attention's result is added to the residual stream":
            attended(a) + thought(layer_norm(attended(a), **ln_2)),
        "this is attention alone; the MLP comes after it": b,
        "the MLP reads the stream after attention was added": b + thought(layer_norm(x, **ln_2)),
        "the MLP reads the normalised stream: ln_2": b + thought(b),
        "the MLP has a norm of its own: ln_2, not ln_1": b + thought(layer_norm(b, **ln_1)),
        "attention reads the normalised stream: ln_1":
            x + attended(x) + thought(layer_norm(x + attended(x), **ln_2)),
        "the residual stream itself is not normalised; only what the layers read":
            a + attended(a) + thought(layer_norm(a + attended(a), **ln_2)),
        "this is post-norm, the layout of 2017, x = norm(x + layer(x)): GPT-2 normalises what a layer reads":
            layer_norm(post + thought(post), **ln_2),
        "the activation of the MLP is a gelu, not a relu":
            b + linear(np.maximum(linear(layer_norm(b, **ln_2), **mlp["c_fc"]), 0), **mlp["c_proj"]),
        "the gelu is missing": b + linear(linear(layer_norm(b, **ln_2), **mlp["c_fc"]), **mlp["c_proj"]),
        "the MLP's result is added to x after attention, not to the x before it": x + thought(layer_norm(b, **ln_2)),
        "side by side means: [n_head, n_seq, d_head] -> [n_seq, n_head, d_head] first, then the reshape":
            jumbled + thought(layer_norm(jumbled, **ln_2)),
        "c_proj of the attention is missing": unprojected + thought(layer_norm(unprojected, **ln_2)),
        "no mask: a token must not see later tokens": then_mlp(softmax(scores) @ v),
        "the mask is off by one: a token must not see the next one":
            then_mlp(softmax(np.where(np.tri(n_seq, k=1, dtype=bool), scores, -np.inf)) @ v),
        "the mask is off by one: a token also sees itself":
            then_mlp(strict),
        "the MLP's result is added to x after attention; you added the x before it once more":
            b + x + thought(layer_norm(b, **ln_2)),
        "that is the exact gelu, by erf; GPT-2 has the approximation with tanh":
            b + linear(erf_gelu(linear(layer_norm(b, **ln_2), **mlp["c_fc"])), **mlp["c_proj"]),
        "the scores are not divided by √d_head": then_mlp(softmax(products + mask) @ v),
        "divide by √d_head, the head's own width": then_mlp(softmax(products / math.sqrt(n) + mask) @ v),
    })  # fmt: skip

    model, tokenizer = gpt2np.load("tiny-target")
    tokens = tokenizer.encode('The old woman said to the wolf, "Where are you going?" and the wolf')
    x = model.params["wte"][tokens] + model.params["wpe"][: len(tokens)]
    for params in model.params["blocks"]:
        x = fn(x, params, model.hparams.n_head)
    logits = layer_norm(x[-1:], **model.params["ln_f"]) @ model.params["wte"].T
    assert np.allclose(logits, model(tokens), atol=1e-2), "right for one block, wrong in the bundled model's nine"
    word = tokenizer.decode([int(logits.argmax())])
    return f'right: this is GPT-2. With your block for each layer, it continues "... and the wolf" with "{word}"'


def right_count(h):
    return sum(math.prod(shape) for shape in param_shapes(h).values())


@exercise
def exercise_4(fn):
    refuse_library(fn, "count_parts", "param_shapes", "n_params")
    for h in [
        gpt2np.HParams(n_vocab=50257, n_ctx=1024, n_embd=768, n_head=12, n_layer=12),
        gpt2np.HParams(n_vocab=50257, n_ctx=1024, n_embd=1600, n_head=25, n_layer=48),
        gpt2np.HParams(11, 7, 6, 2, 3),
    ]:
        n, layers, yours, right = h.n_embd, h.n_layer, fn(**asdict(h)), right_count(h)
        assert yours is not None, "nothing came back: is a return missing?"
        hints = {
            0: "",
            n * h.n_vocab: "the logits use wte again, not a second table",
            -n * h.n_vocab: "wte, the embeddings of the tokens, is missing",
            -n * h.n_ctx: "wpe, the embeddings of the positions, is missing",
            -2 * n: "ln_f, the norm after the last layer, is missing",
            -n: "ln_f has a scale and a shift: 2 n_embd",
            -4 * n * layers: "each layer has two layer norms, each with a scale and a shift",
            -2
            * n
            * layers: "2 n_embd too few in each layer: a norm (a scale and a shift), or c_attn's shift of 3 n_embd?",
            -n * (2 * layers + 1): "each layer norm has a scale and a shift: 2 n_embd",
            -9 * n * layers: "the shifts of the linear layers are missing: 3 + 1 + 4 + 1 times n_embd",
            -n * (13 * layers + 2): "the shifts of the linear layers and the norms are missing",
            -2 * n * n * layers: "c_attn computes three vectors for each token: n_embd x 3 n_embd",
            -2 * n * (n + 1) * layers: "c_attn computes three vectors for each token: n_embd x 3 n_embd",
            -n * (n + 1) * layers: "the attention's c_proj is missing: n_embd x n_embd, and a shift",
            -n * (4 * n + 1) * layers: "the MLP's c_proj is missing: 4 n_embd x n_embd, and a shift",
            -n * (12 * n + 13) * (layers - 1): "this is one layer; there are n_layer of them",
        }
        two = {a + b: f"two things: {hints[a]}; {hints[b]}" for a in hints for b in hints if a < b and a and b}
        hints = {**two, **hints}
        assert yours == right, hints.get(yours - right) or f"expected {right:,} for {h}, got {yours:,}"
    return "right: 124,439,808 for the smallest GPT-2, and for every other shape"
