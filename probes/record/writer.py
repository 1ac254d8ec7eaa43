"""The growing record: one line per point, written through to disk, so that no measurement is ever lost."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TextIO

from planner.errors import UsageError
from planner.records.jsonl import to_line
from planner.records.measurement import Measurement
from probes.sensors.interface import Reading, State, Trace

TRACE_SCHEMA = "mpplan.trace/1"


class RecordWriter:
    """Appends measurements to a record and its copies, and traces to files beside them.

    The record itself must be written; a copy that cannot be written is given up, and the run continues.
    """

    def __init__(self, path: Path, copies: Sequence[Path] = (), noted: Callable[[str], None] | None = None) -> None:
        """Open the files for appending, after removing a truncated last line.

        Args:
            path: the record.
            copies: copies of the record that are written as well.
            noted: is notified of a copy that is given up.

        Raises:
            UsageError: the record cannot be written.
        """
        self._noted = noted or (lambda _: None)
        self.path = path
        self._files: dict[Path, TextIO] = {}
        self._untraced: set[Path] = set()
        for place in (path, *copies):
            try:
                self._files[place] = _opened(place)
            except OSError as error:
                self._failed(place, error)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths at which the record is written."""
        return tuple(self._files)

    def add(self, measurement: Measurement) -> None:
        """Write one line and wait until it is on disk.

        Raises:
            UsageError: the record can no longer be written; its complete lines are kept.
        """
        line = to_line(measurement)
        for place, file in list(self._files.items()):
            try:
                _through(file, line)
            except OSError as error:
                self._give_up(place)
                self._failed(place, error)

    def add_trace(self, run_id: str, probe_id: str, trace: Trace) -> None:
        """Write a sensor's readings during one point, as columns; if they cannot be written, the record continues."""
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
            if path in self._untraced:
                continue
            try:
                with trace_path(path).open("a", encoding="utf-8") as file:
                    _through(file, json.dumps(document, separators=(",", ":")))
            except OSError as error:
                self._untraced.add(path)
                self._noted(f"no more sensor readings are kept in `{trace_path(path)}`: {error.strerror}")

    def close(self) -> None:
        """Close the files."""
        for place in self.paths:
            self._close(place)

    def _give_up(self, place: Path) -> None:
        """Close a file that can no longer be written, and cut off its incomplete last line."""
        self._close(place)
        with suppress(OSError):
            mend(place)

    def _close(self, place: Path) -> None:
        with suppress(OSError):  # the buffer still holds the line that could not be written
            self._files.pop(place).close()

    def _failed(self, place: Path, error: OSError) -> None:
        """Stop if the record itself cannot be written; continue without a copy.

        Raises:
            UsageError: `place` is the record.
        """
        if place != self.path:
            self._noted(f"the copy in the store is given up: cannot write `{place}`: {error.strerror}")
            return
        raise unwritable(place, error) from error


def unwritable(path: Path, error: OSError) -> UsageError:
    """Return the error for a record that cannot be written, or can no longer be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        hint = "make room, then continue with `--resume`: what was measured until then is kept"
    else:
        hint = "choose another path with `-o`"
    return UsageError(f"cannot write `{path}`: {error.strerror}", hint=hint)


def _opened(path: Path) -> TextIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        mend(path)
    return path.open("a", encoding="utf-8")


class UnderWay:
    """Records on disk which points are being measured, so that the next process knows which ones killed this one."""

    def __init__(self, record: Path) -> None:
        self._path = record.with_name(record.name + ".underway")
        self._before = self.left_behind()

    def begin(self, probe_ids: Sequence[str]) -> None:
        """Note the points about to be measured; if this cannot be written, the record will soon report the problem."""
        with suppress(OSError):
            note = {"points": list(probe_ids), "before": list(self._before)}
            self._path.write_text(json.dumps(note), encoding="utf-8")

    def end(self) -> None:
        """Remove the note: the points are done, or were interrupted from outside."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def left_behind(self) -> tuple[str, ...]:
        """Return the points that were under way when the last process died."""
        return self._noted("points")

    def left_behind_twice(self) -> tuple[str, ...]:
        """Return the points that were under way both then and when the process before that died.

        A process that is killed from outside, for example with its machine, did not die of a point; dying twice during
        the same point is no coincidence.
        """
        before = self._noted("before")
        return tuple(name for name in self.left_behind() if name in before)

    def _noted(self, key: str) -> tuple[str, ...]:
        try:
            return tuple(json.loads(self._path.read_text(encoding="utf-8"))[key])
        except (OSError, ValueError, TypeError, KeyError):
            return ()


def trace_path(path: Path) -> Path:
    """Return the path of a record's traces: `name.trace.jsonl` beside `name.jsonl`."""
    return path.with_name(f"{path.name.removesuffix('.gz').removesuffix('.jsonl')}.trace.jsonl")


def _through(file: TextIO, line: str) -> None:
    file.write(line + "\n")
    file.flush()
    os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Cut off an incomplete last line, as power loss leaves it; a path that is not a regular file is left alone."""
    if not path.is_file():
        return
    with path.open("rb+") as file:
        size = whole = file.seek(0, os.SEEK_END)
        while whole:
            start = max(0, whole - BLOCK_BYTES)
            file.seek(start)
            whole = start + file.read(whole - start).rfind(b"\n") + 1
            if whole > start:
                break
        if whole != size:
            file.truncate(whole)


BLOCK_BYTES = 65_536
"""Bytes that are read at a time from the end of a record, which may be large."""
