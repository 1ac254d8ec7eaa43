"""Files of a record: a cut-off line is removed, traces come back as they were written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probes.record.writer import RecordWriter, mend, read_traces, trace_path
from probes.sensors.interface import Reading, State, Trace

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


def test_a_trace_reads_back_as_it_was_written_also_compressed(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r.jsonl")
    writer.add_trace("run", "power/fp8", TRACE)
    writer.add_trace("run", "power/none", Trace())
    writer.close()
    path = tmp_path / "r.trace.jsonl"
    packed = tmp_path / "packed.trace.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes() + b"{cut off"))

    assert read_traces(path) == {"power/fp8": TRACE}  # nothing is written for a trace without readings
    assert read_traces(packed) == {"power/fp8": TRACE}
