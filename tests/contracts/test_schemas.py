"""The published JSON Schemas are current, valid, and hold of everything that mpplan writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import mpplan
from mpplan.api.fitting import SCHEMA as FIT_SCHEMA
from mpplan.api.fitting import fit, to_fit_document
from mpplan.ui.schema import FOLDER, file_of
from planner.question.asked import Ask
from planner.records.jsonl import read_measurements, to_line
from reports.explain.text import to_json
from reports.explain.walk import FIGURES, explain
from reports.formats.json import render as as_json
from reports.page.build import build
from reports.page.comparison import build_comparison
from tests.reports import extras, sample
from tools.schemas.documents import DOCUMENTS, schema_of, written

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/reports/recorded/plan.json.gz"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_current_and_valid(name):
    schema = schema_of(name)

    assert file_of(name).read_text(encoding="utf-8") == written(schema), "run `make schema`"
    Draft202012Validator.check_schema(schema)


def test_every_schema_file_is_of_a_document_and_listed_in_the_docs():
    files = {file_of(name).name for name in DOCUMENTS}
    listed = (ROOT / "docs/report-schema.md").read_text(encoding="utf-8")

    assert {path.name for path in FOLDER.iterdir()} == files
    assert all(f"`{file}`" in listed for file in files)


def faults(document, name):
    """Where a document, as it would be written, does not agree with its schema; unknown keys count."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    validator = Draft202012Validator(json.loads(file_of(name).read_text(encoding="utf-8")))
    return [f"{fault.json_path}: {fault.message[:200]}" for fault in validator.iter_errors(plain)]


def test_what_fit_writes_agrees_with_its_schema():
    answer = fit(Ask(texts={"model": "llama-3.1-8b", "gpu": "rtx-4090,a100-sxm4-80gb", "seq_len": "512,4096"}))

    assert faults(to_fit_document(answer), FIT_SCHEMA) == []


QUESTIONS = (
    {"params": "70B", "precision": "fp8"},
    {"model": "llama-3.1-8b", "method": "lora", "gpus": 8},
    {"model": "llama-3.1-8b", "method": "dpo-qlora", "gpu": "auto", "examples": "1k", "lengths": 300},
    {"model": "qwen2.5-7b", "method": "freeze", "examples": "10k", "epochs": 2, "packed": True, "gpu": "l40s"},
    {"model": "llama-3.1-8b", "method": "qlora", "gpus": 8, "gpu": "a100-sxm4-80gb", "embodied": True},
    {"model": "mixtral-8x7b", "gpu": ["h100-sxm5-80gb", "b200-sxm-180gb"], "precision": "fp8", "tokens": "100B"},
    {"params": "70B", "power_cap": "1MW"},
    {"params": "7B", "gpus": 64, "deadline": "30d", "budget": 1e6, "market_grid": 0},
    {"params": "7B", "gpu": "v100-sxm2-32gb", "gpus": 64, "precision": "fp16"},
    {"params": "8B", "gpus": 64, "power_limit": "auto"},
)


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_every_answer_agrees_with_its_schema(asked):
    assert faults(mpplan.to_document(mpplan.estimate(**asked)), "mpplan.estimate/2") == []


def test_the_answers_of_the_tests_agree_with_the_schema():
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))

    assert faults(sample.document(), "mpplan.estimate/2") == []
    assert faults(sample.document() | extras.EXTRAS, "mpplan.estimate/2") == []
    assert faults(recorded, "mpplan.estimate/2") == []


@pytest.mark.parametrize("figure", FIGURES)
def test_every_explanation_agrees_with_its_schema(figure):
    assert faults(to_json(explain(sample.document(), figure)), "mpplan.explain/1") == []


def test_what_a_report_writes_as_json_agrees_with_its_schema():
    view = build(sample.document())
    compared = build_comparison(sample.document(), sample.document())

    assert faults(json.loads(as_json(view)), "mpplan.estimate/2") == []
    assert faults(json.loads(as_json(compared)), "mpplan.comparison/1") == []


def test_every_line_of_a_record_agrees_with_its_schema():
    file = read_measurements(ROOT / "tests/planner/records/probe_lines.jsonl")

    assert file.measurements
    for measurement in file.measurements:
        assert faults(json.loads(to_line(measurement)), "mpplan.probe/3") == []
