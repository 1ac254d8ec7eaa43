"""Straight lines through collectives: known latencies and rates come back, and what no line meets is told."""

from __future__ import annotations

import numpy as np
import pytest

from planner.measured.network.lines import collective_lines
from planner.records.measurement import Measurement
from tests.planner.collective_points import SIZES, collective, collectives


def alpha_beta(size: float) -> float:
    """20 us and 40 GB/s."""
    return 20e-6 + size / 40e9


def test_the_latency_and_the_rate_that_made_the_times_come_back() -> None:
    (line,) = collective_lines(collectives(alpha_beta))

    assert line.latency_s == pytest.approx(20e-6, rel=1e-6)
    assert line.bytes_per_s == pytest.approx(40e9, rel=1e-6)
    assert line.bus_bytes_per_s == pytest.approx(75e9, rel=1e-6)  # 2 * 15/16 of the message of an all-reduce over 16
    assert line.residual_ratio == pytest.approx(0.0, abs=1e-9)
    assert (line.sizes, line.smallest_bytes, line.largest_bytes) == (21, 1024.0, 2.0**30)


def test_each_operation_and_group_has_a_line_of_its_own() -> None:
    points = [
        *collectives(alpha_beta),
        *collectives(lambda size: 10e-6 + size / 300e9, group="node", world=8, nodes=1),
        *collectives(lambda size: 15e-6 + size / 50e9, op="all_gather"),
    ]
    lines = collective_lines(points)

    assert [(line.op, line.group, line.world, line.nodes, line.backend) for line in lines] == [
        ("all_reduce", "world", 16, 2, "nccl"),
        ("all_reduce", "node", 8, 1, "nccl"),
        ("all_gather", "world", 16, 2, "nccl"),
    ]
    assert [line.latency_s for line in lines] == pytest.approx([20e-6, 10e-6, 15e-6], rel=1e-6)


def test_noise_leaves_its_spread_as_the_residual_and_standard_errors_that_hold_the_truth() -> None:
    random = np.random.default_rng(16)
    noisy = dict(zip(SIZES, 1.0 + 0.05 * random.standard_normal(len(SIZES)), strict=True))
    (line,) = collective_lines(collectives(lambda size: alpha_beta(size) * noisy[int(size)]))

    assert line.residual_ratio == pytest.approx(0.05, rel=0.3)
    assert line.latency_sd_s is not None
    assert abs(line.latency_s - 20e-6) < 2.0 * line.latency_sd_s
    assert 0.01 < line.latency_sd_s / 20e-6 < 0.03  # ten sizes below the knee at 5 %
    assert line.bytes_per_s is not None
    assert line.bytes_per_s_sd is not None
    assert abs(line.bytes_per_s - 40e9) < 2.0 * line.bytes_per_s_sd
    assert 0.01 < line.bytes_per_s_sd / 40e9 < 0.04


def test_one_size_that_was_disturbed_moves_no_line_and_stands_in_the_residual() -> None:
    def disturbed(size: float) -> float:
        return alpha_beta(size) * (3.0 if size == 2**20 else 1.0)

    (line,) = collective_lines(collectives(disturbed))

    assert line.latency_s == pytest.approx(20e-6, rel=0.01)
    assert line.bytes_per_s == pytest.approx(40e9, rel=0.01)
    assert line.residual_ratio == pytest.approx((2 / 3) / 21**0.5, rel=0.01)  # 46 us foretold of 139 us


def test_a_protocol_that_changes_in_the_middle_is_told_by_the_residual() -> None:
    (line,) = collective_lines(collectives(lambda size: 10e-6 + size / 5e9 if size <= 2**18 else 60e-6 + size / 40e9))

    assert line.residual_ratio > 0.1


def test_times_that_leave_no_latency_give_0_and_never_less() -> None:
    (line,) = collective_lines(collectives(lambda size: size / 40e9 * (1.0 if size > 2**20 else 0.8)))

    assert line.latency_s == 0.0
    assert line.bytes_per_s == pytest.approx(45e9, rel=0.15)


def test_times_that_do_not_grow_give_a_latency_and_no_rate() -> None:
    points = [collective(size, time_s) for size, time_s in ((1024.0, 21e-6), (2048.0, 20e-6), (4096.0, 19e-6))]
    (line,) = collective_lines(points)

    assert line.latency_s == pytest.approx(20e-6, rel=0.01)
    assert (line.bytes_per_s, line.bytes_per_s_sd, line.bus_bytes_per_s) == (None, None, None)


def test_two_sizes_are_met_exactly_and_known_as_well_as_their_samples() -> None:
    (line,) = collective_lines([collective(size, alpha_beta(size), sd=0.02) for size in (1024.0, 2.0**30)])

    assert line.residual_ratio == pytest.approx(0.0, abs=1e-9)
    assert line.latency_sd_s == pytest.approx(0.02 * 20e-6, rel=0.01)
    assert line.bytes_per_s_sd == pytest.approx(0.02 * 40e9, rel=0.01)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [collective(1024.0, 20e-6)],
        [collective(1024.0, 20e-6), collective(2048.0, 20e-6, status="error", reason="timeout")],
        [collective(1024.0, 20e-6), collective(2048.0, 20e-6, kind="overlap")],
    ],
    ids=["none", "one size", "one that failed", "another kind"],
)
def test_fewer_than_two_sizes_make_no_line(points: list[Measurement]) -> None:
    assert collective_lines(points) == ()
