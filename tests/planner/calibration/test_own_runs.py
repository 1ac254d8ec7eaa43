"""What a calibration says of runs and parameters: contradictions, one entry a family, and where a row is from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.design import ENERGY
from planner.calibration.learn import learn
from planner.calibration.messages import total_words
from planner.calibration.own_runs import OwnRow, as_learned, as_learned_if_moved, count_runs, restated
from planner.evidence import EvidenceKind
from planner.rates.parameters import Figure, shipped_parameters
from reports.text.messages import word
from tests.planner.calibration.own_runs import observation, team


def replace_id(row, number):
    return replace(row, prepared=replace(row.prepared, run=replace(row.run, id=f"run-{number}")))


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

    assert [row.contradicts_all for row in calibration.rows] == [False, False, False, False, True]
    assert all(abs(row.error_after) < 0.12 for row in calibration.rows[:4])


def test_a_row_is_held_against_rows_of_its_own_figure_alone():
    peak = observation(2.5, id="peak", metric="peak_mem_gib")
    speeds = team([0.9, 0.9, 0.9, 0.9])

    assert not any(row.contradicts_all for row in learn([*speeds, peak], shipped_parameters(), "ours").rows)


def test_of_parameters_that_move_together_one_is_told():
    terms = learn(team([0.7] * 4), shipped_parameters(), "ours").terms

    assert terms
    assert len({term.term.partition(".")[0] for term in terms}) == len(terms)
    assert all(term.label for term in terms)


def test_each_gpu_and_each_model_is_told_by_its_name():
    rows = [*team([0.8] * 3), *team([1.25] * 3, gpu="a100-sxm4-80gb")]
    calibration = learn([replace_id(row, n) for n, row in enumerate(rows)], shipped_parameters(), "ours")

    by_gpu = {term.member: term.ratio for term in calibration.terms if term.term.startswith("gpu_error_ratio.")}

    assert set(by_gpu) == {"h100-sxm5-80gb", "a100-sxm4-80gb"}
    assert by_gpu["h100-sxm5-80gb"] > 1.1
    assert by_gpu["a100-sxm4-80gb"] < 0.9
    models = [term.member for term in learn(team([0.4] * 4), shipped_parameters(), "ours").terms]
    assert "Llama3-8B" in models


def test_the_total_is_that_of_the_rows_and_of_what_was_learned():
    speeds, times = team([1.25] * 3), team([0.8] * 3, metric="step_time_s")

    for rows in (speeds, times):
        (total,) = learn(rows, shipped_parameters(), "ours").totals
        assert total.figure is Figure.TIME
        assert total.measured_ratio == pytest.approx(0.8, rel=0.02)
        assert 0.78 < total.learned_ratio < 0.9


def test_energy_has_a_total_of_its_own():
    """A file of energies alone had no line that compares its runs with those of most teams."""
    energy = team([1.3] * 3, metric="energy_mwh", tokens_total="1e12", energy_scope="gpu")
    hours = team([1.1] * 3, metric="gpu_hours", tokens_total="1e12")

    of_hours, of_energy = learn([*hours, *energy], shipped_parameters(), "ours").totals

    assert (of_hours.figure, of_energy.figure) == (Figure.RUN, ENERGY)
    assert (of_hours.measured_ratio, of_energy.measured_ratio) == pytest.approx((1.1, 1.3), rel=0.02)
    assert word(total_words(of_energy)).startswith("overall, your runs take 30% more energy than most teams'")


def test_figures_of_one_run_in_different_metrics_contradict_each_other_where_they_are_apart():
    rate, share, other = (
        observation(factor, id=name, metric=metric)
        for name, metric, factor in (
            ("a", "tokens_per_s_per_gpu", 1.0), ("b", "mfu", 1.02), ("c", "step_time_s", 1 / 1.2),
        )
    )  # fmt: skip

    rows = learn([rate, share, other], shipped_parameters(), "ours").rows

    assert [row.conflicts_with for row in rows] == [
        ("c (step_time_s)",), ("c (step_time_s)",), ("a (tokens_per_s_per_gpu)", "b (mfu)"),
    ]  # fmt: skip


def test_of_many_contradictions_five_are_named_and_all_counted():
    slow = [observation(0.7, id=f"slow-{n}") for n in range(8)]

    row = learn([observation(1.0, id="a"), *slow], shipped_parameters(), "ours").rows[0]

    assert (len(row.conflicts_with), row.conflicts) == (5, 8)


def test_a_parameter_that_hardly_moved_keeps_its_evidence():
    before = shipped_parameters().rows["framework_ratio.eager"]
    hardly = replace(before, value=before.value * 1.005)
    moved = replace(before, value=before.value * 1.02)

    assert as_learned_if_moved(hardly, before, "ours") == hardly
    assert as_learned_if_moved(moved, before, "ours").learned


def test_a_learned_row_names_its_runs_and_what_stood_there_before():
    before = shipped_parameters().rows["framework_ratio.eager"]
    row = as_learned(before, before, "our-runs.csv")

    assert row.source == f"our-runs.csv; before: {before.origin}"
    assert (row.kind, row.prior, row.fitted_rows) == (EvidenceKind.MEASURED, None, None)


@pytest.mark.parametrize(
    ("by_others", "left_out"),
    [(1.0, 0.96 * 1.1 - 1.0), (0.0, 1.1 * 1.25 / 1.3 - 1.0), (0.5, 1.1 * (0.96 * 1.25 / 1.3) ** 0.5 - 1.0)],
    ids=["as wide as after", "as wide as before", "between"],
)
def test_errors_of_other_predictions_keep_what_leaving_a_row_out_changes(by_others, left_out):
    row = OwnRow(
        id="a", metric="mfu", error_before=0.3, error_after=0.0, error_left_out=0.1, by_others=by_others,
        conflicts_with=(),
    )  # fmt: skip

    (told,) = restated([row], np.log([1.25]), np.log([0.96]))

    assert (told.error_before, told.error_after) == pytest.approx((0.25, -0.04))
    assert told.error_left_out == pytest.approx(left_out)


def test_several_figures_of_one_run_are_of_one_run():
    """`mpplan calibrate` and every plan said `3 runs` of one run with a speed, a memory and an energy."""
    runs = [
        observation(id="a"),
        observation(id="a-memory", metric="peak_mem_gib", mem_kind="allocated"),
        observation(id="a-energy", metric="energy_mwh", tokens_total="1e12", energy_scope="gpu"),
    ]
    repeated, longer = observation(id="b"), observation(id="c", seq_len="8192")

    assert count_runs(runs) == 1
    assert count_runs([*runs, repeated]) == 2
    assert count_runs([*runs, repeated, longer]) == 3
