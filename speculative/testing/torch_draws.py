"""PyTorch's random numbers from an enumerating source: the exact distribution of sampling code written in PyTorch.

    def text(rng):
        with TorchDraws(rng):
            return model.generate(prompt, assistant_model=draft, do_sample=True)[0].tolist()

    exact_distribution(text)

Inside the block `rng` answers every operation of PyTorch that draws a random number, wherever it is called, or the
operation is refused with CannotEnumerate. PyTorch itself marks these operations (with its tag nondeterministic_seeded):

    torch.multinomial, torch.bernoulli    fork, as rng.choice does
    torch.rand, torch.rand_like           numbers that are still open: each fork is a comparison, as in ../uniform.py

uniform_, exponential_, randn, dropout, a torch.Generator, NumPy's generators and the module random are refused.
Limitation: PyTorch does not see random numbers drawn inside compiled CUDA or Triton kernels.
"""

import math
import operator

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..exact.enumeration import CannotEnumerate
from .sources import Sources

COMPARED = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
COMPUTED = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "rsub": lambda a, b, alpha=1: b - alpha * a,
}  # fmt: skip
MOVED = {
    "view", "_unsafe_view", "reshape", "flatten", "unsqueeze", "squeeze", "expand", "t", "transpose", "permute",
    "select", "slice", "index", "unbind", "clone", "detach", "alias", "contiguous",
}  # fmt: skip


class TorchDraws:
    """A context manager: inside it, PyTorch draws its random numbers from rng.

    Parameters
    ----------
    rng : RandomSource
        Usually that of `exact_distribution`.

    Raises
    ------
    CannotEnumerate
        Inside the block, for a random operation that cannot be enumerated; at its end, if NumPy's global generator, the
        module random or a new np.random.default_rng was used.
    """

    def __init__(self, rng):
        self.mode, self.sources = Answers(rng), Sources()

    def __enter__(self):
        self.sources.__enter__()
        self.mode.__enter__()

    def __exit__(self, kind, error, traceback):
        self.mode.__exit__(kind, error, traceback)
        self.sources.__exit__()
        if kind is None and (source := self.sources.named()):
            raise CannotEnumerate(f"the code draws from {source}, which is not enumerated: draw with torch.multinomial")


class Answers(TorchDispatchMode):
    """Sees every operation of PyTorch, and answers those that draw."""

    def __init__(self, rng):
        super().__init__()
        self.rng = rng

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        options = options or {}
        if torch.Tag.nondeterministic_seeded not in operation.tags:
            return operation(*arguments, **options)
        name = operation.overloadpacket.__name__
        if options.get("generator") is not None:
            raise CannotEnumerate(f"torch.{name} has a torch.Generator of its own: leave out generator=")
        if name in ANSWERED and operation._overloadname == "default":
            return ANSWERED[name](self, *arguments, **options)
        before = generator_states()
        result = operation(*arguments, **options)  # some draw only if they are told to, such as attention with dropout
        if all(map(torch.equal, before, generator_states())):
            return result
        raise CannotEnumerate(
            f"torch's {name} draws random numbers and cannot be enumerated: draw tokens with torch.multinomial, and "
            "uniform numbers with torch.rand or torch.rand_like"
        )

    def multinomial(self, weights, num_samples, replacement=False):
        rows = weights.double().cpu().numpy().reshape(-1, weights.shape[-1])
        drawn = [[] for _ in rows]
        for tokens, row in zip(drawn, rows.copy()):
            for _ in range(num_samples):
                if not (np.isfinite(row).all() and (row >= 0).all() and row.sum() > 0):
                    raise RuntimeError(f"torch.multinomial: expected weights of 0 or more, not all 0, got {row}")
                tokens.append(int(self.rng.choice(len(row), p=row / row.sum())))
                row[tokens[-1]] *= replacement
        return torch.tensor(drawn, device=weights.device).reshape(*weights.shape[:-1], num_samples)

    def bernoulli(self, probs):
        drawn = [self.rng.random() < p for p in probs.double().flatten().tolist()]
        return torch.tensor(drawn, dtype=probs.dtype, device=probs.device).reshape(probs.shape)

    def rand(self, size, dtype=None, device=None, **_):
        uniforms = np.empty(math.prod(size), object)
        uniforms[:] = [self.rng.random() for _ in uniforms]
        index = torch.arange(len(uniforms), device=device).reshape(size)
        return OpenUniforms(uniforms, index, dtype or torch.get_default_dtype())

    def rand_like(self, like, dtype=None, device=None, **_):
        return self.rand(like.shape, dtype or like.dtype, device or like.device)


ANSWERED = {name: vars(Answers)[name] for name in ("multinomial", "bernoulli", "rand", "rand_like")}


def generator_states():
    """The states of PyTorch's own generators."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [])]


class OpenUniforms(torch.Tensor):
    """A tensor of uniform numbers that are not drawn yet: element i is uniforms[index[i]] (see ../uniform.py)."""

    @staticmethod
    def __new__(cls, uniforms, index, dtype):
        tensor = torch.Tensor._make_wrapper_subclass(cls, index.shape, dtype=dtype, device=index.device)
        tensor.uniforms, tensor.index = uniforms, index
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), options=None):
        name = operation.overloadpacket.__name__
        if function := not options and {**COMPARED, **COMPUTED}.get(name):
            return elementwise(function, *arguments)
        if name in MOVED and hasattr(arguments[0], "uniforms"):
            old, *rest = arguments
            new = operation(old.index, *rest, **(options or {}))
            new = [cls(old.uniforms, index, old.dtype) for index in (new if name == "unbind" else [new])]
            return new if name == "unbind" else new[0]
        raise CannotEnumerate(
            f"torch's {name} needs the value of a uniform number, which has no finite set of paths: the numbers of "
            "torch.rand can be indexed, reshaped, computed with numbers by + - * / and compared with them"
        )

    def __eq__(self, other):  # torch's own == would turn the refusal, a TypeError, into a plain False
        raise CannotEnumerate("== and != need the value of a uniform number: compare by < or >")

    __ne__, __hash__ = __eq__, torch.Tensor.__hash__

    def item(self):
        """The one number, to be compared."""
        return self.uniforms[int(self.index)]

    def __repr__(self):
        return f"<uniform numbers {list(self.shape)}>"


def elementwise(function, *arguments):
    """function(*arguments) for tensors and numbers, at least one of them OpenUniforms: an OpenUniforms, or bools."""
    first = next(argument for argument in arguments if hasattr(argument, "uniforms"))
    arrays = np.broadcast_arrays(*map(objects, arguments))
    results = np.empty(arrays[0].size, object)
    results[:] = [function(*each) for each in zip(*(array.flat for array in arrays))]
    devices = {argument.device for argument in arguments if torch.is_tensor(argument)}
    device = next((other for other in devices if other.type != "cpu"), first.device)
    if function in COMPARED.values():
        return torch.tensor(results.astype(bool).reshape(arrays[0].shape), device=device)
    index = torch.arange(len(results), device=device).reshape(arrays[0].shape)
    return OpenUniforms(results, index, first.dtype)


def objects(value):
    """A tensor or a number as an array of Python objects."""
    if hasattr(value, "uniforms"):
        return value.uniforms[value.index.cpu().numpy()]
    return np.array(value.double().cpu().numpy() if torch.is_tensor(value) else value, dtype=object)
