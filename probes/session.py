"""One run: the plan of a suite, point by point, with canaries in between, within a time budget, into a record."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.errors import MpplanError, UsageError
from planner.measurement import Measurement
from planner.measurement_file import read_measurements
from planner.record_check import doubtful
from probes import precisions, workloads
from probes.device import Device, open_device
from probes.energy import heat_soak
from probes.group import Bench, DeviceLost, Result, run_group, trial_of
from probes.listener import Listener, Progress, Silence
from probes.memory import release
from probes.options import BUDGETS_S, Options
from probes.protocol import Rules
from probes.provenance import SUITE_VERSION, provenance
from probes.quiet import DeviceGate, Gate, LoadGate
from probes.record_writer import RecordWriter
from probes.sensors import open_sensor
from probes.workloads.canary import canary_point
from probes.workloads.interface import Group, Plan, Point

CANARY_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    points: int
    """Lines written."""
    left_out: tuple[str, ...]
    """Groups for which there was no time."""
    lost_device: str | None = None
    """Set where the device broke; a new process can resume."""


class Session:
    """A run on one device into one record."""

    def __init__(self, options: Options, listener: Listener | None = None) -> None:
        """Open the device and the record, and make the plan.

        Raises:
            CannotMeasureError: the device is not there.
            UsageError: an option or the record cannot be used.
        """
        self.options = options
        self.listener: Listener = listener or Silence()
        self.device = open_device(options.device, options.gpu_index)
        if options.threads:
            import torch

            torch.set_num_threads(options.threads)
        opened = open_sensor(self.device.kind, self.device.uuid)
        self.sensor = opened.sensor
        self.plan = Plan(
            device=self.device,
            suite=options.suite,
            recipes=precisions.choose(options.precisions),
            seed=options.seed,
            has_sensor=self.sensor is not None,
        )
        self.bench = Bench(
            device=self.device,
            gate=self._gate(),
            sensor=self.sensor,
            no_sensor=opened.reason,
            rng=random.Random(options.seed),
            rules=self._rules,
        )
        self.facts = provenance(self.device)
        self._path = Path(options.path)
        earlier = self._earlier()
        self.known: dict[str, Measurement] = {one.probe_id: one for one in earlier}
        self.run_id = earlier[0].run_id if earlier else str(uuid.uuid4())
        self._next = max((one.seq for one in earlier), default=-1) + 1
        self.writer = RecordWriter(self._path)
        self._first_canary = next((one.time_median_s for one in earlier if one.kind == "canary"), None)
        self._canary_ratio: float | None = None
        self._canary_at: float | None = None
        self.began = time.monotonic()
        self.written = 0

    @property
    def budget_s(self) -> float:
        """Time that the run may take."""
        return self.options.budget_s or BUDGETS_S[self.device.kind][self.options.suite]

    def groups(self) -> list[Group]:
        """What is to be measured, in order: everything asked for that the record does not hold yet."""
        found = [g for w in workloads.choose(self.options.workloads) for g in w.groups(self.plan) if w.name != "canary"]
        kept = [_without(group, self._is_done) for group in found]
        return [group for group in kept if group.points]

    def run(self) -> Outcome:
        """Measure until everything is done or the time is used up; what was measured is in the record at any moment.

        Raises:
            KeyboardInterrupt: passed on after the record is closed.
        """
        groups = self.groups()
        self.listener.began(self.device.name, len(groups), sum(one.estimate_s for one in groups))
        left_out: list[str] = []
        lost: str | None = None
        try:
            for group, left_s in _with_rest(groups):
                if time.monotonic() - self.began + group.estimate_s > self.budget_s:
                    left_out.append(group.name)
                    continue
                if group.points[0].kind != "idle":  # idle power is read before anything has warmed the device
                    self._keep_steady()
                done_s = time.monotonic() - self.began
                self.listener.started(Progress(label=group.name, done_s=done_s, left_s=left_s))
                self._measure(group)
            if self._canary_at is not None:
                self._canary()
        except DeviceLost as error:
            lost = str(error)
        if left_out:
            self.listener.noted(f"no time was left for {len(left_out)} of {len(groups)} groups")
        return Outcome(points=self.written, left_out=tuple(left_out), lost_device=lost)

    def close(self) -> None:
        """Let go of the record and the sensor."""
        self.writer.close()
        if self.sensor is not None:
            self.sensor.close()

    def write(self, point: Point, fields: dict[str, Any]) -> Measurement:
        """Add a line to the record and tell the listener."""
        values: dict[str, Any] = {
            **self.facts,
            "run_id": self.run_id,
            "probe_id": point.probe_id,
            "seq": self._next,
            "kind": point.kind,
            "workload": point.workload,
            "precision": point.recipe.precision,
            "recipe": point.recipe.id,
            "seed": self.options.seed,
            **point.facts,
            "canary_ratio": self._canary_ratio,
            "timestamp_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "monotonic_s": time.monotonic(),
            **fields,
        }
        measurement = Measurement(**values)
        self.writer.add(measurement)
        self._next += 1
        self.written += 1
        self.known[point.probe_id] = measurement
        self.listener.measured(measurement)
        return measurement

    def _measure(self, group: Group) -> None:
        try:
            results = run_group(group, self.bench)
        except DeviceLost as error:
            for point in group.points:
                self.write(point, {"status": "error", "reason": f"the device was lost: {error}"})
            raise
        for result in results:
            self._keep(result)

    def _keep(self, result: Result) -> Measurement:
        if result.trace is not None:
            self.writer.add_trace(self.run_id, result.point.probe_id, result.trace)
        return self.write(result.point, result.fields)

    def _keep_steady(self) -> None:
        """Heat before the first timed group, and a canary when the last one is old."""
        if self._canary_at is None:
            self._heat()
        if self._canary_at is None or time.monotonic() - self._canary_at >= CANARY_EVERY_S:
            self._canary()

    def _heat(self) -> None:
        """Make the context and bring a GPU to its working temperature."""
        if self.device.kind != "cuda":
            return
        import torch

        torch.cuda.set_device(self.device.index)
        if self.options.suite == "quick":
            return
        point = canary_point(self.plan)
        self.listener.started(Progress(label="warming the GPU up", done_s=time.monotonic() - self.began, left_s=0.0))
        heat_soak(trial_of(point, self.device), point.recipe, self.device.clock, self.sensor)
        release()

    def _canary(self) -> None:
        point = canary_point(self.plan)
        (result,) = run_group(Group(name="canary", points=[point], estimate_s=0.4), self.bench)
        median = result.fields.get("time_median_s")
        if median is not None:
            self._first_canary = self._first_canary or median
            self._canary_ratio = median / self._first_canary
        self._keep(result)
        self._canary_at = time.monotonic()

    def _gate(self) -> Gate:
        if self.device.kind == "cpu":
            return LoadGate()
        sensor = self.sensor
        return DeviceGate(lambda: sensor.state().processes if sensor else None)

    def _rules(self, point: Point) -> Rules:
        gpu = self.device.kind == "cuda"
        patience = 5.0 if self.options.suite == "thorough" else 1.0
        caps = {"gemm": 0.2, "block": 0.5, "end_to_end": 1.0} if gpu else {"block": 0.9, "end_to_end": 1.0}
        cap_s = (point.cap_s or caps.get(point.kind, 0.4 if gpu else 0.5)) * patience
        return Rules(
            ci_ratio=0.005 if gpu else 0.01,
            cap_s=cap_s,
            warmup_s=min(0.3, cap_s / 3),
            min_total_s=0.5 if point.kind in ("block", "end_to_end") and not gpu else 0.05,
        )

    def _earlier(self) -> tuple[Measurement, ...]:
        """Lines of the record that is resumed."""
        if not self._path.exists() or self._path.stat().st_size == 0:
            return ()
        if not self.options.resume:
            raise UsageError(f"`{self._path}` exists already", hint="continue it with `--resume`, or name another file")
        found = read_measurements(self._path).latest()
        for one in found:
            self._must_fit(one)
        return found

    def _must_fit(self, one: Measurement) -> None:
        """A record is continued only on its own device and software."""
        for name in ("device_name", "device_hash", "torch_version", "driver_version"):
            have, want = self.facts.get(name), getattr(one, name)
            if have != want:
                raise UsageError(
                    f"the record was begun with {name} `{want}`, this is `{have}`",
                    hint="start a new record without `--resume`",
                )

    def _is_done(self, point: Point) -> bool:
        one = self.known.get(point.probe_id)
        if one is None or one.suite_version != SUITE_VERSION:
            return False
        if self.options.skip_failed and one.status == "error":
            return True
        return not doubtful(one)


def _without(group: Group, is_done: Any) -> Group:
    return Group(name=group.name, points=[p for p in group.points if not is_done(p)], estimate_s=group.estimate_s)


def _with_rest(groups: Sequence[Group]) -> Iterator[tuple[Group, float]]:
    """Each group with the expected time of itself and all after it."""
    left = sum(one.estimate_s for one in groups)
    for group in groups:
        yield group, left
        left -= group.estimate_s


def run(options: Options, listener: Listener | None = None) -> Outcome:
    """Run the probes in this process.

    Raises:
        MpplanError: the device, the options or the record cannot be used.
    """
    session = Session(options, listener)
    try:
        return session.run()
    finally:
        session.close()


__all__ = ["Device", "MpplanError", "Outcome", "Session", "run"]
