"""The training of a drafter: text, steps, an evaluation on held-out text and a checkpoint, until the budget is used.

A step trains on about 768 tokens. In the first half of the budget the target writes one new token for every two that
were trained on. So there is a drafter after a minute, and each token is seen about four times in all. The learning
rates rise over 50 steps, and fall linearly after 30 % of the budget.

All random choices of a step depend on its number, and the available batches of text on the number of tokens seen. So
with a budget in tokens, the parameters of an interrupted run are bitwise identical to those of an uninterrupted one.
With a budget in minutes, a run ends at the same learning rate, but no two runs do the same number of steps.
"""

import time
import zlib
from io import BytesIO

import numpy as np
import torch

from ..files.writing import replacing
from .folder import checkpoint_of
from .muon import Muon
from .network import DEVICE
from .text import LEAST_CTX, OwnText, lengths, split, tensors_of

N_TEXTS = 64  # texts of 192 tokens in a batch
LARGE_VOCABULARY = 8192  # from this size on, the distributions are compared only at every fourth position
N_RANKS = 10
CHAIN = 3  # draft tokens in the chain for the expected tokens per call
CHECK_SECONDS = 30  # between two checks; more if a check takes long


class Training:
    """A kind of drafter in training.

    Parameters
    ----------
    kind : Kind
    write : callable
        As in `OwnText`.
    stream : array [n] int32
        The tokens of the texts.
    folder : Path
        Receives the text and the checkpoint, from which a later run continues.
    minutes, tokens : float, int
        The budget: training ends when either is used up; 0 means no limit of this kind.

    Raises
    ------
    ValueError
        If the text is too short, the context too short for prompts, or the checkpoint from a different training run.
    """

    def __init__(self, kind, write, stream, folder, minutes=20.0, tokens=0, seed=0, n_texts=None):
        self.kind, self.target = kind, kind.target
        self.seed = seed
        h = kind.hparams
        if h.n_ctx < LEAST_CTX:
            raise ValueError(f"expected n_positions of {LEAST_CTX} or more, for a prompt and some text, got {h.n_ctx}")
        training, held_out = split(stream, h.n_ctx)
        n_texts = n_texts or N_TEXTS
        self.text = OwnText(folder, self.target, write, training, n_texts, seed)
        self.held_out = OwnText(folder, self.target, write, held_out, n_texts, seed, "held_out")
        self.seconds, self.tokens = 60 * minutes, tokens
        of_muon = [name for name in kind.params if kind.by_muon(name)]
        others = [p for name, p in kind.params.items() if name not in of_muon]
        self.optimizers = {Muon([kind.params[name] for name in of_muon], lr=0, weight_decay=kind.decay): kind.rate}
        if others:
            self.optimizers[torch.optim.AdamW(others, lr=0, betas=(0.9, 0.95), weight_decay=0)] = 3e-3
        self.progress = {"seconds": 0.0, "steps": 0, "tokens_seen": 0, "tokens_of_text": 0, "batches": 0, "checks": []}
        self.progress["threads"] = torch.get_num_threads()
        self.checkpoint = checkpoint_of(kind, folder)
        if self.checkpoint.exists():
            self.restore()

    def restore(self):
        try:
            saved = torch.load(self.checkpoint, map_location=DEVICE, weights_only=True)
            old, new = saved["about"], self.about()
            differences = [f"{name} {old.get(name)}, here {new[name]}" for name in new if old.get(name) != new[name]]
            if not differences:
                for p, old in zip(self.kind.params.values(), saved["params"], strict=True):
                    p.data.copy_(old)
                for optimizer, old in zip(self.optimizers, saved["optimizers"], strict=True):
                    optimizer.load_state_dict(old)
                self.progress = {name: saved["progress"][name] for name in self.progress}
                torch.set_num_threads(self.progress["threads"])  # a different number changes the last bits
        except Exception as error:  # it may have many types
            raise ValueError(f"{self.checkpoint} is damaged ({type(error).__name__}): delete it") from None
        if differences:
            raise ValueError(
                f"{self.checkpoint} is from a different training run ({differences[0]}): delete it, or choose a new "
                "--output"
            )

    def save_checkpoint(self):
        saved = {"about": self.about(), "params": [p.detach() for p in self.kind.params.values()]}
        saved |= {"progress": self.progress, "optimizers": [optimizer.state_dict() for optimizer in self.optimizers]}
        torch.save(saved, content := BytesIO())  # to a full disk PyTorch would write no sentence
        with replacing(self.checkpoint) as new:
            new.write_bytes(content.getbuffer())

    def about(self):
        shapes = {name: list(p.shape) for name, p in self.kind.params.items()}
        prompts = zlib.crc32(self.text.stream.tobytes())
        return {"seed": self.seed, "texts": self.text.n_texts, "prompts": prompts, **shapes}

    @property
    def share(self):
        """The used share of the budget."""
        done, budget = self.progress, ((self.seconds, "seconds"), (self.tokens, "tokens_seen"))
        return min(1.0, max(done[name] / most for most, name in budget if most))

    def run(self, stopped=lambda: False, show=lambda share, note: None):
        """Train until the budget is used, or stopped() is true.

        show(share of the budget, text) is called after each step. The checkpoint is up to date at the end.
        """
        done = self.progress
        rejected = 1.0  # a running mean of the rejection rate
        note = ""  # the result of the last check
        wait = CHECK_SECONDS  # from the end of one check to the next
        checked = time.time()
        began = checked - done["seconds"]
        self.held_out.batch(0)
        while self.share < 1 and not stopped():
            if not done["batches"] or (self.share < 0.5 and 2 * done["tokens_of_text"] < done["tokens_seen"]):
                done["tokens_of_text"] += self.text.batch(done["batches"])[0].size
                done["batches"] += 1
            else:
                rejected += 0.02 * (self.step() - rejected)
            done["seconds"] = time.time() - began
            if time.time() - checked > wait or self.share == 1:
                check_began = time.time()
                tokens_per_call = expected(self.ranks()[:, 0])
                done["checks"].append([done["tokens_seen"], round(tokens_per_call, 3)])
                note = f", {tokens_per_call:.2f} tokens per call on held-out text"
                checked = time.time()
                wait = max(CHECK_SECONDS, 20 * (checked - check_began))
                self.save_checkpoint()
            show(self.share, f"loss {rejected:.3f}, {done['tokens_seen'] / 1e6:.2f}M tokens{note}")
        self.save_checkpoint()

    def step(self):
        """Learn from several texts of one batch; returns the mean rejection rate of the predictions."""
        kind = self.kind
        done = self.progress
        share = self.share
        rng = np.random.default_rng([self.seed, done["steps"], 1])
        batch = self.text.batch(rng.integers(done["batches"]))
        n_texts = max(1, round(tokens_a_step(kind.hparams) / batch[0].shape[1]))
        tokens, hidden = tensors_of(batch, np.sort(rng.permutation(len(batch[0]))[:n_texts]))
        every = stride(kind.hparams)
        rows = kind.rows(hidden.shape[1], int(rng.integers(every * kind.n_slots)), every)
        for optimizer, rate in self.optimizers.items():
            optimizer.param_groups[0]["lr"] = rate * min(1, (done["steps"] + 1) / 50, (1 - share) / 0.7)
        p = self.target.logits(hidden[:, rows]).softmax(-1)
        predicted, losses = kind.predictions(tokens, hidden, rows)
        gradients, rejected = [], []
        for j, logits in enumerate(predicted):
            q = logits.detach().softmax(-1)
            gradient, rate = gradient_of(p[:, kind.of_depth(j)], q, share if kind.mixes else 0)
            gradients.append(kind.weights[j] * gradient)
            rejected.append(rate)
        torch.autograd.backward([*predicted, *losses], [*gradients, *(None for _ in losses)])
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        done["steps"] += 1
        done["tokens_seen"] += hidden[..., 0].numel()
        return np.mean(rejected)

    @torch.no_grad()
    def ranks(self):
        """How often, in held-out greedy text, the token of rank 0, 1, .. at each depth is the token of the target.

        The result is [n_depths, N_RANKS], given that the tokens before are right. EAGLE's block is measured only at the
        first depth.
        """
        batch, shares = self.held_out.batch(0), []
        for i in range(len(batch[0])):
            tokens, hidden = tensors_of(batch, [i])
            n = hidden.shape[1]
            rows = self.kind.rows(n, n - lengths(self.kind.hparams.n_ctx)[1], 1)
            wanted = tokens[:, rows + 1, None]
            predicted = enumerate(self.kind.predictions(tokens, hidden, rows)[0])
            ranks = [(z > z.gather(-1, wanted[:, self.kind.of_depth(j)])).sum(-1).cpu().numpy() for j, z in predicted]
            shares.append((np.array(ranks).reshape(len(ranks), 1, -1) == np.arange(N_RANKS)[:, None]).mean(-1))
        return np.mean(shares, axis=0)


def gradient_of(p, q, share):
    """The gradient of (1 - share) KL(p || q) + share (1 - sum min(p, q)) in the logits of q, and 1 - sum min(p, q).

    p and q are [.., n_vocab], and both results are means over the positions.
    """
    gradient = (q - p) * (1 - share)
    if share:
        kept = q * (q < p)
        gradient += share * (q * kept.sum(-1, keepdim=True) - kept)
    return gradient / q[..., 0].numel(), (p - q).abs().sum(-1).mean().item() / 2


def expected(accepted):
    """The tokens per call at temperature 0 of a chain of CHAIN tokens that are right this often, by depth."""
    rates = accepted[:CHAIN] if len(accepted) > 1 else np.full(CHAIN, accepted[0])
    return float(1 + np.cumprod(rates).sum())


def tokens_a_step(hparams):
    """Tokens in a step: more for a wide model, where the optimizer costs as much as a few hundred tokens."""
    return 768 * max(1, hparams.n_embd // 256)


def stride(hparams):
    """The distance between the positions whose distributions are compared."""
    return 4 if hparams.n_vocab > LARGE_VOCABULARY else 1
