"""What several test files share."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import gpt2np
from gpt2np import reference
from gpt2np.files.params import build_params, param_shapes, tree_of
from speculative import Draft, Sampling, sample_token
from speculative.rng import at_position
from speculative.tree import children, path

ROOT = Path(__file__).parents[2]


def script(path):
    """The module of a script that is in no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    """Heads for a model of this shape."""
    rng, n = np.random.default_rng(0), hparams.n_embd
    normal = lambda *shape: (rng.standard_normal(shape) / np.sqrt(n)).astype(np.float32)  # noqa: E731
    accepted = {"accepted": np.array([0.5, 0.2, 0.1], np.float32)}
    if kind == "medusa":
        return gpt2np.Heads([{"w": normal(n, n), "b": normal(n), **accepted} for _ in range(n_heads)])
    n_in = [(i + 1) * n for i in range(1, n_heads + 1)]
    return gpt2np.Heads([{"a": normal(m, n), "w": normal(m, n), **accepted} for m in n_in])


def random_eagle(hparams, seed=1):
    """A block for a model of this shape."""
    n, tensors = hparams.n_embd, random_tensors(hparams, seed)
    rng = np.random.default_rng(seed)
    tensors |= {"input.weight": random_array(2 * n, n, seed=seed) / 2, "input.bias": random_array(n, seed=seed)}
    frequent, tree = rng.permutation(hparams.n_vocab), tree_of(tensors)
    return gpt2np.EagleBlock(tree["input"], tree["h"]["0"], frequent)


def in_float64(part):
    """A parameter tree in float64."""
    if isinstance(part, dict):
        return {key: in_float64(value) for key, value in part.items()}
    return [in_float64(value) for value in part] if isinstance(part, list) else np.asarray(part).astype(np.float64)


def random_parallel(hparams, seed=1, n_slots=8, rank=2):
    """A parallel block for a model of this shape, with the layer of `random_eagle`."""
    n, n_vocab = hparams.n_embd, hparams.n_vocab
    of_eagle, mask = vars(random_eagle(hparams, seed)), random_array(n_slots - 1, n, seed=seed)
    w1, w2 = random_array(n_vocab, rank, seed=seed), random_array(rank, n_vocab, seed=seed + 1)
    return gpt2np.ParallelBlock(**of_eagle, mask=mask, w1=w1, w2=w2)


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


def interrupted(n, call, *arguments, part=Path(gpt2np.__file__).parent.as_posix() + "/"):
    """Whether the call ran n lines of files whose paths contain this part; there it is interrupted, as by Ctrl-C."""
    n_left = n

    def trace(frame, event, argument):
        nonlocal n_left
        if part not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        n_left -= event == "line"
        if n_left == 0 and event == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


class Uniform:
    """Replaces a generator: `random()` returns the given numbers."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


SIBLINGS = {  # (q [n_vocab], the tokens of the elder siblings) -> the row of the next one, to be renormalised
    "iid": lambda q, elder: q,
    "without": lambda q, elder: np.where(np.isin(np.arange(len(q)), elder), 0, q),
}


class TreeDrafter:
    """Draws the nodes of a fixed tree from a model, the siblings in one of the ways of SIBLINGS."""

    def __init__(self, model, parents, how):
        self.model, self.parents, self.how = model, parents, how

    def propose(self, tokens, K, rng):
        drafted, rows = {}, {}  # of the nodes that the tree has: not those without a token that is left, or below them
        for node, parent in enumerate(self.parents):
            above = path(self.parents, parent)
            if len(above) >= K or not drafted.keys() >= {*above}:
                continue
            text = [*tokens, *(drafted[other] for other in above)]
            elder = [drafted[other] for other in children(self.parents, parent) if other in drafted]
            row = SIBLINGS[self.how](Sampling()(self.model(text))[0], elder)
            if row.any():
                rows[node] = row / row.sum()
                drafted[node] = sample_token(rows[node], at_position(rng, len(text)))
        place = {-1: -1} | {node: i for i, node in enumerate(drafted)}
        parents = np.array([place[self.parents[node]] for node in drafted], np.int64)
        probs = np.reshape([*rows.values()], (len(rows), self.model.n_vocab))
        return Draft(np.array([*drafted.values()], np.int64), probs, parents)
