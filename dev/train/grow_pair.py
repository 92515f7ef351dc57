"""Grow the bundled pair to GPT-2's shapes, with the same text: python dev/train/grow_pair.py FOLDER [TARGET DRAFT]

TARGET and DRAFT are 124M, 355M or 774M (355M and 124M by default); FOLDER/TARGET and FOLDER/DRAFT are written in the
Hugging Face layout. The grown models compute the same function as the small ones, up to rounding (function-preserving
widening, as in Net2Net). So they generate a real text at the real cost of those shapes, where GPT-2's own weights are
not available:

- the residual stream is repeated side by side, so that a layer norm sees the same mean and variance;
- a head is padded with zeros, and its queries are scaled for the larger √d_head; further heads are zeros;
- further layers add zeros to the residual stream; their other weights are random, and cost what weights cost;
- the vocabulary is padded to 50257 tokens; the logits of the new ones are far below all others.

The target's heads and blocks grow along with it, into the same folder.

Needs the package safetensors, which the tests also need: python -m pip install -e ".[test]".
"""

import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

import gpt2np
from gpt2np.files.loading import drafter_file
from gpt2np.reference import block, layer_norm

SHAPES = {"124M": (12, 12, 768), "355M": (24, 16, 1024), "774M": (36, 20, 1280)}  # n_layer, n_head, n_embd
N_VOCAB, N_CTX = 50257, 1024
BUNDLED = Path(gpt2np.__file__).parent / "tiny"


class Grown:
    """Turns the arrays of a small model [.., n_embd] into those of a large one."""

    def __init__(self, small, n_head, n_embd):
        self.n_head, self.d_head, self.n_embd = small.n_head, small.d_head, small.n_embd
        self.large_heads, self.large_d_head, self.large_embd = n_head, n_embd // n_head, n_embd
        self.copies = n_embd // small.n_embd
        if n_embd % small.n_embd or n_head < small.n_head or self.large_d_head < small.d_head:
            raise ValueError(
                f"expected a shape that holds whole copies of {small}, got {n_head} heads, n_embd {n_embd}"
            )

    def stream(self, a):
        """The residual stream, repeated: [..., n_embd] -> [..., large_embd]"""
        return np.concatenate([a] * self.copies, axis=-1)

    def heads(self, a):
        """Columns by head, filled up with zeros: [..., n_embd] -> [..., large_embd]"""
        out = np.zeros((*a.shape[:-1], self.large_heads, self.large_d_head), np.float32)
        out[..., : self.n_head, : self.d_head] = a.reshape(*a.shape[:-1], self.n_head, self.d_head)
        return out.reshape(*a.shape[:-1], self.large_embd)

    def qkv(self, a):
        """c_attn's columns, the queries scaled for the larger √d_head."""
        q, k, v = np.split(a, 3, axis=-1)
        scale = np.float32(math.sqrt(self.large_d_head / self.d_head))
        return np.concatenate([self.heads(q) * scale, self.heads(k), self.heads(v)], axis=-1)

    @staticmethod
    def fill(a, n):
        """Rows of zeros added: [m, ...] -> [n, ...]"""
        out = np.zeros((n, *a.shape[1:]), np.float32)
        out[: len(a)] = a
        return out

    def layer(self, t, prefix):
        """The tensors of one layer, from those of a small one."""
        wide, large = 4 * self.n_embd, {}
        for norm in ("ln_1", "ln_2"):
            for part in ("weight", "bias"):
                large[f"{prefix}{norm}.{part}"] = self.stream(t[f"{prefix}{norm}.{part}"])
        attn, mlp = f"{prefix}attn", f"{prefix}mlp"
        large[f"{attn}.c_attn.weight"] = self.fill(self.qkv(t[f"{attn}.c_attn.weight"]), self.large_embd)
        large[f"{attn}.c_attn.bias"] = self.qkv(t[f"{attn}.c_attn.bias"])
        large[f"{attn}.c_proj.weight"] = self.stream(self.heads(t[f"{attn}.c_proj.weight"].T).T)
        large[f"{attn}.c_proj.bias"] = self.stream(t[f"{attn}.c_proj.bias"])
        fc = np.zeros((self.large_embd, 4 * self.large_embd), np.float32)
        fc[: self.n_embd, :wide] = t[f"{mlp}.c_fc.weight"]
        large[f"{mlp}.c_fc.weight"] = fc
        large[f"{mlp}.c_fc.bias"] = self.fill(t[f"{mlp}.c_fc.bias"], 4 * self.large_embd)
        large[f"{mlp}.c_proj.weight"] = self.fill(self.stream(t[f"{mlp}.c_proj.weight"]), 4 * self.large_embd)
        large[f"{mlp}.c_proj.bias"] = self.stream(t[f"{mlp}.c_proj.bias"])
        return large

    def side_by_side(self, a):
        """A matrix from several vectors of n_embd, one after another: [n * n_embd, ..] -> [n * large_embd, ..]"""
        parts = np.split(a, len(a) // self.n_embd)
        return np.concatenate([self.fill(self.stream(part), self.large_embd) for part in parts])

    def idle_layer(self, prefix, rng):
        """The tensors of a layer that adds zeros to the residual stream, and takes its time."""
        n, large = self.large_embd, {}
        for norm in ("ln_1", "ln_2"):
            large |= {f"{prefix}{norm}.weight": np.ones(n, np.float32), f"{prefix}{norm}.bias": np.zeros(n, np.float32)}
        shapes = {"attn.c_attn": (n, 3 * n), "attn.c_proj": (n, n), "mlp.c_fc": (n, 4 * n), "mlp.c_proj": (4 * n, n)}
        for name, shape in shapes.items():
            scale = np.float32(0 if name.endswith("c_proj") else 0.02)
            large[f"{prefix}{name}.weight"] = scale * rng.standard_normal(shape, np.float32)
            large[f"{prefix}{name}.bias"] = np.zeros(shape[1], np.float32)
        return large


def unlikely(model, heads, rng):
    """A row of wte [n_embd] whose logit is about -60 after any text, also by the heads: least squares over states."""
    states = []
    for tokens in rng.integers(0, model.n_vocab, (24, 128)):
        x = model.params["wte"][tokens] + model.params["wpe"][: len(tokens)]
        for layer in model.params["blocks"]:
            x = block(x, layer, model.hparams.n_head)
        states.append(layer_norm(x, **model.params["ln_f"]))
        for i in range(1, 1 + (heads.n_heads if heads else 0)):
            seen = np.stack([tokens[j : len(tokens) - i + j] for j in range(1, i + 1)], axis=1)
            states.append(heads.replaced(model, x[:-i], seen))
    states = np.concatenate(states)
    return np.linalg.lstsq(states, np.full(len(states), -60, np.float32), rcond=None)[0].astype(np.float32)


def grow(source, out, size, seed=0):
    """Write the model of the folder `source`, grown to a shape, to the folder `out`; returns its `Grown`."""
    model, _ = gpt2np.load(source)
    heads = gpt2np.load_heads(source) if drafter_file("heads", source).exists() else None
    (n_layer, n_head, n_embd), small, rng = SHAPES[size], model.hparams, np.random.default_rng(seed)
    t = {
        name.removeprefix("transformer."): a.astype(np.float32)
        for name, a in load_file(source / "model.safetensors").items()
    }
    grown, large = Grown(small, n_head, n_embd), {}
    for i in range(n_layer):
        large |= grown.layer(t, f"h.{i}.") if i < small.n_layer else grown.idle_layer(f"h.{i}.", rng)
    large["ln_f.weight"] = grown.stream(t["ln_f.weight"]) / np.float32(grown.copies)
    large["ln_f.bias"] = grown.stream(t["ln_f.bias"]) / np.float32(grown.copies)
    large["wpe.weight"] = grown.fill(grown.stream(t["wpe.weight"]), N_CTX)
    large["wte.weight"] = np.tile(grown.stream(unlikely(model, heads, rng)), (N_VOCAB, 1))
    large["wte.weight"][: small.n_vocab] = grown.stream(t["wte.weight"])
    out.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(a) for name, a in large.items()}, out / "model.safetensors")
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config |= {"n_layer": n_layer, "n_head": n_head, "n_embd": n_embd, "vocab_size": N_VOCAB, "n_positions": N_CTX}
    config |= {"n_ctx": N_CTX} if "n_ctx" in config else {}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(source / name, out / name)
    return grown


def grow_heads(grown, out):
    """Write the target's heads, grown like the target."""
    large = {}
    for name, a in load_file(drafter_file("heads", "tiny-target")).items():
        a = a.astype(np.float32)
        matrix_or_bias = grown.side_by_side if a.ndim == 2 else grown.stream
        large[name] = a if name.endswith("accepted") else np.ascontiguousarray(matrix_or_bias(a))
    save_file(large, out / "heads.safetensors")


def grow_block(grown, path, out):
    """Write this block of the target, grown like the target; the tokens that were added are the least frequent."""
    t = {name: a if a.dtype.kind == "i" else a.astype(np.float32) for name, a in load_file(path).items()}
    large = {"input.weight": grown.side_by_side(t["input.weight"]), "input.bias": grown.stream(t["input.bias"])}
    large |= grown.layer(t, "h.0.")
    large["frequent"] = np.append(t["frequent"], np.arange(len(t["frequent"]), N_VOCAB))
    if "mask" in t:
        w1, w2 = grown.fill(t["markov.w1"], N_VOCAB), grown.fill(t["markov.w2"].T, N_VOCAB).T
        large |= {"mask": grown.stream(t["mask"]), "markov.w1": w1, "markov.w2": w2}
    save_file({name: np.ascontiguousarray(a) for name, a in large.items()}, out / path.name)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4) or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    folder, target, draft = sys.argv[1:] if len(sys.argv) == 4 else (sys.argv[1], "355M", "124M")
    of_target = grow(BUNDLED / "tiny-target", Path(folder) / target, target)
    grow_heads(of_target, Path(folder) / target)
    for kind in ("eagle", "parallel"):
        grow_block(of_target, drafter_file(kind, "tiny-target"), Path(folder) / target)
    grow(BUNDLED / "tiny-draft", Path(folder) / draft, draft)
