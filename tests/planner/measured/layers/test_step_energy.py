"""Joules of a step from the power of its kinds of work, and the clock that a power limit leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.step_energy import fit_energy
from planner.measured.layers.steps import fit_step
from planner.measured.rates import MeasuredRates
from planner.records.measurement import Measurement
from tests.planner.measured.layers.test_steps import ANCHORS, step
from tests.planner.recorded import H200, a_measurement, kernels

FULL_HZ = 1.98e9


def window(kind: str, watts: float, **changes: object) -> Measurement:
    facts = {"probe_id": f"{kind}/{watts}", "kind": kind, "power_mean_w": watts, "energy_quality": "ok",
             "recipe": "bf16-autocast"}  # fmt: skip
    return a_measurement(**(facts | H200 | changes))


POWERS = [window("idle", 100.0, role="context"), window("power", 690.0), window("power", 400.0, role="copy")]


def rates_of(*points: Measurement) -> MeasuredRates:
    return measured_rates([*kernels(), *POWERS, *points])


def with_power(point: Measurement, watts: float) -> Measurement:
    return replace(
        point, power=replace(point.power, mean_w=watts), energy=replace(point.energy, quality="ok", window_s=3.0)
    )


METERED = [with_power(ANCHORS[3], 520.0), *ANCHORS[:3], ANCHORS[4]]


def test_an_anchor_s_own_energy_is_met() -> None:
    rates = rates_of()
    fit = fit_step(METERED, rates)
    assert fit is not None
    energy = fit_energy(fit, METERED, rates)
    assert energy is not None

    predicted = energy.at_limit(step(4, 4096))

    assert predicted is not None
    assert predicted.energy_j / predicted.time_s == pytest.approx(520.0, rel=0.01)


def test_longer_sequences_draw_more_because_arithmetic_does() -> None:
    rates = rates_of()
    fit = fit_step(METERED, rates)
    assert fit is not None
    energy = fit_energy(fit, METERED, rates)
    assert energy is not None

    short, long = energy.at_limit(step(16, 2048)), energy.at_limit(step(16, 8192))

    assert short is not None
    assert long is not None
    assert long.energy_j / long.time_s > short.energy_j / short.time_s


def test_under_a_power_limit_the_clock_falls_until_the_step_keeps_it() -> None:
    held = window("power", 690.0, regime="sustained", sm_clock_median_hz=1.6e9)
    full = a_measurement(probe_id="canary", kind="canary", sm_clock_median_hz=FULL_HZ, **H200)
    rates = replace(rates_of(held, full), power_limit_w=540.0)
    anchors = [replace(point, device_state=replace(point.device_state, sm_clock_median_hz=1.6e9)) for point in METERED]
    fit = fit_step(anchors, rates)
    assert fit is not None
    energy, freely = fit_energy(fit, anchors, rates), fit_energy(fit, anchors, replace(rates, power_limit_w=2000.0))
    assert energy is not None
    assert freely is not None

    limited, unlimited = energy.at_limit(step(16, 8192)), freely.at_limit(step(16, 8192))

    assert limited is not None
    assert unlimited is not None
    assert limited.energy_j / limited.time_s == pytest.approx(540.0, rel=0.01)
    assert unlimited.energy_j / unlimited.time_s > 545.0
    assert limited.time_s > unlimited.time_s


def test_without_a_power_of_each_kind_or_a_metered_anchor_there_is_no_such_prediction() -> None:
    bare = measured_rates(kernels())
    fit = fit_step(METERED, bare)
    assert fit is not None

    assert fit_energy(fit, METERED, bare) is None
    assert fit_energy(fit, ANCHORS, rates_of()) is None


def test_a_window_of_attention_says_what_long_sequences_draw() -> None:
    def long_w(*windows: Measurement) -> float:
        rates = rates_of(*windows)
        fit = fit_step(METERED, rates)
        assert fit is not None
        energy = fit_energy(fit, METERED, rates)
        assert energy is not None
        predicted = energy.at_limit(step(16, 16384))
        assert predicted is not None
        return predicted.energy_j / predicted.time_s

    low_window, high_window = (window("attention", watts, head_dim=128) for watts in (300.0, 650.0))

    assert long_w(low_window) < long_w() < long_w(high_window)


def test_fp16_draws_what_bf16_does_where_it_was_not_read() -> None:
    fp16 = [replace(point, setup=replace(point.setup, recipe="fp16")) for point in METERED]
    products = [
        replace(point, setup=replace(point.setup, recipe="fp16")) for point in kernels() if point.kind == "gemm"
    ]
    rates = rates_of(*(replace(point, probe_id=f"{point.probe_id}/fp16") for point in products))
    fit = fit_step(fp16, rates)
    assert fit is not None
    energy = fit_energy(fit, fp16, rates)

    assert energy is not None
    assert energy.at_limit(step(16, 8192)) is not None
