"""One group of points: built, measured side by side, read out, and turned into lines of the record.

Nothing that happens to one point costs another: no memory, no support and errors are results.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from planner.records.figures import EnergyUse, PeakMemory, PowerDraw, Sampling, TimeStatistics
from probes.device.clock import CpuClock, no_mark
from probes.device.device import Device
from probes.device.faults import DeviceLost, cleaned, is_lost, lacks_compiler
from probes.energy.window import device_state, energy_use, measure_window, power_draw, slowed_down
from probes.memory.peaks import Baseline, baseline, is_out_of_memory, of_process, peak_of, release, return_cached
from probes.record.figures import Figures
from probes.sensors.interface import Sensor, State, Trace
from probes.timing.graphs import captured_if_short
from probes.timing.protocol import Rules, Subject, Timing, measure
from probes.timing.quiet import Gate
from probes.timing.statistics import SampleSummary
from probes.timing.trial import Point, PointGroup, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """What came of a point, with the trace of its energy window."""

    point: Point
    figures: Figures
    trace: Trace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything that measuring needs besides the points."""

    device: Device
    gate: Gate | None
    sensor: Sensor | None
    no_sensor: str | None
    """Why there is no sensor."""
    rng: random.Random
    rules: Callable[[Point], Rules]


@dataclass(slots=True, kw_only=True)
class _Built:
    point: Point
    subject: Subject
    memory: PeakMemory = field(default_factory=PeakMemory)
    first_step_s: float = 0.0


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
    """Measure a group; one result per point, in the order given.

    Points that do not fit beside the others are measured in a second sitting.

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
    return [results[point.probe_id] for point in group.points]


def _sit(points: Sequence[Point], bench: Bench, results: _Results) -> list[list[Point]]:
    """Build and measure points side by side; returns the sittings that it takes for those that could not."""
    built: list[_Built] = []
    for i, point in enumerate(points):
        reason = point.unsupported or _missing(point)
        if reason is not None:
            results[point.probe_id] = _failed(point, "unsupported", reason)
            continue
        failed = _guarded(point, lambda point=point: built.append(_build(point, bench)))  # type: ignore[misc]
        if failed is None:
            continue
        release()  # only here: until the error was dropped, it held on to the memory of the failed trial
        if failed.figures.status == "oom" and built:
            return [*_measure_all(built, bench, results), list(points[i:])]
        results[point.probe_id] = failed
    return _measure_all(built, bench, results)


def _missing(point: Point) -> str | None:
    if point.needs and find_spec(point.needs) is None:
        return f"needs {point.needs}, which is not installed"
    return None


def _build(point: Point, bench: Bench) -> _Built:
    before = baseline(bench.device) if point.memory else Baseline()
    point.recipe.activate()
    trial = point.build(bench.device)
    built = _Built(point=point, subject=Subject(trial=trial, recipe=point.recipe))
    if point.memory:
        return_cached(bench.device)
        began = time.perf_counter()
        trial.step(no_mark)  # the first step compiles, and makes gradients and states
        bench.device.clock.synchronize()
        built.first_step_s = time.perf_counter() - began
        trial.step(no_mark)
        memory = peak_of(bench.device, trial.step, before=before, held_bytes=trial.held_bytes)
        state = bench.sensor.state() if bench.sensor and bench.device.kind == "cuda" else None
        built.memory = of_process(memory, state.process_bytes if state else None)
    if point.graph and bench.device.kind == "cuda":
        built.subject.trial = captured_if_short(trial, bench.device.clock)
    return built


def _measure_all(built: list[_Built], bench: Bench, results: _Results) -> list[list[Point]]:
    """Measure together; if that fails, each alone in a sitting of its own, to find out which one it was."""
    resting = [item for item in built if item.point.kind == "idle"]
    timed = [item for item in built if item.point.kind != "idle"]
    for item in resting:
        _keep(item, lambda item=item: _idle(item, bench), results)  # type: ignore[misc]
    timings: list[Timing] = []
    failed = _guarded(timed[0].point if timed else None, lambda: timings.extend(_time(timed, bench)) if timed else None)
    points = [item.point for item in timed]
    if failed is not None and len(points) == 1:
        results[points[0].probe_id] = failed
    for item, timing in zip(timed, timings, strict=False):
        _keep(item, lambda item=item, timing=timing: _finish(item, bench, timing), results)  # type: ignore[misc]
    built.clear()
    return [[point] for point in points] if failed is not None and len(points) > 1 else []


def _time(timed: Sequence[_Built], bench: Bench) -> list[Timing]:
    rules = max((bench.rules(item.point) for item in timed), key=lambda rules: rules.cap_s)
    return measure([item.subject for item in timed], bench.device.clock, rules, bench.gate, bench.rng)


def _keep(built: _Built, run: Callable[[], PointResult], results: _Results) -> None:
    finished: list[PointResult] = []
    failed = _guarded(built.point, lambda: finished.append(run()))
    results[built.point.probe_id] = failed or finished[0]


def _guarded(point: Point | None, run: Callable[[], object]) -> PointResult | None:
    """Run something; what went wrong as the point's result, None where nothing did.

    Raises:
        DeviceLost: the device is unusable.
    """
    try:
        run()
    except Exception as error:
        if point is None:
            raise
        return failure_of(point, error)
    return None


def _finish(built: _Built, bench: Bench, timing: Timing) -> PointResult:
    """Energy window, the trial's outcome, and all figures of one point."""
    point, trial = built.point, built.subject.trial
    time_s = time_statistics(timing, trial.steps)
    sampling = sampling_of(timing, trial.steps)
    if point.setup.compiled:
        sampling = replace(sampling, compile_s=max(built.first_step_s, timing.first_call_s))
    states: tuple[State, ...] = (bench.sensor.state(),) if bench.sensor and bench.device.kind == "cuda" else ()
    energy, power, trace = EnergyUse(), PowerDraw(), None
    if point.energy_s and bench.sensor:
        window = measure_window(
            trial, point.recipe, bench.device.clock, bench.sensor,
            window_s=point.energy_s, guess_s=timing.summary.median_s,
        )  # fmt: skip
        states, trace = window.states, window.trace
        if window.timing is not None:
            time_s = _sustained(time_s, window.timing, trial.steps)
            samples = window.timing.samples
            sampling = replace(sampling, samples=samples, regime="sustained", stop_reason="window")
        energy = energy_use(window.power, bench.sensor.scope, time_s.median_s)
        power = power_draw(window.power)
    elif point.energy_s or bench.sensor is None:
        energy = EnergyUse(source="none", reason=bench.no_sensor)
    if slowed_down(states):
        sampling = replace(sampling, quality="throttled")
    outcome = trial.outcome()
    figures = Figures(
        status="ok",
        reason=outcome.reason,
        recipe_flags=trial.flags,
        attention_backend=outcome.attention_backend,
        params=outcome.params,
        time=time_s,
        sampling=sampling,
        memory=replace(built.memory, optimizer_state_bytes_per_param=outcome.optimizer_state_bytes_per_param),
        energy=energy,
        power=power,
        device_state=device_state(states),
        numerics=outcome.numerics,
    )
    return PointResult(point=point, figures=figures, trace=trace)


def _idle(built: _Built, bench: Bench) -> PointResult:
    if bench.sensor is None:
        return _failed(built.point, "unsupported", bench.no_sensor or "no sensor")
    window = measure_window(
        built.subject.trial, built.point.recipe, CpuClock(), bench.sensor,
        window_s=built.point.energy_s, guess_s=0.05, idle=True,
    )  # fmt: skip
    figures = Figures(
        status="ok",
        energy=energy_use(window.power, bench.sensor.scope, None),
        power=power_draw(window.power, idle=True),
        device_state=device_state(window.states),
    )
    return PointResult(point=built.point, figures=figures, trace=window.trace)


def time_statistics(timing: Timing, steps: int = 1) -> TimeStatistics:
    """Times of one iteration; `steps` is how many iterations one timed step held."""
    return replace(
        _statistics(timing.summary, steps),
        forward_median_s=timing.phases_s.get("forward"),
        backward_median_s=timing.phases_s.get("backward"),
        optimizer_median_s=timing.phases_s.get("optimizer"),
    )


def sampling_of(timing: Timing, steps: int = 1) -> Sampling:
    """How a trial's times were sampled."""
    return Sampling(
        samples=timing.summary.samples,
        samples_gated=timing.samples_gated,
        rounds=timing.rounds,
        attempts=timing.attempts,
        iterations_per_sample=timing.iterations_per_sample * steps,
        stop_reason=timing.stop_reason,
        regime="burst",
        warmup_s=timing.warmup_s,
        quality=timing.quality,
        other_load_ratio=timing.other_load_ratio,
    )


def _statistics(summary: SampleSummary, steps: int) -> TimeStatistics:
    """The median, its interval and the spread."""
    return TimeStatistics(
        median_s=summary.median_s / steps,
        ci_low_s=summary.ci_low_s / steps,
        ci_high_s=summary.ci_high_s / steps,
        iqr_s=summary.iqr_s / steps,
        p05_s=summary.p05_s / steps,
        p95_s=summary.p95_s / steps,
        min_s=summary.min_s / steps,
    )


def _sustained(burst: TimeStatistics, window: SampleSummary, steps: int) -> TimeStatistics:
    """Statistics of an energy window, with the phases and the median from before it."""
    return replace(
        _statistics(window, steps),
        forward_median_s=burst.forward_median_s,
        backward_median_s=burst.backward_median_s,
        optimizer_median_s=burst.optimizer_median_s,
        burst_median_s=burst.median_s,
    )


def _failed(point: Point, status: str, reason: str) -> PointResult:
    return PointResult(point=point, figures=Figures(status=status, reason=reason))


def failure_of(point: Point, error: Exception) -> PointResult:
    """What an error makes of a point: out of memory, not supported here, or failed.

    Raises:
        DeviceLost: the error leaves the device unusable.
    """
    if is_out_of_memory(error):
        return _failed(point, "oom", "not enough memory on the device")
    if isinstance(error, DeviceLost):
        raise error
    if is_lost(error):
        raise DeviceLost(cleaned(error)) from error
    if lacks_compiler(error):
        return _failed(point, "unsupported", "torch.compile finds no working Triton, C compiler or Python headers")
    return _failed(point, "error", cleaned(error))


def trial_of(point: Point, device: Device) -> Trial:
    """A warm trial of a point, for work outside of a group."""
    point.recipe.activate()
    trial = point.build(device)
    for _ in range(3):
        trial.step(no_mark)
    return trial
