"""A verifier in PyTorch; torch_verifiers.txt has edits of it."""

import torch

from speculative import Verdict, sample_token


def rule(draft, target_probs, rng):
    p, q = torch.from_numpy(target_probs), torch.from_numpy(draft.probs)
    for i, x in enumerate(draft.tokens):
        if not rng.random() < p[i, x] / q[i, x]:
            rest = torch.clamp(p[i] - q[i], min=0)
            return Verdict(i, sample_token((rest / rest.sum()).numpy(), rng))
    return Verdict(len(draft.tokens), sample_token(p[-1].numpy(), rng))
