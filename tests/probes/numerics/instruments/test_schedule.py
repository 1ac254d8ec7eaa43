"""Schedules of precision: which steps are low, and which schedule is recommended."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.schedule import SCHEDULES, recommended, schedule, scheduled  # noqa: E402 - needs torch
from probes.numerics.instruments.time import Slice, keep_nothing  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks import find_task  # noqa: E402
from tests.probes.numerics.planted import PLACE, task_with_a_sensitive_layer  # noqa: E402


@pytest.mark.parametrize(("name", "low"), [("all high", 0), ("all low", 10), ("high first", 8), ("high last", 8)])
def test_a_fifth_of_the_steps_is_high_where_some_are(name, low):
    steps = [SCHEDULES[name](step, 10) for step in range(10)]

    assert sum(steps) == low
    assert name != "high first" or steps[:2] == [False, False]
    assert name != "high last" or steps[-2:] == [False, False]


@pytest.mark.parametrize(
    ("low", "first", "last", "choice"),
    [(0.01, 0.5, 0.5, "all low"), (0.5, 0.01, 0.005, "high last"), (0.5, 0.01, 0.5, "high first"),
     (0.5, 0.5, 0.5, "all high"), (None, None, 0.5, "all high"), (None, 0.0, None, "high first")],
)  # fmt: skip
def test_the_lowest_schedule_within_the_margin_is_recommended(low, first, last, choice):
    changes = {"all high": 0.0, "all low": low, "high first": first, "high last": last}

    assert recommended(changes, 0.02) == choice
    assert recommended(changes | {"all high": None}, 0.02) is None


def test_a_task_that_suffers_only_while_it_is_low_ends_well_when_it_ends_high():
    task, recipe = task_with_a_sensitive_layer(), lower_by_id("fp8")

    found = schedule(task, PLACE, recipe, 0.02, Slice(ends=time.monotonic() + 8.0), keep_nothing)

    changes = {row["name"]: row["loss_change"] for row in found["schedules"]}
    assert changes["all high"] == 0.0
    assert changes["all low"] > 0.02
    assert changes["high last"] < changes["all low"]
    assert found["seeds"] == 3


def test_all_high_is_plain_training():
    run = scheduled(find_task("char-lm"), PLACE, lower_by_id("nvfp4"), "all high", 0, 3)

    assert run == {
        **scheduled(find_task("char-lm"), PLACE, lower_by_id("bf16"), "all high", 0, 3),
        "wall_s": run["wall_s"],
    }


def test_without_time_nothing_is_recommended():
    past = Slice(ends=time.monotonic() - 1.0)
    found = schedule(find_task("char-lm"), PLACE, lower_by_id("fp8"), 0.02, past, keep_nothing)

    assert found["recommended"] is None
    assert found["cut_short"] == ["schedule: no time was left"]
