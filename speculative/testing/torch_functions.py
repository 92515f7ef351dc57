"""What `TorchDraws` refuses, and functions that people write need: for `check_function`, see draws.py.

float64 by default, torch.searchsorted and torch.log of uniform numbers, uniform_ in place of torch.rand, and a
torch.Generator, which is ignored.
"""

import math

import numpy as np
import torch
import torch._dynamo  # which PyTorch imports late, for seconds, and then while its functions are replaced
from torch.overrides import TorchFunctionMode

from .torch_draws import TorchDraws, elementwise, objects

SEARCHES = torch.searchsorted, torch.bucketize
LOGS = torch.log, torch.Tensor.log


class TorchFunctions(TorchFunctionMode):
    """A context manager: `TorchDraws` in float64, and these functions.

    Parameters
    ----------
    rng : RandomSource
    maker : callable
        Of a function that sets a seed, what replaces it.
    """

    def __init__(self, rng, maker):
        super().__init__()
        self.draws, self.maker = TorchDraws(rng), maker

    def __enter__(self):
        self.dtype, self.seed = torch.get_default_dtype(), torch.manual_seed
        torch.set_default_dtype(torch.float64)
        torch.manual_seed = self.maker(self.seed)
        self.draws.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        torch.manual_seed = self.seed
        torch.set_default_dtype(self.dtype)
        self.draws.__exit__(*error)

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = dict(options or {})
        options.pop("generator", None)
        first = arguments[0] if arguments else None
        if function in LOGS and hasattr(first, "uniforms"):
            return elementwise(log, first)
        if function in SEARCHES and any(hasattr(argument, "uniforms") for argument in arguments):
            cdf, u = arguments[:2] if function is torch.searchsorted else arguments[1::-1]
            return searched(cdf, u, options.get("right", False) or options.get("side") == "right")
        if function is torch.Tensor.uniform_:
            low, high = (*arguments[1:], 0.0, 1.0)[:2] if len(arguments) != 2 else (arguments[1], 1.0)
            return torch.rand_like(first) * (high - low) + low
        return function(*arguments, **options)


def log(u):
    return u.log() if hasattr(u, "log") else math.log(u) if u > 0 else -math.inf


def searched(cdf, u, right):
    """torch.searchsorted for uniform numbers that are not drawn yet."""
    values, rows = np.atleast_1d(objects(u)), cdf.detach().cpu().numpy()
    found = np.empty(values.shape, np.int64)
    for at in np.ndindex(values.shape):
        row = rows[at[: rows.ndim - 1]]
        found[at] = next((i for i, c in enumerate(row) if (values[at] < c if right else values[at] <= c)), len(row))
    return torch.from_numpy(found.reshape(np.shape(objects(u))))
