"""Muon, an optimizer for matrices: every update is made orthogonal, so that it is equally large in all directions.

Source: Keller Jordan, https://kellerjordan.github.io/posts/muon.
"""

import math

import torch


class Muon(torch.optim.Optimizer):
    """Momentum with updates orthogonalised by a Newton-Schulz iteration, for the matrices of the blocks.

    `torch.optim.Muon` iterates in bfloat16, which takes many times as long on a CPU without bfloat16 arithmetic.
    """

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.1):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(momentum, group["momentum"])
                n_in, n_out = p.shape  # c_attn holds three matrices side by side
                parts = update.split(n_in, 1) if n_out == 3 * n_in else [update]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.cat([orthogonalise(part) for part in parts], 1), alpha=-group["lr"])


def orthogonalise(matrix):
    x = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (2.0315 * gram @ gram - 4.7750 * gram) @ x
    scale = math.sqrt(max(1, matrix.shape[1] / matrix.shape[0]))
    return scale * (x if matrix.shape[0] <= matrix.shape[1] else x.T)
