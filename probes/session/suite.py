"""One run: measures a suite's plan point by point within a time budget, with canaries in between, into a record."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.measured.ranks.steps import predict_step
from planner.records.measurement import Measurement
from probes import precisions, workloads
from probes.device.clock import Clock
from probes.device.device import Device, open_device
from probes.device.faults import DeviceLost
from probes.memory.side_process import open_tracker
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import ALONE, Team
from probes.record.figures import Figures
from probes.record.ledger import PointLedger
from probes.record.options import BUDGETS_S, RANKS_BUDGETS_S, Options
from probes.record.provenance import provenance
from probes.record.shared import SharedLedger
from probes.sensors import OpenedSensor, open_sensor
from probes.sensors.interface import Trace
from probes.session.bench import Bench, PointResult
from probes.session.combined import combined
from probes.session.group import run_group
from probes.session.heat import reheated, soaked_c
from probes.session.listener import Listener, Progress, Silence
from probes.session.outcome import Outcome
from probes.session.rules import rules_for
from probes.session.slices import TimeSlices, with_remaining_s
from probes.session.slow import too_slow
from probes.session.support import support_figures, support_point
from probes.timing.device_gate import DeviceGate, in_use
from probes.timing.quiet import Gate, LoadGate
from probes.timing.team_gate import TeamGate, TeamLoadGate
from probes.timing.trial import Point, PointGroup, ProbePlan
from probes.workloads.canary import canary_clock, canary_point

CANARY_EVERY_S = 60.0
NAMED_LEFT_OUT = 8
"""Groups that a note names; the outcome lists all of them."""
DIED = "the process died while this was measured"


class Session:
    """A run on one device into one record."""

    def __init__(
        self,
        options: Options,
        listener: Listener | None = None,
        team: Team = ALONE,
        device: Device | None = None,
        opened: OpenedSensor | None = None,
    ) -> None:
        """Open the device and the record, and make the plan.

        Args:
            options: what to measure.
            listener: is notified of events; None: nobody is.
            team: the ranks that measure together, each in its own session.
            device: this rank's device, if it is already open.
            opened: its sensor, which counted the device's processes before this process had a context there.

        Raises:
            CannotMeasureError: the device is missing.
            UsageError: an option or the record cannot be used.
        """
        self.options = options
        self.listener: Listener = listener or Silence()
        self.team = team
        self.device = device or open_device(options.device, options.gpu_index)
        self._set_threads()
        opened = opened or open_sensor(self.device.kind, self.device.uuid)
        self.sensor = opened.sensor
        self._busy_ratio = max(team.gather(opened.busy_ratio or 0.0))
        self._mps = any(team.gather(opened.mps_server))
        self.plan = ProbePlan(
            device=self.device,
            suite=options.suite,
            recipes=precisions.choose(options.precisions, self.device.kind),
            seed=options.seed,
            has_sensor=all(team.gather(opened.meters)),
            team=team,
        )
        self.tracker = open_tracker(self.device, options.seed)
        """Tracks the memory of steps that are to be predicted."""
        self.bench = Bench(
            device=self.device, gate=self._gate(opened.processes), sensor=self.sensor, no_sensor=opened.reason,
            rng=random.Random(options.seed), team=team,
            rules=lambda point: rules_for(point, self.device.kind, options.suite),
        )  # fmt: skip
        self.workloads = workloads.choose(options.workloads, team.size)  # first: a wrong name must leave no file
        self.ledger = self._open_ledger()
        self._first_canary = self.ledger.known["canary"].time.median_s if "canary" in self.ledger.known else None
        self._canary_ratio: float | None = None
        self._canary_at: float | None = None
        self.began = time.monotonic() - options.spent_s
        under_way = self.ledger.under_way
        self._suspects = frozenset(under_way.left_behind() if options.skip_failed else under_way.left_behind_twice())
        """Points under way when the last process of this run died: a single one is to blame, of several any may be. If
        a user resumes, the cause may have been external; only points during which processes died twice are then to
        blame."""
        self._under_way: tuple[Point, ...] = ()

    def _open_ledger(self) -> PointLedger | SharedLedger:
        """Open the record. With several ranks only rank 0 has it, and the others learn what it holds."""
        ledger = PointLedger(self.options, provenance(self.device), self.listener.noted) if self.team.leads else None
        return ledger if ledger is not None and self.team.size == 1 else SharedLedger(ledger, self.team)

    def _set_threads(self) -> None:
        """Use one thread on a CPU by default: time taken by other work then shows in the clock, and varies less."""
        threads = self.options.threads or (1 if self.device.kind == "cpu" else None)
        if threads:
            import torch

            torch.set_num_threads(threads)

    @property
    def budget_s(self) -> float:
        """Time in seconds that the run may take."""
        budgets = BUDGETS_S if self.team.size == 1 else RANKS_BUDGETS_S
        return self.options.budget_s or budgets[self.device.kind][self.options.suite]

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, in this process and in earlier ones."""
        return self.team.of_first(time.monotonic() - self.began)

    def groups(self) -> list[PointGroup]:
        """Return in order what was requested and is not in the record yet; late groups come last."""
        groups = [
            group for workload in self.workloads for group in workload.groups(self.plan) if workload.name != "canary"
        ]
        kept = [replace(group, points=[p for p in group.points if not self.ledger.is_done(p)]) for group in groups]
        return sorted((group for group in kept if group.points), key=lambda group: group.late)

    def run(self, keep_s: float = 0.0) -> Outcome:
        """Measure until everything is done or the time is used up; the record always holds what has been measured.

        Args:
            keep_s: seconds that are reserved for work after the suite.

        Raises:
            KeyboardInterrupt: passed on.
        """
        left_out: list[PointGroup] = []
        try:
            self.listener.began(str(self.ledger.path), self.device.name)
            if (note := in_use(getattr(self.bench.gate, "others", 0), self._busy_ratio, self._mps)) is not None:
                self.listener.noted(note)
            self._read_bare_idle()
            self._choose_device()
            self.check_recipes()
            suite_s = self.budget_s - keep_s
            self.bench = replace(self.bench, end_s=self.began + suite_s)
            groups = self.groups() if self.options.measure else []
            self.listener.planned(len(groups), sum(group.estimate_s for group in groups))
            left_out = self._measure_all(groups, suite_s)
            if self._canary_at is not None:
                self._canary()
        except DeviceLost as error:
            lost = self.team.part(str(error))
            return Outcome(points=self.ledger.written, left_out=_names(left_out), lost_device=lost)
        if left_out:
            named = ", ".join(_names(left_out)[:NAMED_LEFT_OUT])
            more = f" and {len(left_out) - NAMED_LEFT_OUT} more" if len(left_out) > NAMED_LEFT_OUT else ""
            self.listener.noted(
                f"no time was left for {len(left_out)} of {len(groups)} groups of points: {named}{more}"
            )
        return Outcome(points=self.ledger.written, left_out=_names(left_out))

    def _measure_all(self, groups: Sequence[PointGroup], suite_s: float) -> list[PointGroup]:
        """Measure each group in its workload's slice of the time; return the groups for which there was no time.

        A group that did not fit its slice gets a second chance when all others are done.

        Raises:
            DeviceLost: the device broke.
        """
        slices = TimeSlices(groups, suite_s)
        postponed: list[PointGroup] = []
        for group, left_s in with_remaining_s(groups):
            if slices.allows(group, self.elapsed_s):
                self.measure(group, left_s)
            else:
                postponed.append(group)
        left_out: list[PointGroup] = []
        for group, left_s in with_remaining_s(postponed):
            if self.elapsed_s + group.estimate_s <= suite_s:
                self.measure(group, left_s)
            else:
                left_out.append(group)
        return left_out

    def measure(
        self, group: PointGroup, left_s: float, finish: Callable[[PointResult], PointResult] = lambda result: result
    ) -> list[Measurement]:
        """Measure one group and write it down; `finish` completes each result before it is written.

        If the last process died during a group, its points are measured one by one, which shows the one to blame. A
        point during which the process died is not run again.

        Raises:
            DeviceLost: the device broke. Which of several points broke it is left to the next process to find out.
        """
        suspects = self._suspects.intersection(point.probe_id for point in group.points)
        if suspects and len(group.points) > 1:
            single = [replace(group, points=[point]) for point in group.points]
            return [line for part in single for line in self.measure(part, left_s, finish)]
        if suspects == self._suspects and suspects:
            self.ledger.under_way.end()
            return [self.write(group.points[0], Figures(status="error", reason=DIED))]
        if group.points[0].kind != "idle":  # idle power is measured before anything has warmed the device
            self._keep_steady()
        self.listener.started(Progress(label=group.name, done_s=self.elapsed_s, left_s=left_s))
        self.ledger.under_way.begin([point.probe_id for point in group.points])
        self._under_way = tuple(group.points)
        lines: list[Measurement] = []
        try:
            run_group(group, self.bench, lambda result: lines.append(self._keep(finish(result))))
        except DeviceLost as error:
            if len(group.points) == 1:
                self._lost(group.points[0], error)
            raise
        except BaseException:
            self.ledger.under_way.end()
            raise
        self.ledger.under_way.end()  # not reached if the process is killed: the next one then finds the note
        return lines

    def _predicted(self, point: Point) -> Point:
        """Add a predicted time to a step of several ranks, from its parts in the record; return other points as is."""
        if not point.messages or point.predicted.time_s is not None:
            return point
        known = tuple(self.ledger.known.values())
        return replace(point, predicted=predict_step(point, point.messages, point.recipe.id, known))

    def _keep(self, result: PointResult) -> Measurement:
        return self.write(self._predicted(result.point), result.figures, result.trace)

    def write(self, point: Point, figures: Figures, trace: Trace | None = None) -> Measurement:
        """Add a line to the record and pass it to the listener."""
        sampling = figures.sampling
        if sampling.canary_ratio is None:
            sampling = replace(sampling, canary_ratio=self._canary_ratio)
        measurement = self.ledger.write(point, replace(figures, sampling=sampling), trace)
        self.listener.measured(measurement)
        return measurement

    def close(self) -> None:
        """Close the record and the sensor."""
        self.tracker.close()
        self.ledger.close()
        if self.sensor is not None:
            self.sensor.close()

    def check_recipes(self) -> None:
        """Determine which recipes run here, once per record, and continue with those."""
        kept = []
        for recipe in self.plan.recipes:
            known = self.ledger.known.get(f"support/{recipe.id}")
            retry = known is not None and known.status == "error" and not self.options.skip_failed
            if known is None or retry or (known.status != "ok" and self.options.precisions):
                known = self._try_recipe(recipe)
            if known.status == "ok":
                kept.append(recipe)
        if self.device.kind == "cpu":
            kept = self._fast_enough(kept)
        self.plan = replace(self.plan, recipes=tuple(kept))

    def _fast_enough(self, recipes: list[PrecisionRecipe]) -> list[PrecisionRecipe]:
        """Return the recipes fast enough on this CPU, and all that were named; write a line for each of the others."""
        canary = canary_clock(self.plan, self._first_canary)
        several = self.team.size > 1
        self.bench = replace(self.bench, canary=canary) if several else replace(self.bench, clock=canary)
        if self.options.precisions:
            return recipes
        slow = too_slow(self.plan, self._clock, recipes)
        for recipe in recipes:
            if recipe.id in slow:
                reason = (
                    f"{slow[recipe.id]:.0f} times slower than FP32 on this CPU; `--precision {recipe.id}` measures it"
                )
                self.write(support_point(recipe), Figures(status="unsupported", reason=reason))
        return [recipe for recipe in recipes if recipe.id not in slow]

    @property
    def _clock(self) -> Clock:
        return self.bench.together(self.bench.clock or self.device.clock)

    def _try_recipe(self, recipe: PrecisionRecipe) -> Measurement:
        """Return a line of the record that says whether a recipe runs here; not if the last process died in its check.

        Raises:
            DeviceLost: the device broke; the line is written first.
        """
        point = support_point(recipe)
        if point.probe_id in self._suspects:
            return self.write(point, Figures(status="error", reason=DIED))
        self.ledger.under_way.begin([point.probe_id])
        try:
            figures = combined(support_figures(recipe, self.device), self.team)
        except DeviceLost as error:
            self._lost(point, error)
            raise
        except BaseException:
            self.ledger.under_way.end()
            raise
        self.ledger.under_way.end()
        return self.write(point, figures)

    def _lost(self, point: Point, error: DeviceLost) -> None:
        """Write down the one point that broke the device; of several ranks rank 0 does so, since it can still write."""
        reason = self.team.part(str(error))
        if self.team.leads:
            self.write(point, Figures(status="error", reason=f"the device was lost: {reason}"))
            self.ledger.under_way.end()

    def abandon(self, reason: str) -> Outcome:
        """End the run on rank 0, from another thread, while it waits in a collective for a rank that is gone.

        Args:
            reason: what that rank reported.
        """
        self.team.part(reason)
        if len(self._under_way) == 1:
            self._lost(self._under_way[0], DeviceLost(reason))
        self.close()
        return Outcome(points=self.ledger.written, left_out=(), lost_device=reason)

    def _choose_device(self) -> None:
        """Make the device current, so that its events and statistics are read; this creates a context on it."""
        if self.device.kind == "cuda":
            import torch

            self.device.as_current()
            torch.backends.cudnn.benchmark = True  # as training of convolutional networks does

    def _read_bare_idle(self) -> None:
        """Measure idle power before anything has created a context on the device."""
        for workload in self.workloads:
            if workload.name == "idle":
                for group in workload.groups(self.plan)[:1]:
                    if not self.ledger.is_done(group.points[0]):
                        self.measure(group, group.estimate_s)

    def _keep_steady(self) -> None:
        """Heat the device before the first timed group, and run a canary if the last one is too old."""
        if self._canary_at is None:
            self._heat()
        if self._canary_at is None or self.team.agree(time.monotonic() - self._canary_at >= CANARY_EVERY_S):
            self._canary()

    def _heat(self) -> None:
        """Bring a GPU to its working temperature."""
        if self.device.kind != "cuda":
            return
        self.listener.started(Progress(label="warming the GPU up", done_s=self.elapsed_s, left_s=0.0))
        soak_c = soaked_c(self.plan, self._clock, self.sensor, self.listener.noted)
        self.bench = replace(self.bench, soak_c=soak_c)

    def _canary(self) -> None:
        point = canary_point(self.plan)
        soak_c = self.bench.soak_c if self.team.size == 1 else None  # ranks would disagree on which of them is cool
        if soak_c is not None and (note := reheated(self.plan, self._clock, self.sensor, soak_c)):
            self.listener.noted(note)
        group = PointGroup(name="canary", points=[point], estimate_s=0.4)
        (result,) = run_group(group, replace(self.bench, end_s=math.inf))  # the last canary validates the other points
        median = result.figures.time.median_s
        if median is not None:
            self._first_canary = self._first_canary or median
            self._canary_ratio = median / self._first_canary
        self.write(point, result.figures)
        self._canary_at = time.monotonic()

    def _gate(self, before: int | None) -> Gate:
        if self.team.size > 1 and self.device.kind == "cpu":
            return TeamLoadGate(self.team)
        if self.device.kind == "cpu":
            return LoadGate(accepted_ratio=1.0)  # only read for the record; the clock judges by its canary
        gate = DeviceGate(self._other_processes, helper_s=self.tracker.cpu_s, before=before)
        return TeamGate(gate, self.team) if self.team.size > 1 else gate

    def _other_processes(self) -> int | None:
        """Return the number of processes on the device, without the one that tracks memory for this run."""
        count = self.sensor.processes() if self.sensor else None
        return None if count is None else max(count - self.tracker.processes(), 0)


def _names(groups: Sequence[PointGroup]) -> tuple[str, ...]:
    return tuple(group.name for group in groups)
