"""Operations that `TorchDraws` refuses but students' functions need, for `check_function`; see draws.py.

They are float64 by default, torch.searchsorted and torch.log of uniform numbers, uniform_ in place of torch.rand, the
argmax of probabilities divided by exponential_ numbers, and a torch.Generator, which is ignored.
"""

import math

import numpy as np
import torch
import torch._dynamo  # otherwise PyTorch imports it later, which takes seconds, while its functions are replaced
from torch.overrides import TorchFunctionMode

from ..exact.enumeration import CannotEnumerate
from .torch_draws import Answers, elementwise, objects

SEARCHES = torch.searchsorted, torch.bucketize
LOGS = torch.log, torch.Tensor.log
NO_RACE = (
    "of races between random numbers in PyTorch only (p / torch.empty_like(p).exponential_()).argmax() can be "
    "followed, not argmax(log(p) - log(-log(u))) and not a comparison of an exponential number: draw so, or by "
    "torch.multinomial"
)


class TorchFunctions(TorchFunctionMode):
    """A context manager: inside it, PyTorch draws from rng, in float64, also with these functions.

    Parameters
    ----------
    rng : RandomSource
    maker : callable
        Returns the replacement for a function that sets a seed.
    """

    def __init__(self, rng, maker):
        super().__init__()
        self.draws, self.maker, self.rng = Answers(rng), maker, rng

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
        if function is torch.Tensor.exponential_:
            return Exponentials(first.shape, self.rng)
        if len(arguments) == 2 and isinstance(arguments[1], Exponentials):
            return Quotient(first, arguments[1]) if "div" in function.__name__ else arguments[1].refuse()
        if getattr(function, "__name__", "") in ("argmax", "argmin", "max", "min") and hasattr(first, "uniforms"):
            raise CannotEnumerate(NO_RACE)
        if function in LOGS and hasattr(first, "uniforms"):
            return elementwise(log, first)
        if function in SEARCHES and any(hasattr(argument, "uniforms") for argument in arguments):
            cdf, u = arguments[:2] if function is torch.searchsorted else arguments[1::-1]
            return searched(cdf, u, options.get("right", False) or options.get("side") == "right")
        if function is torch.Tensor.uniform_:
            low, high = (*arguments[1:], 0.0, 1.0)[:2] if len(arguments) != 2 else (arguments[1], 1.0)
            return torch.rand_like(first) * (high - low) + low
        return function(*arguments, **options)


class Exponentials:
    """Exponential numbers of this shape [..., n]."""

    def __init__(self, shape, rng):
        self.rows = [rng.exponential(size=math.prod(shape[-1:])) for _ in range(math.prod(shape[:-1]))]

    def __rtruediv__(self, probs):
        return Quotient(probs, self)

    def refuse(self, *_, **__):
        raise CannotEnumerate(NO_RACE)

    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __add__ = __sub__ = __mul__ = __truediv__ = __float__ = refuse
    item = log = neg = mul = div = argmin = refuse


class Quotient:
    """Probabilities [..., n] over exponential numbers, of which only the largest is asked for."""

    def __init__(self, probs, exponentials):
        self.probs, self.exponentials = probs, exponentials

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):  # called by torch.argmax
        return arguments[0].argmax(*arguments[1:], **(options or {}))

    def argmax(self, dim=-1, keepdim=False):
        rows = self.probs.detach().cpu().numpy().reshape(-1, self.probs.shape[-1])
        drawn = [int(np.argmax(row / noise)) for row, noise in zip(rows, self.exponentials.rows)]
        tokens = torch.tensor(drawn, device=self.probs.device).reshape(self.probs.shape[:-1])
        return tokens[..., None] if keepdim else tokens


def log(u):
    return u.log() if hasattr(u, "log") else math.log(u) if u > 0 else -math.inf


def searched(cdf, u, right):
    """torch.searchsorted for uniform numbers that are not drawn yet."""
    values, rows = np.atleast_1d(objects(u)), cdf.detach().cpu().numpy()
    indices = np.empty(values.shape, np.int64)
    for at in np.ndindex(values.shape):
        row = rows[at[: rows.ndim - 1]]
        indices[at] = next((i for i, c in enumerate(row) if (values[at] < c if right else values[at] <= c)), len(row))
    return torch.tensor(indices.reshape(np.shape(objects(u))), device=cdf.device)
