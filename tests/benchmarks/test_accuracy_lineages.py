"""The part of the page on lineages: one vote each, and the distance of two lineages on one question."""

from __future__ import annotations

import math

import pytest

from benchmarks.accuracy_lineages import apart, curve_rows, floor_text, left_out_rows, votes
from planner.validation.validate import validate
from tests.planner.calibration.own_runs import ROW


def entry(lineage: str, learned: int, error: float, coverage: float, width: float, rows: int = 9) -> dict[str, object]:
    return {
        "figure": "time", "lineage": lineage, "rows": rows, "learned": learned, "error": error, "coverage": coverage,
        "width": width,
    }  # fmt: skip


def test_every_lineage_has_one_vote():
    rows = [entry("large", 0, 0.1, 1.0, 0.5, rows=1000), entry("small", 0, 0.3, 0.5, 0.7, rows=2)]

    assert votes(rows) == ("2", "20.0 %", "20.0 %", "75 %", "60 %")
    assert left_out_rows({"drawn": rows}) == [("throughput", "2", "20.0 %", "20.0 %", "75 %", "60 %")]


def test_the_learning_curve_is_of_lineages_that_can_learn_from_three_rows():
    curve = [
        entry("able", 0, 0.2, 0.9, 0.6), entry("able", 3, 0.1, 0.9, 0.4),
        entry("small", 0, 0.9, 0.1, 0.6, rows=2),
    ]  # fmt: skip

    assert curve_rows({"curve": curve}) == [
        ("throughput, 0 learned", "1", "20.0 %", "20.0 %", "90 %", "60 %"),
        ("throughput, 3 learned", "1", "10.0 %", "10.0 %", "90 %", "40 %"),
    ]


def run(name: str, lineage: str, value: float, **cells: str) -> dict[str, str]:
    return ROW | {"id": name, "lineage": lineage, "group": "throughput", "value": str(value)} | cells


def test_two_lineages_are_compared_on_the_same_question_alone():
    runs = validate([
        run("a1", "a", 8000.0), run("b1", "b", 10000.0),
        run("b2", "b", 20000.0, n_gpus="16", global_batch_seqs="128"),  # nobody else ran on 16
    ], draws=None).runs  # fmt: skip

    assert apart(runs) == pytest.approx([math.log(1.25)])
    assert "they are 25.0 % apart" in " ".join(floor_text(runs).split())
    assert "misses both by 11.8 %" in floor_text(runs)  # sqrt(1.25) - 1


def test_speeds_are_compared_whatever_metric_they_are_printed_in():
    seconds = 64 * 4096 / 8 / 10000.0
    runs = validate([run("a1", "a", 8000.0), run("b1", "b", seconds, metric="step_time_s")], draws=None).runs

    assert apart(runs) == pytest.approx([math.log(1.25)])


def test_without_a_common_question_there_is_no_floor():
    assert floor_text([]) == "No two lineages report one question."
