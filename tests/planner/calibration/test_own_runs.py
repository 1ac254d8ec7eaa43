"""What a calibration says of runs and parameters: contradictions, one entry a family, and where a row is from."""

from __future__ import annotations

import numpy as np
import pytest

from planner.calibration.learn import learn
from planner.calibration.own_runs import OwnRow, as_learned, restated
from planner.evidence import EvidenceKind
from planner.rates.parameters import shipped_parameters
from tests.planner.calibration.own_runs import observation, team


def test_two_values_of_one_configuration_are_named_as_contradicting_each_other():
    first, second = observation(1.0, id="a"), observation(1.4, id="b")

    rows = learn([first, second], shipped_parameters(), "ours").rows

    assert rows[0].conflicts_with == ("b",)
    assert rows[1].conflicts_with == ("a",)


def test_repeats_within_a_few_percent_do_not_contradict_each_other():
    rows = learn([observation(1.0, id="a"), observation(1.04, id="b")], shipped_parameters(), "ours").rows

    assert [row.conflicts_with for row in rows] == [(), ()]


def test_a_row_far_from_all_others_contradicts_them_and_counts_little():
    rows = team([0.9, 0.9, 0.9, 0.9, 2.6])

    calibration = learn(rows, shipped_parameters(), "ours")

    assert calibration.rows[4].conflicts_with == ("run-4",)
    assert all(abs(row.error_after) < 0.12 for row in calibration.rows[:4])


def test_of_parameters_that_move_together_one_is_told():
    terms = learn(team([0.7] * 4), shipped_parameters(), "ours").terms

    assert terms
    assert len({term.term.partition(".")[0] for term in terms}) == len(terms)
    assert all(term.label for term in terms)


def test_a_learned_row_names_its_runs_and_what_stood_there_before():
    before = shipped_parameters().rows["framework_ratio.eager"]
    row = as_learned(before, before, "our-runs.csv")

    assert row.source == f"our-runs.csv; before: {before.origin}"
    assert (row.kind, row.prior, row.fitted_rows) == (EvidenceKind.MEASURED, None, None)


def test_errors_of_other_predictions_keep_what_leaving_a_row_out_changes():
    row = OwnRow(id="a", metric="mfu", error_before=0.3, error_after=0.0, error_left_out=0.1, conflicts_with=())

    (told,) = restated([row], np.log([1.25]), np.log([0.96]))

    assert (told.error_before, told.error_after) == pytest.approx((0.25, -0.04))
    assert told.error_left_out == pytest.approx(0.96 * 1.1 - 1.0)
