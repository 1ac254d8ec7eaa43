"""From a timed point to its figures: its energy window or sustained run, and its trial's outcome.

```
on a GPU            timed in turns with others      afterwards                      the record holds
kernels             burst, clock and watts read     -                               burst
…, with energy_s    burst                           settled, then 3 s or longer     sustained, with energy
whole steps         burst                           settled, then a second or more  sustained, with watts
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from planner.lazy import dataclass
from planner.records.communication import OverlapFigures, RankFigures
from planner.records.figures import EnergyUse, PeakMemory, PowerDraw, Sampling, TimeStatistics
from probes.energy.monitor import DeviceMonitor
from probes.energy.window import (
    SETTLE_S,
    Window,
    WindowRules,
    device_state,
    energy_use,
    measure_rest,
    measure_window,
    power_draw,
    slowed_down,
)
from probes.record.figures import Figures
from probes.sensors.interface import State
from probes.session.bench import Bench, PointResult
from probes.timing.protocol import Subject, Timing
from probes.timing.regime import SUSTAINED_KINDS, SUSTAINED_SETTLE_S, sustained_s
from probes.timing.statistics import SampleSummary
from probes.timing.trial import Point, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A point with its trial, before its figures are known."""

    point: Point
    subject: Subject
    memory: PeakMemory = field(default_factory=PeakMemory)
    first_step_s: float = 0.0

    @property
    def trial(self) -> Trial:
        """The trial that is timed."""
        return self.subject.trial


def finish(built: Built, bench: Bench, timing: Timing, monitor: DeviceMonitor | None) -> PointResult:
    """Return all figures of one point, after its energy window or sustained run if it has one."""
    point, trial = built.point, built.trial
    time_s = time_statistics(timing, trial.steps)
    sampling = sampling_of(timing, trial.steps)
    if point.setup.compiled:
        sampling = replace(sampling, compile_s=max(built.first_step_s, timing.first_call_s))
    states, power = _burst(built, bench, monitor)
    energy = EnergyUse() if bench.no_sensor is None else EnergyUse(source="none", reason=bench.no_sensor)
    trace = None
    rules = _window_rules(point, bench, timing.summary.median_s)
    if rules is not None:
        window, time_s, sampling = _in_window(built, bench, rules, timing, sampling)
        states, power = window.states, PowerDraw(instant_mean_w=window.power.instant_mean_w)
        if bench.sensor is not None and point.energy_s:
            energy, power = energy_use(window.power, bench.sensor.scope, time_s.median_s), power_draw(window.power)
            trace = window.trace
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
        ranks=_own_rank_figures(timing, trial.steps) if bench.team.size > 1 else RankFigures(),
        overlap=overlap_of(timing.phases_s),
    )
    return PointResult(point=point, figures=figures, trace=trace)


def overlap_of(phases_s: Mapping[str, float]) -> OverlapFigures:
    """Return the figures of an overlap trial from its phases; no figures for other trials.

    The collectives outlast the products, so collectives ran beside the products all the time, and the collectives left
    after the products ran at their own speed.
    """
    if "product_alone" not in phases_s:
        return OverlapFigures()
    beside_s, left_s = phases_s["product_beside"], phases_s["collective_left"]
    done_s = phases_s["collective_alone"] - left_s
    return OverlapFigures(
        product_alone_s=phases_s["product_alone"],
        collective_alone_s=phases_s["collective_alone"],
        product_beside_s=beside_s,
        both_s=beside_s + left_s,
        product_slowdown_ratio=beside_s / phases_s["product_alone"],
        collective_slowdown_ratio=beside_s / done_s if done_s > 0.0 else None,
    )


def _own_rank_figures(timing: Timing, steps: int) -> RankFigures:
    """Return this rank's time; its other figures are those of the point until all ranks are joined."""
    return RankFigures(time_s=() if timing.own_median_s is None else (timing.own_median_s / steps,))


def _burst(built: Built, bench: Bench, monitor: DeviceMonitor | None) -> tuple[tuple[State, ...], PowerDraw]:
    """Return the device's states and power while a point was timed; its present state if it was not watched."""
    if bench.sensor is None or bench.device.kind != "cuda":
        return (), PowerDraw()
    states = monitor.states_of(built.trial) if monitor else ()
    return states or (bench.sensor.state(),), monitor.power_of(built.trial) if monitor else PowerDraw()


def _window_rules(point: Point, bench: Bench, step_s: float) -> WindowRules | None:
    """Return the window of a point whose steps take `step_s`; None if its burst suffices."""
    if point.energy_s and bench.sensor is not None:
        return WindowRules(window_s=point.energy_s, settle_s=SETTLE_S, reheat_to_c=bench.soak_c)
    if bench.device.kind == "cuda" and point.kind in SUSTAINED_KINDS:
        return WindowRules(window_s=sustained_s(step_s), settle_s=SUSTAINED_SETTLE_S, reheat_to_c=bench.soak_c)
    return None


def _in_window(
    built: Built, bench: Bench, rules: WindowRules, timing: Timing, sampling: Sampling
) -> tuple[Window, TimeStatistics, Sampling]:
    """Measure a window; return it with its times (phases included) and their sampling, judged for other load too."""
    point, steps, burst_s = built.point, built.trial.steps, timing.summary.median_s
    gate = bench.gate_of([point])
    start = gate.open() if gate else None
    window = measure_window(
        built.trial,
        point.recipe,
        bench.together(bench.device.clock),
        bench.sensor,
        rules,
        guess_s=burst_s,
        rng=bench.rng,
    )
    load = gate.judge(start) if gate else None
    if window.timing is None:
        return window, time_statistics(timing, steps), sampling
    sampling = replace(
        sampling,
        samples=window.timing.samples,
        regime="sustained",
        stop_reason="window",
        quality="ok" if gate is None or gate.accepts(load) else "contended",
        other_load_ratio=load,
    )
    hosts_s = [host_s for host_s in (window.host_s, timing.host_median_s) if host_s is not None]
    times = _with_phases(window.timing, window.phases_s, steps, min(hosts_s, default=None))
    times = replace(times, burst_median_s=burst_s / steps)
    return window, times, sampling


def rested(built: Built, bench: Bench) -> PointResult:
    """Return the power of a device that does nothing."""
    if bench.sensor is None:
        figures = Figures(status="unsupported", reason=bench.no_sensor or "no sensor")
        return PointResult(point=built.point, figures=figures)
    window = measure_rest(built.trial, built.point.recipe, bench.sensor, built.point.energy_s)
    figures = Figures(
        status="ok",
        energy=energy_use(window.power, bench.sensor.scope, None),
        power=power_draw(window.power, idle=True),
        device_state=device_state(window.states),
    )
    return PointResult(point=built.point, figures=figures, trace=window.trace)


def time_statistics(timing: Timing, steps: int = 1) -> TimeStatistics:
    """Return the times of one iteration; `steps` is the number of iterations per timed step."""
    return _with_phases(timing.summary, timing.phases_s, steps, timing.host_median_s)


def sampling_of(timing: Timing, steps: int = 1) -> Sampling:
    """Return how a trial's times were sampled."""
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
        canary_ratio=timing.canary_ratio,
        clock="canary" if timing.canary_ratio is not None else None,
    )


def _with_phases(
    summary: SampleSummary, phases_s: dict[str, float], steps: int, host_s: float | None
) -> TimeStatistics:
    """Return the median, its interval and the spread per iteration; phases are per iteration already."""
    return TimeStatistics(
        median_s=summary.median_s / steps,
        ci_low_s=summary.ci_low_s / steps,
        ci_high_s=summary.ci_high_s / steps,
        iqr_s=summary.iqr_s / steps,
        p05_s=summary.p05_s / steps,
        p95_s=summary.p95_s / steps,
        min_s=summary.min_s / steps,
        forward_median_s=phases_s.get("forward"),
        backward_median_s=phases_s.get("backward"),
        optimizer_median_s=phases_s.get("optimizer"),
        host_median_s=None if host_s is None else host_s / steps,
    )
