"""What a window of a certain length gets wrong, on a made-up counter whose truth is known."""

from __future__ import annotations

import pytest

from probes.energy.meter import MeterCheck, _edges, check_meter
from tests.probes.energy.test_power import trace


@pytest.fixture(scope="module")
def check() -> MeterCheck:
    check = check_meter(trace(650.0, 30.0, field_w=637.0, tick_s=0.097), 1.0, 29.0)
    assert check is not None
    return check


def error(check: MeterCheck, method: str, length_s: float) -> float:
    return next(error.p95_abs_error for error in check.errors if (error.method, error.length_s) == (method, length_s))


def test_the_reference_and_the_period_are_the_counters(check: MeterCheck) -> None:
    assert check.reference_w == pytest.approx(650.0, rel=1e-3)
    assert check.tick_period_s == pytest.approx(0.1, rel=0.05)  # 97 ms, polled every 10
    assert check.instant_over_counter == pytest.approx(0.98, rel=2e-3)


def test_reading_the_counter_at_the_ends_of_a_short_window_errs_by_up_to_a_tick(check: MeterCheck) -> None:
    # 0.5 s hold 5.15 ticks of 97 ms; the counter moves by 5 or 6 of them: 3 % too little or 16 % too much
    assert error(check, "edges", 0.5) == pytest.approx(0.164, abs=0.01)
    assert error(check, "edges", 10.0) < 0.011


def test_alignment_to_ticks_is_right_at_every_length(check: MeterCheck) -> None:
    assert error(check, "ticks", 0.5) < 0.03
    assert error(check, "ticks", 3.0) < 0.005


def test_a_power_field_that_is_off_is_off_at_every_length(check: MeterCheck) -> None:
    assert error(check, "instant", 0.5) == pytest.approx(0.02, abs=2e-3)
    assert error(check, "instant", 10.0) == pytest.approx(0.02, abs=2e-3)


def test_a_trace_without_a_counter_cannot_be_judged() -> None:
    assert check_meter(trace(650.0, 30.0, field_w=650.0, counter=False), 1.0, 29.0) is None


def test_a_counter_that_is_read_later_than_a_window_begins_has_no_edges_there() -> None:
    readings = trace(650.0, 30.0, field_w=650.0)

    assert _edges(readings, readings[0].time_s - 1.0, 29.0) is None
