"""Files of a record: a cut-off line is removed, traces come back as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import UsageError
from probes.record.writer import RecordWriter, mend, trace_path
from probes.sensors.interface import Reading, State, Trace
from tests.planner.recorded import a_measurement
from tests.probes.record.traces import read_traces

TRACE = Trace(
    readings=(
        Reading(time_s=0.0, energy_j=None, power_instant_w=690.5, power_average_w=None),
        Reading(time_s=0.1, energy_j=70.25, power_instant_w=None, power_average_w=688.0),
    ),
    states=(State(time_s=0.0, temperature_c=61.0, clock_event_mask=4),),
)


@pytest.mark.parametrize(("before", "after"), [(b"a\nb\n", b"a\nb\n"), (b"a\nb", b"a\n"), (b"a", b""), (b"", b"")])
def test_only_an_unfinished_last_line_is_cut_off(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(before)

    mend(path)

    assert path.read_bytes() == after


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_traces_are_kept_beside_the_record(name: str) -> None:
    assert trace_path(Path("folder") / name) == Path("folder/r.trace.jsonl")


def test_a_trace_reads_back_as_it_was_written(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r.jsonl")
    writer.add_trace("run", "power/fp8", TRACE)
    writer.add_trace("run", "power/none", Trace())
    writer.close()

    # nothing is written for a trace without readings
    assert read_traces(tmp_path / "r.trace.jsonl") == {"power/fp8": TRACE}


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")


@FULL
def test_a_record_on_a_full_disk_is_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").symlink_to("/dev/full")
    writer = RecordWriter(tmp_path / "r.jsonl")

    with pytest.raises(UsageError, match="No space left on device") as caught:
        writer.add(a_measurement())

    assert "continue with `--resume`" in str(caught.value.hint)
    writer.close()


@FULL
def test_a_copy_on_a_full_disk_is_given_up_once_and_the_record_goes_on(tmp_path: Path) -> None:
    (tmp_path / "copy.jsonl").symlink_to("/dev/full")
    notes: list[str] = []
    writer = RecordWriter(tmp_path / "r.jsonl", [tmp_path / "copy.jsonl"], notes.append)

    for number in range(3):
        writer.add(a_measurement(seq=number))
    writer.close()

    assert len((tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    (note,) = notes
    assert note.startswith("the copy in the store is given up")


def test_traces_that_find_no_room_cost_no_point(tmp_path: Path) -> None:
    (tmp_path / "r.trace.jsonl").mkdir()
    notes: list[str] = []
    writer = RecordWriter(tmp_path / "r.jsonl", noted=notes.append)

    for _ in range(2):
        writer.add_trace("run", "power/fp8", TRACE)
    writer.add(a_measurement())
    writer.close()

    assert len((tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b"a\nb\n", b"a\nb\n"),
        (b"a\nb", b"a\n"),
        (b"a\n" + b"x" * 200_000, b"a\n"),
        (b"x" * 200_000, b""),
        (b"a\n" * 40_000 + b"cut", b"a\n" * 40_000),
        (b"", b""),
    ],
    ids=["whole", "cut", "long cut", "one cut line", "many lines", "empty"],
)
def test_an_unfinished_last_line_is_cut_off(tmp_path: Path, content: bytes, kept: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)

    mend(path)

    assert path.read_bytes() == kept
