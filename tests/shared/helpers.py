"""What several test files share."""

from pathlib import Path

import numpy as np

import gpt2np
from gpt2np import reference
from gpt2np.files.params import build_params, param_shapes
from speculative import Draft, Sampling, sample_token
from speculative.testing import TableModel
from speculative.tree import children, depths, path

ROOT = Path(__file__).parents[2]


def random_tensors(hparams, seed=0, scale=0.3):
    """The tensors of a random GPT-2 under their Hugging Face names, float32, read-only."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in param_shapes(hparams).items():
        is_gain = "ln_" in name and name.endswith("weight")
        tensors[name] = (rng.standard_normal(shape) * scale + is_gain).astype(np.float32)
        tensors[name].setflags(write=False)
    return tensors


def random_array(*shape, seed=0):
    """Normally distributed, float32, read-only."""
    array = np.random.default_rng(seed).standard_normal(shape, np.float32)
    array.setflags(write=False)
    return array


def random_gpt2(hparams, seed=0, scale=0.3):
    return gpt2np.GPT2(build_params(random_tensors(hparams, seed, scale), hparams, "random"), hparams)


def random_heads(hparams, kind="hydra", n_heads=3):
    """Heads for a model of this shape, see gpt2np.Heads."""
    rng, n = np.random.default_rng(0), hparams.n_embd
    normal = lambda *shape: (rng.standard_normal(shape) / np.sqrt(n)).astype(np.float32)  # noqa: E731
    accepted = {"accepted": np.array([0.5, 0.2, 0.1], np.float32)}
    if kind == "medusa":
        return [{"w": normal(n, n), "b": normal(n), **accepted} for _ in range(n_heads)]
    return [{"a": normal((i + 1) * n, n), "w": normal((i + 1) * n, n), **accepted} for i in range(1, n_heads + 1)]


def walk(model, n_steps, seed=0):
    """Yields (tokens, n_last) that extend, branch and shrink."""
    rng, tokens = np.random.default_rng(seed), [1]
    for _ in range(n_steps):
        keep = int(rng.integers(0, len(tokens) + 1))
        n_new = int(rng.integers(0, min(model.n_ctx - keep, rng.choice([3, 10, model.n_ctx])) + 1))
        tokens = (tokens[:keep] + rng.integers(0, model.n_vocab, n_new).tolist()) or [2]
        yield tokens, int(rng.integers(1, len(tokens) + 1))


def one_by_one(model, tokens):
    """The logits after each token, computed without any other row."""
    model.reset()
    return np.concatenate([model(tokens[:n]) for n in range(1, len(tokens) + 1)])


def intermediates(module, tokens, params, n_head):
    """Every intermediate of a pass over the whole text by the functions of `module`, under the golden file's names."""
    x = params["wte"][tokens] + params["wpe"][: len(tokens)]
    yield "embedding", x
    for i, layer in enumerate(params["blocks"]):
        normal = module.layer_norm(x, **layer["ln_1"])
        yield f"h.{i}.ln_1", normal
        attended = module.attention(normal, **layer["attn"], n_head=n_head)
        yield f"h.{i}.attn", attended
        normal = module.layer_norm(x + attended, **layer["ln_2"])
        yield f"h.{i}.ln_2", normal
        yield f"h.{i}.mlp", module.mlp(normal, **layer["mlp"])
        x = module.block(x, layer, n_head)
        yield f"h.{i}", x
    yield "ln_f", module.layer_norm(x, **params["ln_f"])
    yield "logits", (reference if module is reference else gpt2np).forward(tokens, params, n_head)


class Clearing(TableModel):
    """A table that empties the list of tokens that it is called with."""

    def __call__(self, tokens, n_last=1):
        logits = super().__call__(tokens, n_last)
        tokens.clear()
        return logits


class Uniform:
    """Replaces a generator: `random()` returns the given numbers."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


ALMOST_ONE = 1 - 2**-53  # the largest number that Generator.random returns


class TreeDrafter:
    """Draws the nodes of a fixed tree from a model: "iid", or "without" replacement among siblings."""

    def __init__(self, model, parents, how):
        self.model, self.parents, self.how = model, parents, how

    def propose(self, tokens, K, rng):
        nodes = [node for node, depth in enumerate(depths(self.parents)) if depth < K]
        drafted, rows = {}, []
        for node in nodes:
            text = [*tokens, *(drafted[above] for above in path(self.parents, self.parents[node]))]
            row = Sampling()(self.model(text))[0]
            if self.how == "without":
                for elder in children(self.parents, self.parents[node]):
                    if elder < node:
                        row[drafted[elder]] = 0
                row /= row.sum()
            rows.append(row)
            drafted[node] = sample_token(row, rng)
        parents = [nodes.index(self.parents[node]) if self.parents[node] >= 0 else -1 for node in nodes]
        return Draft(np.array(list(drafted.values()), np.int64), np.reshape(rows, (-1, 3)), np.array(parents, np.int64))
