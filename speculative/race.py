"""A waiting time that has not been drawn yet: what `exact_distribution` returns for rng.exponential() and rng.gumbel().

Of independent exponential times E_i / p_i, the i-th is the smallest with probability p_i / sum p, independently of its
value. So a comparison of two forks, and the smaller one continues as a time with the sum of both rates. That is enough
for argmin E / p, and for argmax(log p + G) with a Gumbel number G = -log E. Everything else is refused, also the use of
one E twice, as in Gumbel coupling.
Next: testing/__init__.py
"""

import math

from .uniform import CannotEnumerate

BEYOND = (
    "exp({number:g}) is beyond a float, in a race of Gumbel numbers: subtract the largest logit from all first, which "
    "changes no argmax"
)


class Waiting:
    """sign * t or sign * log(t), for an exponential time t with a given rate."""

    def __init__(self, rng, rate=1.0, *, is_log=False, sign=1, compared=None):
        self.rng, self.rate, self.is_log, self.sign = rng, rate, is_log, sign
        self.is_lost = False  # whether another one was earlier: its time is then no longer exponential
        # shared by everything computed from one draw: the one that was compared
        self.compared = [] if compared is None else compared

    def with_rate(self, rate, sign=1):
        return Waiting(self.rng, rate, is_log=self.is_log, sign=self.sign * sign, compared=self.compared)

    def is_free(self):
        """Whether nothing but its rate is known."""
        if not self.compared:
            self.compared.append(self)
        return self.compared[0] is self and not self.is_lost

    def __lt__(self, other):
        if not hasattr(other, "is_lost"):
            return self.compared_with_number(other, below=True)
        alike = (self.is_log, self.sign) == (other.is_log, other.sign) and self.compared is not other.compared
        if not (alike and self.is_free() and other.is_free()):
            self.as_value()
        total = self.rate + other.rate
        if total == 0:
            raise CannotEnumerate(BEYOND.format(number=-math.inf))
        is_other = self.rng.fork([self.rate / total, other.rate / total])
        winner, loser = (other, self) if is_other else (self, other)
        winner.rate, loser.is_lost = total, True
        return bool(is_other) == (self.sign < 0)

    def __gt__(self, other):
        if not hasattr(other, "is_lost"):
            return self.compared_with_number(other, below=False)
        return not self < other

    __le__, __ge__ = __lt__, __gt__

    def compared_with_number(self, number, below):
        """Only infinity, which results from a probability of 0."""
        if not math.isinf(number):
            self.as_value()
        return (number > 0) == below

    def __mul__(self, number):
        number = float(number)
        if self.is_log and abs(number) != 1:
            self.as_value()
        if number == 0:
            return 0.0
        return self.with_rate(self.rate if self.is_log else self.rate / abs(number), math.copysign(1, number))

    def __truediv__(self, number):
        return self * (1 / float(number)) if number else self.sign * math.inf

    def __add__(self, number):
        number = float(number)
        if not self.is_log:
            self.as_value()
        if math.isinf(number):
            return number
        try:
            return self.with_rate(self.rate * math.exp(-self.sign * number))
        except OverflowError:
            raise CannotEnumerate(BEYOND.format(number=number)) from None

    def __sub__(self, number):
        return self + -float(number)

    def __neg__(self):
        return self * -1

    def __rsub__(self, number):
        return -self + number

    __rmul__, __radd__ = __mul__, __add__

    def log(self):
        if self.is_log or self.sign < 0:
            self.as_value()
        return Waiting(self.rng, self.rate, is_log=True, compared=self.compared)

    def __repr__(self):
        return "<a waiting time>"

    def as_value(self, *others):
        raise CannotEnumerate(
            "an exponential or Gumbel number is used as a value, or twice, which has no finite set of paths: "
            "exact_distribution can follow it only into one np.argmin(E / p) or np.argmax(np.log(p) + G)"
        )

    __float__ = __int__ = __bool__ = __index__ = __hash__ = __pow__ = __rtruediv__ = exp = sqrt = as_value
