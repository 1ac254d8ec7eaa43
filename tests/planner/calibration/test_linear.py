"""Rows linearised: the slopes are those of the equations, and only rows that may teach are taken."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.linear import figure_of, linearize, mapped, observe, residuals
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Figure, moved, shipped_parameters
from planner.validation.predict import metric_values
from planner.validation.runs import PublishedResult, Rejected
from tests.planner.calibration.own_runs import observation, prepared, team


def result(value: float | None) -> PublishedResult:
    return PublishedResult(id="x", value=value, out_of_memory=value is None, source="")


def test_a_residual_is_the_logarithm_of_prediction_over_measurement():
    linear = linearize([observation(1.25)], shipped_parameters(), ["model_error_ratio"])

    assert linear.residual == pytest.approx([-math.log(1.25)])


@pytest.mark.parametrize(
    ("metric", "slope"), [("step_time_s", 1.0), ("tokens_per_s_per_gpu", -1.0), ("peak_mem_gib", 0.0)]
)
def test_what_is_left_out_of_the_step_moves_times_up_and_speeds_down(metric, slope):
    linear = linearize([observation(metric=metric)], shipped_parameters(), ["model_error_ratio"])

    assert linear.slopes[0, 0] == pytest.approx(slope, abs=1e-9)


@pytest.mark.parametrize("name", ["product_rate_ratio", "memory_efficiency", "fusion_ratio.eager"])
def test_a_slope_is_that_of_the_prediction_with_the_parameter_itself_moved(name):
    shipped, run = shipped_parameters(), prepared()
    row, share = shipped.rows[name], shipped.families[shipped.rows[name].family].bound == "share"

    def log_speed(shift: float) -> float:
        at = shipped.replaced([replace(row, value=float(moved(row.value, shift, share=share)))])
        return math.log(metric_values(run, resolve_rates(run.cluster, run.recipe, None, at).sample())[0])

    linear = linearize([observation()], shipped, [name])

    assert linear.slopes[0, 0] == pytest.approx((log_speed(0.01) - log_speed(-0.01)) / 0.02, rel=0.02)
    assert abs(linear.slopes[0, 0]) > 0.005


def test_a_parameter_that_the_run_does_not_rest_on_has_no_slope():
    assert linearize([observation()], shipped_parameters(), ["matmul_efficiency.Volta"]).slopes[0, 0] == 0.0


def test_rows_without_a_number_with_a_flag_or_of_an_unknown_power_limit_teach_nothing():
    run = prepared()

    assert observe(run, result(12.0), "ours") is not None
    assert observe(run, result(None), "ours") is None
    assert observe(replace(run, run=replace(run.run, flag="does not add up")), result(12.0), "ours") is None
    assert observe(replace(run, run=replace(run.run, gpu="b200-sxm-180gb-power-limited")), result(12.0), "ours") is None
    assert observe(Rejected(id="x", reason="seq_len: blank"), result(12.0), "ours") is None


@pytest.mark.parametrize(
    ("metric", "figure"),
    [
        ("mfu", Figure.TIME),
        ("peak_mem_gib", Figure.MEMORY),
        ("avg_node_power_w", Figure.POWER),
        ("gpu_hours", Figure.RUN),
    ],
)
def test_a_metric_is_about_one_figure(metric, figure):
    assert figure_of(metric) is figure


def test_many_items_are_shared_by_processes_in_their_order():
    assert mapped(math.sqrt, [float(number) for number in range(500)]) == [math.sqrt(number) for number in range(500)]


def test_all_rows_of_a_team_are_linearised_at_once_as_one_by_one():
    rows, names = team([1.0, 0.9, 1.1]), ["framework_ratio.eager", "nic_efficiency"]
    together = linearize(rows, shipped_parameters(), names)

    for number, row in enumerate(rows):
        assert np.array_equal(linearize([row], shipped_parameters(), names).slopes[0], together.slopes[number])


def test_rows_that_differ_in_labels_and_value_alone_are_evaluated_once(monkeypatch):
    row = observation(1.0)
    other = replace(row, value=2.0 * row.value, prepared=replace(row.prepared, run=replace(row.run, id="again")))
    evaluated = []
    monkeypatch.setattr(
        "planner.calibration.linear.metric_values",
        lambda run, rates: evaluated.append(run) or metric_values(run, rates),
    )

    errors = residuals([row, other, observation(1.0, n_gpus="16")], shipped_parameters())

    assert len(evaluated) == 2
    assert errors[0] - errors[1] == pytest.approx(math.log(2.0))
