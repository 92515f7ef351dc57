"""A waiting time that has not been drawn yet, from rng.exponential() or rng.gumbel() under `exact_distribution`.

Among independent exponential times E_i / p_i, the i-th is the smallest with probability p_i / sum p, whatever its
value. So comparing two of them is a fork, and the smaller one is again such a time, with the sum of both rates. That is
enough for argmin E / p, for argmax p / E, and for argmax(log p + G) with a Gumbel number G = -log E. A comparison with
a number is a fork as well: E > c with probability exp(-c). Everything else is refused, including a second use of the
same E, as in Gumbel coupling.
"""

import math

from .uniform import CannotEnumerate


class Waiting:
    """sign * t, sign * log(t) or sign / t, for an exponential time t with a given rate, stored as its logarithm."""

    def __init__(self, rng, log_rate=0.0, *, form="t", sign=1, compared=None):
        self.rng, self.log_rate = rng, log_rate
        self.form, self.sign = form, sign  # form: "t", "log t" or "1 / t"
        self.is_lost = False  # whether a different time was earlier; this one is then no longer exponential
        # shared by everything computed from one draw: the object that was compared
        self.compared = [] if compared is None else compared

    def with_rate(self, log_rate, sign=1, form=None):
        return Waiting(self.rng, log_rate, form=form or self.form, sign=self.sign * sign, compared=self.compared)

    def is_free(self):
        """Whether nothing but the rate is known."""
        if not self.compared:
            self.compared.append(self)
        return self.compared[0] is self and not self.is_lost

    def __lt__(self, other):
        if not hasattr(other, "is_lost"):
            return self.compared_with_number(other, below=True)
        alike = (self.form, self.sign) == (other.form, other.sign) and self.compared is not other.compared
        if not (alike and self.is_free() and other.is_free()):
            self.as_value()
        larger, smaller = max(self.log_rate, other.log_rate), min(self.log_rate, other.log_rate)
        ratio = math.exp(smaller - larger)
        shares = {larger: 1 / (1 + ratio), smaller: ratio / (1 + ratio)}
        is_other = self.rng.fork([shares[self.log_rate], shares[other.log_rate]])
        winner, loser = (other, self) if is_other else (self, other)
        winner.log_rate, loser.is_lost = larger + math.log1p(ratio), True
        is_rising = (self.sign > 0) != (self.form == "1 / t")  # the earlier of two is then the smaller number
        return bool(is_other) != is_rising

    def __gt__(self, other):
        if not hasattr(other, "is_lost"):
            return self.compared_with_number(other, below=False)
        return not self < other

    __le__, __ge__ = __lt__, __gt__

    def compared_with_number(self, number, below):
        """Whether the number that this stands for is below (or above) another one, which forks; a second time only
        where the other one is infinite or 0, the results of a probability of 0, and decides it."""
        number = self.sign * float(number)
        below = below == (self.sign > 0)
        if math.isinf(number) or (number <= 0 and self.form != "log t"):
            return (number > 0) == below
        if math.isnan(number) or not self.is_free():
            self.as_value()
        log_time = {"t": math.log, "log t": float, "1 / t": lambda number: -math.log(number)}[self.form](number)
        rate = math.exp(min(log_time + self.log_rate, 700))  # the time is later with probability exp(-rate)
        is_later = self.rng.fork([-math.expm1(-rate), math.exp(-rate)])
        self.is_lost = True  # no longer an exponential time
        return bool(is_later) != (below == (self.form != "1 / t"))

    def __mul__(self, number):
        number = float(number)
        if self.form == "log t" and abs(number) != 1:
            self.as_value()
        if number == 0 or not math.isfinite(number):
            return self.sign * number
        faster = {"t": -1, "log t": 0, "1 / t": 1}[self.form] * math.log(abs(number))
        return self.with_rate(self.log_rate + faster, math.copysign(1, number))

    def __truediv__(self, number):
        return self * (1 / float(number)) if number else self.sign * math.inf

    def __rtruediv__(self, number):
        if self.form == "log t":
            self.as_value()
        return self.with_rate(self.log_rate, form="1 / t" if self.form == "t" else "t") * number

    def __add__(self, number):
        number = float(number)
        if self.form != "log t":
            self.as_value()
        return self.with_rate(self.log_rate - self.sign * number) if math.isfinite(number) else number

    def __sub__(self, number):
        return self + -float(number)

    def __neg__(self):
        return self * -1

    def __rsub__(self, number):
        return -self + number

    __rmul__, __radd__ = __mul__, __add__

    def log(self):
        if self.form == "log t" or self.sign < 0:
            self.as_value()
        return self.with_rate(self.log_rate, 1 if self.form == "t" else -1, "log t")

    def __repr__(self):
        return "<a waiting time>"

    def as_value(self, *others):
        raise CannotEnumerate(
            "an exponential or Gumbel number is used as a value, or twice, which has no finite set of paths: "
            "exact_distribution can follow it only into one np.argmin(E / p), np.argmax(p / E) or "
            "np.argmax(np.log(p) + G), or into one comparison with a number"
        )

    __float__ = __int__ = __bool__ = __index__ = __hash__ = __pow__ = exp = sqrt = as_value
