"""Power from a trace: aligned to the counter's own ticks, checked against the power field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.energy.power import counter_ticks, power_over
from probes.sensors.interface import Reading

TICK_S = 0.1


def trace(
    watts: float,
    seconds: float,
    *,
    field_w: float | None = None,
    counter: bool = True,
    phase_s: float = 0.0,
    tick_s: float = TICK_S,
) -> list[Reading]:
    """Readings of a device that draws constant power, with a counter that ticks ten times a second (synthetic)."""
    readings, poll_s = [], 0.01
    for i in range(round(seconds / poll_s) + 1):
        t = i * poll_s
        ticks = int((t + phase_s) / tick_s + 1e-9)
        readings.append(
            Reading(
                time_s=t,
                energy_j=ticks * tick_s * watts if counter else None,
                power_instant_w=field_w,
                power_average_w=field_w,
            )
        )
    return readings


@pytest.mark.parametrize("phase_s", [0.0, 0.03, 0.07])
def test_alignment_to_ticks_finds_the_power_to_a_tenth_of_a_percent_whatever_the_phase(phase_s: float) -> None:
    power = power_over(trace(650.0, 5.0, field_w=650.0, phase_s=phase_s), 1.0, 4.5)

    assert power.mean_w == pytest.approx(650.0, rel=1e-3)
    assert (power.source, power.quality) == ("counter", "ok")
    assert power.tick_period_s == pytest.approx(TICK_S)


def test_ticks_are_the_readings_at_which_the_counter_moved() -> None:
    ticks = counter_ticks(trace(100.0, 0.35))

    assert [round(t, 2) for t, _ in ticks] == [0.1, 0.2, 0.3]
    assert [round(e, 6) for _, e in ticks] == [10.0, 20.0, 30.0]


def test_a_power_field_that_differs_by_more_than_five_percent_is_named_inconsistent() -> None:
    power = power_over(trace(650.0, 5.0, field_w=600.0), 0.0, 5.0)

    assert power.quality == "inconsistent"
    assert power.reason == "counter 650 W, power field 600 W"


def test_an_instantaneous_field_that_met_the_phases_of_a_step_unevenly_is_outvoted_by_the_averaged_one() -> None:
    readings = [replace(reading, power_average_w=645.0) for reading in trace(650.0, 5.0, field_w=600.0)]
    power = power_over(readings, 0.0, 5.0)

    assert (power.quality, power.reason) == ("ok", None)
    assert power.instant_mean_w == pytest.approx(600.0)


def test_a_window_under_three_seconds_is_called_short() -> None:
    assert power_over(trace(650.0, 5.0, field_w=650.0), 1.0, 2.5).quality == "short"


def test_without_a_counter_the_power_field_is_used_and_said_to_be_the_only_source() -> None:
    power = power_over(trace(650.0, 5.0, field_w=640.0, counter=False), 0.0, 5.0)

    assert (power.mean_w, power.source, power.quality) == (pytest.approx(640.0), "instant", "single")


def test_a_counter_that_never_ticks_is_not_zero_power() -> None:
    stuck = [Reading(time_s=i * 0.01, energy_j=5.0, power_instant_w=None, power_average_w=None) for i in range(500)]

    power = power_over(stuck, 0.0, 5.0)

    assert power.mean_w is None
    assert power.source == "none"
    assert power.reason is not None


def test_without_anything_power_is_unknown_with_a_reason() -> None:
    power = power_over(trace(650.0, 5.0, counter=False), 0.0, 5.0)

    assert power.mean_w is None
    assert power.reason == "neither the energy counter nor the power field could be read"


def test_the_mean_of_the_field_weighs_each_value_by_how_long_it_held() -> None:
    powers = [(0.0, 100.0), (1.0, 400.0), (1.5, 100.0)]  # sampled when it changed
    readings = [Reading(time_s=t, energy_j=None, power_instant_w=w, power_average_w=None) for t, w in powers]

    # 1 s at 100 W, 0.5 s at 400 W, 2.5 s at 100 W: (100 + 200 + 250) / 4
    assert power_over(readings, 0.0, 4.0).mean_w == pytest.approx(137.5)


def test_ticks_before_and_after_the_window_do_not_count() -> None:
    quiet = trace(100.0, 2.0)
    last_j = quiet[-1].energy_j or 0.0
    busy = [
        Reading(
            time_s=2.0 + reading.time_s + 0.01,
            energy_j=last_j + (reading.energy_j or 0.0),
            power_instant_w=None,
            power_average_w=None,
        )
        for reading in trace(700.0, 5.0)
    ]

    assert power_over([*quiet, *busy], 2.5, 6.5).mean_w == pytest.approx(700.0, rel=1e-3)


def test_a_short_window_is_short_by_the_power_field_alone_too_and_whatever_it_says() -> None:
    field_only = power_over(trace(650.0, 5.0, field_w=640.0, counter=False), 1.0, 2.0)
    differing = power_over(trace(650.0, 5.0, field_w=600.0), 1.0, 2.0)

    assert (field_only.source, field_only.quality) == ("instant", "short")
    assert differing.quality == "short"  # ten ticks more or less explain it
