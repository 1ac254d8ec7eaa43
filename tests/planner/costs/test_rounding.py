"""Lines in whole units that still add up."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from planner.costs.rounding import apportioned

CENT = Decimal("0.01")


def test_the_largest_remainders_are_rounded_up():
    thirds = [Decimal(100) / 3] * 2 + [Decimal(100) / 3 + Decimal("0.001")]

    assert apportioned(thirds, CENT, Decimal(100)) == (Decimal("33.33"), Decimal("33.33"), Decimal("33.34"))


@given(st.lists(st.decimals(0, 10**9, places=5), min_size=1, max_size=9))
def test_amounts_sum_to_the_total_and_change_by_less_than_a_unit(amounts):
    total = sum(amounts, Decimal(0)).quantize(CENT)
    lines = apportioned(amounts, CENT, total)

    assert sum(lines) == total
    assert all(abs(line - amount) < CENT for line, amount in zip(lines, amounts, strict=True))


def test_no_amounts_are_no_lines():
    assert apportioned([], CENT, Decimal(0)) == ()
