"""Schedules of precision: which steps are low, and which schedule is recommended."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.parity import parity  # noqa: E402
from probes.numerics.instruments.schedule import SCHEDULES, recommended, schedule, scheduled  # noqa: E402 - needs torch
from probes.numerics.instruments.time import Plain, TimeBudget  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks import find_task  # noqa: E402
from tests.probes.numerics.planted import PLACE, ample, keep_nothing, task_with_a_sensitive_layer  # noqa: E402


@pytest.mark.parametrize(("name", "low"), [("all high", 0), ("all low", 10), ("high first", 8), ("high last", 8)])
def test_a_fifth_of_the_steps_is_high_where_some_are(name, low):
    steps = [SCHEDULES[name](step, 10) for step in range(10)]

    assert sum(steps) == low
    assert name != "high first" or steps[:2] == [False, False]
    assert name != "high last" or steps[-2:] == [False, False]


SAME, OTHER, UNKNOWN = (-0.01, 0.01, "equivalent"), (0.3, 0.5, "not_equivalent"), (-0.1, 0.1, "cannot_tell")


def changed(row: tuple[float, float, str]) -> Plain:
    return {"seeds": 4, "loss_change_low": row[0], "loss_change_high": row[1], "verdict": row[2]}


@pytest.mark.parametrize(
    ("low", "first", "last", "choice"),
    [(SAME, OTHER, OTHER, "all low"), (OTHER, SAME, (-0.02, 0.001, "equivalent"), "high last"),
     (UNKNOWN, SAME, UNKNOWN, "high first"), (OTHER, OTHER, OTHER, "all high"), (UNKNOWN, UNKNOWN, UNKNOWN, None),
     (OTHER, UNKNOWN, OTHER, None)],
)  # fmt: skip
def test_only_what_was_shown_to_be_equivalent_is_recommended(low, first, last, choice):
    changes = {"all high": changed((0.0, 0.0, "equivalent")), "all low": changed(low), "high first": changed(first),
               "high last": changed(last)}  # fmt: skip

    chosen, why = recommended(changes, 0.02, 50)

    assert chosen == choice
    assert (choice is None) == why.startswith("cannot be told with 4 seeds")
    nothing = changes | {"all high": changed((0.0, 0.0, "equivalent")) | {"seeds": 0}}
    assert recommended(nothing, 0.02, 50)[0] is None


def test_no_low_steps_are_recommended_from_a_few():
    rows = {"all high": (0.0, 0.0, "equivalent"), "all low": SAME, "high first": SAME, "high last": SAME}
    changes = {name: changed(row) for name, row in rows.items()}

    chosen, why = recommended(changes, 0.02, 49)

    assert chosen is None
    assert why.startswith("no recommendation from fewer than 50 steps; over 49 steps, all steps can be low")
    assert recommended(changes | {name: changed(OTHER) for name in list(rows)[1:]}, 0.02, 49)[0] == "all high"


def test_a_task_that_suffers_only_while_it_is_low_ends_well_when_it_ends_high():
    task, recipe = task_with_a_sensitive_layer(), lower_by_id("fp8")

    plan = {"steps": 60, "seeds": 5, "seed_s": 0.0, "shared": False}

    def keep(key: str, compute: Callable[[], Plain]) -> Plain:
        return plan if key == "plan" else compute()

    answer = schedule(task, PLACE, recipe, 0.02, ample(), keep)

    rows = {row["name"]: row for row in answer["schedules"]}
    assert rows["all high"]["loss_change"] == 0.0
    assert rows["all low"]["loss_change_low"] > 0.02
    assert rows["all low"]["verdict"] == "not_equivalent"
    assert rows["high last"]["loss_change"] < rows["all low"]["loss_change"]
    assert answer["seeds"] == 5
    assert (answer["baseline"], answer["start"]) == ("fp32", "scratch")


def test_all_low_is_what_parity_says_of_the_same_precision():
    """The same runs, so that one section cannot recommend what the other cannot tell."""
    task, recipe = find_task("char-lm"), lower_by_id("nvfp4")
    kept: dict[str, Plain] = {"plan": {"steps": 6, "seeds": 3, "precisions": ["nvfp4"], "seed_s": 0.0, "base_s": 1.0,
                                       "alone_s": {}}}  # fmt: skip

    def keep(key: str, compute: Callable[[], Plain]) -> Plain:
        if key not in kept:
            kept[key] = compute()
        return kept[key]

    (pair,) = parity(task, PLACE, [recipe], ample(), keep, margin=0.02)["pairs"]

    answer = schedule(task, PLACE, recipe, 0.02, ample(), keep_nothing, keep)

    low = {row["name"]: row for row in answer["schedules"]}["all low"]
    assert (answer["steps"], answer["seeds"], low["seeds"]) == (6, 3, 3)
    assert low["verdict"] == pair["verdict"]
    for end, name in (("_low", "low"), ("", "mid"), ("_high", "high")):
        assert low[f"loss_change{end}"] == pair[f"difference_{name}"]

    def keep_a_long_plan(key: str, compute: Callable[[], Plain]) -> Plain:
        return {"steps": 6, "seeds": 3, "seed_s": 1e6, "shared": True} if key == "plan" else compute()

    late = schedule(task, PLACE, recipe, 0.02, ample(), keep_a_long_plan, keep)
    assert late["schedules"][1]["loss_change"] == pair["difference_mid"]
    assert late["cut_short"]


def test_all_high_is_plain_training():
    run = scheduled(find_task("char-lm"), PLACE, lower_by_id("nvfp4"), "all high", 0, 3)

    assert run == {
        **scheduled(find_task("char-lm"), PLACE, lower_by_id("bf16"), "all high", 0, 3),
        "wall_s": run["wall_s"],
    }


def test_without_time_nothing_is_recommended():
    past = TimeBudget(end_s=time.monotonic() - 1.0)
    answer = schedule(find_task("char-lm"), PLACE, lower_by_id("fp8"), 0.02, past, keep_nothing)

    assert answer["recommended"] is None
    assert answer["cut_short"] == ["no time was left"]
