"""The part of the page on lineages: one vote each, and the distance of two lineages on one question."""

from __future__ import annotations

import math

import pytest

from benchmarks.accuracy import PAGE, LeftOut, budget, read
from benchmarks.accuracy_lineages import (
    WholeRun,
    apart,
    budget_rows,
    budget_text,
    curve_rows,
    floor_text,
    left_out_rows,
    trust_rows,
    votes,
)
from planner.evidence import Z90
from planner.validation.validate import validate
from tests.planner.calibration.own_runs import ROW


def entry(lineage: str, learned: int, error: float, coverage: float, width: float, rows: int = 9) -> dict[str, object]:
    return {
        "figure": "time", "lineage": lineage, "rows": rows, "learned": learned, "error": error, "coverage": coverage,
        "width": width,
    }  # fmt: skip


def test_every_lineage_has_one_vote():
    rows = [entry("large", 0, 0.1, 1.0, 0.5, rows=1000), entry("small", 0, 0.3, 0.5, 0.7, rows=2)]

    assert votes(rows) == ("2", "20.0%", "20.0%", "75%", "60%")
    assert left_out_rows({"drawn": rows}) == [("throughput", "2", "20.0%", "20.0%", "75%", "60%")]


def test_the_learning_curve_is_of_lineages_that_can_learn_from_three_rows():
    curve = [
        entry("able", 0, 0.2, 0.9, 0.6), entry("able", 3, 0.1, 0.9, 0.4),
        entry("small", 0, 0.9, 0.1, 0.6, rows=2),
    ]  # fmt: skip

    assert curve_rows({"curve": curve}) == [
        ("throughput, 0 learned", "1", "20.0%", "20.0%", "90%", "60%"),
        ("throughput, 3 learned", "1", "10.0%", "10.0%", "90%", "40%"),
    ]


def run(name: str, lineage: str, value: float, **cells: str) -> dict[str, str]:
    return ROW | {"id": name, "lineage": lineage, "group": "throughput", "value": str(value)} | cells


def test_two_lineages_are_compared_on_the_same_question_alone():
    runs = validate([
        run("a1", "a", 8000.0), run("b1", "b", 10000.0),
        run("b2", "b", 20000.0, n_gpus="16", global_batch_seqs="128"),  # nobody else ran on 16
    ], draws=None).runs  # fmt: skip

    assert apart(runs) == pytest.approx([math.log(1.25)])
    assert "their results differ by 25.0% at the median" in floor_text(runs)
    assert "off by 11.8% for both" in floor_text(runs)  # sqrt(1.25) - 1


def test_speeds_are_compared_whatever_metric_they_are_printed_in():
    seconds = 64 * 4096 / 8 / 10000.0
    runs = validate([run("a1", "a", 8000.0), run("b1", "b", seconds, metric="step_time_s")], draws=None).runs

    assert apart(runs) == pytest.approx([math.log(1.25)])


def test_without_a_common_question_there_is_no_floor():
    assert floor_text([]) == "No two lineages report one question."


def whole(lineage: str, actual_ratio: float, high: float = 2.0) -> WholeRun:
    return WholeRun(lineage=lineage, log_error=-math.log(actual_ratio), log_sd=math.log(high) / Z90)


def of_figure(figure: str, **cells: object) -> dict[str, object]:
    return entry("a", 0, 0.3, 0.9, 1.2) | {"figure": figure} | cells


WHOLE = [whole("a", 0.5), whole("a", 1.0), whole("b", 2.5)]
REPORT = {
    "drawn": [of_figure("run"), of_figure("time", error=0.1)],
    "curve": [of_figure("run"), of_figure("run", learned=3, error=0.1, width=0.9), of_figure("time")],
}


def test_a_whole_run_is_held_against_its_middle_and_its_high_end():
    run = whole("a", 1.9)

    assert run.actual_ratio == pytest.approx(1.9)
    assert run.high == pytest.approx(2.0)
    assert run.below_high
    assert not whole("a", 2.1).below_high


def test_a_budget_is_told_what_100_000_dollars_became():
    text, rows = budget_text(WHOLE), dict(budget_rows(WHOLE))

    assert "about 2.0 times the central estimate" in text
    assert "3 published whole runs by 2 teams" in text
    assert "2 of them used no more GPU time than the high figure of their range" in text
    assert "the worst used 2.5 times the central estimate" in text
    assert "All 2 used no more GPU time" in budget_text(WHOLE[:2])
    assert (rows["the cheapest"], rows["the most expensive"]) == ("$50,000", "$250,000")
    assert rows["half of the published runs would have cost no more than"] == "$100,000"


def test_what_own_runs_are_worth_is_said_of_teams_that_have_enough_of_them():
    assert [cells[1:] for cells in trust_rows(REPORT)] == [
        ("90%", "90%"), ("30.0%", "10.0%"),
        ("30.0%", "–"), ("10.0%", "–"),  # of speeds nobody has three rows
        ("120%", "–"), ("90%", "–"),
    ]  # fmt: skip


def test_the_page_opens_with_what_the_shipped_figures_mean_for_a_budget():
    totals = [row for row in read("published_runs.csv") if row["group"] == "run_total"]
    page = PAGE.read_text(encoding="utf-8")

    assert budget(validate(totals), LeftOut()) in page
    headings = ("What it means for a budget", "How it is measured", "Results against targets")
    assert sorted(headings, key=page.index) == list(headings)
