"""Random numbers for functions without a parameter rng: NumPy's, Python's and PyTorch's global ones, drawn from rng.

    with borrowed(fn, rng):
        fn(...)             np.random.rand(), random.choices(...), torch.rand(1) and the like draw from rng

Inside the block the global functions are replaced, and so are generators among the globals of `fn`. A `Draws`
object replaces them, and is passed as a parameter named rng; it is a Generator that also has the methods of
random.Random and np.random.RandomState. Numbers that cannot be enumerated anyway, such as normally distributed ones,
raise CannotEnumerate.
"""

import contextlib
import math
import random
import sys

import numpy as np

from .watch import fail

OF_RANDOM = "random", "uniform", "choices", "choice", "randint", "randrange", "sample", "shuffle", "gauss"
OF_NUMPY = (
    "random", "rand", "random_sample", "ranf", "sample", "uniform", "choice", "multinomial", "binomial", "exponential",
    "standard_exponential", "gumbel", "randint", "randn", "normal", "shuffle", "permutation", "dirichlet",
)  # fmt: skip
FIXED_SEED = (
    "your function sets a fixed seed each time it is called, so that every call draws the same numbers: seed once, "
    "outside of it, or take the generator as an argument"
)


class Draws(np.random.Generator):
    """rng with the methods of random.Random and RandomState besides a Generator's; calling it calls rng.random."""

    def __init__(self, rng):
        super().__init__(np.random.PCG64(0))
        self.rng = rng

    def random(self, size=None, *_, **__):
        return self.rng.random(size)

    __call__ = random_sample = ranf = random

    def rand(self, *shape):
        return self.rng.random(shape or None)

    def choices(self, population, weights=None, *, cum_weights=None, k=1):
        weights = np.diff(cum_weights, prepend=0) if cum_weights is not None else weights
        p = None if weights is None else np.array([float(w) for w in weights]) / sum(map(float, weights))
        return [population[int(self.rng.choice(len(population), p=p))] for _ in range(k)]

    def choice(self, a, *arguments, **keywords):
        a = a.tolist() if hasattr(a, "detach") else a
        if keywords.get("p") is not None:
            keywords["p"] = on_cpu(keywords["p"])
        return self.rng.choice(a, *arguments, **keywords)

    def multinomial(self, n, pvals, size=None):
        drawn = self.rng.multinomial(n, on_cpu(pvals))
        return drawn if size is None else np.broadcast_to(drawn, (*np.atleast_1d(size), len(drawn)))


def on_cpu(numbers):
    """Numbers as an array; a tensor may be on a GPU."""
    return np.asarray(numbers.detach().cpu() if hasattr(numbers, "detach") else numbers)


def of_rng(name):
    return lambda self, *arguments, **keywords: getattr(self.rng, name)(*arguments, **keywords)


for name in dir(np.random.Generator):
    if not name.startswith("_") and name not in vars(Draws):
        setattr(Draws, name, of_rng(name))


class OfRandom:
    """The functions of the module random that mean something else in NumPy."""

    def __init__(self, draws):
        self.draws = draws

    def randint(self, a, b):
        return int(self.draws.rng.integers(a, b + 1))

    def randrange(self, *bounds):
        return int(self.draws.rng.integers(*bounds))

    def choice(self, population):
        return population[int(self.draws.rng.integers(len(population)))]

    def __getattr__(self, name):
        return getattr(self.draws, name)


class Float(type):
    def __instancecheck__(cls, value):
        return isinstance(value, float)

    def __call__(cls, value=0.0):
        value = value.item() if hasattr(value, "uniforms") else value
        return value if hasattr(value, "interval") else float(value)


class OpenFloat(metaclass=Float):
    """`float` that leaves a uniform number that is not drawn yet unchanged; as a dtype it is `object`."""


class OpenFloat64(OpenFloat):
    """The same, as a dtype float64."""

    dtype = np.dtype(float)


@contextlib.contextmanager
def float_replaced(fn, kind):
    """The name `float` in the globals of fn means `kind`, if that is not None."""
    names = globals_of(fn)
    before = {"float": names["float"]} if "float" in names else {}
    if kind:
        names["float"] = kind
    try:
        yield
    finally:
        if kind:
            names.pop("float")
            names.update(before)


def log(value, *base, natural=math.log):
    return natural(value, *base) if base or not hasattr(value, "interval") else value.log()


def borrowed(fn, rng, *, seeded=False):
    """A context manager: inside it, global random functions draw from rng, including PyTorch's if it is imported.

    Parameters
    ----------
    fn : callable
        Its globals are searched for generators.
    rng : RandomSource
    seeded : bool
        Whether fn has a parameter for a seed, and so may make a generator from it.
    """
    draws, stack = Draws(rng), contextlib.ExitStack()

    names = globals_of(fn)

    def maker(original):  # replaces a generator's class, or a function that sets the seed
        def made(*arguments, **keywords):
            if isinstance(original, type):
                arguments = arguments[1:]
            if sys._getframe(1).f_globals is not names:  # a library that makes a generator for itself
                return original(*arguments, **keywords)
            seed = next(iter([*arguments, *keywords.values()]), None)
            if seed is not None and not seeded and not hasattr(seed, "random"):
                fail(FIXED_SEED)
            return draws

        return type(original.__name__, (original,), {"__new__": made}) if isinstance(original, type) else made

    changes = [(random, name, getattr(OfRandom(draws), name, None)) for name in OF_RANDOM]
    changes += [(np.random, name, getattr(draws, name, None)) for name in OF_NUMPY]
    changes += [(np.random, name, maker(getattr(np.random, name))) for name in ("default_rng", "RandomState", "seed")]
    changes += [(random, name, maker(getattr(random, name))) for name in ("Random", "seed")]
    changes.append((math, "log", log))
    for name, value in names.items():
        if isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            changes.append((names, name, draws))
        elif (owner := getattr(value, "__self__", None)) is not None:  # from random import random
            of = random if isinstance(owner, random.Random) else np.random
            if isinstance(owner, (random.Random, np.random.RandomState)):
                new = getattr(OfRandom(draws) if of is random else draws, value.__name__, None)
                changes.append((names, name, maker(value) if value.__name__ == "seed" else new))
        elif getattr(value, "__name__", "") == "default_rng":
            changes.append((names, name, maker(value)))
    for owner, name, new in changes:
        if new is not None:
            stack.callback(put, owner, name, get(owner, name))
            put(owner, name, new)
    if "torch" in sys.modules:
        from .torch_functions import TorchFunctions

        stack.enter_context(TorchFunctions(rng, maker))
    return stack


def function_of(fn):
    """The plain function in a partial or cached one, or the one that an object is called by."""
    while inner := getattr(fn, "__wrapped__", None) or getattr(fn, "func", None):
        fn = inner
    fn = fn if hasattr(fn, "__globals__") else type(fn).__call__
    return getattr(fn, "__func__", fn)


def globals_of(fn):
    """The global variables (a dict) of a function."""
    return getattr(function_of(fn), "__globals__", {})


MISSING = object()


def get(owner, name):
    return owner.get(name, MISSING) if isinstance(owner, dict) else getattr(owner, name)


def put(owner, name, value):
    if not isinstance(owner, dict):
        setattr(owner, name, value)
    elif value is MISSING:
        owner.pop(name, None)
    else:
        owner[name] = value
