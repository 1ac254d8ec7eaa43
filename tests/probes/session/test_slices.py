"""The time of a run is divided so that each workload gets its part, and what one leaves over is the next one's."""

from __future__ import annotations

from dataclasses import replace

from probes.session.slices import TimeSlices
from probes.timing.trial import PointGroup
from tests.probes.build import call, point


def groups(*listed: tuple[str, float]) -> list[PointGroup]:
    return [
        PointGroup(name=f"{name} {i}", points=[point(f"{name}{i}", call(), workload=name)], estimate_s=estimate_s)
        for i, (name, estimate_s) in enumerate(listed)
    ]


def late(listed: list[PointGroup]) -> list[PointGroup]:
    return [replace(group, late=True) for group in listed]


def started(listed: list[PointGroup], budget_s: float, took: float = 1.0) -> list[str]:
    """Names of the groups that may start, where each takes `took` times what was expected."""
    slices, now_s, names = TimeSlices(listed, budget_s), 0.0, []
    for group in listed:
        if slices.allows(group, now_s):
            names.append(group.name)
            now_s += took * group.estimate_s
    return names


def test_everything_starts_where_everything_fits() -> None:
    listed = groups(("gemm", 30.0), ("gemm", 30.0), ("block", 40.0))

    assert started(listed, 100.0) == ["gemm 0", "gemm 1", "block 2"]


def test_a_workload_that_overruns_does_not_starve_the_next() -> None:
    listed = groups(("gemm", 20.0), ("gemm", 20.0), ("gemm", 20.0), ("block", 20.0), ("block", 20.0))

    # products take twice as long: after two of three, 80 of their 60 seconds are gone
    assert started(listed, 100.0, took=2.0) == ["gemm 0", "gemm 1", "block 3"]


def test_with_half_the_time_each_workload_gets_half_of_what_it_expects() -> None:
    listed = groups(*[("gemm", 10.0)] * 6, *[("block", 10.0)] * 4)

    # 50 s for 100 s: 30 s of products, then 20 s of layers
    assert started(listed, 50.0) == ["gemm 0", "gemm 1", "gemm 2", "block 6", "block 7"]


def test_what_a_workload_leaves_over_goes_to_the_next() -> None:
    listed = groups(*[("gemm", 10.0)] * 6, *[("block", 10.0)] * 4)

    # products take half as long: 15 s for three and 30 s for all, so that layers have 20 s more
    assert started(listed, 50.0, took=0.5)[-4:] == ["block 6", "block 7", "block 8", "block 9"]


def test_the_first_group_of_a_workload_may_be_longer_than_its_slice_but_not_than_the_budget() -> None:
    listed = groups(("attention", 5.0), ("block", 60.0), ("end-to-end", 60.0))

    assert started(listed, 70.0) == ["attention 0", "block 1"]


def test_late_groups_get_what_the_others_leave() -> None:
    listed = [*groups(*[("gemm", 10.0)] * 4, *[("block", 10.0)] * 4), *late(groups(("compiled", 20.0)))]

    # 80 s hold all but the late ones, of which 100 s hold one, too
    assert started(listed, 80.0) == [group.name for group in listed[:8]]
    assert started(listed, 100.0) == [group.name for group in listed]
