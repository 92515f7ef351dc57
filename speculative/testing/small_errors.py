"""Mistakes that change the probabilities only a little: an epsilon against a division by zero, or float32."""

import numpy as np

from ..probs import residual


def same(a, b, tolerance=1e-12):
    return a is not None and np.allclose(a, b, rtol=0, atol=tolerance)


def of_precision(case, p, q, steps):
    """The hint if everything is nearly right for one draft token, but something is slightly off; else None."""
    accepted, right, rest = np.array([step.accepted for step in steps]), np.minimum(1, p / q), residual(p, q)
    replaced = [step.replaced for x, step in enumerate(steps) if p[x] < q[x] and step.replaced is not None]
    bonuses = [(step.bonus, case.p[(x,)]) for x, step in enumerate(steps) if step.bonus is not None]
    errors = (
        abs(accepted - right).max(),
        max((abs(row - rest).max() for row in replaced), default=0),
        max((abs(row - wanted).max() for row, wanted in bonuses), default=0),
    )
    if max(errors) < 1e-13:
        return None
    by_epsilon = epsilon_in_ratio(accepted, p, q)
    if by_epsilon and errors[2] < 1e-13:
        return (
            f"an epsilon of {by_epsilon:.1g} makes the ratio p / q wrong: add none, for a token that was drafted has "
            "q(x) > 0"
        )
    if max(errors) > 2e-3:  # the errors of float16 are smaller
        return None
    if max(errors) == errors[1] and errors[2] < 1e-13 and errors[0] < 1e-13:
        by_epsilon = epsilon_in_residual(replaced, p, q)
        cause = "" if not by_epsilon else f" ({by_epsilon:.1g}, by the look of it)"
        return (
            f"your residual is off by {errors[1]:.1g}: add no epsilon{cause} to max(0, p - q), and compute in float64, "
            "not in float32 (torch's default)"
        )
    return (
        f"nearly right, off by {max(errors):.1g}: compute in float64 throughout, not in float32 (torch's default), and "
        "add no epsilon"
    )


def epsilon_in_ratio(accepted, p, q):
    """The epsilon of p / (q + epsilon), (p + epsilon) / (q + epsilon) or p / q + epsilon; None without an epsilon."""
    less = (p < q) & (accepted > 0) & (accepted < 1)
    if less.sum() < 2:
        return None
    a, p, q = accepted[less], p[less], q[less]
    for found in (p / a - q, (a * q - p) / (1 - a), a - p / q, (a * q - p)):
        if found.min() > 1e-14 and np.ptp(found) < 0.01 * found.min() + 1e-15:
            return float(found.mean())
    return None


def epsilon_in_residual(replaced, p, q):
    """The epsilon of max(0, p - q) + epsilon, normalised, or None."""
    weights = np.array([row[p <= q] for row in replaced])
    if weights.size == 0 or weights.min() <= 0 or np.ptp(weights) > 0.01 * weights.min():
        return None
    share, mass = weights.mean(), np.maximum(p - q, 0).sum()
    return float(share * mass / (1 - len(p) * share))
