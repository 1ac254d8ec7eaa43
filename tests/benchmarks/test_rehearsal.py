"""The campaign's first command on the fake GPU, as on a machine with a GPU: cut off, and what it leaves.

`make long` runs it again to its end, `make campaign-rehearsal` all commands.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from planner.records.jsonl import read_measurements
from tests.benchmarks.rehearsal import Done, cut_off, rehearse, unreadable


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("campaign") / "out"


@pytest.fixture(scope="module")
def cut(out: Path) -> tuple[Done, int]:
    """How it was cut off, and how many lines it left."""
    done = cut_off("smoke", out)
    record = out / "quick.jsonl"
    return done, len(read_measurements(record).measurements) if record.exists() else 0


@pytest.fixture(scope="module")
def done(cut: tuple[Done, int], out: Path) -> Done:
    return rehearse("smoke", out)


def test_a_command_that_is_killed_leaves_what_can_be_read(cut: tuple[Done, int]) -> None:
    assert cut[0].code != 0
    assert cut[0].problems == []


@pytest.mark.long
def test_run_again_it_goes_on_and_finds_the_machine_fit(done: Done, cut: tuple[Done, int], out: Path) -> None:
    assert done.problems == []
    assert "stop:" not in done.stdout
    record = read_measurements(out / "quick.jsonl")
    assert len({point.run_id for point in record.measurements}) == 1
    assert len(record.measurements) > cut[1]
    assert record.measurements == read_measurements(out / "quick.jsonl.gz").measurements


def test_the_driver_and_the_doctor_tell_of_the_gpu(cut: tuple[Done, int], out: Path) -> None:
    findings = json.loads((out / "doctor.json").read_text(encoding="utf-8"))["findings"]

    assert "NVIDIA H200, 580.00" in (out / "smoke.log").read_text(encoding="utf-8")
    assert {row["what"] for row in findings if row["device"] == "GPU 0 (NVIDIA H200)" and not row["ok"]} == {"mxfp8"}


def test_a_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    (tmp_path / "limits.json").write_text('{"products": [', encoding="utf-8")
    (tmp_path / "quick.jsonl.gz").write_bytes(b"\x1f\x8b\x08")

    assert [problem.split(":")[0] for problem in unreadable(tmp_path)] == ["limits.json", "quick.jsonl.gz"]
