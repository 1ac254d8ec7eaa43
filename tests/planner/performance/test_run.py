"""A run: goodput by Young's interval, and energy as seconds times watts, host and network on top, PUE on all of it."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import make_cluster
from planner.hardware.failures import load_failures
from planner.parallelism.layout import Layouts
from planner.performance.run import goodput_ratio, gpu_step_j, host_and_network_w, host_w, run_energy
from planner.performance.step import StepTimes, step_times
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from tests.planner.build import ROUNDING, cluster, mid_rates, plain_rates, recipe, settings_of_recipes


def steps(**seconds: float) -> StepTimes:
    return StepTimes(**({f.name: 0.0 for f in fields(StepTimes)} | seconds))


WATTS = plain_rates(
    power_error_ratio=1.0, power_idle_w=90.0, power_linear_w=660.0, power_attention_w=600.0, power_memory_w=450.0,
    power_wait_w=310.0, product_power_ratio=1.0,
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


def test_the_part_of_the_update_that_waits_for_the_host_draws_what_launching_does():
    assert gpu_step_j(steps(optimizer=2.0), WATTS, host_s=0.5) == 1.5 * 450 + 0.5 * 200


@pytest.mark.parametrize("name", ["power_error_ratio", "power_stack_error_ratio"])
def test_what_the_equations_leave_out_of_the_power_stretches_every_second_of_it(name):
    everything = steps(**{f.name: 1.0 for f in fields(StepTimes)})

    # 2 x 660 + 600 + 2 x 450 + 7 x 310 + 3 x 200
    assert gpu_step_j(everything, WATTS) == 5590
    assert gpu_step_j(everything, WATTS.replaced(**{name: 1.1})) == pytest.approx(1.1 * 5590)


def test_a_run_is_gpus_host_and_network_times_pue():
    rates = WATTS.replaced(host_power_w=350.0, network_power_w=21.0)
    energy = run_energy(600.0, 1000.0, 1e6, 1e6, rates, 1.25)

    assert energy.gpu == pytest.approx(600 * 1000 * 1e6)
    assert energy.host == pytest.approx(350 * 1000 * 1e6)
    assert energy.network == pytest.approx(21 * 1000 * 1e6)
    # (GPU + host + network) x PUE: docs/model.md, Energy
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
    training, where, machine = setting
    rates = mid_rates(training, machine)
    times = step_times(training, machine, Layouts.of(where), rates)
    mean = float(np.ravel(gpu_step_j(times, rates) / times.total)[0])

    limit_w = min(machine.power_limit_w or machine.gpu.tdp_w, machine.gpu.tdp_w)
    assert rates.power_idle_w < mean <= limit_w * ROUNDING


@given(
    gpu_w=st.floats(50, 1400), busy_s=st.floats(1, 1e6), waited_s=st.floats(0, 1e6), host_w=st.floats(0, 800),
    network_w=st.floats(0, 80),
)  # fmt: skip
def test_hosts_and_switches_draw_the_same_for_all_the_time_whatever_the_gpus_do(
    gpu_w, busy_s, waited_s, host_w, network_w
):
    rates = WATTS.replaced(host_power_w=host_w, network_power_w=network_w)
    energy = run_energy(gpu_w, 8.0, busy_s, busy_s + waited_s, rates, 1.0)

    assert energy.host == pytest.approx(8 * host_w * (busy_s + waited_s))
    assert energy.network == pytest.approx(8 * network_w * (busy_s + waited_s))
    longer = run_energy(gpu_w, 8.0, busy_s, 2 * (busy_s + waited_s), rates, 1.0)
    assert longer.host == pytest.approx(2 * energy.host)


@pytest.mark.parametrize(
    ("gpu", "limits_w"),
    [
        ("h100-sxm5-80gb", (700, 490, 350, 200)),
        ("gb300-288gb", (1400, 900)),
        ("l4", (72, 40)),
        ("gh200-96gb", (900, 500)),
    ],
)
def test_a_lower_power_limit_never_lowers_what_the_host_draws(gpu, limits_w):
    limited = [make_cluster(find_gpu(gpu), power_limit_w=limit) for limit in limits_w]
    beside = {
        (float(host_w(rates)), float(host_and_network_w(rates)))
        for rates in (mid_rates(recipe(), machine) for machine in limited)
    }

    assert len(beside) == 1


def test_a_small_card_stands_beside_a_whole_machine_and_no_host_draws_more_than_its_nameplate():
    at_mid = {
        gpu: float(host_w(mid_rates(recipe(), make_cluster(find_gpu(gpu)))))
        for gpu in ("l4", "gb300-288gb", "h100-sxm5-80gb")
    }

    assert at_mid["l4"] == 75  # host_least_w in parameters.csv: above its share of 72 W
    assert at_mid["gb300-288gb"] == 475  # 1900 W of a tray of four (gpus.csv)
    assert 200 < at_mid["h100-sxm5-80gb"] < 350  # 350 W: an 8.4 kW node with 5.6 kW of GPUs (arXiv 2412.08602)


def test_draws_of_a_host_lie_within_its_nameplate():
    rates = resolve_rates(cluster(), recipe()).sample(Draws(count=401, seed=0))
    drawn = host_w(rates)

    assert drawn.shape == (401,)
    assert drawn.max() <= 4600 / 8  # gpus.csv
    assert drawn.std() > 20


@given(pue=st.floats(1, 2), watts=st.floats(0, 800))
def test_the_items_of_a_run_sum_to_its_total(pue, watts):
    energy = run_energy(500.0, 64.0, 1e5, 1.1e5, WATTS.replaced(host_power_w=watts), pue)

    assert energy.gpu + energy.host + energy.network + energy.pue_overhead == pytest.approx(energy.total, rel=1e-12)
    assert energy.pue_overhead >= 0


H100 = mid_rates(recipe(), cluster()).replaced(standstill_ratio=1.0)
"""Mid values, of runs that stand still for failures alone."""


def test_llama_3_on_16384_gpus_trains_more_than_90_percent_of_the_time():
    # arXiv 2407.21783: 419 unexpected interruptions in 54 days; effective training time above 90 %
    assert pytest.approx(419 / (16384 * 54 * 24), rel=0.01) == H100.failures_per_gpu_h
    assert load_failures()["llama3-effective-time"].ratio == 0.9
    assert 0.90 < float(goodput_ratio(np.array([16384.0]), H100)[0]) < 0.95


def test_a_single_node_hardly_notices():
    rates = H100.replaced(evaluation_ratio=0.0)

    assert 0.995 < float(goodput_ratio(np.array([8.0]), rates)[0]) < 1


@given(stall=st.floats(1, 300), mtbf_h=st.floats(1, 10_000), restart=st.floats(0, 3600))
def test_no_other_checkpoint_interval_loses_less(stall, mtbf_h, restart):
    rates = plain_rates(checkpoint_s=stall, failures_per_gpu_h=1 / mtbf_h, restart_s=restart)
    ours = float(goodput_ratio(np.array([1.0]), rates)[0])

    def at(interval_s: float) -> float:
        lost = stall / interval_s + (restart + interval_s / 2) / (mtbf_h * 3600)
        return 1 / (1 + lost)

    best = math.sqrt(2 * stall * mtbf_h * 3600)  # Young 1974
    assert ours == pytest.approx(at(best), rel=1e-12)
    assert all(ours >= at(best * factor) for factor in (0.1, 0.5, 0.9, 1.1, 2, 10))


def test_evaluation_and_start_up_come_on_top():
    rates = plain_rates(evaluation_ratio=0.02)

    assert float(goodput_ratio(np.array([64.0]), rates)[0]) == pytest.approx(1 / 1.02, rel=1e-3)


@given(fewer=st.integers(1, 100_000), more=st.integers(1, 100_000))
def test_more_gpus_never_lose_less_to_failures(fewer, more):
    low, high = (float(goodput_ratio(np.array([float(n)]), H100)[0]) for n in sorted((fewer, more)))

    assert 0 < high <= low * ROUNDING <= ROUNDING


def test_stops_lengthen_a_run_and_never_shorten_it():
    draws = np.array([0.5, 1.0, 1.7])
    goodput = goodput_ratio(np.array([8.0]), H100.replaced(standstill_ratio=draws))
    plain = float(goodput_ratio(np.array([8.0]), H100)[0])

    assert list(goodput) == pytest.approx([plain, plain, plain / 1.7])
