"""What the host takes to launch a step: one line for a record, and how far an implementation is from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.host import OPERATION_LAUNCH_RATIO, Launched, host_line, host_time, launched, with_host
from planner.measured.layers.workloads import work_of
from planner.measured.rates import MeasuredRates
from planner.records.measurement import Measurement
from tests.planner.measured.layers.test_steps import launches, step
from tests.planner.recorded import kernels

STEP_S, LAUNCH_S = 5e-3, 33e-6
"""As on the host of an H100."""


def usual_s(layers: int) -> float:
    return STEP_S + LAUNCH_S * (135 * layers + 60)


def measured(layers: int, held_up: float = 1.0, recipe: str = "bf16-autocast", **changes: object) -> Measurement:
    point = step(layers, 65536, recipe=recipe, probe_id=f"end_to_end/{layers}-{held_up}-{recipe}", **changes)
    return replace(point, time=replace(point.time, host_median_s=held_up * usual_s(layers)))


@pytest.fixture(scope="module")
def rates() -> MeasuredRates:
    return measured_rates(kernels())


def test_all_steps_of_a_record_tell_one_line_and_a_host_that_was_held_up_does_not_bend_it() -> None:
    steps = [measured(layers, recipe=recipe) for layers in (2, 4, 16) for recipe in ("tf32", "bf16-fsdp", "fp16")]

    line = host_line([*steps, measured(6, 1.8), measured(3, 2.5)])

    assert line is not None
    assert (line.step_s, line.launch_s) == (pytest.approx(STEP_S), pytest.approx(LAUNCH_S))


def test_fp8_and_compiled_steps_are_no_part_of_the_line() -> None:
    steps = [measured(layers) for layers in (2, 4)]
    others = [measured(2, 1.5, "fp8"), measured(4, 1.5, "fp8"), measured(2, 0.3, compiled=True)]

    assert host_line([*steps, *others]) == host_line(steps)
    assert host_line(others) is None


def test_the_steps_of_an_implementation_scale_the_line_the_more_of_them_there_are(rates: MeasuredRates) -> None:
    line = host_line([measured(layers) for layers in (2, 4)])
    record = replace(rates, host=line)
    single_step, twelve_steps = (
        [Launched(kernels=1000.0, host_s=1.4 * (STEP_S + LAUNCH_S * 1000.0))] * n for n in (1, 12)
    )

    scale_of_none, scale_of_one, scale_of_twelve = (
        host_time(own, 1.0, record).launch_s / LAUNCH_S for own in ([], single_step, twelve_steps)
    )

    assert scale_of_none == pytest.approx(1.0)
    assert 1.2 < scale_of_one < 1.3 < scale_of_twelve < 1.4


def test_a_launch_takes_no_longer_than_the_step_that_holds_it() -> None:
    point = measured(2, held_up=1000.0)
    work = work_of(point)
    assert work is not None

    step_seen = launched(point, work)

    assert step_seen is not None
    assert step_seen.host_s == point.time.median_s


def test_without_a_measurement_an_operation_costs_some_bare_launches_but_no_more_than_the_shortest_step() -> None:
    points = [*kernels(), *launches(7e-6)]
    record = with_host(measured_rates(points), points)

    assert record.host is None
    assert host_time([None], 1.0, record).launch_s == pytest.approx(OPERATION_LAUNCH_RATIO * 7e-6)
    assert host_time([None], 2e-5, record).launch_s == 2e-5
