"""Claims by arithmetic: every figure against one written out by hand."""

from __future__ import annotations

import pytest

from planner.claims.evidence.arithmetic import (
    bought_flop,
    deepseek_figures,
    most_w_per_gpu,
    peak_ratio,
    run_flop,
    state_bytes,
    state_saved,
    zero3_saved,
)


def test_the_deepseek_claim_multiplies_to_other_savings_than_it_states():
    own = deepseek_figures()

    assert (own.gpu_days.before, own.gpu_days.after) == (184_320, 36_864)
    assert own.gpu_days.ratio == pytest.approx(-0.80)
    assert (own.energy_mwh.before, own.energy_mwh.after) == (pytest.approx(12_960), pytest.approx(3_110.4))
    assert own.w_per_gpu.after == pytest.approx(7.2e6 / 2048)
    assert own.speed_per_gpu == 5


def test_a_gpu_of_a_dgx_takes_at_most_its_eighth_and_the_cooling():
    assert most_w_per_gpu() == pytest.approx(10_200 / 8 * 1.25)


@pytest.mark.parametrize(
    ("policy", "optimizer", "size"),
    [
        ("fp32", "adamw", 16),  # 4 + 4 + 8
        ("fp16-megatron", "adamw", 18),  # 2 + 4 + 4 + 8
        ("fp16-zero", "adamw", 16),  # 2 + 4 + 2 + 8, as the ZeRO paper counts
        ("bf16-pure", "adamw", 8),
        ("fp16-zero", "adamw-8bit", 10.03125),  # 2 + 4 + 2 + 2.03125
    ],
)
def test_states_are_summed_by_policy_and_optimizer(policy, optimizer, size):
    assert state_bytes(policy, optimizer) == size
    assert state_saved(policy, optimizer).mid == pytest.approx(1 - size / 16)


def test_zero_3_leaves_each_of_n_devices_an_nth():
    assert [zero3_saved(gpus).mid for gpus in (2, 4, 8)] == [0.5, 0.75, 0.875]


def test_the_work_of_llama_2_70b_is_below_1e24_without_recomputation():
    matrices, causal, full, recomputed = (case.mid for case in run_flop("llama-2-70b", 2e12))

    assert 8.2e23 < matrices < causal < full < 1e24 < recomputed
    # causal attention: 6 · 80 layers · 8192 · 4096 tokens · 2e12 = 3.2e22
    assert causal - matrices == pytest.approx(6 * 80 * 8192 * 4096 * 2e12, rel=0.15)


def test_what_a_sum_buys_depends_on_the_price():
    # 63e6 USD at 1 USD an hour, 35 % of 312 TFLOP/s: 63e6 · 3600 · 0.35 · 312e12
    assert bought_flop(63e6, 1.0, 0.35, "a100-sxm4-80gb") == pytest.approx(63e6 * 3600 * 0.35 * 312e12)


@pytest.mark.parametrize(
    ("gpu", "frm", "to", "ratio"),
    [("v100-sxm2-32gb", "fp32", "fp16", 125 / 15.7), ("a100-sxm4-80gb", "fp32", "fp16", 312 / 19.5)],
)
def test_peaks_are_those_of_the_datasheets(gpu, frm, to, ratio):
    assert peak_ratio(gpu, frm, to).mid == pytest.approx(ratio)
