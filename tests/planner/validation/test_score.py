from dataclasses import replace

import numpy as np
import pytest

from planner.errors import Message
from planner.validation.predict import Prediction
from planner.validation.runs import PublishedResult, PublishedRun, Rejected
from planner.validation.score import (
    ScoredRun,
    score_pairs,
    score_runs,
    size_class,
    summarize,
    summarize_by,
    weighted_quantile,
    weights,
)
from planner.validation.setup import Prepared, prepare_run

RUN = PublishedRun(id="a", metric="tokens_per_s_per_gpu", gpu="h100-sxm5-80gb", precision="bf16")


def prediction(mid: float, *, width: float = 0.2, filling: float = 0.5) -> Prediction:
    low, high = mid * (1 - width / 2), mid * (1 + width / 2)
    values = np.array([low, mid, high])
    return Prediction(
        id="a", metric="tokens_per_s_per_gpu", low=low, mid=mid, high=high, filled=(), fits=filling <= 1,
        fits_probability=float(filling <= 1), memory_gib=80 * filling, memory_filling_ratio=filling, values=values,
    )  # fmt: skip


def scored(
    published: float | None, mid: float, *, oom: bool = False, filling: float = 0.5, **changes: str
) -> ScoredRun:
    run = replace(RUN, **changes)  # type: ignore[arg-type]
    return ScoredRun(
        run=run, id=run.id, metric=run.metric, published=published, out_of_memory=oom,
        prediction=prediction(mid, filling=filling), prepared=None, reason_skipped=None,
    )  # fmt: skip


def test_the_error_is_mid_over_published_minus_one():
    row = scored(100.0, 90.0)

    assert row.error_ratio == pytest.approx(-0.10)
    assert row.inside is False  # 81 to 99
    assert scored(100.0, 95.0).inside is True  # 85.5 to 104.5


def test_rows_of_one_series_weigh_as_much_as_one_row():
    rows = [scored(1.0, 1.0, id=name, series=series) for name, series in (("a", "s"), ("b", "s"), ("c", ""))]

    assert list(weights(rows)) == [0.5, 0.5, 1.0]


def test_a_series_that_misses_does_not_outvote_single_rows():
    misses = [scored(100.0, 150.0, id=f"m{i}", series="s") for i in range(9)]
    hits = [scored(100.0, 101.0, id=f"h{i}") for i in range(3)]
    summary = summarize([*misses, *hits])

    assert summary.n == 12
    assert summary.median_abs_error == pytest.approx(0.01)
    assert summary.coverage == pytest.approx(0.75)


def test_flagged_and_skipped_rows_are_not_scored():
    skipped = ScoredRun(
        run=None, id="b", metric="", published=1.0, out_of_memory=False, prediction=None, prepared=None,
        reason_skipped="seq_len: blank",
    )  # fmt: skip

    assert summarize([scored(100.0, 200.0, flag="arithmetic"), skipped]).n == 0
    assert summarize([]).median_abs_error is None


def test_a_weighted_median_of_equal_weights_is_the_median():
    values = np.array([5.0, 1.0, 3.0])

    assert weighted_quantile(values, np.ones(3), 0.5) == 3.0


def test_a_pair_goes_from_the_wider_precision_and_reads_as_a_speed_up():
    wide = scored(100.0, 100.0, id="w", pair="p", precision="bf16")
    narrow = scored(150.0, 130.0, id="n", pair="p", precision="fp8")
    (pair,) = score_pairs([narrow, wide])

    assert (pair.frm, pair.to, pair.ids) == ("bf16", "fp8", ("w", "n"))
    assert pair.published_ratio == pytest.approx(1.5)
    assert pair.mid == pytest.approx(1.3)
    assert pair.error_ratio == pytest.approx(1.3 / 1.5 - 1)


def test_step_times_are_turned_over():
    wide = scored(3.0, 3.0, id="w", pair="p", precision="fp32", metric="step_time_s")
    narrow = scored(1.0, 1.5, id="n", pair="p", precision="fp16", metric="step_time_s")
    (pair,) = score_pairs([wide, narrow])

    assert pair.published_ratio == pytest.approx(3.0)
    assert pair.mid == pytest.approx(2.0)


def test_the_draws_of_a_pair_are_common_so_that_its_range_is_narrow():
    (pair,) = score_pairs(
        [scored(1.0, 1.0, id="w", pair="p", precision="bf16"), scored(1.0, 2.0, id="n", pair="p", precision="fp8")]
    )

    assert pair.low == pair.mid == pair.high == pytest.approx(2.0)


def test_two_rows_of_one_precision_or_two_metrics_are_no_pair():
    rows = [
        scored(1.0, 1.0, id="a", pair="p", precision="fp8"),
        scored(1.0, 1.0, id="b", pair="p", precision="fp8"),
        scored(1.0, 1.0, id="c", pair="p", precision="bf16", metric="peak_mem_gib"),
    ]

    assert score_pairs(rows) == []


def test_a_verdict_is_wrong_only_beyond_five_percent_of_the_memory():
    memory = {"metric": "peak_mem_gib"}

    assert scored(None, 70.0, oom=True, filling=0.90, **memory).misjudged_fit
    assert not scored(None, 78.0, oom=True, filling=0.97, **memory).misjudged_fit
    assert scored(70.0, 90.0, filling=1.10, **memory).misjudged_fit
    assert not scored(70.0, 82.0, filling=1.03, **memory).misjudged_fit


def test_a_row_without_prediction_keeps_its_published_value_and_its_reason():
    refused = Rejected(id="a", reason="seq_len: blank", metric="step_time_s")
    result = PublishedResult(id="a", value=2.0, out_of_memory=False, source="s")
    (row,) = score_runs([refused], [refused], [result])

    assert (row.published, row.reason_skipped, row.metric) == (2.0, "seq_len: blank", "step_time_s")
    assert row.error_ratio is None


def test_what_a_source_calls_out_of_memory_is_kept_and_nothing_else_is():
    refused = Rejected(id="a", reason="seq_len: blank", metric="step_time_s")
    unread = Rejected(id="a", reason="value: not a number")
    failed = PublishedResult(id="a", value=None, out_of_memory=True, source="")
    ran = PublishedResult(id="a", value=2.0, out_of_memory=False, source="")

    rows = score_runs([refused] * 3, [refused] * 3, [failed, ran, unread])

    assert [row.out_of_memory for row in rows] == [True, False, False]
    assert [row.published for row in rows] == [None, 2.0, None]
    assert rows[2].reason_skipped == Message.of("skipped.reasons", reasons=("seq_len: blank", "value: not a number"))


def test_a_row_that_was_set_up_has_the_metric_and_the_id_of_its_run():
    known = replace(ready("GPT-2 124M"), run=replace(RUN, metric="step_time_s"))
    result = PublishedResult(id="a", value=2.0, out_of_memory=False, source="s")
    (row,) = score_runs([known], [prediction(1.5)], [result])

    assert (row.id, row.metric, row.reason_skipped) == ("a", "step_time_s", None)
    assert row.error_ratio == pytest.approx(-0.25)


def test_a_summary_s_figures_are_those_of_its_rows():
    # each range is +-10 % of its mid; the middles of the ten weights lie at 5, 15 ... 95 %
    mids = (70.0, 90.0, 100.0, 110.0, 120.0, 130.0, 140.0, 150.0, 160.0, 170.0)
    rows = [scored(100.0, mid, id=str(mid)) for mid in mids]
    summary = summarize(rows)

    assert summary.n == 10
    assert summary.median_abs_error == pytest.approx(0.30)  # of 0, 10, 10, 20, 30, 30, 40, 50, 60, 70 %
    assert summary.p90_abs_error == pytest.approx(0.65)
    assert summary.bias == pytest.approx(0.25)  # of -30, -10, 0, 10, 20, 30, 40, 50, 60, 70 %
    assert summary.coverage == pytest.approx(2 / 10)  # 90 to 110 and 99 to 121 hold 100, 81 to 99 does not
    assert summary.median_width == pytest.approx(0.2)


def test_quantiles_lie_halfway_between_the_weights():
    # weights 1, 1, 2: their middles stand at 1/8, 3/8 and 6/8 of the whole
    values, weight = np.array([10.0, 20.0, 40.0]), np.array([1.0, 1.0, 2.0])

    assert weighted_quantile(values, weight, 0.375) == pytest.approx(20.0)
    assert weighted_quantile(values, weight, 0.5) == pytest.approx(20 + 20 / 3)
    assert weighted_quantile(values, weight, 0.9) == 40.0


@pytest.mark.parametrize(("published", "inside"), [(89.9, False), (90.0, True), (110.0, True), (110.1, False)])
def test_both_ends_belong_to_a_range(published, inside):
    assert scored(published, 100.0).inside is inside


@pytest.mark.parametrize(("filling", "wrong"), [(0.949, True), (0.951, False)])
def test_five_percent_below_the_memory_a_published_failure_is_no_wrong_verdict(filling, wrong):
    assert scored(None, 1.0, oom=True, filling=filling, metric="peak_mem_gib").misjudged_fit is wrong
    assert scored(1.0, 1.0, filling=2 - filling, metric="peak_mem_gib").misjudged_fit is wrong
    assert not scored(1.0, 1.0, filling=2 - filling, metric="step_time_s").misjudged_fit


def ready(model: str) -> Prepared:
    run = replace(RUN, model=model, n_gpus=8, seq_len=2048, global_batch_seqs=8, micro_batch=1, tp=1, pp=1)
    prepared = prepare_run(run)
    assert isinstance(prepared, Prepared), prepared
    return prepared


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("GPT-2 124M", "under 1B"),
        ("Llama3.2-1B", "1B to 13B"),  # 1.24B
        ("Llama2-13B", "13B to 70B"),  # 13.02B
        ("Llama2-70B", "13B to 70B"),  # 68.98B
        ("Llama3-70B", "70B to 200B"),  # 70.55B
        ("Llama3.1-405B", "200B and more"),
    ],
)
def test_a_model_is_in_the_class_of_its_parameters(model, size):
    assert size_class(ready(model)) == size


def test_groups_are_scored_apart_the_largest_first():
    small, large = ready("GPT-2 124M"), ready("Llama3.1-405B")
    rows = [
        replace(scored(100.0, 110.0, id="a"), prepared=large),
        replace(scored(100.0, 120.0, id="b"), prepared=small),
        replace(scored(100.0, 120.0, id="c"), prepared=small),
        replace(scored(100.0, 900.0, id="d", flag="odd"), prepared=large),
    ]
    summaries = summarize_by(rows, size_class)

    assert [(name, summary.n, summary.bias) for name, summary in summaries.items()] == [
        ("under 1B", 2, pytest.approx(0.2)), ("200B and more", 1, pytest.approx(0.1))
    ]  # fmt: skip
