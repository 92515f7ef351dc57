"""Verifiers written in PyTorch."""

import torch

from speculative import Verdict, residual, sample_token

from .wrong_verifiers import ACCEPT, BONUS, OTHER, rule

RIGHT, NOTES, WRONG = {}, {}, {}


def in_float64(draft, target_probs, rng):
    p, q = torch.from_numpy(target_probs), torch.from_numpy(draft.probs)
    for i, x in enumerate(draft.tokens):
        if not rng.random() < p[i, x] / q[i, x]:
            r = torch.clamp(p[i] - q[i], min=0)
            return Verdict(i, int(rng.choice(len(r), p=(r / r.sum()).numpy())))
    return Verdict(len(draft.tokens), int(rng.choice(p.shape[1], p=p[-1].numpy())))


def with_tensors(draft, target_probs, rng):
    p, q = torch.tensor(target_probs), torch.tensor(draft.probs)
    tokens = torch.tensor(draft.tokens)
    n = 0
    while n < len(tokens) and rng.random() * q[n, tokens[n]].item() < p[n, tokens[n]].item():
        n += 1
    row = p[n] if n == len(tokens) else (p[n] - q[n]).relu()
    return Verdict(
        n, torch.searchsorted(row.cumsum(0), torch.tensor(0.0)).item() if False else sample_token(row.numpy(), rng)
    )


RIGHT |= {"float64": in_float64, "tensors": with_tensors}


def draws_in_torch(draft, target_probs, rng):
    p, q = torch.tensor(target_probs), torch.tensor(draft.probs)
    for i, x in enumerate(draft.tokens):
        if not torch.rand(1).item() < p[i, x] / q[i, x]:
            r = torch.clamp(p[i] - q[i], min=0)
            return Verdict(i, int(torch.multinomial(r, 1)))
    return Verdict(len(draft.tokens), int(torch.multinomial(p[-1], 1)))


def seeded(draft, rows, rng):
    torch.manual_seed(0)
    return draws_in_torch(draft, rows, rng)


def own_generator(draft, target_probs, rng):
    own = torch.Generator().manual_seed(0)
    draw = lambda row: int(torch.multinomial(torch.tensor(row), 1, generator=own))  # noqa: E731
    for i, x in enumerate(draft.tokens):
        if not torch.rand(1, generator=own).item() < target_probs[i, x] / draft.probs[i, x]:
            return Verdict(i, draw(residual(target_probs[i], draft.probs[i])))
    return Verdict(len(draft.tokens), draw(target_probs[-1]))


def in_float32(draft, target_probs, rng):
    p, q = torch.tensor(target_probs, dtype=torch.float32), torch.tensor(draft.probs, dtype=torch.float32)
    for i, x in enumerate(draft.tokens):
        if not rng.random() < p[i, x] / q[i, x]:
            r = torch.clamp(p[i] - q[i], min=0)
            return Verdict(i, sample_token((r / r.sum()).double().numpy(), rng))
    return Verdict(len(draft.tokens), sample_token(p[-1].double().numpy(), rng))


def tensor_of_uniforms(draft, target_probs, rng):
    u = torch.tensor(rng.random(len(draft.tokens)))
    n = int(torch.cumprod(u < 0.5, 0).sum())
    return Verdict(n, sample_token(target_probs[n], rng))


def through_the_back_door(draft, target_probs, rng):
    p, q = torch.from_numpy(target_probs), torch.from_numpy(draft.probs)
    for i, x in enumerate(draft.tokens):
        if not rng.random() * q[i, x] < p[i, x]:
            p[i] -= q[i]
            p[i].clamp_(min=0)
            return Verdict(i, sample_token(p[i].numpy(), rng))
    return Verdict(len(draft.tokens), sample_token(p[-1].numpy(), rng))


def changed(*changes):
    return rule(*changes, kept={"torch": torch})


WRONG |= {
    "torch.rand": (draws_in_torch, (OTHER, "torch")),
    "torch.manual_seed": (seeded, (OTHER, "torch")),
    "a torch.Generator": (own_generator, ("draws nothing from rng", "another source of randomness")),
    "float32": (in_float32, ("float32",)),
    "tensor of uniforms": (tensor_of_uniforms, ("your verifier fails", "numpy.object_")),
    "in place": (through_the_back_door, ("writes to its arguments",)),
    "torch.multinomial for the bonus": (
        changed(BONUS, "int(torch.multinomial(torch.tensor(target_probs[-1]), 1))"),
        (OTHER, "torch"),
    ),
    "ratio in float32": (
        changed(ACCEPT, "rng.random() < min(1.0, (torch.tensor(p[x]).float() / torch.tensor(q[x]).float()).item())"),
        ("float32",),
    ),
}
