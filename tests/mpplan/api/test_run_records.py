"""Records and own runs together: both are evidence of one slowness, which counts once."""

from __future__ import annotations

import json

import pytest

from mpplan.api.answer import answer_question, estimate_briefly
from mpplan.api.calibrations import calibration_of
from mpplan.api.run_records import NO_RUN_RECORDS, run_records
from planner.errors import InputFileError
from planner.question.asked import Ask
from planner.records.home import records_dir
from planner.validation.predict import predict_prepared, run_rates
from reports.text.names import pretty_gpu
from tests.planner.calibration.own_runs import prepared
from tests.planner.recorded import copy, gemm, kernels, write_record

pytestmark = pytest.mark.usefixtures("nothing_ships")

GPU = "h200-sxm-141gb"
LAYOUT = {"seq_len": "8192", "micro_batch": "2", "tp": "1", "pp": "1", "cp": "1", "act_ckpt": "none"}
ROW = LAYOUT | {
    "model": "llama-3.1-8b", "precision": "bf16", "gpu": GPU, "zero_or_fsdp_stage": "3",
    "metric": "tokens_per_s_per_gpu",
}  # fmt: skip


def slow_points():
    """Kernels of an H200 whose products need a third more than the made-up law says."""
    points = [gemm(n, n, n, noise=0.6) for n in (1024, 2048, 4096, 8192, 16384)]
    return [*points, gemm(8192, 7168, 8192, noise=0.6), gemm(8192, 8192, 1024, noise=0.6), copy()]


@pytest.fixture
def record(home):
    return str(write_record(home / "slow.jsonl", *slow_points()))


def speed(**inputs: str) -> float:
    answer = estimate_briefly(
        model="llama-3.1-8b", tokens="100B", gpu=GPU, gpus=64, global_batch=128, precision="bf16", zero="3",
        **(LAYOUT | inputs),
    )  # fmt: skip
    return next(plan for plan in answer.plans if plan.precision == "bf16").tokens_per_s_per_gpu.mid


def own_runs(value: float) -> list[dict[str, str]]:
    sizes = {"32": "128", "64": "128", "128": "256"}
    return [
        ROW | {"id": f"r{gpus}", "n_gpus": gpus, "global_batch_seqs": batch, "value": f"{value:.1f}"}
        for gpus, batch in sizes.items()
    ]


def calibrated(home, name: str, value: float, records: str | None = None) -> str:
    document, _ = calibration_of(own_runs(value), source="runs.csv", records=records)
    (home / name).write_text(json.dumps(document), encoding="utf-8")
    return name


def test_a_record_and_own_runs_that_say_the_same_say_it_once(home, record):
    told = speed(records=record)
    assert told < 0.9 * speed()

    alone = speed(calibration=calibrated(home, "alone.json", told))
    together = speed(records=record, calibration=calibrated(home, "both.json", told, record))

    assert alone == pytest.approx(told, rel=0.06)
    assert together == pytest.approx(told, rel=0.03)


def warnings(calibration: str, **texts: str) -> list[str]:
    asked = {"model": "llama-3.1-8b", "gpu": GPU, "gpus": "8", "tokens": "1B", "calibration": calibration} | texts
    answer = answer_question(Ask(texts=asked), detailed=False).answer
    return [warning.key for warning in answer.warnings if warning.key.startswith("warning.calibration_")]


def test_a_plan_says_where_its_record_and_its_calibration_do_not_belong_together(home, record):
    alone, with_record = calibrated(home, "alone.json", 6000.0), calibrated(home, "both.json", 6000.0, record)

    assert warnings(alone) == []
    assert warnings(with_record, records=record) == []
    assert warnings(alone, records=record) == ["warning.calibration_without_record"]
    assert warnings(with_record) == ["warning.calibration_record_gone"]


def test_another_measurement_of_the_gpu_is_another_record(home, record):
    with_record = calibrated(home, "both.json", 6000.0, record)
    write_record(home / "slow.jsonl", *kernels())

    assert warnings(with_record, records=record) == ["warning.calibration_without_record"]


def test_the_records_of_the_store_are_used_without_being_named(home):
    write_record(records_dir() / "mine.jsonl", *slow_points())

    document, told = calibration_of(own_runs(6000.0), source="runs.csv")

    assert [entry["record"] for entry in document["records"]] == ["mine"]
    assert told[0].startswith(f"{pretty_gpu(GPU)}: rates measured in record `mine` are used")
    assert warnings(calibrated(home, "own.json", 6000.0)) == []


def test_a_run_on_another_gpu_keeps_its_rates(home):
    write_record(records_dir() / "mine.jsonl", *slow_points())
    own, other = prepared(gpu=GPU), prepared()
    records = run_records(None, [own, other])

    assert records.terms(other) == {}
    measured = predict_prepared(own, rates=run_rates(own, None, records.terms(own))).mid
    assert measured < 0.95 * predict_prepared(own).mid


def test_without_a_record_nothing_is_measured(home):
    assert run_records(None, [prepared()]) is NO_RUN_RECORDS


def test_a_record_of_another_gpu_is_refused_where_it_is_named(home, record):
    with pytest.raises(InputFileError, match=r"expected a record of .h100-sxm5-80gb"):
        run_records(record, [prepared()])
