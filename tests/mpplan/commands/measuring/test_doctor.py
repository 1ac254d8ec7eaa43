"""`mpplan doctor`: what this machine can measure, and what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from probes.session import doctor
from probes.session.doctor import DoctorFinding

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="module")
def document() -> Any:
    """What `mpplan doctor --json` prints, from this machine as it is."""
    command = (sys.executable, "-m", "mpplan", "doctor", "--json")
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs_torch
def test_doctor_says_what_this_machine_measures_precision_by_precision(document: Any) -> None:
    cpu = [row for row in document["findings"] if row["topic"] == "precisions" and "CPU" in row["device"]]
    precisions = {row["what"]: row for row in cpu}
    assert document["schema"] == "mpplan.doctor/1"
    assert precisions["fp32"]["ok"]
    assert precisions["bf16-autocast"]["ok"]
    assert not precisions["tf32"]["ok"]
    assert "TF32" in precisions["tf32"]["detail"]


def test_doctor_without_torch_says_what_to_install(run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "torch" else real(name))

    result = run("doctor")

    assert result.code == 0
    assert "✗ torch" in result.out
    assert "pip install 'mpplan[probe]'" in result.out


def test_doctor_fits_a_narrow_terminal(run, document: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same findings, since to examine the machine a second time would take seconds."""
    findings = tuple(DoctorFinding(**row) for row in document["findings"])
    monkeypatch.setattr(doctor, "examine", lambda: findings)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = run("doctor").out
    monkeypatch.setenv("COLUMNS", "400")
    wide = run("doctor").out

    assert max(map(len, wide.splitlines())) > 80
    assert all(len(line) <= 40 or " " not in line.strip() for line in narrow.splitlines())
    assert narrow.split() == wide.split()
