"""Policies and schedules of a document as points."""

from __future__ import annotations

from copy import deepcopy

from planner.evidence import Estimate
from planner.safety.points import policy_points, precision_of, schedule_points
from tests.planner.safety.recorded import document

POLICY = document()["policy"][0] | {"lowered_parameters_ratio": 0.6}
SCHEDULE = document()["schedule"][0]


def test_a_policy_stands_beside_all_high_and_all_low_of_the_same_start():
    points = {row.name: row for row in policy_points(POLICY, "bf16")}

    assert list(points) == ["all_high", "all_low", "policy"]
    assert {(row.kind, row.steps, row.high) for row in points.values()} == {("policy", POLICY["steps"], "bf16")}
    assert points["all_high"].loss_range == Estimate.exactly(0.0)
    assert points["all_low"].loss_change == POLICY["all_lowered_loss_change"]


def test_a_policy_is_recommended_by_the_upper_end_of_its_interval_alone():
    def recommended(**ends):
        (row,) = [row for row in policy_points(POLICY | {"recommended": True} | ends, "bf16") if row.name == "policy"]
        return row.recommended

    change = POLICY["loss_change"]
    assert not recommended()  # one run: its error is not known
    assert recommended(loss_change_low=change - 0.01, loss_change_high=0.02)
    assert not recommended(loss_change_low=change - 0.01, loss_change_high=0.021)
    assert not recommended(loss_change_low=change - 0.01, loss_change_high=0.02, recommended=False)  # too few steps


def test_a_schedule_is_bold_only_where_the_document_recommends_it_and_its_interval_allows_it():
    changed = deepcopy(SCHEDULE) | {"recommended": "all low"}
    low = changed["schedules"][1]

    def bold():
        return [row.name for row in schedule_points(changed, "bf16") if row.recommended]

    assert bold() == []  # of an earlier version, without an interval
    low |= {"loss_change_low": low["loss_change"] - 0.01, "loss_change_high": 0.02}
    assert bold() == ["all_low"]
    low["loss_change_high"] = 0.05
    assert bold() == []


def test_a_policy_that_lowers_everything_or_was_not_trained_is_no_point():
    assert list(policy_points(POLICY | {"lowered_parameters_ratio": 1.0}, "bf16")) == []
    assert list(policy_points(POLICY | {"lowered_parameters_ratio": 0.0}, "bf16")) == []
    assert list(policy_points(POLICY | {"steps": 0}, "bf16")) == []
    assert list(policy_points({}, "bf16")) == []


def test_schedules_keep_their_intervals_and_runs_and_what_ended_in_nan_has_no_change():
    changed = deepcopy(SCHEDULE)
    changed["schedules"][1] |= {"loss_change_low": -0.01, "loss_change_high": 0.03}
    changed["schedules"][3] |= {"loss_change": None, "diverged": 2}
    points = {row.name: row for row in schedule_points(changed, "bf16")}

    assert points["all_low"].loss_range == Estimate(low=-0.01, mid=points["all_low"].loss_change, high=0.03)
    assert points["high_first"].loss_range is None
    assert points["all_low"].seeds == SCHEDULE["seeds"]
    assert (points["high_last"].loss_change, points["high_last"].diverged) == (None, 2)
    assert list(schedule_points({}, "bf16")) == []


def test_a_recipe_has_the_precision_of_its_policy():
    assert (precision_of("fp8-rowwise"), precision_of("nvfp4")) == ("fp8", "nvfp4")
