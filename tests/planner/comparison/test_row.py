"""The row for `mpplan calibrate`: what log and plan tell is in it, what they do not is blank and named."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.comparison.basis import Given
from planner.comparison.compare import compare
from planner.comparison.planned import planned_of
from planner.comparison.row import row_id
from planner.hardware.catalogue import find_gpu
from planner.validation.runs import PublishedRun, parse_run
from planner.validation.setup import Prepared, prepare_run
from planner.validation.template import COLUMNS
from tests.planner.comparison.runs import LLAMA, compared, log_of
from tests.planner.comparison.test_gap import answer
from tests.planner.runlog.test_read import sample
from tests.planner.runlog.writers import BEGIN, LLAMA_8B, megatron_arguments, megatron_log, titan_step


def test_a_row_of_log_and_plan_can_be_predicted():
    lines, _ = megatron_log([2.0] * 10, of=100)
    log = log_of(megatron_arguments(LLAMA_8B), lines)
    (row,) = compare(log, planned_of(answer(), None, None), Given()).row.lines

    assert set(row) <= set(COLUMNS)
    assert (row["id"], row["model"], row["gpu"], row["framework"]) == (
        "run",
        "llama-3-8b",
        "h100-sxm5-80gb",
        "Megatron-Core",
    )
    assert (row["metric"], float(row["value"])) == ("tokens_per_s_per_gpu", pytest.approx(128 * 8192 / 64 / 2.0))
    run = parse_run(row)
    assert isinstance(run, PublishedRun)
    assert isinstance(prepare_run(run), Prepared)


def test_a_row_of_the_logs_own_settings_has_the_shape_and_can_be_predicted():
    lines, _ = megatron_log([2.0] * 10, of=100)
    comparison = compared(log_of(megatron_arguments(LLAMA_8B), lines), Given(gpu=find_gpu("h100-sxm5-80gb")))
    (row,) = comparison.row.lines

    assert (row["model"], row["hidden"], row["n_layers"], row["n_kv_heads"]) == ("own", "4096", "32", "8")
    assert comparison.row.missing == ()
    run = parse_run(row)
    assert isinstance(run, PublishedRun)
    assert isinstance(prepare_run(run), Prepared)


def test_what_nothing_tells_is_blank_and_named():
    comparison = compared(sample("nemo-crash.log"))
    (row,) = comparison.row.lines

    assert comparison.row.missing == ("model", "precision", "gpu", "n_gpus", "seq_len")
    assert (row["metric"], float(row["value"]), row["global_batch_seqs"]) == (
        "step_time_s",
        pytest.approx(7.59, abs=0.02),
        "512",
    )
    assert "gpu" not in row


def test_peak_memory_that_the_log_prints_is_a_line_of_its_own():
    given = Given(
        model=LLAMA, gpu=find_gpu("h100-sxm5-80gb"), gpus=64, seq_len=8192, global_batch=128, precision="bf16"
    )
    sizes = (
        f"[titan] {BEGIN:%Y-%m-%d %H:%M:%S},000 - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters"
    )
    steps = [
        titan_step(BEGIN + timedelta(seconds=2 * n), n, tps=8192, tflops=400, mfu=40.0, rank=None) for n in range(1, 9)
    ]
    lines = compared(log_of([sizes], steps), given).row.lines

    assert [row["metric"] for row in lines] == ["tokens_per_s_per_gpu", "peak_mem_gib"]
    assert (lines[1]["value"], lines[1]["mem_kind"]) == ("49.66", "reserved")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("run.log", "run"), ("Llama 3 (8B).out.gz", "llama-3-8b"), ("…", "run"), ("stdin", "stdin")],
)
def test_a_run_is_called_after_its_file(name, expected):
    assert row_id(name) == expected
