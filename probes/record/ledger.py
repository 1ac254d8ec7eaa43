"""The record file of a run: its place, what it holds already, and what remains to be measured."""

from __future__ import annotations

import re
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from planner.errors import UsageError
from planner.records.check import doubtful
from planner.records.communication import with_rates
from planner.records.figures import TrainingNumerics
from planner.records.jsonl import read_measurements
from planner.records.machine import DeviceIdentity, SoftwareVersions
from planner.records.measurement import Measurement
from planner.records.summary import ranks_of
from planner.records.work import RunSetup
from probes.record.figures import Figures
from probes.record.lock import RecordLock
from probes.record.options import Options
from probes.record.provenance import SUITE_VERSION, Provenance
from probes.record.writer import RecordWriter, UnderWay, mend, unwritable
from probes.sensors.interface import Trace
from probes.timing.trial import Point


def identity(device: DeviceIdentity, software: SoftwareVersions) -> dict[str, str | None]:
    """Return, by key, what must agree for a record to be continued."""
    return {
        "device_name": device.name,
        "device_hash": device.uuid_hash,
        "torch_version": software.torch_version,
        "driver_version": software.driver_version,
    }


def must_fit(begun: Mapping[str, str | None], threads: int | None, where: Provenance) -> None:
    """Check that a record is continued on its own device and software, and on a CPU with as many threads.

    Args:
        begun: what `identity` returned, or a part of it, when the record was started.
        threads: CPU threads of the run that started it; None: unknown.
        where: device and software of the run that continues it.

    Raises:
        UsageError: they differ.
    """
    for name, have in identity(where.device, where.software).items():
        if have != (want := begun.get(name, have)):
            raise UsageError(
                f"the record was started with {name} `{want}`, this is `{have}`",
                hint="start a new record without `--resume`",
            )
    now = where.device.threads
    if where.device.kind == "cpu" and None not in (threads, now) and threads != now:
        raise UsageError(
            f"the record was started with {_threads(threads)}, this is a run with {_threads(now)}",
            hint=f"continue it with `--threads {threads}`, or start a new record without `--resume`",
        )


def of_this_device(options: Options, device_hash: str | None) -> Options:
    """Return the options of a run that continues the newest record of its own GPU.

    They are as given if none of the records was begun on this GPU; the error then names the difference.
    """
    for path in (options.path, *options.others) if options.others else ():
        try:
            lines = read_measurements(Path(str(path))).measurements
        except UsageError:  # removed or made unreadable since it was listed
            continue
        if lines and lines[0].device.uuid_hash == device_hash:
            return replace(options, path=path, others=())
    return options


class PointLedger:
    """One record, open for writing."""

    def __init__(self, options: Options, where: Provenance, noted: Callable[[str], None] | None = None) -> None:
        """Begin a record, or continue one.

        Args:
            options: name the record.
            where: device and software, which every line states.
            noted: is notified of problems that do not stop the run.

        Raises:
            UsageError: the record exists but is not to be resumed, belongs to another device, is being written by
                another process, or cannot be written.
        """
        self._options = of_this_device(options, where.device.uuid_hash)
        self._where = where
        self._noted = noted or (lambda _: None)
        self._locks: list[RecordLock] = []
        try:
            self._begin()
        except BaseException:
            self._release()
            raise

    def _begin(self) -> None:
        """Lock the record before reading it, since lines added by another process meanwhile would be measured twice."""
        if self._options.path:
            self._locks.append(_lock(Path(self._options.path)))
        earlier = self._earlier()
        self.known: dict[str, Measurement] = {line.probe_id: line for line in earlier}
        """Last line of each probe id."""
        self.run_id = earlier[0].run_id if earlier else str(uuid.uuid4())
        self.written = 0
        self._next = max((line.seq for line in earlier), default=-1) + 1
        copy = self._copy()
        self.path = Path(self._options.path) if self._options.path else self._kept()
        self._writer = RecordWriter(self.path, [] if copy is None else [copy], self._noted)
        self.under_way = UnderWay(self.path)

    def write(self, point: Point, figures: Figures, trace: Trace | None = None) -> Measurement:
        """Add a line, and the sensor's readings if there is a trace."""
        setup = replace(
            point.setup,
            workload=point.workload,
            precision=point.recipe.precision if point.records_recipe else None,
            recipe=point.recipe.id if point.records_recipe else None,
            recipe_flags=figures.recipe_flags,
            attention_backend=figures.attention_backend,
            seed=self._options.seed,
        )
        params = point.counts.params if figures.params is None else figures.params
        measurement = Measurement(
            suite_version=self._where.suite_version,
            run_id=self.run_id,
            probe_id=point.probe_id,
            seq=self._next,
            status=figures.status,
            reason=figures.reason or point.note,
            kind=point.kind,
            setup=setup,
            shape=point.shape,
            counts=replace(point.counts, params=params),
            time=figures.time,
            sampling=figures.sampling,
            memory=replace(figures.memory, tracker_peak_bytes=point.tracked_peak_bytes),
            energy=figures.energy,
            power=figures.power,
            device_state=figures.device_state,
            numerics=figures.numerics,
            predicted=point.predicted,
            communication=with_rates(point.communication, figures.time.median_s),
            ranks=figures.ranks,
            overlap=figures.overlap,
            device=self._where.device,
            software=self._where.software,
            timestamp_utc=_now().isoformat(timespec="milliseconds"),
            monotonic_s=time.monotonic(),
        )
        if trace is not None:
            self._writer.add_trace(self.run_id, point.probe_id, trace)
        return self._added(measurement)

    def write_finding(self, probe_id: str, precision: str, recipe: str, figures: TrainingNumerics) -> Measurement:
        """Add a line with what training showed about a precision."""
        return self._added(
            Measurement(
                suite_version=self._where.suite_version,
                run_id=self.run_id,
                probe_id=probe_id,
                seq=self._next,
                status="ok",
                kind="numerics",
                setup=RunSetup(workload="numerics", precision=precision, recipe=recipe),
                training_numerics=figures,
                device=self._where.device,
                software=self._where.software,
                timestamp_utc=_now().isoformat(timespec="milliseconds"),
                monotonic_s=time.monotonic(),
            )
        )

    def _added(self, measurement: Measurement) -> Measurement:
        self._writer.add(measurement)
        self._next += 1
        self.written += 1
        self.known[measurement.probe_id] = measurement
        return measurement

    def is_done(self, point: Point) -> bool:
        """Return whether the record holds a result of this point that is worth keeping."""
        known = self.known.get(point.probe_id)
        if known is None or known.suite_version != SUITE_VERSION:
            return False
        if self._options.skip_failed and known.status == "error":
            return True
        return not doubtful(known)

    def close(self) -> None:
        """Close the files and release the locks."""
        self._writer.close()
        self._release()

    def _release(self) -> None:
        for lock in self._locks:
            lock.release()

    def _earlier(self) -> tuple[Measurement, ...]:
        """Return the lines of the record that is resumed."""
        path = Path(self._options.path) if self._options.path else None
        if path is None or not path.exists() or path.stat().st_size == 0:
            return ()
        if not self._options.resume:
            raise UsageError(f"`{path}` exists already", hint="continue it with `--resume`, or name another file")
        lines = read_measurements(path).latest()
        for first in lines[:1]:
            must_fit(identity(first.device, first.software), first.device.threads, self._where)
        measured = [line for line in lines if line.status == "ok"]  # failed lines name no ranks
        if measured and (begun := ranks_of(measured)[0]) != (now := self._options.ranks * self._options.nnodes):
            raise UsageError(
                f"the record was started with {_counted(begun)}, this is a run of {_counted(now)}",
                hint="continue it with as many, or start a new record without `--resume`",
            )
        return lines

    def _kept(self) -> Path:
        """Return the place of this run in the store, locked."""
        assert self._options.store is not None, "a record needs a path or a store"
        path = self._place(Path(self._options.store))
        self._locks.append(_lock(path))
        return path

    def _place(self, store: Path) -> Path:
        """Return the path at which the store keeps this run, or will keep it."""
        copies = sorted(store.glob(f"*-{self.run_id[:8]}.jsonl")) if store.is_dir() else []
        return copies[0] if copies else store / self._name()

    def _copy(self) -> Path | None:
        """Return the store's copy of a record that the user named; None if the store keeps none."""
        if self._options.store is None or not self._options.path:
            return None
        named, kept = Path(self._options.path), self._place(Path(self._options.store))
        if kept.exists() and kept.samefile(named):
            return None
        try:
            lock = RecordLock(kept)
            self._locks.append(lock)
            if named.stat().st_size and not kept.stat().st_size:
                mend(named)
                shutil.copyfile(named, kept)
        except OSError as error:
            self._noted(f"no copy is kept in the store: cannot write `{kept}`: {error.strerror}")
            return None
        return kept

    def _name(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", self._where.device.name.lower()).strip("-")[:40]
        return f"{slug or 'device'}-{_now():%Y%m%dT%H%M%SZ}-{self.run_id[:8]}.jsonl"


def _counted(ranks: int) -> str:
    return "one process" if ranks == 1 else f"{ranks} ranks"


def _threads(count: int | None) -> str:
    return "one CPU thread" if count == 1 else f"{count} CPU threads"


def _lock(path: Path) -> RecordLock:
    try:
        return RecordLock(path)
    except OSError as error:
        raise unwritable(path, error) from error


def _now() -> datetime:
    return datetime.now(UTC)
