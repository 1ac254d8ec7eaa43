"""Memory-bound operations: their least traffic, and which of them only FP8 has."""

from __future__ import annotations

from planner.measured.device import CASTS
from probes.workloads.memory_ops import OPS, MemoryOps
from tests.probes.build import H200, plan

POINTS = {point.probe_id: point for group in MemoryOps().groups(plan(H200)) for point in group.points}


def test_the_traffic_of_an_operation_is_its_passes_over_its_input() -> None:
    # RMSNorm: 1 read and 1 write forward, 2 reads and 1 write backward
    assert POINTS["memory_op/rmsnorm/eager/bf16-autocast"].counts.bytes_min == 5 * 8192 * 8192 * 2
    assert POINTS["memory_op/rmsnorm/eager/fp32"].counts.bytes_min == 5 * 8192 * 8192 * 4
    # logits of half the tokens over 128256 words: two reads, the gradient written and read
    assert POINTS["memory_op/cross_entropy/eager/bf16-autocast"].counts.bytes_min == 4 * 4096 * 128_256 * 2
    # a cast per tensor reads 16 bits twice and writes 8
    assert POINTS["memory_op/cast_fp8_tensorwise/eager/bf16-autocast"].counts.bytes_min == 5 * 8192 * 8192


def test_the_casts_that_the_planner_counts_apart_are_those_of_the_suite() -> None:
    assert [op.name for op in OPS if op.only_low] == list(CASTS)


def test_casts_are_measured_in_16_bits_only_and_compiled_operations_not_in_fp32() -> None:
    assert "memory_op/cast_fp8_rowwise/eager/fp32" not in POINTS
    assert "memory_op/rmsnorm/compiled/bf16-autocast" in POINTS
    assert "memory_op/rmsnorm/compiled/fp32" not in POINTS
    assert POINTS["memory_op/rmsnorm/compiled/bf16-autocast"].setup.compiled is True
