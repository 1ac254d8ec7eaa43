"""Policies and schedules, each with a front of its own."""

from __future__ import annotations

from typing import Any

import pytest

from reports.sections.safety.fronts import fronts, told_apart
from reports.text.language import words_for
from reports.view import Prose, ScatterChart, Table
from tests.reports.sections.safety.shown import document_shown

EN = words_for("en")
SHOWN = document_shown()["numerics"]


def with_policy() -> dict[str, Any]:
    """The same with a policy of which the error is known."""
    high, low, *_ = SHOWN["mixtures"]
    known = {"kind": "policy", "steps": 8, "seeds": 3}
    policy = low | known | {
        "name": "policy", "low_share_ratio": 0.6, "loss_change": 0.004, "on_front": False, "recommended": True,
        "loss_range": {"low": 0.001, "mid": 0.004, "high": 0.007},
    }  # fmt: skip
    return SHOWN | {"mixtures": [high | known, low | known, policy, *SHOWN["mixtures"]]}


def test_a_front_is_drawn_and_told_with_the_same_figures():
    chart, table, note = fronts(SHOWN, EN)

    assert isinstance(chart, ScatterChart)
    assert isinstance(table, Table)
    assert isinstance(note, Prose)
    on_front = [point for point in SHOWN["mixtures"] if point["on_front"]]
    assert len(on_front) == sum(mark.shape == "dot" for mark in chart.drawing.marks)
    assert chart.drawing.line == ()  # of losses whose error nobody knows no front can be drawn
    assert [row.cells[0].text for row in table.rows][2] == "First 20% of the steps in BF16, then NVFP4"
    assert table.notes[0] == "Trained: 20 steps from the beginning, 2 runs each."
    assert "combines the two plans" in note.plain
    assert chart.title == "Loss against time: schedules (20 steps from the beginning, 2 runs each)"


def test_the_two_plans_have_their_ranges_of_time_and_the_table_has_all():
    chart, table, _ = fronts(SHOWN, EN)

    assert isinstance(chart, ScatterChart)
    assert isinstance(table, Table)
    wide = [mark.x_high > mark.x_low for mark in chart.drawing.marks]
    assert wide == [point["name"] in ("all_high", "all_low") for point in SHOWN["mixtures"]]
    assert all("(" in mark.label for mark in chart.drawing.marks)
    assert all(row.cells[1].detail for row in table.rows)


def test_policies_and_schedules_stand_apart_with_their_starts_steps_and_runs():
    blocks = fronts(with_policy(), EN)

    assert [type(block) for block in blocks] == [Table, ScatterChart, Table, Prose]
    policy, schedule = blocks[0], blocks[1]
    assert isinstance(policy, Table)
    assert isinstance(schedule, ScatterChart)
    assert (policy.caption, policy.folded) == ("Loss against time: which layers stay in high precision", False)
    assert policy.notes == ("Trained: 8 steps from a warm start, 3 runs each.", "Recommended rows are bold.")
    loss = policy.rows[2].cells[2]
    assert (loss.text, loss.detail) == ("+0.0040 nats", "+0.0010 to +0.0070")
    assert [row.strong for row in policy.rows] == [point["recommended"] for point in with_policy()["mixtures"][:3]]
    assert policy.rows[2].strong
    assert len(schedule.drawing.marks) == 4


def test_what_ended_in_nan_stands_in_the_table_and_is_not_drawn():
    *points, last = SHOWN["mixtures"]
    points += [last, last | {"loss_change": None, "loss_range": None, "diverged": 2, "on_front": False}]
    chart, table, _ = fronts(SHOWN | {"mixtures": points}, EN)

    assert isinstance(chart, ScatterChart)
    assert isinstance(table, Table)
    assert len(chart.drawing.marks) == 4
    assert table.rows[4].cells[2].text == "2 of 2 runs ended in NaN"


@pytest.mark.parametrize(
    ("recommended", "note"), [(True, "Recommended rows are bold."), (False, "No row is recommended")]
)
def test_a_table_says_whether_anything_is_recommended(recommended, note):
    points = [point | {"recommended": recommended and point["name"] == "all_low"} for point in SHOWN["mixtures"]]
    table = fronts(SHOWN | {"mixtures": points}, EN)[1]

    assert isinstance(table, Table)
    assert table.notes[-1].startswith(note)


def test_without_a_plan_in_the_precision_the_front_says_what_flag_gives_it():
    (note,) = fronts(document_shown(lower="fp8")["numerics"], EN, {"fp8", "bf16"})

    assert isinstance(note, Prose)
    assert note.plain.startswith("No times for policies and schedules in NVFP4, because the plan has no NVFP4 row.")
    assert "--precision nvfp4 on a GPU that supports it" in note.plain
    assert fronts(SHOWN | {"mixtures": []}, EN) == []


def test_losses_within_their_errors_cannot_be_told_apart_and_a_single_run_has_no_error():
    def points(*ends):
        return [
            SHOWN["mixtures"][0]
            | {"loss_change": mid, "loss_range": {"low": mid - half, "mid": mid, "high": mid + half}}
            for mid, half in ends
        ]

    # 0.010 apart: errors of 0.008 and 0.007 make 0.0106 together, of 0.006 and 0.007 0.0092
    close = points((0.0, 0.008), (0.010, 0.007))
    assert told_apart(close) is False
    assert told_apart(points((0.0, 0.006), (0.010, 0.007))) is True
    assert told_apart([*close, SHOWN["mixtures"][0] | {"loss_change": 0.5, "loss_range": None}]) is False
    assert told_apart(points((0.0, 0.0))) is None


def test_a_line_joins_the_front_only_where_losses_can_be_told_apart_and_words_say_where_not():
    def drawn(*losses):
        ranges = [{"low": loss - 0.008, "mid": loss, "high": loss + 0.008} for loss in losses]
        points = [
            point | {"loss_change": loss, "loss_range": ends, "on_front": True}
            for point, loss, ends in zip(SHOWN["mixtures"], losses, ranges, strict=True)
        ]
        chart, table, _ = fronts(SHOWN | {"mixtures": points}, EN)
        return len(chart.drawing.line), any("no two differ by more than their error" in note for note in table.notes)

    assert drawn(0.0, 0.001, 0.002, 0.003) == (0, True)
    assert drawn(0.0, 0.001, 0.002, 0.5) == (4, False)


def test_a_loss_without_an_error_says_so():
    single = [point | {"loss_range": None, "loss_change": 0.00056} for point in SHOWN["mixtures"]]
    table = fronts(SHOWN | {"mixtures": single}, EN)[1]
    assert any(note == "These losses cannot be told apart: their error is not known." for note in table.notes)
    assert table.rows[0].cells[2].text == "+0.00056 nats, error unknown"
