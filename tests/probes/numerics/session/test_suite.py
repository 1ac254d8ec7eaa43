"""A whole run of a small task: every section, the record, and a run that goes on from another."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.measured.training import precision_findings
from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement
from probes.numerics.session.document import SECTIONS, numerics_document
from probes.numerics.session.options import NumericsOptions
from probes.numerics.session.parts import parts_path, read_parts
from probes.record.writer import UnderWay

torch = pytest.importorskip("torch")

from probes.numerics.session.suite import NumericsSession  # noqa: E402 - it needs torch
from probes.session.listener import Silence  # noqa: E402
from tests.probes.fake_cuda.board import Board  # noqa: E402
from tests.probes.fake_cuda.installed import fake_cuda  # noqa: E402

MODULE = """
import torch

def make(seed):
    generator = torch.Generator().manual_seed(seed)
    x, w = torch.randn(128, 16, generator=generator), torch.randn(16, 1, generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    return model, [(x, x @ w)], lambda model, batch: torch.nn.functional.mse_loss(model(batch[0]), batch[1])

def breaks(seed):
    model, batches, _ = make(seed)
    return model, batches, lambda model, batch: model(batch[0][:, :3]).sum()

def explodes(seed):
    return (*make(seed), lambda parameters: torch.optim.SGD(parameters, lr=1e6))

def loses(seed):
    model, batches, _ = make(seed)
    def loss(model, batch):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return model, batches, loss
"""


AMPLE_S = 600.0
"""So much that even on a slow machine a run of so small a task ends when everything is answered."""


class Heard(Silence):
    def __init__(self) -> None:
        self.labels: list[str] = []
        self.lines: list[str] = []

    def started(self, progress: object) -> None:
        self.labels.append(progress.label)  # type: ignore[attr-defined]

    def measured(self, measurement: Measurement) -> None:
        self.lines.append(measurement.probe_id)


@pytest.fixture(autouse=True)
def own_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numerics_suite_task.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def options(folder: Path, **changes: object) -> NumericsOptions:
    values: dict[str, object] = {
        "device": "cpu", "tasks": ("numerics_suite_task:make",), "precisions": ("bf16", "fp8"), "budget_s": AMPLE_S,
        "path": str(folder / "r.jsonl"), "seeds": 3,
    }  # fmt: skip
    return NumericsOptions(**(values | changes))  # type: ignore[arg-type]


def run(asked: NumericsOptions) -> Heard:
    heard = Heard()
    session = NumericsSession(asked, heard)
    try:
        session.run()
    finally:
        session.close()
    return heard


def test_a_run_answers_every_section_and_a_second_one_has_nothing_left_to_do(tmp_path: Path) -> None:
    heard = run(options(tmp_path))
    parts = read_parts(parts_path(tmp_path / "r.jsonl"))
    document = numerics_document(parts, "r.jsonl")

    assert [len(document[section]) for section in SECTIONS] == [1] * len(SECTIONS)
    assert [label.split(", ")[1] for label in heard.labels[:6]] == [name.replace("_", " ") for name in SECTIONS]
    findings = precision_findings(read_measurements(tmp_path / "r.jsonl").measurements)
    advised = {"policy"} if document["policy"][0]["verdict"] in ("within", "none_within") else set()
    assert {finding.figures.instrument for finding in findings} == {"loss-scaling", "parity"} | advised
    assert {finding.figures.task for finding in findings} == {"own"}
    assert heard.lines == [finding.probe_id for finding in findings]
    assert document["complete"]
    resumed = run(options(tmp_path, resume=True, tasks=None, precisions=None, seeds=None))
    assert resumed.labels == []


def test_a_part_that_was_under_way_in_a_crash_is_left_out_once_and_tried_again_by_the_user(tmp_path: Path) -> None:
    asked = options(tmp_path, budget_s=1.0)
    run(asked)
    lines = parts_path(tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not json.loads(line)["key"].startswith(("result", "parity"))]
    parts_path(tmp_path / "r.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    key = "result/numerics_suite_task:make/parity"
    UnderWay(tmp_path / "r.jsonl").begin([key])

    after_crash = run(options(tmp_path, resume=True, skip_failed=True, budget_s=2.0))
    document = numerics_document(read_parts(parts_path(tmp_path / "r.jsonl")), None)
    assert not any("parity" in label for label in after_crash.labels)
    assert "numerics_suite_task:make: parity: the process died in it" in document["cut_short"]

    by_user = run(options(tmp_path, resume=True, budget_s=4.0))
    assert any("parity" in label for label in by_user.labels)
    document = numerics_document(read_parts(parts_path(tmp_path / "r.jsonl")), None)
    assert len(document["parity"]) == 1


def test_a_resumed_run_must_ask_for_the_same(tmp_path: Path) -> None:
    run(options(tmp_path, budget_s=1.0))

    with pytest.raises(UsageError, match=r"--margin: the record was started with `0\.02`, not `0\.5`"):
        NumericsSession(options(tmp_path, resume=True, margin=0.5))
    with pytest.raises(UsageError, match="exists already"):
        NumericsSession(options(tmp_path))


def test_what_a_run_left_beside_a_record_without_a_line_is_gone_on_from_only_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    run(options(tmp_path, budget_s=1.0))
    (tmp_path / "r.jsonl").unlink()

    with pytest.raises(UsageError, match=r"r\.parts\.jsonl` exists already"):
        NumericsSession(options(tmp_path))

    resumed = NumericsSession(options(tmp_path, resume=True))
    resumed.close()


def interrupted(folder: Path, asked: NumericsOptions) -> None:
    """Leave what a run leaves that was killed after its first part, before the record had a line."""
    session = NumericsSession(asked)
    session.parts.add("parity/numerics_suite_task:make/0", {"kept": True})
    session.close()


def test_a_run_is_not_gone_on_from_on_another_gpu_even_if_no_line_of_its_record_names_the_first(tmp_path: Path) -> None:
    with fake_cuda(board=Board(number=0, index=0, count=1), whole_models=False):
        interrupted(tmp_path, options(tmp_path, device="cuda"))
    left = parts_path(tmp_path / "r.jsonl").read_text(encoding="utf-8")
    with (
        fake_cuda(board=Board(number=1, index=0, count=1), whole_models=False),
        pytest.raises(UsageError, match=r"started with device_hash `[0-9a-f]+`, this is `[0-9a-f]+`") as error,
    ):
        NumericsSession(options(tmp_path, device="cuda", resume=True))

    assert error.value.hint == "start a new record without `--resume`"
    assert parts_path(tmp_path / "r.jsonl").read_text(encoding="utf-8") == left


def test_parts_of_before_device_and_driver_were_kept_still_name_the_device(tmp_path: Path) -> None:
    interrupted(tmp_path, options(tmp_path))
    path = parts_path(tmp_path / "r.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    head = next(line["document"] for line in lines if line["key"] == "head")
    del head["begun_on"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    NumericsSession(options(tmp_path, resume=True)).close()

    head["device_name"] = "AMD EPYC 7763"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(UsageError, match="started with device_name `AMD EPYC 7763`, this is"):
        NumericsSession(options(tmp_path, resume=True))


def test_a_task_that_fails_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`numerics_suite_task:breaks` failed in the first steps"):
        run(options(tmp_path, tasks=("numerics_suite_task:breaks",)))

    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("r.")] == []


def test_a_task_that_fp32_does_not_train_either_says_nothing_of_fp16(tmp_path: Path) -> None:
    task = "numerics_suite_task:explodes"

    with pytest.raises(UsageError, match=f"`{task}`: FP32 itself does not train it: the loss grows from"):
        run(options(tmp_path, tasks=(task,)))

    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("r.")] == []


@pytest.mark.long
def test_a_task_that_fp32_did_not_train_is_tried_anew_once_it_is_mended_beside_what_others_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = "numerics_suite_task:explodes"
    asked = options(tmp_path, tasks=("numerics_suite_task:make", task), precisions=("bf16",))
    with pytest.raises(UsageError, match="FP32 itself does not train it"):
        run(asked)
    kept = read_parts(tmp_path / "r.parts.jsonl")
    assert {key for key in kept if task in key} == {f"task/{task}"}
    assert any("numerics_suite_task:make" in key for key in kept)
    assert not (tmp_path / "r.jsonl.underway").exists()

    monkeypatch.setattr("numerics_suite_task.explodes", importlib.import_module("numerics_suite_task").make)
    run(replace(asked, resume=True))

    assert any(key.startswith(f"loss_scaling/{task}/") for key in read_parts(tmp_path / "r.parts.jsonl"))


def test_tasks_for_which_the_budget_is_too_small_are_named(tmp_path: Path) -> None:
    session = NumericsSession(options(tmp_path, tasks=None, budget_s=1.0))
    try:
        head = session.parts.known["head"]
    finally:
        session.close()

    assert head["tasks"] == ["char-lm"]
    assert any(text.startswith("masked-lm: the budget holds fewer tasks") for text in head["left_out"])


def test_a_gpu_that_is_lost_in_a_task_ends_the_run_as_that_and_not_as_the_tasks_fault(tmp_path: Path) -> None:
    with fake_cuda(whole_models=False):
        session = NumericsSession(options(tmp_path, device="cuda", tasks=("numerics_suite_task:loses",)))
        try:
            lost = session.run().lost_device
        finally:
            session.close()

    assert lost == "RuntimeError: CUDA error: an illegal memory access was encountered"


def test_the_requested_gpu_is_the_current_one_for_tasks_that_name_none(tmp_path: Path) -> None:
    with fake_cuda(board=Board(number=1, index=1, count=2), whole_models=False) as gpu:
        NumericsSession(options(tmp_path, device="cuda", gpu_index=1)).close()

    assert gpu.is_current
