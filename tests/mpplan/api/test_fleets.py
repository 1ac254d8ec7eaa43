"""Fleets without a screen: the records as one, and their document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from mpplan.api.answer import estimate_briefly
from mpplan.api.fleets import document, join_records
from mpplan.ui.schema import file_of
from planner.evidence import EvidenceKind
from tests.planner.fleet.fleets import Gpu, points, write_fleet
from tests.planner.recorded import a_canary, kernels, write_record


def names(paths) -> list[str]:
    return [str(path) for path in paths]


def test_the_document_agrees_with_its_schema(tmp_path) -> None:
    paths = write_fleet(tmp_path, *(Gpu(),) * 6, Gpu(slower=1.1), Gpu(temperature_c=90.0, slower=1.05))
    more = write_record(tmp_path / "short.jsonl", *points(9, Gpu())[:-1])
    plain = json.loads(json.dumps(document(join_records(names([*paths, more])), "fleet.jsonl"), allow_nan=False))

    validator = Draft202012Validator(json.loads(file_of("mpplan.fleet/1").read_text(encoding="utf-8")))

    assert [fault.message for fault in validator.iter_errors(plain)] == []
    assert [outlier["name"] for outlier in plain["outliers"]] == ["node07", "node08"]
    assert plain["together"]["cost_ratio"] == pytest.approx(1.1)
    assert plain["merged"] == {"run_id": plain["merged"]["run_id"], "points": 13, "members": 9}
    assert plain["missing"] == [
        {"probe_id": "power/bf16", "kept": True, "lacking": [{"record": "short", "why": "not in the record"}]}
    ]


def test_a_plan_from_a_fleet_names_it_as_measured_and_is_as_slow_as_its_slowest_gpu(tmp_path) -> None:
    def node(number: int, slower: float) -> str:
        lines = [
            replace(
                point, run_id=f"run-{number}", time=replace(point.time, **{
                    name: value * slower
                    for name in ("median_s", "ci_low_s", "ci_high_s", "forward_median_s", "backward_median_s")
                    if (value := getattr(point.time, name)) is not None
                }),
            )
            for point in (a_canary(device_kind="cuda", device_name="NVIDIA H200", memory_total_bytes=150754820096.0),
                          *kernels())
        ]  # fmt: skip
        return str(write_record(tmp_path / f"node{number}.jsonl", *lines))

    fleet = join_records([node(1, 1.0), node(2, 1.25), node(3, 1.0)])
    merged = write_record(tmp_path / "fleet.jsonl", *fleet.measurements)

    def rate(record: str) -> float:
        answer = estimate_briefly(params="7B", precision="bf16", gpu="h200-sxm-141gb", gpus=8, records=record)
        (plan,) = [plan for plan in answer.plans if plan.precision == "bf16"]
        return plan.tokens_per_s_per_gpu.mid

    answer = estimate_briefly(params="7B", precision="bf16", gpu="h200-sxm-141gb", gpus=8, records=str(merged))
    (record,) = [source for source in answer.evidence if source.id.startswith("record:")]
    assert record.kind is EvidenceKind.MEASURED
    assert record.what == "slowest of 3 NVIDIA H200 measured with torch of unknown version"
    (notice,) = [message for message in answer.warnings if message.key == "warning.fleet_record"]
    assert dict(notice.values)["members"] == 3
    assert rate(str(merged)) == pytest.approx(rate(str(tmp_path / "node2.jsonl")), rel=0.01)
    assert rate(str(merged)) < 0.9 * rate(str(tmp_path / "node1.jsonl"))
