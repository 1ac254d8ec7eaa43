"""Time budgets."""

from __future__ import annotations

import time

import pytest

from probes.numerics.instruments.time import OutOfTimeError, TimeBudget


def test_a_share_of_a_slice_ends_within_it():
    whole = TimeBudget(end_s=time.monotonic() + 100.0)

    for share in (0.25, 1.0):
        before_s = time.monotonic()
        ends_s = whole.portion(share).end_s
        after_s = time.monotonic()  # on a busy machine much may lie between
        assert before_s + share * (whole.end_s - after_s) <= ends_s <= after_s + share * (whole.end_s - before_s)


def test_what_will_not_be_done_in_time_is_not_begun():
    TimeBudget(end_s=time.monotonic() + 1000.0).require(500.0)
    with pytest.raises(OutOfTimeError):
        TimeBudget(end_s=time.monotonic() + 1000.0).require(1500.0)
    assert TimeBudget(end_s=time.monotonic() - 5.0).portion(0.5).left_s <= 0.0
