"""FP16's limits as IEEE 754 gives them."""

from __future__ import annotations

from planner.claims.evidence.formats import largest_fp16, smallest_normal_fp16


def test_the_largest_value_its_rounding_and_the_start_of_overflow():
    assert [case.mid for case in largest_fp16(65504.0, 65505.0, 65520.0)] == [65504.0, 65504.0, 65520.0]


def test_overflow_is_found_wherever_the_claim_puts_it():
    assert largest_fp16(65504.0, 65505.0, 65510.0)[-1].mid == 65520.0


def test_the_smallest_normal_value_is_two_to_the_minus_14():
    assert smallest_normal_fp16().mid == 2.0**-14
