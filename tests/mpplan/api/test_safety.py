"""What training showed, from documents that are named, records, and neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpplan.api.answer import estimate_briefly
from mpplan.api.measurements import chosen_records
from mpplan.api.record_shelf import RecordShelf
from mpplan.api.safety import named_training, recorded_training
from planner.errors import InputFileError, UsageError
from planner.evidence import EvidenceKind
from planner.records.jsonl import to_line
from planner.safety.training import NO_TRAINING
from tests.planner.measured.test_training import a_finding
from tests.planner.safety.recorded import PATH, document, overflowing

pytestmark = pytest.mark.usefixtures("home")  # no record of the developer's own

FP16 = {"precision": "fp16", "recipe": "fp16"}


def record(path: Path, ratio: float = 0.04, **changes: object) -> Path:
    scaled = a_finding(
        probe_id="numerics/char-lm/loss-scaling/fp16", numerics_instrument="loss-scaling",
        numerics_steady_skipped_step_ratio=ratio, numerics_verdict=None, **(FP16 | changes),
    )  # fmt: skip
    path.write_text("".join(to_line(point) + "\n" for point in (scaled, a_finding(seq=1))), encoding="utf-8")
    return path


def answer(**inputs: object):
    return estimate_briefly(params="8B", gpus=8, precision="fp16", **inputs)  # type: ignore[arg-type]


def goodput(of) -> float:
    plan = next(plan for plan in of.plans if plan.precision == "fp16")
    assert plan.goodput_ratio is not None
    return plan.goodput_ratio.mid


def test_a_named_record_of_training_alone_lowers_the_goodput_of_what_scales_its_loss(tmp_path):
    plain, told = answer(), answer(records=str(record(tmp_path / "numerics.jsonl")))

    assert goodput(told) == pytest.approx(0.96 * goodput(plain), rel=2e-2)
    bf16 = [next(plan for plan in answered.plans if plan.precision == "bf16") for answered in (plain, told)]
    assert bf16[0].goodput_ratio == bf16[1].goodput_ratio
    assert [row.id for row in told.assumptions].count("skipped_steps") == 1
    assert any(row.id == "numerics:char-lm/loss-scaling/fp16" for row in told.evidence)
    assert {row.precision: row.basis for row in told.parity}["fp8"] == "measured"


def test_a_folder_of_such_records_alone_is_no_error_and_leaves_the_rates_as_they_are(tmp_path):
    record(tmp_path / "numerics.jsonl")
    shelf = RecordShelf(str(tmp_path))

    assert chosen_records(shelf, ["h100-sxm5-80gb"]).all == ()
    assert {row.precision for row in recorded_training(shelf, ["h100-sxm5-80gb"]).findings} == {"fp16", "fp8"}


def test_of_several_records_that_of_the_plans_gpu_counts(tmp_path):
    record(tmp_path / "cpu.jsonl", 0.04)
    h200 = {"device_kind": "cuda", "device_name": "NVIDIA H200", "memory_total_bytes": 150_754_820_096.0}
    record(tmp_path / "gpu.jsonl", 0.01, **h200)
    findings = recorded_training(RecordShelf(str(tmp_path)), ["h200-sxm-141gb"]).findings

    assert (findings[0].gpu, findings[0].figures.steady_skipped_step_ratio) == ("h200-sxm-141gb", 0.01)
    assert findings[0].source.startswith("record ")


def test_a_named_document_is_drawn_and_takes_the_place_of_records(tmp_path):
    told = answer(numerics=str(PATH), records=str(record(tmp_path / "numerics.jsonl")))

    assert told.numerics is not None
    # 2 of 1,002 steps, as Megatron-Core's scaler skips; the mid of the goodput is that of its draws
    assert goodput(told) == pytest.approx(goodput(answer()) * (1 - 2 / 1002), rel=1e-4)
    source = next(row for row in told.evidence if row.id == "numerics:char-lm/loss-scaling/fp16")
    assert source.kind is EvidenceKind.ASSUMED


def test_a_model_that_overflows_at_every_step_is_not_said_to_have_been_measured_at_1_in_2001(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(overflowing()), encoding="utf-8")
    told = answer(numerics=str(path))

    assert goodput(told) == goodput(answer())
    assert next(plan for plan in told.plans if plan.precision == "fp16").skipped_step_ratio is None
    assert not [row for row in told.evidence if row.id.startswith("numerics:")]
    assert [row.key for row in told.warnings].count("warning.untrained") == 1
    (fp16,) = [row for row in told.parity if row.precision == "fp16"]
    assert fp16.untrained is not None
    assert (fp16.untrained.skipped, fp16.measured.verdict, fp16.measured.diverged) == (400, "not_equivalent", 8)


def test_the_precision_of_the_documents_schedules_is_planned_where_a_gpu_has_it():
    blackwell = estimate_briefly(params="8B", gpus=8, gpu="b200-sxm-180gb", numerics=str(PATH))
    hopper = answer(numerics=str(PATH))

    assert "nvfp4" in {plan.precision for plan in blackwell.plans}
    assert "warning.trained_precision" in {row.key for row in blackwell.warnings}
    assert blackwell.numerics is not None
    assert all(point.duration_days is not None for point in blackwell.numerics.mixtures)
    assert "nvfp4" not in {plan.precision for plan in hopper.plans}
    assert "warning.trained_precision" not in {row.key for row in hopper.warnings}
    asked = estimate_briefly(params="8B", gpus=8, gpu="b200-sxm-180gb", precision="nvfp4", numerics=str(PATH))
    assert "warning.trained_precision" not in {row.key for row in asked.warnings}


def test_without_either_nothing_is_measured_and_what_is_published_is_still_quoted():
    told = estimate_briefly(params="8B", gpus=8, gpu="b200-sxm-180gb", precision="nvfp4")

    assert {row.precision: row.basis for row in told.parity} == {
        "fp32": "reference", "tf32": "not_tested", "fp16": "not_tested", "bf16": "not_tested", "fp8": "not_tested",
        "nvfp4": "published",
    }  # fmt: skip
    assert told.numerics is None
    assert NO_TRAINING.findings == ()


def test_a_file_that_is_no_such_document_is_refused_with_what_writes_one(tmp_path):
    wrong = tmp_path / "plan.json"
    wrong.write_text(json.dumps({"schema": "mpplan.estimate/2"}), encoding="utf-8")

    with pytest.raises(InputFileError, match=r"expected `mpplan\.numerics/1`") as caught:
        named_training(str(wrong))
    assert "mpplan numerics --json" in str(caught.value.hint)
    with pytest.raises(UsageError, match="cannot read"):
        named_training(str(tmp_path / "missing.json"))


def test_a_document_that_trained_nothing_is_refused(tmp_path):
    empty = tmp_path / "empty.json"
    nothing = {
        name: [] for name in ("tasks", "loss_scaling", "histograms", "parity", "sensitivity", "policy", "schedule")
    }
    empty.write_text(json.dumps(document() | nothing), encoding="utf-8")

    with pytest.raises(InputFileError, match="tasks: expected at least one trained task, found none"):
        named_training(str(empty))
