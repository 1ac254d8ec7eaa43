"""The curve over numbers of GPUs: around the plan, in rising order, with the knee and what meets the targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.answer.plan import CurvePoint
from planner.evidence import Estimate
from planner.planning.curve import _with_knee, near_nodes
from planner.planning.estimate import estimate
from tests.planner.build import make_question, rates_and_prices


def curve(**asked: str) -> tuple[CurvePoint, ...]:
    question = make_question(**asked)
    return estimate(question, rates_and_prices(question), detailed=False).curve


def test_half_and_double_the_gpus_of_the_plan_are_on_its_curve_with_their_cost_and_time():
    points = curve(params="8B", gpus="64")
    by_gpus = {point.gpus: point for point in points}

    assert list(by_gpus) == sorted(by_gpus) == [16, 32, 48, 64, 96, 128, 256]
    assert [point.gpus for point in points if point.chosen] == [64]
    assert by_gpus[32].duration_days.mid > by_gpus[64].duration_days.mid > by_gpus[128].duration_days.mid
    assert by_gpus[256].cost_usd.mid > by_gpus[16].cost_usd.mid
    assert all(point.in_time is None and point.in_budget is None for point in points)


@pytest.mark.parametrize(
    ("nodes", "near"), [(0.25, [1]), (1, [1]), (7, [7]), (15, [15, 14, 16]), (341, [352, 320]), (682.5, [704, 640])]
)
def test_points_lie_on_round_numbers_of_nodes(nodes, near):
    assert near_nodes(nodes) == near


def test_of_round_numbers_near_a_share_the_cheapest_is_on_the_curve():
    points = curve(params="70B", gpus="3640")  # 640 nodes are sooner than 704, over which few batches divide

    assert 5120 in [point.gpus for point in points]
    assert 5632 not in [point.gpus for point in points]
    days = [point.duration_days.mid for point in points if point.gpus <= 7168]
    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize(("gpus", "sizes"), [(2, {1, 2, 3, 4, 8}), (11, {3, 6, 8, 16, 24, 48})])
def test_cards_on_the_curve_are_what_they_are_when_they_are_asked_for(gpus, sizes):
    asked = {"params": "1B", "tokens": "20B", "gpu": "rtx-4090", "global_batch": "528"}
    points = [point for point in curve(**asked, gpus=str(gpus)) if not point.chosen]

    assert {point.gpus for point in points} <= sizes
    assert len(points) >= 2
    for point in points[:2]:
        (alone,) = [other for other in curve(**asked, gpus=str(point.gpus)) if other.chosen]
        assert alone.duration_days.mid == pytest.approx(point.duration_days.mid, rel=0.02)


def test_points_of_a_fine_tuning_have_the_default_batch_of_their_own_number_of_gpus():
    asked = {"model": "llama-3.1-70b", "method": "sft", "examples": "20000"}
    points = [point for point in curve(**asked, gpus="46") if not point.chosen and point.gpus >= 32]

    assert [point.gpus for point in points][:2] == [32, 48]
    for point in points[:2]:
        (alone,) = [other for other in curve(**asked, gpus=str(point.gpus)) if other.chosen]
        assert alone.global_batch == point.global_batch
        assert alone.duration_days.mid == pytest.approx(point.duration_days.mid, rel=0.001)


def test_a_point_beside_a_number_that_was_open_has_the_layouts_that_it_has_where_it_is_given():
    """448 GPUs took longer than 320 on the curve: their 28 stages, of 80 layers, are tried on a given number alone."""
    asked = {"params": "70B", "tokens": "20B", "gpu": "a100-pcie-40gb", "global_batch": "32", "offload": "optimizer"}
    days = {point.gpus: point.duration_days.mid for point in curve(**asked)}
    (given,) = (point for point in curve(**asked, gpus="448") if point.chosen)

    assert days[448] == pytest.approx(given.duration_days.mid, rel=1e-9)
    assert days[448] < days[320]


def test_points_say_whether_they_meet_the_targets_at_the_confidence():
    in_time = [point.in_time for point in curve(params="8B", deadline="10d")]
    spent = curve(params="8B", budget="40k", max_gpus="4096")
    in_budget = [point.in_budget for point in spent]

    assert in_time == sorted(in_time)  # more GPUs are sooner
    assert set(in_time) == {True, False}
    assert in_budget == sorted(in_budget, reverse=True)  # and dearer
    assert set(in_budget) == {True, False}
    assert [point.in_budget for point in spent if point.chosen] == [True]


def test_a_plan_that_may_run_out_of_memory_is_no_knee_and_no_curve_with_it_has_one():
    asked = {"method": "sft", "model": "qwen2.5-0.5b", "gpu": "quadro-rtx5000-16gb", "gpus": "1", "precision": "fp16"}
    asked |= {"gpus_per_node": "1"}
    risky, bold = curve(**asked), curve(**asked, memory_risk="60%")

    assert [point.gpus for point in risky if point.chosen] == [1]
    assert len(risky) > 1
    assert [point.gpus for point in risky if point.knee] == []
    assert any(point.knee for point in bold)  # allowed, it is on one


def point(gpus: int, days: float) -> CurvePoint:
    return CurvePoint(
        gpu="h100-sxm5-80gb", gpus=gpus, global_batch=256, duration_days=Estimate.exactly(days), cost_usd=None,
        energy_mwh=None, chosen=False, knee=False, in_time=None, in_budget=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("days", "knee"),
    [
        ((32.0, 16.0, 8.0), None),  # each doubling halves the time
        ((32.0, 16.0, 12.0), 16),  # the second saves a quarter of the time for half as many GPU-hours more
        ((32.0, 30.0, 28.0), 8),
        ((32.0, 16.0, 17.0), 16),  # and here it saves nothing
        ((32.0, 20.0, 8.5), None),  # 16 divide badly, 32 do not: no knee at 8
    ],
)
def test_the_knee_is_the_last_number_before_time_becomes_dear(days, knee):
    points = [point(gpus, d) for gpus, d in zip((8, 16, 32), days, strict=True)]

    assert [p.gpus for p in _with_knee(points) if p.knee] == ([] if knee is None else [knee])
    assert [replace(p, knee=False) for p in _with_knee(points)] == points
