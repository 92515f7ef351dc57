"""Verifiers written in PyTorch."""

import torch

from speculative import Verdict, residual, sample_token

from .verifiers import OTHER, template

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


def bonus_in_torch(draft, rows, rng):
    return int(torch.multinomial(torch.tensor(rows[-1]), 1))


def seeded(draft, rows, rng):
    torch.manual_seed(0)
    return draws_in_torch(draft, rows, rng)


def own_generator(draft, rows, rng):
    generator = torch.Generator().manual_seed(0)
    return template(lambda p, q, x, *_: torch.rand(1, generator=generator).item() < p[x] / q[x],
                    lambda p, q, *_: int(torch.multinomial(torch.tensor(residual(p, q)), 1, generator=generator)),
                    lambda d, r, _: int(torch.multinomial(torch.tensor(r[-1]), 1, generator=generator)))(draft, rows, rng)  # fmt: skip


def in_float32(draft, target_probs, rng):
    p, q = torch.tensor(target_probs, dtype=torch.float32), torch.tensor(draft.probs, dtype=torch.float32)
    for i, x in enumerate(draft.tokens):
        if not rng.random() < p[i, x] / q[i, x]:
            r = torch.clamp(p[i] - q[i], min=0)
            return Verdict(i, sample_token((r / r.sum()).double().numpy(), rng))
    return Verdict(len(draft.tokens), sample_token(p[-1].double().numpy(), rng))


def ratio_in_float32(draft, target_probs, rng):
    def accept(p, q, x, rng, *_):
        return rng.random() < min(1.0, (torch.tensor(p[x]).float() / torch.tensor(q[x]).float()).item())

    return template(accept)(draft, target_probs, rng)


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


WRONG |= {
    "torch.rand": (draws_in_torch, (OTHER, "torch")),
    "torch.multinomial for the bonus": (template(bonus=bonus_in_torch), (OTHER, "torch")),
    "torch.manual_seed": (seeded, (OTHER, "torch")),
    "a torch.Generator": (own_generator, ("draws nothing from rng", "another source of randomness")),
    "float32": (in_float32, ("float32",)),
    "ratio in float32": (ratio_in_float32, ("float32",)),
    "tensor of uniforms": (tensor_of_uniforms, ("your verifier fails", "numpy.object_")),
    "in place": (through_the_back_door, ("writes to its arguments",)),
}
