"""Student's distribution against published tables (NIST/SEMATECH e-Handbook, table 1.3.6.7.2) and closed forms."""

from __future__ import annotations

from math import atan, inf, pi, sqrt

import pytest

from probes.numerics.statistics.student import quantile, upper_tail


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [(0.95, 1, 6.314), (0.95, 2, 2.920), (0.95, 4, 2.132), (0.975, 10, 2.228), (0.99, 30, 2.457), (0.90, 7, 1.415),
     (0.95, 100, 1.660), (0.999, 5, 5.893)],
)  # fmt: skip
def test_quantiles_are_those_of_the_table(probability, freedom, expected):
    assert quantile(probability, freedom) == pytest.approx(expected, abs=6e-4)
    assert quantile(1.0 - probability, freedom) == pytest.approx(-expected, abs=6e-4)


@pytest.mark.parametrize("t", [-5.0, -0.3, 0.0, 0.2, 1.0, 4.0, 300.0])
def test_tails_of_one_and_two_degrees_of_freedom_are_the_closed_forms(t):
    assert upper_tail(t, 1) == pytest.approx(0.5 - atan(t) / pi, rel=1e-9)
    assert upper_tail(t, 2) == pytest.approx(0.5 - t / (2.0 * sqrt(2.0 + t * t)), rel=1e-8, abs=1e-14)


def test_ends_and_impossible_probabilities():
    assert (upper_tail(inf, 3), upper_tail(-inf, 3)) == (0.0, 1.0)
    with pytest.raises(ValueError, match="probability"):
        quantile(1.0, 3)
