"""A record in short: what the index holds, and why a record is of no use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.measured.device import measured_rates
from planner.records.store import open_record, summarise
from planner.records.summary import RecordFacts, catalogue_id, facts_document, facts_from
from tests.planner.recorded import H200, a_canary, a_measurement, write_record


def test_the_facts_come_back_from_json_as_they_were(tmp_path: Path) -> None:
    record = open_record(write_record(tmp_path / "r.jsonl", a_canary(**H200), a_measurement(**H200)))
    facts = summarise(record).facts

    assert facts_from(json.loads(json.dumps(facts_document(facts)))) == facts
    assert (facts.points, facts.precisions, facts.gpu) == (2, ("bf16",), "h200-sxm-141gb")


def test_the_power_limit_is_known_although_the_last_point_failed(tmp_path: Path) -> None:
    capped, failed = H200 | {"power_limit_w": 500.0}, H200 | {"power_limit_w": None, "status": "oom"}
    points = [a_measurement(**capped), a_measurement(**failed, probe_id="verify/large", kind="verify")]

    facts = summarise(open_record(write_record(tmp_path / "r.jsonl", *points))).facts

    assert facts.power_limit_w == 500.0
    assert measured_rates(points).power_limit_w == 500.0


@pytest.mark.parametrize("change", [{"points": "2"}, {"date": 3}, {"precisions": "bf16"}, {"more": 1}])
def test_what_is_no_such_document_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        facts_from(facts_document(RecordFacts()) | change)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", None), ("{}\n", "line 1: schema: expected `mpplan.probe/3`, found `None`")],
)
def test_a_record_of_no_use_says_why_and_one_that_has_just_begun_is_not_at_fault(
    tmp_path: Path, text: str, problem: str | None
) -> None:
    (tmp_path / "r.jsonl").write_text(text, encoding="utf-8")

    assert summarise(open_record(tmp_path / "r.jsonl")).facts.problem == problem


def test_a_device_is_found_by_what_its_driver_says() -> None:
    assert catalogue_id("cuda", "NVIDIA H200", 150754820096.0, 700.0) == "h200-sxm-141gb"
    assert catalogue_id("cuda", "NVIDIA Z900", 1e12, None) is None
    assert catalogue_id("cpu", "Some CPU", None, None) == "cpu-local"
    assert catalogue_id(None, None, None, None) is None
