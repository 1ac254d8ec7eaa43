"""What explains a value that is far from what is predicted: the slip of units that makes the factor."""

from __future__ import annotations

import pytest

from mpplan.api.run_values import odd_values
from planner.errors import InputFileError
from tests.planner.calibration.own_runs import observation

CLUSTER = {"n_gpus": "64", "global_batch_seqs": "512"}


@pytest.mark.parametrize(
    ("metric", "factor", "hint"),
    [
        ("tokens_per_s_per_gpu", 64.0, "is this the cluster's rate? give the tokens per second of one GPU"),
        ("tokens_per_s_per_gpu", 8.0, "is this the node's rate? give the tokens per second of one GPU"),
        ("tokens_per_s_per_gpu", 1e-3, "is it in thousands?"),
        ("step_time_s", 1 / 64, "is it divided by the number of GPUs, or is it in minutes?"),
        ("step_time_s", 1 / 3600, "is it in hours?"),
        ("energy_mwh", 1 / 64, "is it for one GPU? give the MWh of all GPUs together"),
        ("energy_mwh", 1000.0, "is it in kWh?"),
        ("energy_mwh", 3600.0, "is it in MJ?"),
        ("gpu_hours", 1 / 8, "is it in node-hours? give the hours of all GPUs together"),
        ("step_time_s", 1 / 8, "is it for one micro-batch? give the seconds of a whole optimizer step"),
        ("avg_gpu_power_w", 1000.0, "is it in milliwatts?"),
        ("time_to_train_min", 1 / 1440, "is it in days?"),
        ("gpu_hours", 1 / 64, "is it the time on the clock?"),
        ("avg_gpu_power_w", 1e-3, "is it in kW?"),
        ("samples_per_s", 1 / 64, "is it for one GPU?"),
        ("tflops_per_gpu", 1000.0, "is it in GFLOP/s?"),
    ],
)
def test_the_slip_that_makes_the_factor_is_asked_about(metric, factor, hint):
    row = observation(factor, metric=metric, tokens_total="1e12", energy_scope="gpu", **CLUSTER)

    with pytest.raises(InputFileError) as error:
        odd_values([row], "runs.csv")

    assert error.value.hint.startswith(hint)


def test_an_energy_in_gigajoules_is_asked_about_though_it_is_used():
    """It is off by less than four times, and once went unnoticed."""
    row = observation(3.6, metric="energy_mwh", tokens_total="1e12", energy_scope="gpu", **CLUSTER)

    (odd,) = odd_values([row], "runs.csv")

    assert odd.words.endswith("takes (is it in GJ? give the MWh of all GPUs together)")


@pytest.mark.parametrize("metric", ["peak_mem_gib", "avg_gpu_power_w", "avg_node_power_w", "energy_mwh"])
@pytest.mark.parametrize(("factor", "count"), [(0.4, 1), (0.6, 0)])
def test_no_layout_explains_half_of_a_memory_a_power_or_an_energy(metric, factor, count):
    row = observation(factor, metric=metric, tokens_total="1e12")

    assert len(odd_values([row], "runs.csv")) == count


def test_energy_is_never_asked_to_be_that_of_one_gpu():
    row = observation(8.0, metric="energy_mwh", tokens_total="1e12", energy_scope="gpu", n_gpus="8")

    (odd,) = odd_values([row], "runs.csv")

    assert "8 times what this configuration takes" in odd.words


@pytest.mark.parametrize(("factor", "count"), [(1.9, 0), (2.2, 1), (0.3, 0), (0.2, 1)])
def test_a_speed_twice_what_is_predicted_is_asked_about_as_one_of_a_fifth_is(factor, count):
    row = observation(factor, precision="fp8")

    assert len(odd_values([row], "runs.csv")) == count


def test_a_slip_by_so_little_that_the_row_is_used_is_asked_about_too():
    row = observation(2.9, precision="fp8", n_gpus="3", global_batch_seqs="63")

    (odd,) = odd_values([row], "runs.csv")

    assert odd.words.endswith("can do (is this the cluster's rate? give the tokens per second of one GPU)")
