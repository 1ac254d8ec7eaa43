"""A compressed record among the package's own data is evidence of its own kind, after the user's."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from mpplan.api.answer import estimate
from planner.evidence import EvidenceKind
from planner.records import home, store
from planner.records.measurement import Measurement
from tests.planner.recorded import H200, a_canary, kernels, write_record


def compressed(path: Path, *points: Measurement) -> Path:
    """The record as a campaign leaves it: `name.jsonl.gz`."""
    plain = write_record(path.with_suffix(""), *points)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return path


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue with one record, and an empty store of the user's."""
    shipped = tmp_path / "catalog" / "records"
    for module in (home, store):
        monkeypatch.setattr(module, "SHIPPED", shipped)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    compressed(shipped / "h200.jsonl.gz", a_canary(**H200), *kernels())
    return tmp_path


def kinds_of_records() -> dict[str, EvidenceKind]:
    answer = estimate(params="7B", precision="bf16", gpu="h200-sxm-141gb", gpus=8)
    return {source.id: source.kind for source in answer.evidence if source.id.startswith("record:")}


def test_a_shipped_record_is_used_as_shipped_evidence(catalogue: Path) -> None:
    (record,) = [record for record in store.list_records() if record.gpu == "h200-sxm-141gb"]

    assert (record.name, record.shipped, record.facts.trustworthy) == ("h200", True, True)
    assert kinds_of_records() == {"record:0d0e5f0e": EvidenceKind.SHIPPED}


def test_the_users_own_record_of_that_gpu_comes_first(catalogue: Path) -> None:
    own = [replace(point, run_id="own") for point in (a_canary(**H200), *kernels())]
    write_record(catalogue / "data" / "mpplan" / "records" / "mine.jsonl", *own)

    assert kinds_of_records() == {"record:own": EvidenceKind.MEASURED}
