"""One run in this process: what it measured, and that verification comes after it or not at all."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from planner.errors import UsageError
from planner.records.jsonl import read_measurements
from probes.device.faults import DeviceLost
from probes.process import run as probe_run
from probes.record.options import Options


@pytest.fixture(autouse=True)
def machine_is_watched_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here asks how fast anything is."""
    monkeypatch.setattr("probes.device.canary_clock.OBSERVED_S", 0.1)


def options(path: object, **changes: object) -> Options:
    values = {"device": "cpu", "suite": "quick", "workloads": ("launch",), "precisions": ("fp32",), "path": str(path)}
    return Options(**(values | {"budget_s": 600.0} | changes))  # more than the usual 25 s: a busy machine takes longer


def test_a_run_measures_what_was_asked_and_closes_its_record(tmp_path) -> None:
    path = tmp_path / "r.jsonl"

    outcome = probe_run.run(options(path))

    ids = [point.probe_id for point in read_measurements(path).measurements]
    assert outcome.lost_device is None
    assert "launch/host" in ids
    assert outcome.points == len(ids)
    assert not path.with_name("r.jsonl.underway").exists()


def test_a_device_lost_while_verifying_keeps_what_was_measured(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(_session: object) -> None:
        raise DeviceLost("CUDA error: unspecified launch failure")

    monkeypatch.setattr(probe_run, "verify", lose)

    outcome = probe_run.run(options(tmp_path / "r.jsonl", workloads=("canary",), verify=True))

    assert outcome.lost_device == "CUDA error: unspecified launch failure"
    assert outcome.points == len(read_measurements(tmp_path / "r.jsonl").measurements) > 0


def test_an_unknown_workload_is_refused_before_a_record_is_made(tmp_path) -> None:
    with pytest.raises(UsageError, match="unknown workload"):
        probe_run.run(options(tmp_path / "r.jsonl", workloads=("gemmm",)))

    assert list(tmp_path.iterdir()) == []
