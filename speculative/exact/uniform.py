"""A uniform number that has not been drawn yet, returned by rng.random() under `exact_distribution`.

It represents an increasing or decreasing function of some u in [0, 1). Adding a number, multiplying by one and taking
the logarithm return such a function again. A comparison with a number asks where u lies, and forks. Any operation that
needs the number itself is refused.
"""

import math

import numpy as np

ROUNDING = 4e-16  # allowed in u: random() returns multiples of 2 ** -53, and a cumulative sum may end at 1 - 1e-16


class CannotEnumerate(TypeError):
    """The code does something with infinitely many outcomes, or with too many."""


def of_numbers(operator):
    """The operator, restricted to numbers; NumPy applies it to each element of an array."""
    return lambda self, other: NotImplemented if getattr(other, "ndim", 0) else operator(self, other)


class Uniform:
    """An increasing or decreasing function of a uniform u in [0, 1), which is known to lie in [low, high)."""

    def __init__(self, rng, interval=None, value=lambda u: u, inverse=lambda number: number, rising=True):
        self.rng = rng
        self.interval = interval or [0.0, 1.0]  # shared by everything computed from one draw
        self.value, self.inverse = value, inverse  # u -> value, value -> u
        self.rising = rising

    def is_below(self, number):
        """Whether the value is below a number. Forks if the interval does not decide it. Equality has probability 0."""
        if number is self:  # np.searchsorted asks for this
            return False
        threshold, (low, high) = self.inverse(float(number)), self.interval
        self.rng.asked()
        if threshold - low < ROUNDING:
            is_above = True  # u >= threshold
        elif high - threshold < ROUNDING:
            is_above = False
        elif math.isnan(threshold):
            return False
        else:
            is_above = bool(self.rng.fork([(threshold - low) / (high - low), (high - threshold) / (high - low)]))
            self.interval[:] = (threshold, high) if is_above else (low, threshold)
        return is_above != self.rising

    def then(self, function, inverse, rising=True):
        """function(value), for an invertible function, increasing or decreasing."""
        return Uniform(
            self.rng,
            self.interval,
            lambda u: function(self.value(u)),
            lambda number: self.inverse(inverse(number)),
            self.rising == rising,
        )

    @of_numbers
    def __lt__(self, number):
        return self.is_below(number)

    @of_numbers
    def __gt__(self, number):
        return number is not self and number == number and not self.is_below(number)  # no number is above NaN

    @of_numbers
    def __le__(self, number):
        return number is self or self < number

    @of_numbers
    def __ge__(self, number):
        return number is self or self > number

    @of_numbers
    def __add__(self, number):
        number = float(number)
        return self.then(lambda value: value + number, lambda result: result - number)

    @of_numbers
    def __mul__(self, number):
        number = float(number)
        if number == 0:
            return 0.0
        return self.then(lambda value: value * number, lambda result: result / number, number > 0)

    @of_numbers
    def __truediv__(self, number):
        return self * (1 / float(number))

    @of_numbers
    def __sub__(self, number):
        return self + -float(number)

    def __neg__(self):
        return self * -1

    @of_numbers
    def __rsub__(self, number):
        return -self + number

    __radd__, __rmul__ = __add__, __mul__

    def log(self):
        return self.then(lambda value: math.log(max(value, 5e-324)), lambda result: math.exp(min(result, 700)))

    def __int__(self):
        """int(rng.random() * n) forks into 0 .. n - 1."""
        lowest, highest = sorted(map(self.value, self.interval))
        self.rng.cut(math.ceil(highest) - math.floor(lowest))
        for number in range(math.floor(lowest) + 1, math.ceil(highest)):
            if self.is_below(number):
                return math.trunc(number - 0.5)
        return math.trunc((max(lowest, math.ceil(highest) - 1) + highest) / 2)

    def item(self):
        return self

    def __repr__(self):
        return "<a uniform number>"

    def __format__(self, form):  # f"{u:.3f}" works, for code that prints its draws
        return repr(self)

    def as_value(self, *others):
        raise CannotEnumerate(
            "a uniform number is used as a value, which has no finite set of paths: exact_distribution can follow it "
            "only into comparisons with numbers (u < p / q, np.searchsorted(cdf, u)), and through + - * / and np.log; "
            "leave out float(u), math.log(u), astype and torch.tensor(u), compare u itself, and take rng.gumbel for "
            "-log(-log(u))"
        )

    __float__ = __bool__ = __index__ = __hash__ = __pow__ = __rpow__ = __rtruediv__ = exp = sqrt = as_value
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = as_value
    __abs__ = __round__ = __floor__ = __ceil__ = __trunc__ = as_value

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        """NumPy's operators on this and on arrays, element by element."""
        if ufunc not in FOLLOWED or method != "__call__" or keywords:
            self.as_value()
        return ufunc(*map(boxed, inputs))


FOLLOWED = {
    np.less, np.less_equal, np.greater, np.greater_equal, np.add, np.subtract, np.multiply, np.true_divide, np.negative,
    np.log,
}  # fmt: skip


def boxed(value):
    """An array of dtype object, on which NumPy applies Python's operators."""
    if hasattr(value, "interval"):
        box = np.empty((), object)
        box[()] = value
        return box
    return np.asarray(value).astype(object)
