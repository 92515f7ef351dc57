"""Training the bundled pair from a folder of plain text: a tokenizer, tiny-target, and tiny-draft distilled from it.

    python -m pip install -e ".[train]"
    python dev/train/train.py FOLDER_OF_TEXT --out OUT_FOLDER

FOLDER_OF_TEXT has .txt files, see tales.py. The steps are the functions that `main` calls in turn. A step is skipped if
OUT_FOLDER already has its result, and an interrupted training resumes from its last checkpoint. It runs on an
accelerator if there is one, otherwise on the CPU.

Muon (muon.py) trains the matrices of the blocks, AdamW everything else; in equal time on two CPU cores this reached a
lower loss than AdamW alone. The draft learns from the target's distributions, both on the tales and on text that the
target wrote, as in DistillSpec, arXiv:2310.08461.
"""

import json
import time
from pathlib import Path

import fire
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from tqdm import tqdm

from gpt2np.tokenizer import Tokenizer
from muon import Muon
from tales import N_VOCAB, read_tales, split, tokenize, train_tokenizer

N_CTX = 512
TARGET = {"n_layer": 9, "n_embd": 256, "n_head": 8}
DRAFT = {"n_layer": 2, "n_embd": 128, "n_head": 4}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main(corpus, out="tiny", target_tokens=16_000_000, draft_tokens=12_000_000, seed=0):
    """All steps, from the folder `corpus` to the folder `out`."""
    out = Path(out)
    folders = out / "tiny-target", out / "tiny-draft"
    tales = read_tales(corpus)
    training, held_out = split(tales, seed)
    for folder in folders:
        if not (folder / "merges.txt").exists():
            train_tokenizer(tales, folder)
    tokenizer = Tokenizer.from_files(folders[0] / "vocab.json", folders[0] / "merges.txt")
    (out / "held_out.txt").write_text("\n\n".join(held_out) + "\n", encoding="utf-8")
    stream = tokenize(training, tokenizer)
    target = train_target(stream, folders[0], int(target_tokens), seed)
    draft = train_draft(target, stream, folders[1], int(draft_tokens), seed)
    figures = {"target_tokens": int(target_tokens), "draft_tokens": int(draft_tokens), "seed": seed}
    figures |= {"training_tokens": len(stream), **measure(target, draft, tokenize(held_out, tokenizer))}
    (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))


# ------------------------------------------------------------------------------------------------ models


def new_model(shape, dropout):
    config = transformers.GPT2Config(
        vocab_size=N_VOCAB, n_positions=N_CTX, **shape, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=0.0,
        activation_function="gelu_pytorch_tanh", bos_token_id=N_VOCAB - 1, eos_token_id=N_VOCAB - 1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).to(DEVICE)


def save_model(model, folder):
    """config.json and model.safetensors in float16, as `gpt2np.load` and `transformers` read them."""
    model.config.activation_function = "gelu_new"  # the same function under GPT-2's name for it
    model.config.n_ctx = N_CTX  # for the GGUF converter of llama.cpp
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)


def train_target(stream, folder, n_tokens, seed):
    """tiny-target, trained on the tales."""
    if not (folder / "model.safetensors").exists():
        torch.manual_seed(seed)
        model = new_model(TARGET, dropout=0.1)
        train(model, next_token_loss, stream, n_tokens, folder / "checkpoint.pt", seed, "target")
        save_model(model, folder)
    return transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).to(DEVICE).eval()


def train_draft(target, stream, folder, n_tokens, seed):
    """tiny-draft, distilled from the target on the tales and on text that the target wrote."""
    if not (folder / "model.safetensors").exists():
        own = folder / "target_text.pt"
        if not own.exists():
            torch.save(target_text(target, stream, len(stream) // 4, seed), own)
        torch.manual_seed(seed)
        model = new_model(DRAFT, dropout=0.0)
        loss = distillation_loss(target)
        both = torch.cat([stream, torch.load(own)])
        train(model, loss, both, n_tokens, folder / "checkpoint.pt", seed, "draft")
        save_model(model, folder)
        own.unlink()
    return transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).to(DEVICE).eval()


def target_text(target, stream, n_tokens, seed):
    """About n_tokens in which the target continues prompts of 32 tokens; half is greedy, half at temperature 1."""
    torch.manual_seed(seed)
    texts = []
    n_new, n_batch = 224, 64
    for i in tqdm(range(max(2, n_tokens // (n_new * n_batch))), desc="the target's own text", unit=" batches"):
        starts = torch.randint(0, len(stream) - 32, (n_batch,)).tolist()
        prompts = torch.stack([stream[s : s + 32] for s in starts]).to(DEVICE)
        sampled = {"do_sample": True, "top_k": 0} if i % 2 else {"do_sample": False}
        with torch.no_grad():
            text = target.generate(
                prompts, attention_mask=torch.ones_like(prompts), min_new_tokens=n_new, max_new_tokens=n_new,
                pad_token_id=N_VOCAB - 1, **sampled,
            )  # fmt: skip
        texts.append(text.flatten().cpu())
    return torch.cat(texts)


# ------------------------------------------------------------------------------------------------ training


def batches(stream, n_tokens, rng):
    """Yields (tokens [n, n_seq + 1], positions [n_seq], fraction of the training done).

    16 windows of 256 tokens, at random positions of the context so that every position is learned; later 8 of 512.
    """
    done = 0
    while done < n_tokens:
        n, n_seq = (16, 256) if done < 0.85 * n_tokens else (8, 512)
        starts = rng.integers(0, len(stream) - n_seq, n)
        first = int(rng.integers(0, N_CTX - n_seq + 1))
        tokens = torch.stack([stream[start : start + n_seq + 1] for start in starts])
        yield tokens.to(DEVICE), torch.arange(first, first + n_seq, device=DEVICE), done / n_tokens
        done += n * n_seq


def train(model, loss_of, stream, n_tokens, checkpoint, seed, name):
    """Train on n_tokens tokens; the learning rates rise over 50 steps and fall linearly after 30 % of the training.

    `loss_of(model, tokens, positions, share)` returns the loss of a batch; `share` is the fraction done.
    """
    in_blocks = [".h." in name and p.ndim == 2 for name, p in model.named_parameters()]
    matrices, others = (
        [p for p, is_in in zip(model.parameters(), in_blocks) if is_in == which] for which in (True, False)
    )
    adam = torch.optim.AdamW(others, lr=0, betas=(0.9, 0.95), weight_decay=0)
    optimizers = {Muon(matrices, lr=0): 0.02, adam: 3e-3}
    parts = [model, *optimizers]
    n_done = load_checkpoint(checkpoint, parts)
    model.train()
    saved = time.time()
    bar = tqdm(total=n_tokens, desc=name, unit=" tokens", unit_scale=True, mininterval=5, smoothing=0.05)
    for step, (tokens, positions, share) in enumerate(batches(stream, n_tokens, np.random.default_rng(seed))):
        bar.update(tokens[:, 1:].numel())
        if step < n_done:
            continue
        for optimizer, rate in optimizers.items():
            optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 50) * min(1, (1 - share) / 0.7)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            loss = loss_of(model, tokens, positions, share)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if time.time() - saved > 120:
            torch.save({"step": step + 1, "parts": [part.state_dict() for part in parts]}, f"{checkpoint}.new")
            Path(f"{checkpoint}.new").replace(checkpoint)
            saved = time.time()
    bar.close()
    model.eval()
    checkpoint.unlink(missing_ok=True)


def load_checkpoint(checkpoint, parts):
    """Restore the parts from the checkpoint, if there is one; returns the number of steps done."""
    if not checkpoint.exists():
        return 0
    state = torch.load(checkpoint, map_location=DEVICE)
    for part, saved in zip(parts, state["parts"]):
        part.load_state_dict(saved)
    return state["step"]


def logits_of(model, tokens, positions):
    return model(input_ids=tokens[:, :-1], position_ids=positions[None], use_cache=False).logits.flatten(0, 1).float()


def next_token_loss(model, tokens, positions, share=None):
    """Mean cross-entropy in nats per token."""
    return F.cross_entropy(logits_of(model, tokens, positions), tokens[:, 1:].flatten())


def distillation_loss(target):
    """The loss of a draft for this target: first KL(p || q), gradually the rejection rate 1 - sum min(p, q) instead."""

    def loss_of(model, tokens, positions, share):
        with torch.no_grad():
            log_p = F.log_softmax(logits_of(target, tokens, positions), -1)
        log_q = F.log_softmax(logits_of(model, tokens, positions), -1)
        kl = F.kl_div(log_q, log_p, log_target=True, reduction="batchmean")
        rejected = 1 - torch.minimum(log_p, log_q).exp().sum(-1).mean()
        return (1 - share) * kl + share * rejected

    return loss_of


@torch.no_grad()
def measure(target, draft, stream):
    """The losses of both models (nats per token) and their agreement on held-out text, in windows of 512 tokens."""
    windows = stream[: len(stream) // (N_CTX + 1) * (N_CTX + 1)].view(-1, N_CTX + 1)
    sums, positions = torch.zeros(4), torch.arange(N_CTX, device=DEVICE)
    for tokens in tqdm(windows.to(DEVICE).split(4), desc="held-out text", unit=" batches"):
        p, q = (logits_of(model, tokens, positions) for model in (target, draft))
        following = tokens[:, 1:].flatten()
        sums += torch.stack([
            F.cross_entropy(p, following, reduction="sum"), F.cross_entropy(q, following, reduction="sum"),
            torch.minimum(p.softmax(-1), q.softmax(-1)).sum(), (p.argmax(-1) == q.argmax(-1)).sum(),
        ]).cpu()  # fmt: skip
    names = ("target_loss", "draft_loss", "overlap", "same_greedy_token")
    return {"held_out_tokens": windows.numel(), **dict(zip(names, (sums / (len(windows) * N_CTX)).tolist()))}


if __name__ == "__main__":
    fire.Fire(main)
