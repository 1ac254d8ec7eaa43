"""Time of a training step that was not run, from small steps that were: kernels give the shape, anchors the scale.

For one recipe and one implementation of a model, the forward and backward times of anchors are fitted as non-negative
multiples of the times that the kernels of the same record predict, pulled towards 1. A few anchors support only a few
multiples. Leave-one-out errors choose which kinds of work share a multiple (`GROUPINGS`). On a GPU, a step takes as
long as the device or the host, whichever is slower. The residuals at anchors are carried to nearby shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.lazy import dataclass
from planner.measured.clocks import clock_ratio, known_sd, median_clock_hz
from planner.measured.kernels import Floats, LinearFit, fit_linear, quiet_first
from planner.measured.layers.host import Launched, host_time, launched, layer_kernels, step_kernels
from planner.measured.layers.phases import copy_bytes_per_s, phase_seconds
from planner.measured.layers.workloads import DescribedWork, PointWork, work_of
from planner.measured.rates import HostTime, MeasuredRates
from planner.records.measurement import Measurement

HOST_BOUND = 0.97
"""Ratio of host time to step time from which the host counts as the bottleneck."""
AUTOCAST = ("fp16", "bf16-autocast")
"""Recipes whose weights are cast to 16 bits in the forward pass."""
CAST_BYTES = 6.0
"""Bytes of traffic to read a weight in 32 bits and write it in 16, or to convert its gradient the other way round."""
IN_PLACE = ("fp32", "tf32", "bf16-pure")
"""Recipes whose gradients keep the data type in which they are computed."""
NOMINAL_LAUNCH_S = 5e-6
"""Launch time of a kernel that is assumed if a record has none. It only scales the column of the fixed cost."""
RECOMPUTE_APART = 2.7
"""Factor in shape that separates a checkpointed step from a plain one, for carrying residuals."""

PRODUCTS, ATTENTION, TRAFFIC, CASTS, FIXED, END_PRODUCTS, END_TRAFFIC = range(7)
"""Kinds of work of a phase, as indices into arrays of seconds, `[kind]`."""
LAYERS, ENDS = (PRODUCTS, CASTS, ATTENTION, TRAFFIC), (END_PRODUCTS, END_TRAFFIC)
Grouping = tuple[tuple[int, ...], ...]
TOGETHER: Grouping = ((*LAYERS, *ENDS),)
"""Grouping for a single anchor: all kinds of work share one multiple."""
GROUPINGS: tuple[Grouping, ...] = (
    ((*LAYERS, FIXED), ENDS),
    (LAYERS, (FIXED,), ENDS),
    ((PRODUCTS, CASTS, ATTENTION), (TRAFFIC, FIXED), ENDS),
)
"""Candidates for which kinds of work share a multiple, with the fewest multiples first."""
RESIDUAL_SD = 0.02
"""Relative error of a step's time that the kinds of work leave unexplained."""
MEASURED_SD, GUESSED_SD = 0.1, 1.0
"""Prior standard deviations of a multiple. Products and attention were measured directly; the memory traffic and the
number of kernels of a library are guesses. Neither is widened for a kind that takes little of the anchors' time, since
it may take much of a target's."""
PULLS = dict.fromkeys((PRODUCTS, CASTS, ATTENTION, END_PRODUCTS), RESIDUAL_SD / MEASURED_SD) | dict.fromkeys(
    (TRAFFIC, FIXED, END_TRAFFIC), RESIDUAL_SD / GUESSED_SD
)
"""Pull of a multiple towards 1, by kind of work. If several kinds share a multiple, the weakest pull applies: that of
the least certain kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one step, by phase."""

    forward_s: float
    backward_s: float
    optimizer_s: float
    closure: float
    """Time of the whole step over the sum of its phases, measured at the anchors."""
    host_s: float
    """Host time to launch the step; 0 if the host does not launch ahead."""
    kinds_s: tuple[float, ...]
    """Forward plus backward seconds by kind of work, at the clock for which the rates hold, `[kind]`; memory traffic is
    as fitted."""

    @property
    def device_s(self) -> float:
        """Time of the whole step if the host is never late."""
        return (self.forward_s + self.backward_s + self.optimizer_s) * self.closure

    @property
    def total_s(self) -> float:
        """Time of the whole step: that of the device or of the host, whichever is longer."""
        return max(self.device_s, self.host_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A step as its kernels predict it and, for an anchor, as it was measured."""

    forward: Floats
    """Predicted seconds by kind of work, `[kind]`."""
    backward: Floats
    kernels: float
    """Approximate number of kernels that the host launches."""
    shape: tuple[float, ...]
    """Position in shape space, for carrying residuals to nearby shapes."""
    forward_s: float = 0.0
    """Measured seconds. All following fields are measured, too."""
    backward_s: float = 0.0
    update_s: float = 0.0
    host: Launched | None = None
    """Host time to launch the step; None if the record does not hold it."""
    probe_id: str = ""
    relative_sd: float | None = None

    @property
    def total_s(self) -> float:
        """Measured time of all phases."""
        return self.forward_s + self.backward_s + self.update_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceFit:
    """How forward and backward scale on the device."""

    grouping: Grouping
    forward: LinearFit
    backward: LinearFit

    def kinds_s(self, step: _Step) -> tuple[float, ...]:
        """Forward plus backward time by kind of work, `[kind]`: arithmetic as measured alone, traffic as fitted.

        A product that takes longer than alone is waiting, whereas extra time in memory traffic is extra traffic.
        """
        total = step.forward + step.backward
        for number, group in enumerate(self.grouping):
            for kind in set(group) & {TRAFFIC, END_TRAFFIC}:
                forward, backward = (fit.coefficients[number] for fit in (self.forward, self.backward))
                total[kind] = forward * step.forward[kind] + backward * step.backward[kind]
        return tuple(float(seconds) for seconds in total)

    def seconds(self, step: _Step) -> tuple[float, float]:
        """Forward and backward time of a step."""
        forward_s = self.forward.seconds(_grouped(step.forward, self.grouping), step.shape)
        return forward_s, self.backward.seconds(_grouped(step.backward, self.grouping), step.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFit:
    """How steps of one recipe and implementation scale."""

    recipe: str
    device: _DeviceFit
    host: HostTime
    """Host time; zero on a CPU, where launches are part of the work."""
    clock_hz: float | None
    """Clock that the anchors which ran hot held."""
    optimizer: LinearFit | None
    closure: float
    probe_ids: tuple[str, ...]

    def seconds(self, target: DescribedWork, rates: MeasuredRates, clock_hz: float | None = None) -> StepTime | None:
        """Time of a step that was not run; None if its work is unknown.

        Args:
            target: the step.
            rates: rates of the same record.
            clock_hz: clock at which the step runs; None means the clock that the anchors held.
        """
        work = work_of(target)
        if work is None:
            return None
        step = _described(target, work, rates, self.recipe, clock_hz or self.clock_hz)
        forward_s, backward_s = self.device.seconds(step)
        update_s = 0.0
        if self.optimizer is not None and work.params:
            update_s = self.optimizer.seconds((work.params, work.layers), (work.params,))
        return StepTime(
            forward_s=forward_s,
            backward_s=backward_s,
            optimizer_s=update_s,
            closure=self.closure,
            host_s=self.host.seconds(step.kernels),
            kinds_s=self.device.kinds_s(_described(target, work, rates, self.recipe, None)),
        )


def fit_step(anchors: Sequence[Measurement], rates: MeasuredRates) -> StepFit | None:
    """Fit the anchors of one recipe and implementation; None if none of them has usable times."""
    known = [(point, work) for point in anchors if point.usable_time and (work := work_of(point)) is not None]
    quiet = {point.probe_id for point in _comparable([point for point, _ in known])}
    timed = [
        (point, work)
        for point, work in known
        if point.time.forward_median_s and point.time.backward_median_s and point.probe_id in quiet
    ]
    if not timed:
        return None
    recipe = timed[0][0].setup.recipe or ""
    clock_hz = median_clock_hz([point for point, _ in timed], lambda _: True)
    steps = [_anchor(point, work, rates, recipe, clock_hz) for point, work in timed]
    on_gpu = timed[0][0].device.kind == "cuda"
    host = HostTime(step_s=0.0, launch_s=0.0)
    if on_gpu:
        host = host_time((step.host for step in steps), min(step.total_s / step.kernels for step in steps), rates)
    # Predictions from a nominal rate are no reason to pull multiples towards 1.
    device = _chosen(_bound_by_device(steps, host), pulled=bool(rates.product_fits))
    return StepFit(
        recipe=recipe,
        device=device,
        host=host,
        clock_hz=clock_hz,
        optimizer=_fit_update(timed),
        closure=float(np.median([_closure(point) for point, _ in timed])),
        probe_ids=tuple(step.probe_id for step in steps),
    )


def _bound_by_device(steps: Sequence[_Step], host: HostTime) -> list[_Step]:
    """Anchors that the host did not delay; all anchors if none remain, or only one and the host time is a guess."""

    def host_s(step: _Step) -> float:
        usual_s = host.seconds(step.kernels)
        return min(step.host.host_s, usual_s) if step.host else usual_s  # a single sample may itself be delayed

    free = [step for step in steps if host_s(step) < HOST_BOUND * step.total_s]
    is_measured = all(step.host is not None for step in steps)
    return free if len(free) >= (1 if is_measured else 2) else list(steps)


def _chosen(steps: Sequence[_Step], *, pulled: bool) -> _DeviceFit:
    """Fit with the grouping that predicts left-out anchors best."""
    groupings = [grouping for grouping in GROUPINGS if len(grouping) <= len(steps)] or [TOGETHER]
    return _fit(steps, min(groupings, key=lambda g: _left_out_error(steps, g, pulled=pulled)), pulled=pulled)


def _left_out_error(steps: Sequence[_Step], grouping: Grouping, *, pulled: bool) -> float:
    """Mean squared log error of each anchor's forward plus backward time, predicted from the other anchors."""
    if len(steps) == 1:
        return 0.0
    misses = []
    for left_out in steps:
        fit = _fit([step for step in steps if step is not left_out], grouping, pulled=pulled)
        misses.append(np.log(sum(fit.seconds(left_out)) / (left_out.forward_s + left_out.backward_s)))
    return float(np.mean(np.square(misses)))


def _fit(steps: Sequence[_Step], grouping: Grouping, *, pulled: bool) -> _DeviceFit:
    shapes = np.array([step.shape for step in steps])
    ids, sds = [step.probe_id for step in steps], [step.relative_sd for step in steps]
    pull = [min(PULLS[kind] for kind in group) if pulled else 0.0 for group in grouping]

    def fit(kinds: Sequence[Floats], seconds: Sequence[float]) -> LinearFit:
        columns = np.array([_grouped(step_kinds, grouping) for step_kinds in kinds])
        return fit_linear(columns, np.array(seconds), shapes, ids, sds, pull=pull)

    return _DeviceFit(
        grouping=grouping,
        forward=fit([step.forward for step in steps], [step.forward_s for step in steps]),
        backward=fit([step.backward for step in steps], [step.backward_s for step in steps]),
    )


def _grouped(kinds: Floats, grouping: Grouping) -> list[float]:
    """Columns of a fit: the summed seconds of the kinds of work that share a multiple."""
    return [float(kinds[list(group)].sum()) for group in grouping]


def _fit_update(timed: Sequence[tuple[Measurement, PointWork]]) -> LinearFit | None:
    updates = [(m, w) for m, w in timed if m.time.optimizer_median_s and w.params]
    if not updates:
        return None
    return fit_linear(
        np.array([[w.params, w.layers] for _, w in updates]),
        np.array([m.time.optimizer_median_s for m, _ in updates], dtype=np.float64),
        np.array([[w.params] for _, w in updates]),
        [m.probe_id for m, _ in updates],
        [m.time_relative_sd for m, _ in updates],
    )


def _comparable(points: Sequence[Measurement]) -> list[Measurement]:
    """Quiet points; all points if every one was timed against a canary, which corrects for contention.

    The time of such a point was divided by the slowdown of the canary, a fixed product that ran beside it.
    """
    if all(point.sampling.clock == "canary" for point in points):
        return list(points)
    return quiet_first(points)


def _closure(point: Measurement) -> float:
    phases = (point.time.forward_median_s, point.time.backward_median_s, point.time.optimizer_median_s)
    return (point.time.median_s or 0.0) / sum(phase or 0.0 for phase in phases)


def _shape(point: DescribedWork) -> tuple[float, ...]:
    """Position of a point in shape space, for carrying residuals to nearby points."""
    return (
        float(point.shape.tokens or 1),
        float(point.shape.seq_len or 1),
        float(point.shape.hidden or 1),
        float(point.shape.layers or 1),
        RECOMPUTE_APART if point.setup.recompute == "full" else 1.0,
    )


def _anchor(point: Measurement, work: PointWork, rates: MeasuredRates, recipe: str, held_hz: float | None) -> _Step:
    """Describe an anchor at its own clock or, if that is unknown, at the clock that its family held."""
    known = clock_ratio(point, held_hz) is not None
    clock_hz = point.device_state.sm_clock_median_hz if known else held_hz
    return replace(
        _described(point, work, rates, recipe, clock_hz),
        forward_s=point.time.forward_median_s or 0.0,
        backward_s=point.time.backward_median_s or 0.0,
        update_s=point.time.optimizer_median_s or 0.0,
        host=launched(point, work),
        probe_id=point.probe_id,
        relative_sd=known_sd(point, 1.0 if known else None),
    )


def _described(
    point: DescribedWork, work: PointWork, rates: MeasuredRates, recipe: str, clock_hz: float | None
) -> _Step:
    """Describe a step by kind of work and phase, at a given clock."""
    kernels = layer_kernels(work, recipe)
    gap = rates.kernel_s or rates.launch_s  # only a GPU has both, and launches on the host are not device work
    forward, backward = (
        np.array([
            phase.products, phase.attention, phase.traffic + copied / copy_bytes_per_s(rates), phase.casts,
            count * (gap.value if gap else NOMINAL_LAUNCH_S), phase.end_products, phase.end_traffic,
        ])
        for phase, copied, count in zip(
            phase_seconds(rates, work, recipe, clock_hz), _weight_bytes(work, recipe), kernels, strict=True
        )
    )  # fmt: skip
    return _Step(forward=forward, backward=backward, kernels=step_kernels(work, recipe), shape=_shape(point))


def _weight_bytes(work: PointWork, recipe: str) -> tuple[float, float]:
    """Bytes of traffic to cast the layers' weights in the forward pass, and their gradients in the backward pass."""
    forward = CAST_BYTES if recipe in AUTOCAST else 0.0
    backward = 0.0 if recipe in IN_PLACE else CAST_BYTES
    return forward * work.weights, backward * work.weights
