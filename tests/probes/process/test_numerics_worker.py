"""The process of `mpplan numerics`, for real: killed in the middle it goes on, and the answer has every section."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from planner.errors import MpplanError
from planner.records.jsonl import read_measurements
from probes.numerics.session.document import SECTIONS, numerics_document
from probes.numerics.session.options import NumericsOptions
from probes.numerics.session.parts import parts_path, read_parts
from probes.process.client import run_in_process
from probes.session.listener import Silence
from tests.probes.process.waiting import LIMIT_S, wait_for_lines

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def needs_torch() -> None:
    pytest.importorskip("torch")


def start(record: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mpplan", "numerics", "--device", "cpu", "-o", str(record), "--json", *arguments]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"XDG_DATA_HOME": str(record.parent / "data"), "PYTHONPATH": path}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )


def kept_in(record: Path) -> dict[str, dict[str, object]]:
    """What is finished and not yet an answer: what a run goes on from."""
    return {key: part for key, part in read_parts(parts_path(record)).items() if key.startswith("loss_scaling")}


TASK = """
import torch

def make(seed):
    generator = torch.Generator().manual_seed(seed)
    x, w = torch.randn(128, 16, generator=generator), torch.randn(16, 1, generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    return model, [(x, x @ w)], lambda model, batch: torch.nn.functional.mse_loss(model(batch[0]), batch[1])
"""
"""So small that a run of it ends when everything is answered, long before its time is used up on any machine."""


def test_a_killed_run_goes_on_from_what_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numerics_worker_task.py").write_text(TASK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    record = tmp_path / "r.jsonl"
    asked = ("--task", "numerics_worker_task:make", "--precision", "bf16", "--seeds", "3", "--budget", "10m")
    process = start(record, *asked)
    try:
        wait_for_lines(parts_path(record), 6, process)
    finally:
        process.kill()
        process.communicate()
    before = kept_in(record)
    assert before

    resumed = start(record, "--resume", "--budget", "10m")
    printed, stderr = resumed.communicate(timeout=LIMIT_S)

    assert resumed.returncode == 0, stderr
    after = kept_in(record)
    assert {key: after[key] for key in before} == before  # not measured anew
    document = json.loads(printed)
    assert document["schema"] == "mpplan.numerics/1"
    assert document["complete"]
    assert [len(document[section]) for section in SECTIONS] == [1] * len(SECTIONS)
    assert read_measurements(record).measurements


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)], ids=["SIGINT", "SIGTERM"]
)
def test_an_interruption_ends_with_130_and_names_the_record(tmp_path: Path, number: signal.Signals) -> None:
    record = tmp_path / "r.jsonl"
    process = start(record, "--task", "char-lm", "--budget", "10m")
    try:
        wait_for_lines(parts_path(record), 6, process)
        process.send_signal(number)
        printed, stderr = process.communicate(timeout=LIMIT_S)
    finally:
        with suppress(ProcessLookupError):
            process.kill()

    assert process.returncode == 130
    assert "hint: what was measured is in" in stderr
    assert "mpplan numerics --resume" in stderr
    assert json.loads(printed)["complete"] is False


def test_the_parent_hears_of_a_mistake_and_never_imports_torch(tmp_path: Path) -> None:
    with pytest.raises(MpplanError, match="cannot import `no_such_module`") as caught:
        run_in_process(
            NumericsOptions(device="cpu", tasks=("no_such_module:make",), path=str(tmp_path / "r.jsonl")), Silence()
        )
    assert caught.value.exit_code == 2
    program = (
        "import sys; from probes.process.client import run_in_process;"
        "from probes.numerics.session.options import NumericsOptions; from probes.session.listener import Silence;"
        f"run_in_process(NumericsOptions(device='cpu', tasks=('char-lm',), budget_s=1.0,"
        f" path={str(tmp_path / 's.jsonl')!r}), Silence());"
        "print(sorted({'torch', 'transformers', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.strip() == "[]"
    document = numerics_document(read_parts(parts_path(tmp_path / "s.jsonl")), None)
    assert document["cut_short"]  # a second is too short for everything, and that is said
