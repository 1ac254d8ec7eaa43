"""Matrix products: their least traffic by role and type, and which are worth their time."""

from __future__ import annotations

import pytest

from probes.models.shapes import LLAMA_70B_TP8
from probes.record.options import CLAIMS_SUITE
from probes.timing.trial import Point
from probes.workloads.gemm import Gemm, layer_shapes, least_bytes
from tests.probes.build import CPU, H200, plan


def points(device, suite: str = "default") -> dict[str, Point]:
    return {point.probe_id: point for group in Gemm().groups(plan(device, suite)) for point in group.points}


@pytest.mark.parametrize(
    ("role", "size", "out", "expected"),
    [
        # M, N, K = 2, 3, 5: forward reads 10 + 15 and writes 6; dgrad reads 6 + 15, writes 10; wgrad 6 + 10 and 15
        ("forward", 2, 2, 2 * 25 + 2 * 6),
        ("dgrad", 2, 2, 2 * 21 + 2 * 10),
        ("wgrad", 2, 2, 2 * 16 + 2 * 15),
        ("forward", 1, 2, 25 + 2 * 6),  # FP8 operands, BF16 result
        ("forward", 4, 4, 4 * 31),
    ],
)
def test_operands_are_read_once_and_the_result_is_written_once(role: str, size: int, out: int, expected: int) -> None:
    assert least_bytes(role, (2, 3, 5), size, out) == expected


def test_a_product_counts_two_flop_per_multiply_add_in_every_role() -> None:
    listed = points(H200)

    for role in ("forward", "dgrad", "wgrad"):
        point = listed[f"gemm/8192x8192x8192/{role}/bf16-autocast"]
        assert point.counts.flop_model == point.counts.flop_hardware == 2 * 8192**3
        assert point.counts.bytes_min == 3 * 8192**2 * 2
    assert listed["gemm/8192x8192x8192/forward/fp8"].counts.bytes_min == (1 + 1 + 2) * 8192**2


def test_the_shapes_of_a_70b_shard_are_measured_as_m_n_k() -> None:
    # qkv, output, gate and up, down of one of eight ranks
    assert layer_shapes(LLAMA_70B_TP8, 8192) == [
        (8192, 1280, 8192), (8192, 8192, 1024), (8192, 7168, 8192), (8192, 8192, 3584),
    ]  # fmt: skip
    assert "gemm/8192x7168x8192/wgrad/fp8" in points(H200)


def test_strict_fp32_is_left_out_where_it_takes_seconds() -> None:
    listed = points(H200)

    # 2 x 8192³ = 1.1 TFLOP is measured, 2 x 16384³ = 8.8 TFLOP is not
    assert "gemm/8192x8192x8192/forward/fp32" in listed
    assert "gemm/16384x16384x16384/forward/fp32" not in listed
    assert "gemm/16384x16384x16384/forward/tf32" in listed


def test_a_cpu_measures_small_products_only() -> None:
    assert max(point.counts.flop_model for point in points(CPU).values()) == 2 * 1024**3


def test_a_claim_of_the_literature_needs_large_squares_alone() -> None:
    sizes = {(p.shape.gemm_m, p.shape.gemm_n, p.shape.gemm_k) for p in points(H200, CLAIMS_SUITE).values()}

    assert sizes == {(8192, 8192, 8192), (4096, 4096, 4096), (16384, 16384, 16384)}
