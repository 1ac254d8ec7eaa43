"""Energy: seconds times watts, host and network on top, PUE on all of it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.energy import gpu_step_j, run_energy
from planner.layout import Layouts
from planner.step import StepTimes, step_times
from tests.planner.build import ROUNDING, mid_rates, plain_rates, settings_of_recipes


def steps(**seconds: float) -> StepTimes:
    return StepTimes(**({f.name: 0.0 for f in fields(StepTimes)} | seconds))


WATTS = plain_rates(
    power_error=1.0, power_idle_w=90.0, power_linear_w=660.0,
    power_other_w=660.0, power_attention_w=600.0, power_memory_w=450.0,
    power_wait_w=310.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("item", "watts"),
    [
        ("matmul", 660), ("recompute", 660), ("attention", 600), ("memory_bound", 450), ("optimizer", 450),
        ("tp_comm", 310), ("cp_comm", 310), ("ep_comm", 310), ("pp_comm", 310), ("dp_comm", 310), ("bubble", 310),
        ("jitter", 310), ("launch", 200), ("offload", 200),
    ],
)  # fmt: skip
def test_every_second_of_a_step_draws_the_power_of_what_is_done_in_it(item, watts):
    assert gpu_step_j(steps(**{item: 2.0}), WATTS) == 2.0 * watts


def test_a_run_is_gpus_host_and_network_times_pue():
    rates = replace(WATTS, host_share=0.5, network_share=0.03)
    energy = run_energy(600.0, 1000.0, 1e6, 1e6, rates, 1.25)

    assert energy.gpu == pytest.approx(600 * 1000 * 1e6)
    assert energy.host == pytest.approx(0.5 * energy.gpu)
    assert energy.network == pytest.approx(0.03 * energy.gpu)
    # design, section 3: (GPU + host + network) x PUE
    assert energy.total == pytest.approx((energy.gpu + energy.host + energy.network) * 1.25)


def test_time_lost_to_failures_still_draws_power():
    busy = run_energy(600.0, 8.0, 900.0, 900.0, WATTS, 1.0)
    lost = run_energy(600.0, 8.0, 900.0, 1000.0, WATTS, 1.0)

    assert lost.gpu - busy.gpu == pytest.approx(8 * 100 * (90 + 310) / 2)


def test_llama_2_70b_takes_the_energy_that_meta_states():
    # Touvron et al. 2023, table 2: 1 720 320 GPU-hours at 400 W: 688 MWh and 291.42 tCO2eq, GPUs alone
    energy = run_energy(400.0, 2000.0, 1_720_320 / 2000 * 3600, 1_720_320 / 2000 * 3600, plain_rates(), 1.0)

    assert energy.gpu / 3.6e9 == pytest.approx(688.1, rel=1e-3)


@given(settings_of_recipes())
def test_the_mean_power_lies_between_idle_and_the_limit(setting):
    one, where, machine = setting
    rates = mid_rates(one, machine)
    times = step_times(one, machine, Layouts.of(where), rates)
    mean = float(np.ravel(gpu_step_j(times, rates) / times.total)[0])

    limit_w = min(machine.power_limit_w or machine.gpu.tdp_w, machine.gpu.tdp_w)
    assert rates.power_idle_w < mean <= limit_w * ROUNDING


@given(pue=st.floats(1, 2), share=st.floats(0, 1))
def test_the_items_of_a_run_sum_to_its_total(pue, share):
    energy = run_energy(500.0, 64.0, 1e5, 1.1e5, replace(WATTS, host_share=share), pue)

    assert energy.gpu + energy.host + energy.network + energy.pue_overhead == pytest.approx(energy.total, rel=1e-12)
    assert energy.pue_overhead >= 0
