"""Points of collectives: which operations are timed in which groups."""

from __future__ import annotations

from dataclasses import replace

from planner.records.communication import OPS
from probes.workloads.distributed.collective import INNER_OPS, Collectives
from tests.probes.build import CPU, plan
from tests.probes.workloads.distributed.test_steps import ListedTeam


def ops_by_group(world: int) -> dict[str, set[str]]:
    listed = replace(plan(CPU), team=ListedTeam(world, "gloo"))
    ops: dict[str, set[str]] = {}
    for group in Collectives().groups(listed):
        for point in group.points:
            ops.setdefault(point.communication.group or "", set()).add(point.communication.op or "")
    return ops


def test_all_operations_are_timed_in_the_world_and_sends_in_pairs_too() -> None:
    """From the sends of pairs a job of half the ranks predicts pipelines."""
    assert ops_by_group(2) == {"world": set(OPS)}
    assert ops_by_group(8) == {
        "world": set(OPS), "tp2": {*INNER_OPS, "send_recv"}, "dp2": {*INNER_OPS, "send_recv"},
        "tp4": set(INNER_OPS), "dp4": set(INNER_OPS),
    }  # fmt: skip
