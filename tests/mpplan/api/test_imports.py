"""Imports without a screen: several files in one record, and their documents."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from mpplan.api.imports import calibration_rows, document, import_files, runs_table
from mpplan.ui.schema import file_of
from planner.errors import UsageError
from planner.imported.reading import Training
from tests.planner.imported.readings import SAMPLES

POWER, STEPS, ZEUS = (str(SAMPLES / name) for name in ("nvidia-smi.csv", "steps.csv", "zeus.csv"))
TRAINED = Training(model="llama-3.1-8b", precision="bf16", gpus=2, seq_len=4096)


def test_files_of_several_tools_make_one_record_of_one_gpu() -> None:
    imported = import_files([POWER, ZEUS], steps=STEPS, training=TRAINED)

    assert {point.device.name for point in imported.measurements} == {"NVIDIA H100 80GB HBM3"}
    assert [point.imported.tool for point in imported.measurements] == ["nvidia-smi", "zeus", "zeus"]
    assert [point.seq for point in imported.measurements] == [0, 1, 2]
    assert len({point.probe_id for point in imported.measurements}) == 3


@pytest.mark.parametrize("files", [[POWER], [POWER, ZEUS]])
def test_the_document_agrees_with_its_schema(files: list[str]) -> None:
    imported = import_files(files, steps=STEPS, training=TRAINED)
    plain = json.loads(json.dumps(document(imported, "r.jsonl", calibration_rows(imported)), allow_nan=False))

    validator = Draft202012Validator(json.loads(file_of("mpplan.import/1").read_text(encoding="utf-8")))

    assert [fault.message for fault in validator.iter_errors(plain)] == []


def test_an_epoch_is_no_step_and_gives_its_power_alone() -> None:
    imported = import_files([ZEUS], gpu="h100-sxm5-80gb", training=Training(
        model="llama-3.1-8b", precision="bf16", gpus=2, seq_len=4096, global_batch=128
    ))  # fmt: skip

    assert [(row["metric"], row["id"]) for row in calibration_rows(imported)] == [
        ("step_time_s", "zeus-0-step_time_s"), ("avg_gpu_power_w", "zeus-0-avg_gpu_power_w"),
        ("avg_gpu_power_w", "zeus-1-avg_gpu_power_w"),
    ]  # fmt: skip


def test_a_model_that_looks_like_a_formula_stays_text_in_the_table_of_runs() -> None:
    imported = import_files([POWER], steps=STEPS, training=Training(
        model="=cmd()", precision="bf16", gpus=2, seq_len=4096
    ))  # fmt: skip

    assert ",'=cmd()," in runs_table(imported)


def test_rows_need_training() -> None:
    imported = import_files([POWER], steps=STEPS)

    with pytest.raises(UsageError, match="--model, --precision, --gpus, --seq-len must be known"):
        runs_table(imported)
