"""What is said of the high figure is what the shipped row says, and that is what the calibration found."""

from __future__ import annotations

import csv

from benchmarks.accuracy import RUN_TOTALS, LeftOut, read, run_totals_text
from planner.answer.run_totals import load_run_totals
from planner.validation.validate import validate


def test_the_shipped_row_is_what_the_left_out_predictions_of_whole_runs_give():
    rows = [row for row in read("published_runs.csv") if row["group"] == "run_total"]

    assert RUN_TOTALS.read_text(encoding="utf-8") == run_totals_text(validate(rows), LeftOut())


def test_no_more_runs_stay_below_their_high_than_there_are():
    totals = load_run_totals()
    (row,) = csv.DictReader(RUN_TOTALS.read_text(encoding="utf-8").splitlines())

    assert 0 <= totals.below_high <= totals.runs == int(row["runs"])
    assert 1 <= totals.lineages <= totals.runs
    assert 0 < totals.asked_below_high <= totals.asked_runs
