"""Training the parallel block for tiny-target: EAGLE's block goes on learning, with mask tokens and a table of tokens.

    python -m pip install -e ".[train]"
    python dev/train/train_block.py FOLDER_OF_TEXT --out OUT_FOLDER

As in train_eagle.py, on the same text, with the target frozen and its hidden states stored. A step has a few texts and
many anchors in each: after an anchor come N_SLOTS slots, which attend to the text up to the anchor and to each other,
and learn the target's distribution of each next token (KL divergence), the earlier slots with more weight, since a
token counts only if those before it were accepted. The table sees the text's own token before, not a drawn one.

It starts from the bundled EAGLE block, so the first slot is right at once; from the mean embedding for the masks; and
for the table from the target's own distributions: the mean after each token over the mean of all, cut to RANK.
Sources: see gpt2np/parallel.py.
"""

import time
from pathlib import Path

import fire
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file

from gpt2np.eagle import eagle_file
from gpt2np.tokenizer import Tokenizer
from muon import Muon
from tales import read_tales, split, tokenize
from train import DEVICE
from train_eagle import TEXTS, normed
from train_heads import TINY, output_of, restore, save_checkpoint, write_text

N_SLOTS, RANK = 8, 32
N_TEXTS, N_ANCHORS = 4, 24  # in a step
GAMMA = 3.0  # slot j has the weight exp(-j / GAMMA)
RATES = {"matrix": 0.008, "table": 0.005, "vector": 0.003}
FLAT = 0.37  # the share of the training at these rates; then they fall linearly to 0
BFLOAT16 = DEVICE == "cuda" or torch.cpu._is_amx_tile_supported()  # matmuls, where it makes them several times faster


def main(corpus, out="tiny", tokens=740_000, steps=6500, minutes=0.0, seed=0):
    """All steps, from the folder `corpus` to block.safetensors in the folder `out`, in float16.

    With `minutes` it stops after these, and the same command goes on.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    target = transformers.GPT2LMHeadModel.from_pretrained(TINY / "tiny-target", dtype=torch.float32).to(DEVICE).eval()
    tokenizer = Tokenizer.from_files(TINY / "tiny-target" / "vocab.json", TINY / "tiny-target" / "merges.txt")
    stream = tokenize(split(read_tales(corpus), seed)[0], tokenizer)
    files = write_text(target, stream, out, int(tokens), TEXTS, seed)
    torch.manual_seed(seed)
    params = train(files, output_of(target), target.transformer.wpe.weight.detach(), target.config.n_head, out, steps,
                   minutes, seed)  # fmt: skip
    save(params, out)


def save(params, out):
    tensors = {name: value.detach().cpu().half() for name, value in params.items()}
    save_file(tensors | {"frequent": load_file(eagle_file("tiny-target"))["frequent"]}, out / "block.safetensors")


# ------------------------------------------------------------------------------------------------ the block


def new_params(files, output):
    wte, params = output[0], load_file(eagle_file("tiny-target"))
    params = {name: value.float() for name, value in params.items() if name != "frequent"}
    params["mask"] = wte.mean(0).cpu() + 0.02 * torch.randn(N_SLOTS - 1, wte.shape[1])
    params["markov.w1"], params["markov.w2"] = table(files, output)
    return {name: value.to(DEVICE).requires_grad_() for name, value in params.items()}


@torch.no_grad()
def table(files, output, seen=20.0):
    """log (M / m) as W1 W2, where M[v] is the mean distribution after token v and m that after any token.

    As if each token had been seen `seen` times with m; rare rows and columns count less.
    """
    (wte, gain, bias), n_vocab = output, len(output[0])
    sums, counts = torch.zeros(n_vocab, n_vocab), torch.zeros(n_vocab)
    for path in files[:12]:
        with np.load(path) as text:
            tokens, hidden = torch.from_numpy(text["tokens"][:, 32:]).long(), torch.from_numpy(text["hidden"][:, 32:])
        for some, states in zip(tokens.split(16), hidden.split(16)):
            p = F.linear(states.float() * gain + bias, wte).softmax(-1)
            some = some[:, : p.shape[1]].flatten()
            sums.index_add_(0, some, p.flatten(0, 1))
            counts.index_add_(0, some, torch.ones(len(some)))
    mean = sums.sum(0) / counts.sum()
    ratio = ((sums + seen * mean) / (counts[:, None] + seen) / mean).log()
    rows, columns = (counts / counts.sum()).sqrt().clamp_min(1e-4)[:, None], mean.sqrt().clamp_min(1e-4)
    u, s, v = torch.svd_lowrank(rows * ratio * columns, RANK, niter=6)
    w1, w2 = u * s.sqrt() / rows, s.sqrt()[:, None] * v.T / columns
    scale = (w2.square().mean() / w1.square().mean()) ** 0.25
    return (w1 * scale).contiguous(), (w2 / scale).contiguous()


def slots(params, tokens, hidden, anchors, wte, wpe, n_head):
    """The hidden states [n_texts, n_anchors, N_SLOTS, n_embd] of the slots after these anchors, layer-normed."""

    def linear(x, name):
        return x @ params[f"{name}.weight"] + params[f"{name}.bias"]

    def norm(x, name):
        return normed(x, params[f"{name}.weight"], params[f"{name}.bias"])

    (n_texts, n), n_embd = hidden.shape[:2], wte.shape[1]
    w, b = params["input.weight"], params["input.bias"]
    before = F.pad(hidden[:, :-1] @ w[:n_embd], (0, 0, 1, 0))  # of the token before; zeros for the first
    context = before + normed(wte[tokens[:, :n]] + wpe[:n]) @ w[n_embd:] + b
    positions = anchors[:, None] + torch.arange(1, N_SLOTS, device=DEVICE)
    masks = normed(params["mask"] + wpe[positions]) @ w[n_embd:] + b  # [n_anchors, N_SLOTS - 1, n_embd]
    x = torch.cat([context[:, anchors, None], before[:, anchors, None] + masks], 2).flatten(1, 2)
    i, anchor = torch.arange(x.shape[1], device=DEVICE), anchors.repeat_interleave(N_SLOTS)
    own = (i[:, None] // N_SLOTS == i // N_SLOTS) & (i <= i[:, None])
    seen = torch.cat([torch.arange(n, device=DEVICE) < anchor[:, None], own], 1)
    rows = norm(torch.cat([context, x], 1), "h.0.ln_1")
    q, k, v = linear(rows, "h.0.attn.c_attn").unflatten(-1, (3, n_head, -1)).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(q[..., n:, :], k, v, attn_mask=seen).transpose(1, 2).flatten(2)
    x = x + linear(heads, "h.0.attn.c_proj")
    x = x + linear(F.gelu(linear(norm(x, "h.0.ln_2"), "h.0.mlp.c_fc"), approximate="tanh"), "h.0.mlp.c_proj")
    return normed(x.float()).view(n_texts, len(anchors), N_SLOTS, n_embd)


def learn(params, tokens, hidden, anchors, output, wpe, n_head):
    """Add to the gradients; returns the mean overlap sum min(p, q) with the target by slot: [N_SLOTS].

    tokens [n_texts, n + 1]; hidden states [n_texts, n, n_embd] of all but the last, layer-normed; anchors [n_anchors],
    each with N_SLOTS tokens after it.
    """
    wte, gain, bias = output
    at = anchors[:, None] + torch.arange(N_SLOTS, device=DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=BFLOAT16):
        found = slots(params, tokens, hidden, anchors, wte, wpe, n_head)
        z = F.linear(found * gain + bias, wte)
        later = params["markov.w1"][tokens[:, at[:, 1:]]] @ params["markov.w2"]
        with torch.no_grad():
            p = F.linear(hidden[:, at] * gain + bias, wte).float().softmax(-1)
    z = torch.cat([z[:, :, :1], z[:, :, 1:] + later], 2).float()
    with torch.no_grad():  # the gradient of KL(p || softmax(z)) with respect to z is softmax(z) - p
        difference = z.softmax(-1) - p
        weights = torch.exp(-torch.arange(N_SLOTS, device=DEVICE) / GAMMA)
        weights = weights / weights.sum() / (len(tokens) * len(anchors))
    z.backward(difference * weights[:, None])
    return 1 - difference.abs().sum(-1).mean((0, 1)).cpu().numpy() / 2


# ------------------------------------------------------------------------------------------------ training


def batches(files, rng):
    """Yields (tokens, hidden states, anchors) without end."""
    while True:
        for path in rng.permutation(files):
            with np.load(path) as text:
                tokens, hidden = text["tokens"], text["hidden"]
            n, n_texts = hidden.shape[1], N_TEXTS if hidden.shape[1] < 300 else N_TEXTS // 2
            for rows in rng.permutation(len(tokens)).reshape(-1, n_texts):
                anchors = np.sort(rng.permutation(np.arange(1, n + 1 - N_SLOTS))[: N_ANCHORS * N_TEXTS // n_texts])
                yield [torch.from_numpy(a).to(DEVICE) for a in (tokens[rows].astype(int), hidden[rows], anchors)]


def train(files, output, wpe, n_head, out, steps, minutes, seed):
    checkpoint, params = out / "block.pt", new_params(files, output)
    kind = {name: "table" if "markov" in name else "matrix" if p.ndim == 2 and name != "mask" else "vector"
            for name, p in params.items()}  # fmt: skip
    of_kind = {which: [p for name, p in params.items() if kind[name] == which] for which in RATES}
    optimizers = {
        Muon(of_kind["matrix"], lr=0, weight_decay=0): RATES["matrix"],
        torch.optim.Adam(of_kind["table"], lr=0, betas=(0.9, 0.98)): RATES["table"],
        torch.optim.AdamW(of_kind["vector"], lr=0, weight_decay=0): RATES["vector"],
    }
    n_done = restore(checkpoint, [*params.values()], optimizers)
    began, means = time.time(), None
    for step, (tokens, hidden, anchors) in enumerate(batches(files, np.random.default_rng([seed, n_done])), n_done):
        if step >= steps or (minutes and time.time() - began > 60 * minutes):
            break
        for optimizer, most in optimizers.items():
            optimizer.param_groups[0]["lr"] = most * min(1, (step + 1) / 40, (1 - step / steps) / (1 - FLAT))
        now = learn(params, tokens, hidden.float(), anchors, output, wpe, n_head)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        means = now if means is None else 0.97 * means + 0.03 * now
        if step % 100 == 0:
            print(step, f"{time.process_time():.0f} s cpu, {time.time() - began:.0f} s", means.round(3), flush=True)
    save_checkpoint(checkpoint, step, [*params.values()], optimizers)
    return params


if __name__ == "__main__":
    fire.Fire(main)
