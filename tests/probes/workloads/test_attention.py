"""Attention: FLOP as FlashAttention's benchmark counts them, and the traffic of its operands."""

from __future__ import annotations

import pytest

from probes.workloads.attention import AttentionWorkload, attention_flop
from tests.probes.build import H200, plan

POINTS = {point.probe_id: point for group in AttentionWorkload().groups(plan(H200)) for point in group.points}


def test_forward_flop_are_those_of_the_flashattention_benchmark() -> None:
    # 4 x length² x head size x heads, half of it where causal (Dao, arXiv 2307.08691, section 4.1)
    assert attention_flop(batch=2, heads=32, head_dim=128, length=8192) == 4 * 8192**2 * 128 * 32 * 2 / 2


def test_backward_is_two_and_a_half_times_forward_on_the_hardware_and_twice_in_the_model() -> None:
    counts = POINTS["attention/s8192/bf16-autocast"].counts
    forward = attention_flop(batch=2, heads=32, head_dim=128, length=8192)

    assert (counts.flop_model, counts.flop_hardware) == (3 * forward, 3.5 * forward)


@pytest.mark.parametrize(("length", "batch"), [(2048, 8), (8192, 2), (16_384, 1)])
def test_shorter_sequences_come_in_a_batch_of_as_many_tokens(length: int, batch: int) -> None:
    shape = POINTS[f"attention/s{length}/bf16-autocast"].shape

    assert (shape.micro_batch, shape.tokens) == (batch, 16_384)


def test_the_least_traffic_is_the_operands_and_results_of_three_passes() -> None:
    # q and output 32 heads, k and v 8 heads, of 16384 x 128 elements
    elements = 16_384 * 128 * (2 * 32 + 2 * 8)

    assert POINTS["attention/s8192/bf16-autocast"].counts.bytes_min == 3 * 2 * elements
    assert POINTS["attention/s8192/fp32"].counts.bytes_min == 3 * 4 * elements


def test_fp8_recipes_have_no_attention_of_their_own() -> None:
    assert {point.recipe.id for point in POINTS.values()} == {"fp32", "tf32", "fp16", "bf16-autocast"}


METERED = {point.probe_id for group in AttentionWorkload().groups(plan(H200, has_sensor=True)) for point in group.points
           if point.energy_s}  # fmt: skip


def test_power_is_read_once_for_each_size_of_a_head_where_there_is_a_sensor() -> None:
    assert {"attention/s8192/bf16-autocast", "attention/s8192d64/bf16-autocast"} == METERED
    assert not any(point.energy_s for point in POINTS.values())


def test_what_shares_a_kernel_or_its_rates_is_left_out_at_the_ends() -> None:
    assert {name.split("/")[-1] for name in POINTS if "/s16384/" in name} == {"fp32", "bf16-autocast"}
    assert {name.split("/")[-1] for name in POINTS if "/s2048b1/" in name} == {"bf16-autocast"}
    assert {name.split("/")[-1] for name in POINTS if "/s8192/" in name} == {"fp32", "tf32", "fp16", "bf16-autocast"}
