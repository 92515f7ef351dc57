"""Train tiny-target and its tokenizer on a folder of plain text; for its drafters see `python main.py train`.

    python -m pip install -e ".[train]"
    python dev/train/train.py FOLDER_OF_TEXT --out OUT_FOLDER

FOLDER_OF_TEXT contains .txt files, see tales.py. The steps are the functions that `main` calls in turn. A step is
skipped if OUT_FOLDER already has its result, and an interrupted run resumes from its last checkpoint. It runs on
an accelerator if there is one, otherwise on the CPU.

Muon (muon.py) trains the matrices of the blocks, AdamW everything else; in equal time on two CPU cores this reached a
lower loss than AdamW alone.
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

from gpt2np.tokenizer import END_OF_TEXT, Tokenizer
from gpt2np.training.muon import Muon
from tales import N_VOCAB, read_tales, split, tokenize, train_tokenizer

N_CTX = 512
TARGET = {"n_layer": 9, "n_embd": 256, "n_head": 8}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main(corpus, out="tiny", target_tokens=16_000_000, seed=0):
    """All steps, from the folder `corpus` to the folder `out`."""
    out = Path(out)
    folder = out / "tiny-target"
    tales = read_tales(corpus)
    training, held_out = split(tales, seed)
    if not (folder / "merges.txt").exists():
        train_tokenizer(tales, folder)
    tokenizer = Tokenizer.from_files(folder / "vocab.json", folder / "merges.txt")
    (out / "held_out.txt").write_text("\n\n".join(held_out) + "\n", encoding="utf-8")
    (out / "training.txt").write_text(END_OF_TEXT.join(training), encoding="utf-8")  # for the drafters
    stream = tokenize(training, tokenizer)
    target = train_target(stream, folder, int(target_tokens), seed)
    figures = {"target_tokens": int(target_tokens), "seed": seed, "training_tokens": len(stream)}
    figures |= measure(target, tokenize(held_out, tokenizer))
    (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))


# ------------------------------------------------------------------------------------------------ models


def new_model():
    config = transformers.GPT2Config(
        vocab_size=N_VOCAB, n_positions=N_CTX, **TARGET, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.0,
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
        model = new_model()
        train(model, stream, n_tokens, folder / "checkpoint.pt", seed)
        save_model(model, folder)
    return transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).to(DEVICE).eval()


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


def train(model, stream, n_tokens, checkpoint, seed):
    """Train on n_tokens tokens; the learning rates rise over 50 steps and fall linearly after 30 % of the training."""
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
    bar = tqdm(total=n_tokens, desc="target", unit=" tokens", unit_scale=True, mininterval=5, smoothing=0.05)
    for step, (tokens, positions, share) in enumerate(batches(stream, n_tokens, np.random.default_rng(seed))):
        bar.update(tokens[:, 1:].numel())
        if step < n_done:
            continue
        for optimizer, rate in optimizers.items():
            optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 50) * min(1, (1 - share) / 0.7)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            loss = next_token_loss(model, tokens, positions)
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


def next_token_loss(model, tokens, positions):
    """Mean cross-entropy in nats per token."""
    logits = model(input_ids=tokens[:, :-1], position_ids=positions[None], use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


@torch.no_grad()
def measure(target, stream):
    """The loss on held-out text in nats per token, in windows of 512 tokens."""
    windows = stream[: len(stream) // (N_CTX + 1) * (N_CTX + 1)].view(-1, N_CTX + 1).to(DEVICE)
    losses = [next_token_loss(target, tokens, torch.arange(N_CTX, device=DEVICE)).item() for tokens in windows.split(1)]
    return {"held_out_tokens": windows.numel(), "target_loss": float(np.mean(losses))}


if __name__ == "__main__":
    fire.Fire(main)
