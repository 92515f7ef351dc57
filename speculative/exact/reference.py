"""The exact distribution of random code on one page: run it once for every possible outcome of its draws.

A random generator is replaced by a source of numbers that are not drawn yet. All that sampling code does with such a
number u is compare it: `u * q < p`, or a search in a cumulative sum. A comparison that is still undecided is a fork:
this run continues with one answer, and a later run takes the other. The probability of a run is the product over its
forks. When every path has been run, the probabilities of the outcomes are exact, up to rounding.

So this page proves that speculative/reference.py is right for any two tables of probabilities that you give it: the
output has the target's distribution. enumeration.py does the same for code of any style: it follows arrays of numbers,
`choice`, `integers` and other draws, adds up the probabilities without losing digits, and refuses what it cannot
follow.
"""


class Uniform:
    """A number u in [0, 1) that is not drawn yet, times a scale. It is known to lie in an interval, [low, high)."""

    def __init__(self, source, scale=1.0, interval=None):
        self.source, self.scale = source, scale
        self.interval = interval or [0.0, 1.0]

    def __mul__(self, number):
        if number == 0:
            return 0.0
        if not number > 0:
            raise ValueError(f"expected u times a positive number, got {number}: enumeration.py follows any")
        return Uniform(self.source, self.scale * number, self.interval)  # the same u, so the same interval

    __rmul__ = __mul__

    def __lt__(self, number):
        """Whether u * scale < number: a fork, unless the interval says so already.

        np.searchsorted compares with this method as well: for it, a Uniform is an array of one object.
        """
        if number is self:  # np.searchsorted may compare a number with itself
            return False
        low, high = self.interval
        cut = min(max(number / self.scale, low), high)
        is_below = self.source.fork((cut - low) / (high - low))
        self.interval[:] = (low, cut) if is_below else (cut, high)
        return is_below

    def __gt__(self, number):
        return number is not self and not self < number  # u equals a given number with probability 0


class Source:
    """A substitute for a random generator in one run.

    The forks of the run have these answers, a list of bool. A new fork has the answer True, which is appended.
    """

    def __init__(self, answers):
        self.answers, self.n_forks = answers, 0
        self.probability = 1.0

    def random(self):
        return Uniform(self)

    def fork(self, p):
        """The answer to a question that is true with probability p; nothing forks if p is 0 or 1."""
        if not 0 < p < 1:
            return p >= 1
        if self.n_forks == len(self.answers):
            self.answers.append(True)
        answer = self.answers[self.n_forks]
        self.n_forks += 1
        self.probability *= p if answer else 1 - p
        return answer


def exact_distribution(fn):
    """The distribution of fn(rng), a dict outcome -> probability, for an fn that only compares what it draws.

    >>> exact_distribution(lambda rng: rng.random() * 4 < 3)
    {True: 0.75, False: 0.25}
    """
    distribution, answers = {}, []
    while True:
        source = Source(answers)
        outcome = fn(source)
        distribution[outcome] = distribution.get(outcome, 0.0) + source.probability
        while answers and not answers[-1]:  # drop the last forks if they have taken both answers
            answers.pop()
        if not answers:
            return distribution
        answers[-1] = False  # the next path: the last fork left takes its other answer
