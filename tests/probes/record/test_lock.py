"""The lock on a record: one at a time, and nothing that a dead process leaves behind counts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.errors import UsageError
from probes.record.lock import RecordLock, must_be_free

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock until it is killed."""
    program = (
        "import sys, time; from pathlib import Path; from probes.record.lock import RecordLock;"
        "lock = RecordLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(300)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_who_comes_second_is_told_who_holds_it(path: Path, holder: subprocess.Popen[bytes]) -> None:
    with pytest.raises(UsageError, match=f"is being measured by process {holder.pid}$"):
        RecordLock(path)


def test_the_lock_of_a_killed_process_is_free_although_its_note_is_left(
    path: Path, holder: subprocess.Popen[bytes]
) -> None:
    holder.kill()
    holder.wait()
    assert path.with_name("r.jsonl.lock").exists()

    RecordLock(path).release()

    assert not path.with_name("r.jsonl.lock").exists()


def test_a_holder_on_another_machine_is_named_with_it(path: Path, holder: subprocess.Popen[bytes]) -> None:
    path.with_name("r.jsonl.lock").write_text(json.dumps({"pid": 7, "host": "elsewhere"}), encoding="utf-8")

    with pytest.raises(UsageError, match="process 7 on elsewhere"):
        RecordLock(path)


@pytest.mark.parametrize("note", ["", "{", "[]", "{}", '{"pid": "x", "host": 1}'])
def test_a_damaged_note_only_costs_the_name(path: Path, holder: subprocess.Popen[bytes], note: str) -> None:
    path.with_name("r.jsonl.lock").write_text(note, encoding="utf-8")

    with pytest.raises(UsageError, match="is being measured by another process"):
        RecordLock(path)


def test_a_released_record_can_be_taken_again_and_an_empty_one_is_not_left(path: Path) -> None:
    first = RecordLock(path)
    assert path.exists()
    first.release()
    first.release()
    assert list(path.parent.iterdir()) == []

    second = RecordLock(path)
    path.write_text("a line\n", encoding="utf-8")
    second.release()
    assert [place.name for place in path.parent.iterdir()] == ["r.jsonl"]


def test_a_record_is_free_once_its_writer_has_ended_and_asking_leaves_nothing_behind(
    path: Path, holder: subprocess.Popen[bytes]
) -> None:
    path.write_text("a line\n", encoding="utf-8")
    with pytest.raises(UsageError, match=f"is being measured by process {holder.pid}$") as error:
        must_be_free(path)
    assert error.value.hint == "wait until it has ended, or stop it first"

    holder.kill()
    holder.wait()
    path.with_name("r.jsonl.lock").unlink()
    must_be_free(path)
    must_be_free(path.with_name("none.jsonl"))

    RecordLock(path).release()
    assert list(path.parent.iterdir()) == [path]
