"""Measuring for the claims: a real run on this CPU, into a place of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from mpplan.api.claims.ledger import known_here
from mpplan.api.claims.record import (
    READ_BY,
    claims_dir,
    measure_claims,
    newest_claims_record,
    newest_training,
    workloads_for,
)
from planner.claims.ledger import DECIDERS
from planner.errors import CannotMeasureError
from planner.records.home import any_records
from probes.record.options import CLAIMS_SUITE, CLAIMS_WORKLOADS
from probes.session.listener import Silence
from probes.workloads import choose
from probes.workloads.end_to_end import EndToEnd
from tests.probes.build import CPU, H200, plan


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.parametrize("workloads", [("gemm",), pytest.param((), marks=pytest.mark.long)], ids=["one", "all"])
def test_what_was_measured_is_evidence_but_no_plan_rests_on_it(workloads):
    path, _ = measure_claims("cpu", 40.0, Silence(), workloads)
    record = newest_claims_record()

    assert record is not None
    assert str(record.path) == path
    assert record.path.parent == claims_dir()
    assert not any_records()
    known = known_here()
    assert known.record == record.name
    measured = {point.kind for point in known.points if point.status == "ok"}
    assert measured >= {"canary", "gemm"} | ({"optimizer"} if not workloads else set())


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


def test_only_the_workloads_that_the_chosen_claims_read_are_measured():
    assert workloads_for(["c32"]) == ("optimizer",)
    assert workloads_for(["c09", "c01"]) == ("gemm", "end-to-end")
    assert workloads_for(DECIDERS) == CLAIMS_WORKLOADS
    with pytest.raises(CannotMeasureError, match="no measurement says anything about c26"):
        workloads_for(["c26"])


def test_the_claims_that_read_a_workload_are_those_whose_deciders_do():
    """A decider that reads what was measured names `measured.` in its code; the table must name no other."""
    import inspect

    reading = {
        name for name, decider in DECIDERS.items()
        if "measured." in inspect.getsource(decider) and "claims" in decider.__module__
    }  # fmt: skip
    assert reading == {claim for claims in READ_BY.values() for claim in claims}


def test_the_newest_training_is_read_from_the_parts_beside_its_record():
    """What `mpplan numerics` leaves: a record of its lines, and the parts that its answer is made of."""
    import json

    from planner.records.home import records_dir
    from probes.numerics.session.document import ENDED, HEAD, SECTIONS, result_key, task_key
    from probes.numerics.session.parts import PART_SCHEMA, parts_path
    from tests.mpplan.api.claims.test_ledger import TRAINED, whole_document
    from tests.planner.recorded import a_measurement, write_record

    document = whole_document()
    path = write_record(records_dir() / "trained.jsonl", a_measurement(**TRAINED))
    names = ("mpplan", "device", "device_name", "size", "metric", "margin", "software", "precisions")
    head = {name: document[name] for name in names} | {
        "tasks": [task["id"] for task in document["tasks"]], "left_out": []
    }  # fmt: skip
    parts = {HEAD: head, ENDED: {"wall_s": 1.0}} | {task_key(task["id"]): task for task in document["tasks"]}
    for section in SECTIONS:
        for row in document[section]:
            parts[result_key(row["task"], section)] = row
    lines = [json.dumps({"schema": PART_SCHEMA, "key": key, "document": part}) for key, part in parts.items()]
    parts_path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

    trained = newest_training()
    assert trained is not None
    assert trained.source == "record trained"
    assert trained.flushing
    assert known_here().training == trained
    assert known_here().points == ()
