"""The record as it grows: one line per point, written through to the disk, so that nothing measured is ever lost."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from planner.errors import UsageError
from planner.records.jsonl import to_line
from planner.records.measurement import Measurement
from probes.sensors.interface import Reading, State, Trace

TRACE_SCHEMA = "mpplan.trace/1"


class RecordWriter:
    """Appends measurements to a record and its copies, and traces to files beside them."""

    def __init__(self, *paths: Path) -> None:
        """Open for appending; a last line that was cut off is removed first.

        Args:
            paths: the record, and copies of it that are written along.

        Raises:
            UsageError: a place cannot be written.
        """
        self.paths = paths
        self._files: list[TextIO] = []
        for path in paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists():
                    mend(path)
                self._files.append(path.open("a", encoding="utf-8"))
            except OSError as error:
                raise UsageError(f"cannot write `{path}`: {error.strerror}", hint="choose another path") from error

    def add(self, measurement: Measurement) -> None:
        """Write one line and wait until the disk has it."""
        for file in self._files:
            _through(file, to_line(measurement))

    def add_trace(self, run_id: str, probe_id: str, trace: Trace) -> None:
        """Write the readings of a sensor during one point, as columns."""
        if not trace.readings:
            return
        document = {
            "schema": TRACE_SCHEMA,
            "run_id": run_id,
            "probe_id": probe_id,
            "readings": {f.name: [getattr(r, f.name) for r in trace.readings] for f in fields(Reading)},
            "states": {f.name: [getattr(s, f.name) for s in trace.states] for f in fields(State)},
        }
        for path in self.paths:
            with trace_path(path).open("a", encoding="utf-8") as file:
                _through(file, json.dumps(document, separators=(",", ":")))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


class UnderWay:
    """Remembers on disk which points are being measured, so that the next process knows which ones killed this one."""

    def __init__(self, record: Path) -> None:
        self._path = record.with_name(record.name + ".underway")

    def begin(self, probe_ids: Sequence[str]) -> None:
        """Note the points that are about to be measured."""
        self._path.write_text(json.dumps(list(probe_ids)), encoding="utf-8")

    def end(self) -> None:
        """Forget them: they are done, or were interrupted from outside."""
        self._path.unlink(missing_ok=True)

    def left_behind(self) -> tuple[str, ...]:
        """Points that were under way when the last process died."""
        try:
            return tuple(json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, json.JSONDecodeError):
            return ()


def trace_path(path: Path) -> Path:
    """Where the traces of a record live: `name.trace.jsonl` beside `name.jsonl`."""
    return path.with_name(f"{path.name.removesuffix('.gz').removesuffix('.jsonl')}.trace.jsonl")


def _through(file: TextIO, line: str) -> None:
    file.write(line + "\n")
    file.flush()
    os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Cut an unfinished last line off, as power loss leaves it."""
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole != len(content):
            file.truncate(whole)


def read_traces(path: Path) -> dict[str, Trace]:
    """Traces by probe id, from `name.trace.jsonl` or its `.gz`; unreadable lines are left out."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    traces: dict[str, Trace] = {}
    for line in data.decode("utf-8", errors="replace").splitlines():
        try:
            document = json.loads(line)
        except json.JSONDecodeError:
            continue
        if document.get("schema") == TRACE_SCHEMA:
            traces[document["probe_id"]] = Trace(
                readings=tuple(Reading(**row) for row in _rows(document["readings"])),
                states=tuple(State(**row) for row in _rows(document["states"])),
            )
    return traces


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
