"""Learning from own runs: errors fall, ranges narrow, and no parameter goes beyond its bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.design import own_repeats
from planner.calibration.learn import LIMIT, _left_out, _Solved, learn
from planner.evidence import EvidenceKind
from planner.rates.parameters import Joint, shipped_parameters
from planner.rates.terms import Draws
from planner.validation.predict import predict_prepared, run_rates
from tests.planner.calibration.own_runs import observation, team

DRAWS = Draws(count=801, seed=3)


def predicted(parameters, row):
    return predict_prepared(row.prepared, DRAWS, rates=run_rates(row.prepared, parameters))


def test_a_team_that_is_a_fifth_slower_is_learned_from_three_runs():
    slower = team([0.80, 0.80, 0.80])
    unseen = observation(0.80, id="unseen", n_gpus="64", global_batch_seqs="512")

    calibration = learn(slower, shipped_parameters(), "ours")

    before, after = predicted(None, unseen), predicted(calibration.parameters, unseen)
    assert before.mid / unseen.value - 1.0 > 0.15
    assert abs(after.mid / unseen.value - 1.0) < 0.08
    assert after.width_ratio < 0.9 * before.width_ratio
    assert after.low < unseen.value < after.high


def test_what_is_learned_of_one_gpu_and_model_carries_over_only_in_part():
    calibration = learn(team([0.80, 0.80, 0.80]), shipped_parameters(), "ours")
    alike = observation(1.0, id="alike", n_gpus="64", global_batch_seqs="512")
    other = observation(1.0, id="other", gpu="a100-sxm4-80gb", model="Llama2-13B")

    shift_alike, shift_other = (
        predicted(calibration.parameters, row).mid / predicted(None, row).mid for row in (alike, other)
    )

    assert shift_alike < shift_other < 1.0


def test_runs_that_are_as_predicted_change_no_middle_but_narrow_the_range():
    as_predicted = team([1.0, 1.0, 1.0])
    calibration = learn(as_predicted, shipped_parameters(), "ours")

    assert all(abs(row.error_after) < 0.01 for row in calibration.rows)
    assert calibration.width_ratio["time"] < 0.85


def test_more_rows_say_more():
    widths = [learn(team([0.9] * count), shipped_parameters(), "ours").width_ratio["time"] for count in (1, 3, 6)]

    assert widths == sorted(widths, reverse=True)
    assert widths[0] < 1.0


def test_one_run_told_in_several_speeds_or_several_times_is_one_run():
    speeds = ("tokens_per_s_per_gpu", "mfu", "step_time_s")
    told = [observation(1.25 if metric == "step_time_s" else 0.8, id=metric, metric=metric) for metric in speeds]
    repeats = [observation(0.8, id=f"again-{number}") for number in range(3)]
    others = team([0.8] * 3)

    width, shift = {}, {}
    for name, rows in {"once": told[:1], "told": told, "again": repeats, "others": others}.items():
        calibration = learn(rows, shipped_parameters(), "ours")
        width[name], shift[name] = calibration.width_ratio["time"], calibration.rows[0].error_after

    for name in ("told", "again"):
        assert width[name] == pytest.approx(width["once"], rel=1e-3)
        assert shift[name] == pytest.approx(shift["once"], abs=5e-4)
    assert width["others"] < 0.95 * width["once"]


def test_runs_that_agree_agree_whether_told_as_a_speed_or_as_a_time():
    speeds, times = team([0.35] * 4), team([1.0 / 0.35] * 4, metric="step_time_s")

    as_speeds, as_both = (learn(rows, shipped_parameters(), "ours").rows for rows in (speeds, speeds[:2] + times[2:]))

    assert as_both[0].error_after == pytest.approx(as_speeds[0].error_after, abs=1e-3)
    assert as_both[3].error_after == pytest.approx(1.0 / (1.0 + as_speeds[3].error_after) - 1.0, abs=1e-3)


def test_memory_power_and_energy_of_a_run_are_told_apart():
    metrics = ("tokens_per_s_per_gpu", "peak_mem_gib", "avg_gpu_power_w", "avg_node_power_w", "energy_mwh", "gpu_hours")
    rows = [observation(0.9, id=metric, metric=metric, tokens_total="1e12") for metric in metrics]

    assert own_repeats(rows) == [[number] for number in range(len(metrics))]
    total = observation(0.9, id="days", metric="time_to_train_min", tokens_total="1e12")
    assert own_repeats([*rows, total])[-1] == [5, 6]


def test_a_row_left_out_is_further_off_than_one_that_was_learned_from():
    calibration = learn(team([0.80, 0.85, 0.75]), shipped_parameters(), "ours")

    for row in calibration.rows:
        assert abs(row.error_after) < abs(row.error_left_out) < abs(row.error_before)


def test_the_row_left_out_is_predicted_as_learning_without_it_would():
    rows = team([0.80, 0.85, 0.75])
    stated = learn(rows, shipped_parameters(), "ours").rows[2].error_left_out

    without = learn(rows[:2], shipped_parameters(), "ours").parameters
    rates = run_rates(rows[2].prepared, without)
    # the third run's value, predicted at mid by what the first two taught
    assert predict_prepared(rows[2].prepared, rates=rates).mid / rows[2].value - 1.0 == pytest.approx(stated, abs=0.03)


def test_no_parameter_moves_further_than_three_of_its_spreads():
    shipped = shipped_parameters()
    assert shipped.joint is not None
    spreads = np.sqrt(np.diag(shipped.joint.covariance))

    after = learn(team([0.25] * 8), shipped, "ours").parameters

    for name, spread in zip(shipped.joint.ids, spreads, strict=True):
        before, now = shipped.rows[name], after.rows[name]
        if shipped.families[before.family].bound != "share":
            assert abs(np.log(now.value / before.value)) <= LIMIT * spread * (1 + 1e-6)


def test_what_was_learned_names_its_evidence_and_leaves_the_rest():
    after = learn(team([0.8] * 3), shipped_parameters(), "our-runs.csv").parameters

    told, untold = after.rows["framework_ratio.eager"], after.rows["matmul_efficiency.Volta"]
    assert told.kind is EvidenceKind.MEASURED
    assert told.source.startswith("our-runs.csv; before: ")
    assert untold.value == pytest.approx(shipped_parameters().rows["matmul_efficiency.Volta"].value, rel=0.02)
    assert after.rows["host_power_ratio"].source == shipped_parameters().rows["host_power_ratio"].source
    assert untold.log_sd > 0.9 * shipped_parameters().rows["matmul_efficiency.Volta"].log_sd


def test_memory_rows_teach_memory_alone():
    rows = team([1.3, 1.3, 1.3], metric="peak_mem_gib", mem_kind="reserved")

    after = learn(rows, shipped_parameters(), "ours").parameters

    assert after.rows["framework_ratio.eager"].value == shipped_parameters().rows["framework_ratio.eager"].value
    unseen = observation(1.3, id="unseen", metric="peak_mem_gib", mem_kind="reserved", n_gpus="64")
    assert abs(predicted(after, unseen).mid / unseen.value - 1) < abs(predicted(None, unseen).mid / unseen.value - 1)


def test_memory_learned_on_one_card_is_known_of_another_of_its_architecture_and_less_of_a_newer_one():
    teaching = [
        observation(
            1.3, id=f"{seq_len}", metric="peak_mem_gib", mem_kind="reserved", gpu="a100-sxm4-40gb", seq_len=seq_len
        )
        for seq_len in ("1024", "2048", "4096")
    ]
    after = learn(teaching, shipped_parameters(), "ours").parameters

    def moved(gpu: str) -> float:
        unseen = observation(id="unseen", metric="peak_mem_gib", mem_kind="reserved", gpu=gpu, n_gpus="16")
        return predicted(after, unseen).mid / unseen.value

    assert moved("a100-sxm4-80gb") == pytest.approx(moved("a100-sxm4-40gb"), rel=0.01)
    assert 1.0 < moved("h100-sxm5-80gb") < moved("a100-sxm4-80gb") - 0.03


def test_repeats_of_one_configuration_count_as_one_run():
    width = learn(team([0.8]), shipped_parameters(), "ours").width_ratio["time"]
    repeated = [observation(0.8, id=f"r{n}", series="s") for n in range(6)]

    assert learn(repeated, shipped_parameters(), "ours").width_ratio["time"] == pytest.approx(width, rel=0.02)


@pytest.mark.parametrize("factor", [0.5, 0.26])
def test_three_copies_of_a_far_off_run_do_not_agree_with_each_other(factor):
    alone, copied = (
        learn([observation(factor, id=f"copy-{number}") for number in range(count)], shipped_parameters(), "ours")
        for count in (1, 3)
    )

    assert copied.rows[0].error_after == pytest.approx(alone.rows[0].error_after, abs=1e-3)
    assert copied.width_ratio["time"] == pytest.approx(alone.width_ratio["time"], rel=1e-3)


def test_repeats_do_not_make_a_crowd_in_which_each_row_says_less():
    rows = team([0.8] * 5)
    alone = learn(rows, shipped_parameters(), "ours").width_ratio["time"]
    thrice = [
        replace(row, prepared=replace(row.prepared, run=replace(row.run, id=f"{row.run.id}-{n}", series=row.run.id)))
        for row in rows
        for n in range(3)
    ]

    # five configurations are below the ten from which on more of them say less each, however often each was measured
    assert learn(thrice, shipped_parameters(), "ours").width_ratio["time"] == pytest.approx(alone, rel=1e-6)


def test_the_posterior_is_joint_and_its_margins_are_the_ranges_of_the_rows():
    after = learn(team([0.9] * 3), shipped_parameters(), "ours").parameters
    assert after.joint is not None
    sd = dict(zip(after.joint.ids, np.sqrt(np.diag(after.joint.covariance)), strict=True))
    row = after.rows["fusion_ratio.eager"]

    assert row.high / row.value == pytest.approx(np.exp(1.64485363 * sd[row.id]), rel=1e-3)
    assert np.abs(np.tril(after.joint.covariance, -1)).max() > 0


def test_learning_is_the_same_whatever_the_order_of_the_rows():
    rows = team([0.8, 1.1, 0.95])
    forward, backward = (learn(list(order), shipped_parameters(), "x").parameters for order in (rows, rows[::-1]))

    for name in ("framework_ratio.eager", "nic_efficiency", "gpu_error_ratio.h100-sxm5-80gb"):
        assert forward.rows[name].value == pytest.approx(backward.rows[name].value, rel=1e-9)


def test_flagged_words_do_not_matter_only_numbers_do():
    rows = team([0.8, 0.8, 0.8])
    renamed = [replace(row, lineage="somebody else") for row in rows]
    values = [learn(list(given), shipped_parameters(), "x").parameters.rows for given in (rows, renamed)]

    assert values[0]["framework_ratio.eager"].value == values[1]["framework_ratio.eager"].value


def test_a_team_whose_rows_agree_scatters_less_than_most_and_one_whose_rows_do_not_scatters_more():
    steady = learn(team([0.9] * 6), shipped_parameters(), "x").parameters.rows["model_error_ratio"]
    wild = learn(team([0.5, 1.4, 0.6, 1.5, 0.7, 1.2]), shipped_parameters(), "x").parameters.rows["model_error_ratio"]

    assert steady.log_sd < shipped_parameters().rows["model_error_ratio"].log_sd < wild.log_sd


@pytest.mark.parametrize("factors", [(0.5, 0.35), (0.7, 0.5)])
def test_the_further_off_agreeing_runs_are_the_more_is_learned_from_them(factors):
    planned = []
    for factor in factors:
        calibration = learn(team([factor] * 3), shipped_parameters(), "ours")
        unseen = observation(id="unseen", n_gpus="128", global_batch_seqs="1024")
        planned.append(predicted(calibration.parameters, unseen).mid / unseen.value)
        assert not any(row.conflicts_with for row in calibration.rows)  # they say the same

    assert planned[1] < planned[0] < 1.0


@pytest.mark.parametrize("factor", [0.5, 1.7])
def test_two_runs_that_agree_are_learned_from_however_far_they_are_from_most_teams(factor):
    for row in learn(team([factor] * 2), shipped_parameters(), "ours").rows:
        assert abs(np.log1p(row.error_after)) < 0.3 * abs(np.log1p(row.error_before))


def test_of_two_runs_that_contradict_each_other_the_one_that_is_as_predicted_is_believed():
    usual, far = learn(team([1.0, 0.25]), shipped_parameters(), "ours").rows

    assert abs(usual.error_after) < 0.05
    assert far.error_after > 2.5


def test_of_runs_that_agree_the_one_that_does_not_is_named():
    rows = learn(team([0.5, 0.5, 0.5, 0.5, 3.0]), shipped_parameters(), "ours").rows

    assert [row.contradicts_all for row in rows] == [False, False, False, False, True]


def test_many_repeats_are_left_out_together_as_one_by_one():
    rows = [*(observation(0.9, id=f"a-{n}") for n in range(3)), observation(1.1, id="t", metric="step_time_s")]
    solved_slopes = np.array([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [-1.0, -0.5]])
    covariance, precision = np.array([[0.04, 0.01], [0.01, 0.02]]), np.array([2.0, 3.0, 4.0, 5.0])
    solved = _Solved(
        shift=np.zeros(2), covariance=covariance, bounded=np.zeros(2, bool), slopes=solved_slopes, precision=precision
    )
    residual = np.array([0.1, 0.2, 0.3, -0.1])
    leverage = (solved_slopes @ covariance @ solved_slopes.T) * precision

    left_out, alone, by_others = _left_out(rows, residual, solved, Joint(ids=("a", "b"), factor=np.eye(2)))

    assert left_out == pytest.approx(np.linalg.solve(np.eye(4) - leverage, residual))
    assert alone == pytest.approx(np.abs(leverage).sum(axis=1))
    assert by_others[0] == by_others[1] == by_others[2]
    assert ((by_others >= 0.0) & (by_others <= 1.0)).all()


def test_the_others_teach_all_of_a_row_that_is_one_of_very_many_and_nothing_of_one_that_is_alone():
    (alone,) = learn(team([0.9]), shipped_parameters(), "ours").rows
    several = learn(team([0.9] * 6), shipped_parameters(), "ours").rows

    assert alone.by_others == 0.0
    assert alone.error_left_out == pytest.approx(alone.error_before)
    assert all(0.5 < row.by_others < 1.0 for row in several)
