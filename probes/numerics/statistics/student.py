"""Student's t distribution: its tail and its quantiles, without scipy.

The tail is an incomplete beta function (Abramowitz and Stegun 26.7.1), computed by its continued fraction (DLMF
8.17.22).
"""

from __future__ import annotations

from functools import cache
from math import exp, isinf, lgamma, log, log1p

_TERMS = 400
_CLOSE = 1e-15
_LEAST_DENOMINATOR = 1e-300
_HALVINGS = 60


def upper_tail(t: float, freedom: float) -> float:
    """Return the probability of a value above `t`.

    Args:
        t: any number, infinities included.
        freedom: degrees of freedom, above 0.
    """
    if isinf(t):
        return 0.0 if t > 0 else 1.0
    beyond = 0.5 * _incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
    return beyond if t >= 0 else 1.0 - beyond


@cache
def quantile(probability: float, freedom: float) -> float:
    """Return the value that is not exceeded with this probability, which is between 0 and 1."""
    if not 0.0 < probability < 1.0:
        raise ValueError("expected a probability between 0 and 1")
    if probability < 0.5:
        return -quantile(1.0 - probability, freedom)
    tail = 1.0 - probability
    low, high = 0.0, 1.0
    while upper_tail(high, freedom) > tail:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if upper_tail(middle, freedom) > tail else (low, middle)
    return (low + high) / 2.0


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - front * _fraction(b, a, 1.0 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of DLMF 8.17.22, two terms at a time."""
    c, d = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        factor = 1.0
        for term in (even, odd):
            d = 1.0 / _not_zero(1.0 + term * d)
            c = _not_zero(1.0 + term / c)
            factor = c * d
            value *= factor
        if abs(factor - 1.0) < _CLOSE:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _LEAST_DENOMINATOR else _LEAST_DENOMINATOR
