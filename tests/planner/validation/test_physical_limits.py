"""What no card can do is refused, by every metric; what it can do only just is not."""

from __future__ import annotations

import pytest

from planner.calibration.fit import CORPUS
from planner.performance.evaluation import flop_of
from planner.rows import read_rows
from planner.validation.physical_limits import (
    checked,
    model_flop_per_s,
    why_impossible,
    why_no_such_batch,
    why_uneven_batch,
)
from planner.validation.predict import predict_prepared
from planner.validation.runs import PublishedResult, Rejected, parse_result, parse_run
from planner.validation.setup import Prepared, prepare, prepare_run
from tests.planner.validation.test_predict import prepared

SPEEDS = (
    "tokens_per_s_per_gpu", "samples_per_s", "step_time_s", "tflops_per_gpu", "mfu", "gpu_hours", "time_to_train_min",
)  # fmt: skip
H100_PEAK = 989e12


@pytest.mark.parametrize("metric", SPEEDS)
@pytest.mark.parametrize("convention", ["", "hardware FLOPs, recompute counted"])
def test_every_speed_means_the_same_model_flop(metric, convention):
    run = prepared(metric, act_ckpt="full", flops_convention=convention)
    speed = predict_prepared(prepared("tokens_per_s_per_gpu", act_ckpt="full")).mid * flop_of(run.recipe)

    flop_per_s = model_flop_per_s(run, predict_prepared(run).mid)

    goodput = flop_per_s / speed
    assert 0.85 < goodput < 1.0 if metric in ("gpu_hours", "time_to_train_min") else goodput == pytest.approx(1.0)


@pytest.mark.parametrize("metric", SPEEDS)
def test_above_the_peak_is_refused_and_below_it_is_not(metric):
    run = prepared(metric, act_ckpt="none")
    slower_is_more = metric in ("step_time_s", "gpu_hours", "time_to_train_min")
    value = predict_prepared(run).mid
    ratio = H100_PEAK / model_flop_per_s(run, value)
    at_peak = value / ratio if slower_is_more else value * ratio
    above, below = (at_peak / 1.01, at_peak * 1.01) if slower_is_more else (at_peak * 1.01, at_peak / 1.01)

    refused = why_impossible(run, above)

    assert dict(refused.values)["needed_tflops"] == pytest.approx(1.01 * 989, rel=1e-6)
    assert why_impossible(run, below) is None


def test_what_a_run_says_to_recompute_counts_against_the_peak():
    run, silent = (prepared("tokens_per_s_per_gpu", act_ckpt=words) for words in ("full", ""))
    value = 0.9 * H100_PEAK / flop_of(run.recipe)  # with a third of the layers' FLOP more, 1.19 times the peak

    refused = why_impossible(run, value)

    assert refused.key == "skipped.above_peak_recomputed"
    assert dict(refused.values)["needed_tflops"] == pytest.approx(0.9 * 989 * 4 / 3, rel=0.03)
    assert why_impossible(run, 0.7 * H100_PEAK / flop_of(run.recipe)) is None
    assert why_impossible(silent, 0.9 * H100_PEAK / flop_of(silent.recipe)) is None


def test_memory_above_the_card_s_is_refused_beyond_what_cards_of_a_name_differ_by():
    run = prepared("peak_mem_gib")

    assert why_impossible(run, 80.9) is None
    assert why_impossible(run, 81.6).key == "skipped.above_memory"


def test_a_convolution_may_take_fewer_products_than_are_counted():
    network = prepared("samples_per_s", model="ResNet50", family="cnn", precision="fp32", seq_len="", cp="")
    at_peak = 16 * network.cluster.gpu.peak_flop_per_s["fp32"] / flop_of(network.recipe)

    assert why_impossible(network, 2 * at_peak) is None
    assert why_impossible(network, 5 * at_peak).key == "skipped.above_peak"


@pytest.mark.parametrize(
    ("limit", "possible_w", "impossible_w", "limit_w"),
    [
        ("", 734, 736, 700),  # the H100's own limit
        ("700", 734, 736, 700),
        ("600", 734, 736, 600),  # no lower limit allows more than the card's own does
        ("400", 499, 501, 400),
        ("800", 839, 841, 800),
    ],
)
def test_power_above_the_limit_is_refused_beyond_what_meters_err_by(limit, possible_w, impossible_w, limit_w):
    run = prepared("avg_gpu_power_w", power_limit_w=limit)

    assert why_impossible(run, possible_w) is None
    refused = why_impossible(run, impossible_w)
    assert (refused.key, dict(refused.values)["limit_w"]) == ("skipped.above_power", limit_w)


def test_the_power_of_a_node_is_not_held_against_one_card_s_limit():
    assert why_impossible(prepared("avg_node_power_w"), 1e9) is None


def test_a_flagged_row_and_one_without_a_value_are_left_as_they_are():
    result = PublishedResult(id="x", value=9e9, out_of_memory=False, source="")
    oom = PublishedResult(id="x", value=None, out_of_memory=True, source="")
    run = prepared("mfu")

    assert isinstance(checked(run, result), Rejected)
    assert checked(prepared("mfu", flag="contradicts itself"), result) is result
    assert checked(run, oom) is oom


@pytest.mark.parametrize("each", [20, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_of_the_shipped_runs_one_would_be_refused_but_for_its_flag(each):
    refused = []
    lines = [line for path in CORPUS for line in read_rows(path)]
    for line in [line for number, line in enumerate(lines) if number % each == 0 or line.cells["id"] == "llmc-0010"]:
        run = parse_run(line.cells | {"flag": ""} if line.cells["id"] == "llmc-0010" else line.cells, line.line)
        ready = run if isinstance(run, Rejected) else prepare_run(run)
        result = parse_result(line.cells, line.line)
        if isinstance(ready, Prepared) and checked(ready, result) is not result:
            refused.append(ready.run.id)

    assert refused == ["llmc-0010"]


@pytest.mark.parametrize(
    ("batch", "micro", "key", "uneven"),
    [
        (128.0, 1, None, False),
        (128.0, 2, None, False),
        (128.0, 8, "skipped.batch_of_micro_batches", False),
        (7.0, None, "skipped.batch_of_ranks", True),
        (130.0, 1, None, True),
    ],
)
def test_a_batch_is_at_least_a_micro_batch_on_each_rank_and_divides(batch, micro, key, uneven):
    run = prepared(
        "tokens_per_s_per_gpu",
        n_gpus="64",
        global_batch_seqs=f"{batch:g}",
        micro_batch="" if micro is None else str(micro),
    )
    reason = why_no_such_batch(run)

    assert (None if reason is None else reason.key) == key
    assert (why_uneven_batch(run) is not None) == uneven


@pytest.mark.long
def test_no_published_row_but_two_of_long_sequences_states_a_batch_that_cannot_be():
    runs = [parse_run(line.cells) for path in CORPUS for line in read_rows(path)]
    items = [item for item in prepare(runs) if isinstance(item, Prepared)]

    assert [item.run.id for item in items if why_no_such_batch(item)] == ["nemo-0029", "nemo-0031"]
