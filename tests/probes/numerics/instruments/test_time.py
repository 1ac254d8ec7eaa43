"""Slices of time."""

from __future__ import annotations

import time

import pytest

from probes.numerics.instruments.time import OutOfTimeError, Slice


def test_a_share_of_a_slice_ends_within_it():
    whole = Slice(ends=time.monotonic() + 100.0)

    assert whole.first(0.25).left_s == pytest.approx(25.0, abs=1.0)
    assert whole.first(1.0).ends == pytest.approx(whole.ends, abs=0.1)


def test_what_will_not_be_done_in_time_is_not_begun():
    Slice(ends=time.monotonic() + 10.0).must_last(5.0)
    with pytest.raises(OutOfTimeError):
        Slice(ends=time.monotonic() + 10.0).must_last(15.0)
    assert Slice(ends=time.monotonic() - 5.0).first(0.5).left_s <= 0.0
