"""Measuring for the claims: a real run on this CPU, into a place of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from mpplan.api.claim_ledger import known_here
from mpplan.api.claim_record import claims_dir, measure_claims, newest_claims_record
from planner.records.home import any_records
from probes.record.options import CLAIMS_SUITE, CLAIMS_WORKLOADS
from probes.session.listener import Silence
from probes.workloads import choose
from probes.workloads.end_to_end import EndToEnd
from tests.probes.build import CPU, H200, plan


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.slow
def test_what_was_measured_is_evidence_but_no_plan_rests_on_it():
    path, _ = measure_claims("cpu", 12.0, Silence())
    record = newest_claims_record()

    assert record is not None
    assert str(record.path) == path
    assert record.path.parent == claims_dir()
    assert not any_records()
    known = known_here()
    assert known.record == record.name
    assert {point.kind for point in known.points} >= {"canary", "optimizer"}


def test_where_nothing_was_measured_there_is_no_record():
    assert newest_claims_record() is None
    assert known_here().points == ()


@pytest.mark.parametrize("device", [CPU, H200], ids=["cpu", "gpu"])
def test_the_suite_has_the_claims_models_with_and_without_recomputation(device):
    names = [group.name for group in EndToEnd().groups(plan(device, suite=CLAIMS_SUITE))]

    assert any("resnet-50" in name for name in names)
    assert sum("bert-large" in name for name in names) == 2
    assert sum(name.endswith("+recompute") for name in names) == 2


def test_its_workloads_have_points_on_both_kinds_of_device():
    for device in (CPU, H200):
        for workload in choose(CLAIMS_WORKLOADS):
            if workload.name != "canary":
                assert any(group.points for group in workload.groups(plan(device, suite=CLAIMS_SUITE)))
