from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.text.numbers import (
    Rung,
    axis_labels,
    decimals_for,
    grouped,
    magnitude,
    power_of_two,
    rung_for,
    shared_rung,
)

MONEY = (
    Rung(at=0, per=1, text="${}", column="$"),
    Rung(at=1e6, per=1e6, text="${} million", column="million $"),
)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((1.98, 2.3134, 2.71), ["1.98", "2.31", "2.71"]),
        ((1.8, 2.3134, 3.0), ["1.8", "2.3", "3.0"]),
        ((198, 231, 271), ["198", "231", "271"]),
        ((7_512, 8_316, 9_049), ["7,500", "8,300", "9,000"]),
        ((0.281, 0.31, 0.34), ["0.281", "0.310", "0.340"]),
        ((22.9, 23.1, 60), ["23", "23", "60"]),
        ((1_234_567, 1_234_567, 1_234_567), ["1,230,000"] * 3),
    ],
)
def test_the_range_decides_how_many_digits_a_number_is_worth(ends, expected):
    decimals = decimals_for(*ends)

    assert [grouped(end, decimals) for end in ends] == expected


@given(mid=st.floats(1e-6, 1e12), low=st.floats(0.3, 1.0), high=st.floats(1.0, 3.0))
def test_the_middle_keeps_two_or_three_significant_digits(mid, low, high):
    decimals = decimals_for(mid * low, mid, mid * high)

    assert 2 <= decimals + magnitude(mid) + 1 <= 3


def test_halves_are_rounded_up_as_the_page_does():
    assert [grouped(0.5, 0), grouped(2.5, 0), grouped(0.125, 2), grouped(25, -1)] == ["1", "3", "0.13", "30"]


def test_a_negative_number_has_a_true_minus_and_no_negative_zero():
    assert grouped(-1234.5, 0) == "−1,235"
    assert grouped(-0.001, 1) == "0.0"


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (1, 0), (9.99, 0), (10, 1), (0.01, -2), (1e21, 21)])
def test_the_magnitude_is_the_power_of_the_first_digit(value, expected):
    assert magnitude(value) == expected


def test_a_sum_just_under_a_million_is_written_in_millions_when_its_high_is_above():
    assert rung_for(MONEY, 860_000, 1_120_000).column == "million $"
    assert rung_for(MONEY, 860_000, 950_000).column == "$"
    assert rung_for(MONEY, 300_000, 1_120_000).column == "$"


def test_a_column_takes_the_unit_of_its_smallest_value_unless_numbers_get_long():
    assert shared_rung(MONEY, [(8_000, 9_000), (50_000, 60_000)]).column == "$"
    assert shared_rung(MONEY, [(300_000, 350_000), (13_000_000, 20_000_000)]).column == "million $"
    assert shared_rung(MONEY, [(25_000, 57_000), (630_000, 1_460_000)]).column == "$"
    assert shared_rung(MONEY, [(25_000, 57_000), (63_000_000, 80_000_000)]).column == "million $"
    assert shared_rung(MONEY, []).column == "$"


def test_a_power_of_two_has_its_exponent_raised():
    assert [power_of_two(n) for n in (0, 16.0, -24, 1.5)] == ["2⁰", "2¹⁶", "2⁻²⁴", "2^1.5"]


@pytest.mark.parametrize(
    ("values", "rung", "labels"),
    [
        ((0.0, 2.0, 4.0), MONEY[0], ["0", "2", "$4"]),
        ((0.0, 2.5, 5.0), MONEY[0], ["0.0", "2.5", "$5.0"]),
        ((0.0, 0.25, 0.5), MONEY[0], ["0.00", "0.25", "$0.50"]),
        ((0.0, 500_000.0, 1_000_000.0), MONEY[1], ["0.0", "0.5", "$1.0 million"]),
    ],
)
def test_labels_of_an_axis_have_as_many_decimals_as_its_step_and_the_last_has_the_unit(values, rung, labels):
    assert axis_labels(values, rung) == labels
    assert axis_labels(values, rung, unit=False)[:-1] == labels[:-1]
    assert not axis_labels(values, rung, unit=False)[-1].startswith("$")
