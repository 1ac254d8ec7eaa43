"""Who is slow, hot or capped, and what keeping them costs. The rates of false alarms stand in docs/probing.md."""

from __future__ import annotations

from dataclasses import replace
from math import log
from random import Random

import pytest

from planner.fleet.fleet import Fleet
from planner.fleet.outliers import judged_members, keeping_cost
from planner.fleet.readings import reading_of
from planner.records.figures import TimeStatistics
from planner.records.measurement import Measurement
from tests.planner.fleet.fleets import Gpu, joined, points, ranks_point

USUAL = (Gpu(),) * 7


def named(fleet: Fleet) -> dict[str, list[str]]:
    return {outlier.name: [reason.id for reason in outlier.why] for outlier in fleet.outliers}


PRODUCTS = [point for point in points(0, Gpu()) if point.kind == "gemm"][:6]


def accused(paces: list[float], random: Random) -> dict[str, list[str]]:
    """Of members with these paces, measured with 1 % of noise at 6 points, those that something is said of."""
    names = [(f"m{i}", f"m{i}") for i in range(len(paces))]
    readings = [
        reading_of(name, replace(point, time=TimeStatistics(median_s=0.01 * pace * random.gauss(1.0, 0.01))), (name,))
        for (name, _), pace in zip(names, paces, strict=True)
        for point in PRODUCTS
    ]
    members = judged_members(names, readings, ())
    return {member.name: [reason.id for reason in member.why] for member in members if member.why}


def test_a_slow_member_is_named_with_what_every_step_pays_for_it(tmp_path):
    fleet = joined(tmp_path, *USUAL, Gpu(slower=1.05))

    assert named(fleet) == {"node08": ["slow"]}
    (slow,) = fleet.outliers
    assert slow.why[0].what == "5.0% slower than the median over 13 points"
    assert slow.cost.cost_ratio == pytest.approx(1.05)
    assert slow.cost.gpus_worth == pytest.approx(0.381, abs=0.001)  # 8 × (1 − 1/1.05)
    assert slow.cost.gpus == 8


def test_two_slow_members_cost_little_one_by_one_and_the_whole_together(tmp_path):
    fleet = joined(tmp_path, *USUAL, Gpu(slower=1.06), Gpu(slower=1.05))

    costs = {outlier.name: outlier.cost.cost_ratio for outlier in fleet.outliers}
    assert costs == {"node08": pytest.approx(1.06 / 1.05), "node09": 1.0}
    assert fleet.together is not None
    assert fleet.together.cost_ratio == pytest.approx(1.06)


def test_a_hot_member_costs_nothing_while_it_keeps_up(tmp_path):
    fleet = joined(tmp_path, *USUAL, Gpu(temperature_c=85.0))

    assert named(fleet) == {"node08": ["hot"]}
    assert fleet.outliers[0].why[0].what == "85 °C, 25 above the median under the same load"
    assert fleet.outliers[0].cost.gpus_worth == 0.0


def test_a_lower_limit_is_named_even_between_two_and_the_slower_of_two_is_not(tmp_path):
    limited = joined(tmp_path / "limited", Gpu(), Gpu(power_limit_w=500.0))
    unequal = joined(tmp_path / "slower", Gpu(), Gpu(slower=1.3))

    assert limited.outliers[0].why[0].what == "power limit 500 W, the others' is 700 W"
    assert named(limited) == {"node02": ["capped"]}
    assert named(unequal) == {}


def test_a_clock_that_heat_lowered_is_named_as_the_driver_says_it(tmp_path):
    fleet = joined(tmp_path, Gpu(), Gpu(), Gpu(changes={"clock_event_mask": 64 | 4}))

    assert fleet.outliers[0].why[0].what == (
        "heat or an external brake lowered its clock at 100% of its points, at the median 0%"
    )


def test_the_power_cap_at_which_gpus_usually_work_is_no_slow_down(tmp_path):
    assert named(joined(tmp_path, Gpu(), Gpu(), Gpu(changes={"clock_event_mask": 4}))) == {}


def test_a_lower_clock_under_the_same_load_is_named(tmp_path):
    fleet = joined(tmp_path, *USUAL, Gpu(clock_hz=1.615e9))

    assert fleet.outliers[0].why[0].what == "clock 5.0% lower than the median under the same load"


def test_a_contended_time_makes_nobody_slow(tmp_path):
    fleet = joined(tmp_path, *USUAL, Gpu(slower=3.0, changes={"quality": "contended"}))

    assert named(fleet) == {}
    assert fleet.members[-1].pace_ratio is None


def test_ranks_that_ran_alone_are_told_apart_and_those_that_waited_for_each_other_are_not():
    times = [0.1] * 7 + [0.12]
    alone_points = [ranks_point(1, times, probe_id=f"alone/{i}") for i in range(3)]
    ddp = [ranks_point(1, times, probe_id=f"ddp/{i}", parallel="ddp") for i in range(3)]
    names = [(f"node: node 0 rank {rank}", "node") for rank in range(8)]

    def slow(lines: list[Measurement]) -> list[str]:
        readings = [reading_of("node", point, [name for name, _ in names]) for point in lines]
        return [member.name for member in judged_members(names, readings, ()) if member.why]

    assert slow(alone_points) == ["node: node 0 rank 7"]
    assert slow(ddp) == []


def test_among_equal_gpus_nobody_is_named_for_the_noise_of_the_measurement():
    random = Random(1)
    alarms = [fleet for fleet in range(200) if accused([1.0] * random.randint(8, 64), random)]

    assert alarms == []


def test_among_gpus_that_really_differ_by_one_percent_few_fleets_name_anybody():
    """Paces with a standard deviation of 1 %, and the noise besides: 38 of 800 such fleets named somebody."""
    random = Random(2)
    fleets = ([random.gauss(1.0, 0.01) for _ in range(random.randint(8, 64))] for _ in range(200))
    alarms = [fleet for fleet in fleets if accused(fleet, random)]

    assert len(alarms) <= 14


def test_a_member_slower_by_five_percent_is_found_and_nobody_else():
    random = Random(3)
    for _ in range(100):
        fleet = [1.0] * random.randint(7, 63)

        assert accused([*fleet, 1.05], random) == {f"m{len(fleet)}": ["slow"]}


def test_the_cost_of_a_member_is_the_pace_with_it_over_the_pace_without():
    log_pace = {"a": (0.0, 9), "b": (log(1.061), 9), "c": (log(1.02), 9)}

    cost = keeping_cost(log_pace, ["a", "b", "c"], ["b"], 32)

    assert cost.cost_ratio == pytest.approx(1.0402, abs=1e-4)  # 1.061 / 1.02
    assert cost.gpus_worth == pytest.approx(1.2366, abs=1e-3)  # 32 × (1 − 1.02 / 1.061)


def test_what_nobody_has_timed_costs_nothing():
    assert keeping_cost({}, ["a", "b"], ["b"], 2).cost_ratio == 1.0
