"""Time budgets."""

from __future__ import annotations

import time

import pytest

from probes.numerics.instruments.time import OutOfTimeError, TimeBudget


def test_a_share_of_a_slice_ends_within_it():
    whole = TimeBudget(end_s=time.monotonic() + 100.0)

    assert whole.portion(0.25).left_s == pytest.approx(25.0, abs=1.0)
    assert whole.portion(1.0).end_s == pytest.approx(whole.end_s, abs=0.1)


def test_what_will_not_be_done_in_time_is_not_begun():
    TimeBudget(end_s=time.monotonic() + 10.0).require(5.0)
    with pytest.raises(OutOfTimeError):
        TimeBudget(end_s=time.monotonic() + 10.0).require(15.0)
    assert TimeBudget(end_s=time.monotonic() - 5.0).portion(0.5).left_s <= 0.0
