"""Training EAGLE's block for tiny-target, on text that the target wrote itself.

    python -m pip install -e ".[train]"
    python dev/train/train_eagle.py FOLDER_OF_TEXT --out OUT_FOLDER

As in train_heads.py the target is frozen, its hidden states are computed once, and steps that are done are skipped.
The block sees a token and the hidden state of the token before it, and learns two things at once: the hidden state of
the token, as the target computed it, and the distribution that follows from it. The first is what allows the block to
continue from its own results: they stay close to what it was trained on, and the fourth draft token is right nearly as
often as the first. Trained on distributions alone, a block becomes less often right with each token it drafts.

The number of steps matters more than the size of a batch: four texts a step.
Source: Li et al. (EAGLE), arXiv:2401.15077, section 4.2, with layer-normed hidden states and without noise on them.
"""

from pathlib import Path

import fire
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.numpy import save_file

from gpt2np.tokenizer import Tokenizer
from tales import read_tales, split, tokenize
from train import DEVICE
from train_heads import TINY, output_of, train, write_text

# (temperature, n_prompt, n_new) of the batches in turn; one is for later positions, one is the tales themselves
TEXTS = [(0, 64, 128), (1.0, 64, 128), (0, 64, 128), (0.6, 64, 128)]
TEXTS += [(0, 64, 128), (1.0, 64, 128), (1.0, 256, 128), (1.0, 192, 1)]


def main(corpus, out="tiny", tokens=1_400_000, eagle_tokens=4_500_000, seed=0):
    """All steps, from the folder `corpus` to eagle.safetensors in the folder `out`, in float16."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    target = transformers.GPT2LMHeadModel.from_pretrained(TINY / "tiny-target", dtype=torch.float32).to(DEVICE).eval()
    tokenizer = Tokenizer.from_files(TINY / "tiny-target" / "vocab.json", TINY / "tiny-target" / "merges.txt")
    stream = tokenize(split(read_tales(corpus), seed)[0], tokenizer)
    files = write_text(target, stream, out, int(tokens), TEXTS, seed)
    torch.manual_seed(seed)
    params, output, wpe = new_params(target.config.n_embd), output_of(target), target.transformer.wpe.weight.detach()
    learning = lambda *text: learn(params, *text, output, wpe, target.config.n_head)  # noqa: E731
    train([*params.values()], learning, files, int(eagle_tokens), out / "eagle.pt", seed, n_texts=4)
    tensors = {name: value.detach().cpu().numpy().astype(np.float16) for name, value in params.items()}
    counts = sum(np.bincount(np.load(path)["tokens"].ravel(), minlength=tokenizer.n_vocab) for path in files)
    tensors["frequent"] = np.argsort(-counts, kind="stable")  # token ids, the most frequent first
    save_file(tensors, out / "eagle.safetensors")


def new_params(n):
    """The parameters by name; at the start the block repeats the hidden state that it is given."""
    params = {"input.weight": torch.cat([torch.eye(n), 0.02 * torch.randn(n, n)]), "input.bias": torch.zeros(n)}
    for norm in ("ln_1", "ln_2"):
        params |= {f"h.0.{norm}.weight": torch.ones(n), f"h.0.{norm}.bias": torch.zeros(n)}
    shapes = {"attn.c_attn": (n, 3 * n), "attn.c_proj": (n, n), "mlp.c_fc": (n, 4 * n), "mlp.c_proj": (4 * n, n)}
    for name, shape in shapes.items():
        params[f"h.0.{name}.weight"] = (0 if name.endswith("c_proj") else 0.02) * torch.randn(shape)
        params[f"h.0.{name}.bias"] = torch.zeros(shape[1])
    return {name: value.to(DEVICE).requires_grad_() for name, value in params.items()}


def normed(x, g=None, b=None):
    return F.layer_norm(x, x.shape[-1:], g, b)


def predicted(params, before, embeddings, n_head):
    """The hidden states [n_texts, n, n_embd] of tokens with these embeddings; see gpt2np/eagle.py."""

    def linear(x, name):
        return x @ params[f"{name}.weight"] + params[f"{name}.bias"]

    def norm(x, name):
        return normed(x, params[f"{name}.weight"], params[f"{name}.bias"])

    x = linear(torch.cat([before, normed(embeddings)], -1), "input")
    q, k, v = linear(norm(x, "h.0.ln_1"), "h.0.attn.c_attn").unflatten(-1, (3, n_head, -1)).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    x = x + linear(heads, "h.0.attn.c_proj")
    return x + linear(F.gelu(linear(norm(x, "h.0.ln_2"), "h.0.mlp.c_fc"), approximate="tanh"), "h.0.mlp.c_proj")


def learn(params, tokens, hidden, output, wpe, n_head):
    """Add to the gradients; returns the mean overlap sum min(p, q) with the target: [1].

    tokens [n_texts, n + 1]; hidden states [n_texts, n, n_embd] of all but the last, layer-normed.
    """
    (wte, gain, bias), n = output, hidden.shape[1]
    before = F.pad(hidden[:, :-1], (0, 0, 1, 0))  # of the token before; zeros for the first
    found = normed(predicted(params, before, wte[tokens[:, :n]] + wpe[:n], n_head))
    p, log_q = F.linear(hidden * gain + bias, wte).softmax(-1), F.linear(found * gain + bias, wte).log_softmax(-1)
    (F.smooth_l1_loss(found, hidden) - 0.1 * (p * log_q).sum(-1).mean()).backward()
    return np.array([torch.minimum(p, log_q.detach().exp()).sum(-1).mean().item()])


if __name__ == "__main__":
    fire.Fire(main)
