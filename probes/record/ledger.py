"""The record of a run: where it lies, what it holds already, and what is still to be measured."""

from __future__ import annotations

import re
import shutil
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.errors import UsageError
from planner.records.check import doubtful
from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement
from probes.record.options import Options
from probes.record.provenance import SUITE_VERSION
from probes.record.writer import RecordWriter, UnderWay, mend
from probes.sensors.interface import Trace
from probes.timing.trial import Point

_SAME = ("device_name", "device_hash", "torch_version", "driver_version")
"""Fields that must agree for a record to be continued."""


class Ledger:
    """One record, open for writing."""

    def __init__(self, options: Options, facts: Mapping[str, Any]) -> None:
        """Begin a record, or go on with one.

        Args:
            options: say where.
            facts: provenance fields of every line.

        Raises:
            UsageError: the record exists and is not to be resumed, is of another device, or cannot be written.
        """
        self._options = options
        self._facts = facts
        earlier = self._earlier()
        self.known: dict[str, Measurement] = {one.probe_id: one for one in earlier}
        """Last line of each probe id."""
        self.run_id = earlier[0].run_id if earlier else str(uuid.uuid4())
        self.written = 0
        self._next = max((one.seq for one in earlier), default=-1) + 1
        paths = self._paths()
        self.path = paths[0]
        self._writer = RecordWriter(*paths)
        self.under_way = UnderWay(self.path)

    def write(self, point: Point, fields: Mapping[str, Any], trace: Trace | None = None) -> Measurement:
        """Add a line, and what the sensor told if there is a trace."""
        values: dict[str, Any] = {
            **self._facts,
            "run_id": self.run_id,
            "probe_id": point.probe_id,
            "seq": self._next,
            "kind": point.kind,
            "workload": point.workload,
            "precision": point.recipe.precision,
            "recipe": point.recipe.id,
            "seed": self._options.seed,
            **point.facts,
            "timestamp_utc": _now().isoformat(timespec="milliseconds"),
            "monotonic_s": time.monotonic(),
            **fields,
        }
        measurement = Measurement(**values)
        if trace is not None:
            self._writer.add_trace(self.run_id, point.probe_id, trace)
        self._writer.add(measurement)
        self._next += 1
        self.written += 1
        self.known[point.probe_id] = measurement
        return measurement

    def is_done(self, point: Point) -> bool:
        """Whether the record holds a result of this point that is worth keeping."""
        one = self.known.get(point.probe_id)
        if one is None or one.suite_version != SUITE_VERSION:
            return False
        if self._options.skip_failed and one.status == "error":
            return True
        return not doubtful(one)

    def close(self) -> None:
        """Let go of the files."""
        self._writer.close()

    def _earlier(self) -> tuple[Measurement, ...]:
        """Lines of the record that is resumed."""
        path = Path(self._options.path) if self._options.path else None
        if path is None or not path.exists() or path.stat().st_size == 0:
            return ()
        if not self._options.resume:
            raise UsageError(f"`{path}` exists already", hint="continue it with `--resume`, or name another file")
        found = read_measurements(path).latest()
        for one in found[:1]:
            self._must_fit(one)
        return found

    def _must_fit(self, one: Measurement) -> None:
        """A record is continued only on its own device and software."""
        for name in _SAME:
            have, want = self._facts.get(name), getattr(one, name)
            if have != want:
                raise UsageError(
                    f"the record was begun with {name} `{want}`, this is `{have}`",
                    hint="start a new record without `--resume`",
                )

    def _paths(self) -> list[Path]:
        """Where the record is written: the named file first, then its place in the store."""
        named = [Path(self._options.path)] if self._options.path else []
        if self._options.store is None:
            return named
        store = Path(self._options.store)
        found = sorted(store.glob(f"*-{self.run_id[:8]}.jsonl")) if store.is_dir() else []
        kept = found[0] if found else store / self._name()
        if named and named[0].exists() and not found:
            kept.parent.mkdir(parents=True, exist_ok=True)
            mend(named[0])
            shutil.copyfile(named[0], kept)
        return [*named, *([] if kept in named else [kept])]

    def _name(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", str(self._facts["device_name"]).lower()).strip("-")[:40]
        return f"{slug or 'device'}-{_now():%Y%m%dT%H%M%SZ}-{self.run_id[:8]}.jsonl"


def _now() -> datetime:
    return datetime.now(UTC)
