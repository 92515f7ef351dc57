"""Functions in PyTorch with signatures of their own; the first form is the commonest exercise."""

import inspect

import torch

from students.edits import edited


def decode(target_probs, draft_probs, draft_tokens):
    out = []
    for i in range(len(draft_tokens)):
        x = draft_tokens[i].item()
        ratio = (target_probs[i, x] / draft_probs[i, x]).item()
        if torch.rand(1).item() < min(1.0, ratio):
            out.append(x)
        else:
            residual = torch.clamp(target_probs[i] - draft_probs[i], min=0)
            out.append(torch.multinomial(residual / residual.sum(), 1).item())
            break
    return out


def vectorised(target_probs, draft_probs, draft_tokens):
    rows = torch.arange(len(draft_tokens))
    ratio = target_probs[rows, draft_tokens] / draft_probs[rows, draft_tokens]
    n = int((torch.rand_like(ratio) < ratio).long().cumprod(0).sum())
    last = target_probs[n] if n == len(rows) else (target_probs[n] - draft_probs[n]).relu()
    return torch.cat([draft_tokens[:n], torch.multinomial(last, 1)]), n


def in_place(draft_tokens, draft_probs, target_probs, uniform_samples, output, B, T, V):
    for b in range(B):
        for i in range(T + 1):
            x = draft_tokens[b, i] if i < T else 0
            if i < T and uniform_samples[b, i] * draft_probs[b, i, x] < target_probs[b, i, x]:
                output[b, i] = x
                continue
            row = target_probs[b, i] if i == T else (target_probs[b, i] - draft_probs[b, i]).clamp(min=0)
            cdf = torch.cumsum(row / row.sum(), dim=0)
            output[b, i] = torch.searchsorted(cdf, uniform_samples[b, T], right=True)
            break


def by_exponentials(target_probs, draft_probs, draft_tokens):
    """As gpt-fast and vLLM draw: argmax(w / E), with exponential numbers E."""
    out = []
    for p, q, x in zip(target_probs, draft_probs, draft_tokens.tolist()):
        if torch.rand(()) * q[x] >= p[x]:
            weights = (p - q).clamp(min=0)
            return [*out, (weights / torch.empty_like(weights).exponential_(1)).argmax().item()]
        out.append(x)
    last = target_probs[-1:]
    return [*out, torch.argmax(last / torch.empty_like(last).exponential_(), dim=-1, keepdim=True).item()]


def changed(*changes):
    return edited(inspect.getsource(decode), "decode", *changes, kept=globals())


RIGHT = {f.__name__: f for f in (decode, vectorised, in_place, by_exponentials)}
WRONG = {
    "from the target": (changed("target_probs[i] - draft_probs[i]", "target_probs[i]"), ("drew from the target",)),
    "float32": (changed("out = []", "out, target_probs = [], target_probs.float()"), ("float32",)),
}
