"""Collectives of a record as runs: by operation and group, with the spread of their samples, and of GPUs alone."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.measured.network.recorded import collective_runs
from planner.records.measurement import Measurement
from tests.planner.collective_points import SIZES, collective, collectives


def linear(size: float) -> float:
    return 2e-5 + size / 4e10


def test_each_operation_and_group_is_a_run_named_as_nccl_tests_does() -> None:
    points = [
        *collectives(linear),
        *collectives(linear, op="all_to_all"),
        *collectives(linear, group="node", world=8, nodes=1),
        *collectives(linear, group="cross", world=2, nodes=2),
        *collectives(linear, group="half", world=8, nodes=1),
    ]
    runs = collective_runs(points, "record.jsonl")

    assert [(run.collective, run.group, run.ranks, run.nodes, run.ranks_per_node) for run in runs] == [
        ("all_reduce", "world", 16, 2, 8),
        ("alltoall", "world", 16, 2, 8),
        ("all_reduce", "node", 8, 1, 8),
        ("all_reduce", "cross", 2, 2, 1),
        ("all_reduce", "half", 8, 1, 8),
    ]
    assert {run.gpus_per_node for run in runs} == {8}  # all groups of a kind ran at once
    assert runs[0].times_s.tolist() == [linear(size) for size in SIZES]


def test_a_run_keeps_how_far_its_samples_lie_apart() -> None:
    (run,) = collective_runs([collective(1024.0, 2e-5, sd=0.01), collective(2048.0, 3e-5, sd=0.2)], "record.jsonl")

    assert run.sampled_sds == pytest.approx([0.01, 0.2])
    assert run.spread_ratio == 0.0


def test_the_doubts_of_an_imported_run_hold_for_all_its_times() -> None:
    imported = {"imported_tool": "nccl-tests", "imported_sd_ratio": 0.05}
    (run,) = collective_runs(collectives(linear, **imported), "record.jsonl")

    assert (run.spread_ratio, run.sampled_sds) == (0.05, None)


def test_operations_that_the_planner_has_no_equation_of_are_left_out() -> None:
    (run,) = collective_runs([*collectives(linear), *collectives(linear, op="broadcast")], "record.jsonl")

    assert run.collective == "all_reduce"


@pytest.mark.parametrize(
    "points",
    [
        [],
        [collective(1024.0, 2e-5)],
        collectives(linear, backend="gloo"),
        collectives(linear, device_kind="cpu"),
        collectives(linear, world=1, nodes=1),
        collectives(linear, world=9, nodes=2),
        collectives(linear, status="error", reason="timeout"),
    ],
    ids=["none", "one size", "gloo", "a CPU", "one rank", "uneven", "failed"],
)
def test_a_record_without_collectives_between_gpus_has_no_runs(points: list[Measurement]) -> None:
    with pytest.raises(InputFileError, match=r"^record\.jsonl: expected collectives of several sizes between GPUs"):
        collective_runs(points, "record.jsonl")
