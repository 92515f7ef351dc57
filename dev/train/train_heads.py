"""Training heads for tiny-target: Hydra's and Medusa's, on text that the target wrote itself.

    python -m pip install -e ".[train]"
    python dev/train/train_heads.py FOLDER_OF_TEXT --out OUT_FOLDER

FOLDER_OF_TEXT has the .txt files of tales.py. The target is frozen, so its hidden states are computed once: it
continues prompts from the training tales, half of them greedily, and every token's hidden state is stored, n_embd
numbers in float16. Then the heads learn the target's own distribution i tokens further on (KL divergence), since that
is what a draft token is accepted by; the text's next token would teach them the author's words, which the target does
not say. Steps that are done are skipped, as in train.py.

Sources: Cai et al. (Medusa), arXiv:2401.10774, section 2.2, with self-distillation as in 2.3.2; Ankner et al. (Hydra),
arXiv:2402.05109, section 3; Muon (muon.py).
"""

import time
from pathlib import Path

import fire
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.numpy import save_file
from tqdm import tqdm

import gpt2np
from gpt2np.files.loading import load
from gpt2np.heads import Heads
from gpt2np.tokenizer import Tokenizer
from measure_heads import N_RANKS, accepted, greedy_texts, held_out_prompts
from muon import Muon
from tales import read_tales, split, tokenize
from train import DEVICE

TINY = Path(gpt2np.__file__).parent / "tiny"
N_TEXTS = 128  # in a batch
TEXTS = [(temperature, 64, 128) for temperature in (0, 1.0, 0, 0.5)]  # of the batches in turn, see `target_text`
N_HEADS = 3


def main(corpus, out="tiny", tokens=2_000_000, hydra_tokens=6_000_000, medusa_tokens=3_000_000, seed=0):
    """All steps, from the folder `corpus` to heads.safetensors in the folder `out`."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    target = transformers.GPT2LMHeadModel.from_pretrained(TINY / "tiny-target", dtype=torch.float32).to(DEVICE).eval()
    tokenizer = Tokenizer.from_files(TINY / "tiny-target" / "vocab.json", TINY / "tiny-target" / "merges.txt")
    stream = tokenize(split(read_tales(corpus), seed)[0], tokenizer)
    files = write_text(target, stream, out, int(tokens), TEXTS, seed)
    kinds = {"hydra": int(hydra_tokens), "medusa": int(medusa_tokens)}
    if min(kinds.values()) < 1:
        raise ValueError(f"expected 1 or more hydra_tokens and medusa_tokens, got {hydra_tokens} and {medusa_tokens}")
    trained = {kind: train_heads(kind, target, files, n, out / f"{kind}.pt", seed) for kind, n in kinds.items()}
    save(trained, target, out / "heads.safetensors")


# ------------------------------------------------------------------------------------------------ text


def write_text(target, stream, folder, n_tokens, texts, seed):
    """Files of about n_tokens tokens in all that the target wrote, with the hidden state of each; texts in turn."""
    files, n_files = [], 0
    while n_files == 0 or n_tokens > 0:
        files.append((folder / f"text_{n_files:04d}.npz", texts[n_files % len(texts)]))
        n_tokens -= N_TEXTS * sum(files[-1][1][1:])
        n_files += 1
    for i, (path, text) in enumerate(tqdm(files, desc="the target's own text", unit=" batches")):
        if not path.exists():
            tokens, hidden = target_text(target, stream, *text, np.random.default_rng([seed, i]))
            np.savez(path.with_suffix(".new.npz"), tokens=tokens, hidden=hidden)
            path.with_suffix(".new.npz").replace(path)
    return [path for path, _ in files]


@torch.no_grad()
def target_text(target, stream, temperature, n_prompt, n_new, rng):
    """(tokens [N_TEXTS, n] int16, hidden states [N_TEXTS, n - 1, n_embd] float16), n = n_prompt + n_new.

    A hidden state is the last norm's result before gain and bias.
    """
    starts = rng.integers(0, len(stream) - n_prompt, N_TEXTS)
    tokens = new = torch.stack([stream[start : start + n_prompt] for start in starts]).to(DEVICE)
    cache, hidden, norm = transformers.DynamicCache(), [], target.transformer.ln_f
    generator = torch.Generator().manual_seed(int(rng.integers(1 << 31)))
    for _ in range(n_new):
        h = target.transformer(input_ids=new, past_key_values=cache, use_cache=True).last_hidden_state
        hidden.append((h - norm.bias) / norm.weight)
        logits = target.lm_head(h[:, -1])
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial((logits / temperature).softmax(-1).cpu(), 1, generator=generator).to(DEVICE)
        tokens = torch.cat([tokens, new], 1)
    return tokens.cpu().numpy().astype(np.int16), torch.cat(hidden, 1).cpu().numpy().astype(np.float16)


def batches(files, n_tokens, rng, n_texts=8):
    """Yields (tokens [n_texts, n], hidden states [n_texts, n - 1, n_embd], share of the training done)."""
    done = 0
    while done < n_tokens:
        for path in rng.permutation(files):
            with np.load(path) as text:
                tokens, hidden = text["tokens"], text["hidden"]
            for rows in rng.permutation(len(tokens)).reshape(-1, n_texts):
                if done < n_tokens:
                    yield (
                        torch.from_numpy(tokens[rows]).long().to(DEVICE),
                        torch.from_numpy(hidden[rows]).float().to(DEVICE),
                        done / n_tokens,
                    )
                done += hidden.shape[1] * n_texts


# ------------------------------------------------------------------------------------------------ training


def new_heads(kind, n_embd):
    """For each head, its parameters; at the start a head repeats the hidden state."""
    heads = []
    for i in range(1, N_HEADS + 1):
        if kind == "medusa":
            head = {"w": torch.zeros(n_embd, n_embd), "b": torch.zeros(n_embd)}
        else:
            n_in = (i + 1) * n_embd
            head = {"a": torch.eye(n_in, n_embd), "w": 0.02 * torch.randn(n_in, n_embd)}
        heads.append({name: value.to(DEVICE).requires_grad_() for name, value in head.items()})
    return heads


def apply(kind, head, h, embeddings):
    """h [n, n_embd] and the embeddings [n, n_embd] of the next tokens -> y [n, n_embd], in the place of h."""
    if kind == "medusa":
        return h + F.silu(h @ head["w"] + head["b"])
    x = torch.cat([h, *embeddings], -1)
    return x @ head["a"] + F.silu(x @ head["w"])


def learn(kind, heads, tokens, hidden, output):
    """Add to the heads' gradients; returns each head's mean overlap sum min(p, q) with the target, i tokens further on.

    `output` as `output_of` returns it. The gradient of KL(p || softmax(z)) with respect to z is
    softmax(z) - p.
    """
    wte, gain, bias = output
    logits = lambda h: F.linear(h * gain + bias, wte)  # noqa: E731
    e = wte[tokens] / wte.std()
    p, overlaps = logits(hidden).softmax(-1), []
    for i, head in enumerate(heads, 1):
        n = hidden.shape[1] - i
        z = logits(apply(kind, head, hidden[:, :n], [e[:, j : j + n] for j in range(1, i + 1)]))
        difference = z.detach().softmax(-1) - p[:, i:]
        z.backward(difference / difference[..., 0].numel())
        overlaps.append(1 - difference.abs().sum(-1).mean().item() / 2)
    return np.array(overlaps)


def train_heads(kind, target, files, n_tokens, checkpoint, seed):
    """The heads of a kind, trained on n_tokens tokens."""
    torch.manual_seed(seed)
    heads, output = new_heads(kind, target.config.n_embd), output_of(target)
    parameters = [p for head in heads for p in head.values()]
    train(parameters, lambda *text: learn(kind, heads, *text, output), files, n_tokens, checkpoint, seed)
    return heads


def output_of(target):
    """(wte, the last norm's gain and bias)."""
    norm = target.transformer.ln_f
    return [p.detach() for p in (target.transformer.wte.weight, norm.weight, norm.bias)]


def train(parameters, learn, files, n_tokens, checkpoint, seed, n_texts=8, rate=0.02):
    """Train on n_tokens tokens: Muon for matrices, AdamW for vectors; the rates fall linearly after 30 %.

    `learn(tokens, hidden)` adds to the gradients and returns what the progress bar shows, an array.
    """
    matrices, biases = ([p for p in parameters if p.ndim == n] for n in (2, 1))
    optimizers = {Muon(matrices, lr=0, weight_decay=0): rate}
    if biases:
        optimizers[torch.optim.AdamW(biases, lr=0, weight_decay=0)] = 3e-3
    n_done = restore(checkpoint, matrices + biases, optimizers)
    bar = tqdm(total=n_tokens, desc=checkpoint.stem, unit=" tokens", unit_scale=True, mininterval=5, smoothing=0.05)
    saved, means = time.time(), None
    for step, (tokens, hidden, share) in enumerate(batches(files, n_tokens, np.random.default_rng(seed), n_texts)):
        bar.update(hidden[..., 0].numel())
        if step < n_done:
            continue
        for optimizer, most in optimizers.items():
            optimizer.param_groups[0]["lr"] = most * min(1, (step + 1) / 50) * min(1, (1 - share) / 0.7)
        now = learn(tokens, hidden)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        means = now if means is None else 0.98 * means + 0.02 * now
        bar.set_postfix(overlap="/".join(f"{share:.3f}" for share in means), refresh=False)
        if time.time() - saved > 60:
            save_checkpoint(checkpoint, step + 1, matrices + biases, optimizers)
            saved = time.time()
    save_checkpoint(checkpoint, step + 1, matrices + biases, optimizers)
    bar.close()


def restore(path, parameters, optimizers):
    """Restore them from the checkpoint, if there is one; returns the number of steps done."""
    if not path.exists():
        return 0
    state = torch.load(path, map_location=DEVICE)
    with torch.no_grad():
        for p, saved in zip(parameters, state["parameters"]):
            p.copy_(saved)
    for optimizer, saved in zip(optimizers, state["optimizers"]):
        optimizer.load_state_dict(saved)
    return state["step"]


def save_checkpoint(path, step, parameters, optimizers):
    state = {"step": step, "parameters": parameters, "optimizers": [o.state_dict() for o in optimizers]}
    torch.save(state, f"{path}.new")
    Path(f"{path}.new").replace(path)


def save(trained, target, path):
    """heads.safetensors in float16, with the acceptance of each rank; see `gpt2np.load_heads`."""
    model, tokenizer = load("tiny-target")
    texts = greedy_texts(model, held_out_prompts(tokenizer, 36), 64)
    n_embd, std, tensors = target.config.n_embd, target.transformer.wte.weight.std().item(), {}
    for kind, heads in trained.items():
        for head in heads:
            head |= {name: value.detach().cpu().numpy() for name, value in head.items()}
            if kind == "hydra":  # the embeddings' scale in training goes into the weights
                head |= {name: np.concatenate([w[:n_embd], w[n_embd:] / std]) for name, w in head.items()}
            head["accepted"] = np.zeros(N_RANKS)
        shares = accepted(model, Heads(heads), texts, 64)
        for i, head in enumerate(heads):
            head["accepted"] = shares[i]
            tensors |= {f"{kind}.{i + 1}.{name}": value.astype(np.float16) for name, value in head.items()}
    save_file(tensors, path)


if __name__ == "__main__":
    fire.Fire(main)
