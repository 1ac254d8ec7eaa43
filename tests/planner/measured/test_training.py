"""What a record tells of precisions, read back from its lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.measured.training import precision_findings
from planner.records.check import check_record
from planner.records.jsonl import parse_line, read_measurements, to_line
from planner.records.measurement import Measurement
from planner.records.store import open_record, summarise
from tests.planner.recorded import a_measurement


def a_finding(**changes: object) -> Measurement:
    values: dict[str, object] = {
        "kind": "numerics", "probe_id": "numerics/char-lm/parity/fp8", "precision": "fp8", "recipe": "fp8",
        "time_median_s": None, "time_ci_low_s": None, "time_ci_high_s": None, "role": None,
        "numerics_task": "char-lm", "numerics_instrument": "parity", "numerics_baseline": "fp32",
        "numerics_emulated": True, "numerics_metric": "loss", "numerics_difference_low": -0.004,
        "numerics_difference_mid": -0.001, "numerics_difference_high": 0.002, "numerics_margin": 0.02,
        "numerics_verdict": "equivalent", "numerics_seeds": 4,
    }  # fmt: skip
    return a_measurement(**(values | changes))


def written(folder: Path, *points: Measurement) -> Path:
    path = folder / "numerics.jsonl"
    path.write_text("".join(f"{to_line(point)}\n" for point in points), encoding="utf-8")
    return path


def test_a_finding_comes_back_from_its_line_differences_below_zero_included(tmp_path: Path) -> None:
    file = read_measurements(written(tmp_path, a_finding()))

    (finding,) = precision_findings(file.measurements)

    assert (finding.precision, finding.recipe, finding.device_kind) == ("fp8", "fp8", "cpu")
    assert (finding.figures.difference_low, finding.figures.verdict) == (-0.004, "equivalent")
    assert finding.figures.emulated is True


def test_the_last_line_of_a_point_counts() -> None:
    first, second = a_finding(), a_finding(seq=1, numerics_verdict="cannot_tell")

    assert [row.figures.verdict for row in precision_findings([first, second])] == ["cannot_tell"]


def test_a_record_of_numerics_alone_can_be_trusted_and_gives_no_rates(tmp_path: Path) -> None:
    record = open_record(written(tmp_path, a_finding()))
    facts = summarise(record).facts

    assert check_record(record.file).trustworthy
    assert facts.numerics_only
    assert not facts.may_hold_rates


@pytest.mark.parametrize("schema", ["mpplan.probe/2", "mpplan.probe/1"])
def test_lines_of_earlier_formats_are_read(schema: str) -> None:
    line = json.dumps(json.loads(to_line(a_measurement())) | {"schema": schema})

    assert parse_line(line) == a_measurement()
