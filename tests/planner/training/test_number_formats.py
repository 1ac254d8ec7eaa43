"""Ranges of number formats, against the definition of their bits."""

from __future__ import annotations

import pytest

from planner.training.number_formats import load_number_formats

BITS = {"fp16": (5, 10, 15, 0), "bf16": (8, 7, 127, 0), "e5m2": (5, 2, 15, 0), "e2m1": (2, 1, 1, 1)}
"""Bits of exponent and mantissa, bias, and whether the largest exponent holds numbers (1) or infinity (0)."""


@pytest.mark.parametrize("name", BITS)
def test_a_range_follows_from_the_bits(name):
    exponent, mantissa, bias, full = BITS[name]
    form = load_number_formats()[name]
    largest = 2**exponent - 1 - (1 - full) - bias

    assert form.least_log2 == 1 - bias - mantissa  # the smallest subnormal number
    assert form.most == (2 - 2.0**-mantissa) * 2.0**largest


def test_e4m3_gives_up_one_pattern_for_what_is_no_number():
    form = load_number_formats()["e4m3"]  # arXiv 2209.05433, table 1: 448 = 1.75 x 2^8, 2^-9

    assert (form.least_log2, form.most, form.most_log2) == (-9, 448, pytest.approx(8.807, abs=1e-3))
