"""Sustained power: what is measured first where the time does not hold all."""

from __future__ import annotations

from probes.workloads.power import PowerWorkload
from tests.probes.build import H200, plan


def measured(suite: str = "default") -> list[str]:
    groups = PowerWorkload().groups(plan(H200, suite, has_sensor=True))
    return [point.probe_id for group in groups for point in group.points]


def test_what_most_plans_need_comes_first() -> None:
    # an H100 whose time ran out after FP32 had no power of FP8
    assert measured() == ["power/memory", "power/bf16-autocast", "power/fp8", "power/tf32", "power/fp32"]
    assert measured("quick") == measured()[:3]
