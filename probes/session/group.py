"""One group of points: built, measured side by side, read out, and turned into lines of the record.

A failure of one point never affects another: out of memory, lack of support and errors are results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

from planner.records.figures import PeakMemory
from probes.device.clock import no_mark
from probes.device.device import Device
from probes.device.faults import DeviceLost, PeerFailed, broke_communication, cleaned, is_lost, lacks_compiler
from probes.energy.monitor import DeviceMonitor, monitored_clock
from probes.memory.peaks import Baseline, baseline, is_out_of_memory, of_process, peak_of, release, return_cached
from probes.record.figures import Figures
from probes.session.bench import Bench, PointResult
from probes.session.combined import combined, first_failure
from probes.session.readout import Built, finish, rested
from probes.timing.graphs import captured_if_short
from probes.timing.protocol import Subject, Timing, measure
from probes.timing.trial import Point, PointGroup, Trial


class _Results(dict[str, PointResult]):
    """Results by probe id, each reported as soon as it is known."""

    def __init__(self, report: Callable[[PointResult], object]) -> None:
        super().__init__()
        self._report = report

    def __setitem__(self, probe_id: str, result: PointResult) -> None:
        super().__setitem__(probe_id, result)
        self._report(result)


def run_group(
    group: PointGroup, bench: Bench, report: Callable[[PointResult], object] = lambda _: None
) -> list[PointResult]:
    """Measure a group; return one result per point, in the given order, without points for which there was no time.

    Points that do not fit beside the others are measured in a later sitting.

    Args:
        group: what to measure.
        bench: what to measure with.
        report: called with each result when its point is done, so that an interruption costs only the point under way.

    Raises:
        DeviceLost: after an error that leaves the device unusable.
    """
    results = _Results(report)
    sittings = [list(group.points)]
    while sittings:
        sittings += _sit(sittings.pop(0), bench, results)
        release()
    return [results[point.probe_id] for point in group.points if point.probe_id in results]


def _sit(points: Sequence[Point], bench: Bench, results: _Results) -> list[list[Point]]:
    """Build and measure points side by side; return the further sittings that the remaining points need."""
    built: list[Built] = []
    for i, point in enumerate(points):
        if bench.team.agree(time.monotonic() >= bench.end_s):
            break
        reason = point.unsupported or _missing(point)
        if reason is not None:
            results[point.probe_id] = _failed(point, "unsupported", reason)
            continue
        failed = _build(point, bench, built)
        if failed is None:
            continue
        release()  # only here, because the error held on to the memory of the failed trial
        if failed.figures.status == "oom" and built:
            return [*_measure_all(built, bench, results), list(points[i:])]
        results[point.probe_id] = failed
    return _measure_all(built, bench, results)


def _missing(point: Point) -> str | None:
    if point.needs and find_spec(point.needs) is None:
        return f"needs {point.needs}, which is not installed"
    return None


def _build(point: Point, bench: Bench, built: list[Built]) -> PointResult | None:
    """Add a point that is ready to be timed; return its failure otherwise.

    Steps start only when all ranks have made their trials: in a collective, they would wait for a rank that has not.
    """
    trials: list[tuple[Trial, Baseline]] = []
    failed = _guarded(point, lambda: trials.append(_made(point, bench)), bench)
    if failed is None:
        failed = _guarded(point, lambda: built.append(_ready(point, *trials.pop(), bench)), bench)
    return failed


def _made(point: Point, bench: Bench) -> tuple[Trial, Baseline]:
    """Make the trial; return it with what was held before."""
    before = baseline(bench.device) if point.memory else Baseline()
    point.recipe.activate()
    return point.build(bench.device), before


def _ready(point: Point, trial: Trial, before: Baseline, bench: Bench) -> Built:
    """Prepare the trial for timing, and measure the memory of its steps."""
    memory, first_step_s = PeakMemory(), 0.0
    if point.memory:
        return_cached(bench.device)
        began = time.perf_counter()
        trial.step(no_mark)  # the first step compiles, and creates gradients and states
        bench.device.clock.synchronize()
        first_step_s = time.perf_counter() - began
        trial.step(no_mark)
        memory = peak_of(bench.device, trial.step, before=before, held_bytes=trial.held_bytes)
        state = bench.sensor.state() if bench.sensor and bench.device.kind == "cuda" else None
        memory = of_process(memory, state.process_bytes if state else None, before)
    if point.graph and bench.device.kind == "cuda":
        trial = captured_if_short(trial, bench.device.clock)
    subject = Subject(trial=trial, recipe=point.recipe)
    return Built(point=point, subject=subject, memory=memory, first_step_s=first_step_s)


def _measure_all(built: list[Built], bench: Bench, results: _Results) -> list[list[Point]]:
    """Measure the points together; if that fails, return one sitting for each, to find out which one failed."""
    resting = [item for item in built if item.point.kind == "idle"]
    timed = [item for item in built if item.point.kind != "idle"]
    for item in resting:
        _keep(item, lambda item=item: rested(item, bench), bench, results)  # type: ignore[misc]
    monitor = DeviceMonitor(bench.sensor, [item.subject for item in timed]) if bench.sensor else None
    timings: list[Timing] = []
    failed = _guarded(timed[0].point, lambda: timings.extend(_time(timed, bench, monitor)), bench) if timed else None
    points = [item.point for item in timed]
    if failed is not None and len(points) == 1:
        results[points[0].probe_id] = failed
    for item, timing in zip(timed, timings, strict=False):
        _keep(item, lambda item=item, timing=timing: finish(item, bench, timing, monitor), bench, results)  # type: ignore[misc]
    built.clear()
    return [[point] for point in points] if failed is not None and len(points) > 1 else []


def _time(timed: Sequence[Built], bench: Bench, monitor: DeviceMonitor | None) -> list[Timing]:
    rules = max((bench.rules(item.point) for item in timed), key=lambda rules: rules.cap_s)
    gate = bench.gate_of([item.point for item in timed])
    clock = bench.together(bench.clock or monitored_clock(bench.device, monitor))
    return measure([item.subject for item in timed], clock, rules, gate, bench.rng, bench.end_s)


def _keep(built: Built, run: Callable[[], PointResult], bench: Bench, results: _Results) -> None:
    finished: list[PointResult] = []
    failed = _guarded(built.point, lambda: finished.append(run()), bench)
    result = failed or finished[0]
    results[built.point.probe_id] = replace(result, figures=combined(result.figures, bench.team))


def _guarded(point: Point, run: Callable[[], object], bench: Bench) -> PointResult | None:
    """Run something; return a failure on any rank as the point's result, None if there was none.

    Raises:
        DeviceLost: the device is unusable.
    """
    failed: PointResult | None = None
    try:
        run()
    except PeerFailed:
        failed = None
    except Exception as error:
        failed = failure_of(point, error)
    figures = first_failure(None if failed is None else failed.figures, bench.team)
    return None if figures is None else PointResult(point=point, figures=figures)


def _failed(point: Point, status: str, reason: str) -> PointResult:
    return PointResult(point=point, figures=Figures(status=status, reason=reason))


def failure_of(point: Point, error: Exception) -> PointResult:
    """Return an error as a point's result: out of memory, not supported here, or failed.

    Raises:
        DeviceLost: the error leaves the device unusable.
    """
    if is_out_of_memory(error):
        return _failed(point, "oom", "not enough memory on the device")
    if isinstance(error, DeviceLost):
        raise error
    if broke_communication(error) or is_lost(error):  # first: asking the device would wait for ranks that are gone
        raise DeviceLost(cleaned(error)) from error
    if lacks_compiler(error):
        return _failed(point, "unsupported", "torch.compile finds no working Triton, C compiler or Python headers")
    return _failed(point, "error", cleaned(error))


def trial_of(point: Point, device: Device) -> Trial:
    """Return a warmed-up trial of a point, for work outside a group."""
    point.recipe.activate()
    trial = point.build(device)
    for _ in range(3):
        trial.step(no_mark)
    return trial
