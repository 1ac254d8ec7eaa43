"""The time of a training step that was not run, from small ones that were: kernels give the shape, anchors the scale.

For one recipe and one implementation of a model, forward and backward are fitted to anchors as non-negative
multiples of what the kernels of the same record predict (products, attention, memory traffic, a fixed cost per
layer), with a weak pull towards 1; what is left over at anchors is carried to near shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.measured.kernels import LinearFit, fit_linear, quiet_first
from planner.measured.phases import PhaseSeconds, pass_seconds, phase_seconds
from planner.measured.rates import MeasuredRates
from planner.measured.workloads import DescribedWork, PointWork, work_of
from planner.records.measurement import Measurement

PULL = 0.1
"""Weight of the pull towards 1: a component that is off by its whole expected share costs as much as a 10 % residual
of that share."""
KERNELS_FORWARD, KERNELS_BACKWARD = 15.0, 30.0
"""Kernels per layer of eager code, about; only the scale of the fixed cost's column."""
WEIGHT_PASSES_FORWARD, WEIGHT_PASSES_BACKWARD = 3.0, 5.0
"""Reads and writes of every weight: cast to the compute type; gradient written, cast, read and added."""
NOMINAL_LAUNCH_S = 5e-6
"""Time to launch a kernel in a record without it; only the scale of the fixed cost's column."""
RECOMPUTE_APART = 2.7
"""Distance of a checkpointed step from a plain one, as a factor of shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one step by phase."""

    forward_s: float
    backward_s: float
    optimizer_s: float
    closure: float
    """Whole step over the sum of its phases, at the anchors."""

    @property
    def total_s(self) -> float:
        """The whole step."""
        return (self.forward_s + self.backward_s + self.optimizer_s) * self.closure


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFit:
    """How steps of one recipe and implementation scale."""

    recipe: str
    forward: LinearFit
    backward: LinearFit
    optimizer: LinearFit | None
    closure: float
    probe_ids: tuple[str, ...]

    def seconds(self, target: DescribedWork, rates: MeasuredRates) -> StepTime | None:
        """Time of a step that was not run; None where its work is unknown."""
        work = work_of(target)
        if work is None:
            return None
        where = _shape(target)
        update = 0.0
        if self.optimizer is not None and work.params:
            update = self.optimizer.seconds((work.params, work.layers), (work.params,))
        return StepTime(
            forward_s=self.forward.seconds(_forward(rates, work, self.recipe), where),
            backward_s=self.backward.seconds(_backward(rates, work, self.recipe), where),
            optimizer_s=update,
            closure=self.closure,
        )


def fit_step(anchors: Sequence[Measurement], rates: MeasuredRates) -> StepFit | None:
    """Fit the anchors of one recipe and implementation; None where none has usable times."""
    known = [(point, work) for point in anchors if point.usable_time and (work := work_of(point)) is not None]
    quiet = {point.probe_id for point in quiet_first([point for point, _ in known])}
    timed = [
        (point, work)
        for point, work in known
        if point.time.forward_median_s and point.time.backward_median_s and point.probe_id in quiet
    ]
    if not timed:
        return None
    recipe = timed[0][0].setup.recipe or ""
    shapes = np.array([_shape(point) for point, _ in timed])
    ids = [point.probe_id for point, _ in timed]
    sds = [point.time_relative_sd for point, _ in timed]
    pull = PULL if rates.product_fits else 0.0  # a nominal rate is nothing to be pulled towards

    def fit(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> LinearFit:
        return fit_linear(np.array(columns), np.array(seconds), shapes, ids, sds, pull=pull)

    return StepFit(
        recipe=recipe,
        forward=fit([_forward(rates, w, recipe) for _, w in timed], [m.time.forward_median_s or 0.0 for m, _ in timed]),
        backward=fit(
            [_backward(rates, w, recipe) for _, w in timed], [m.time.backward_median_s or 0.0 for m, _ in timed]
        ),
        optimizer=_fit_update(timed),
        closure=float(np.median([_closure(point) for point, _ in timed])),
        probe_ids=tuple(ids),
    )


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


def _closure(point: Measurement) -> float:
    phases = (point.time.forward_median_s, point.time.backward_median_s, point.time.optimizer_median_s)
    return (point.time.median_s or 0.0) / sum(phase or 0.0 for phase in phases)


def _shape(point: DescribedWork) -> tuple[float, ...]:
    """Position of a point, for carrying residuals to near ones."""
    return (
        float(point.shape.tokens or 1),
        float(point.shape.seq_len or 1),
        float(point.shape.hidden or 1),
        float(point.shape.layers or 1),
        RECOMPUTE_APART if point.setup.recompute == "full" else 1.0,
    )


def _forward(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, ...]:
    """Columns of the forward phase, in seconds."""
    seconds = phase_seconds(rates, work, recipe)[0]
    return _columns(seconds, rates, work, recipe, kernels=KERNELS_FORWARD, weight_passes=WEIGHT_PASSES_FORWARD)


def _backward(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, ...]:
    """Columns of the backward phase, in seconds."""
    seconds = phase_seconds(rates, work, recipe)[1]
    kernels = KERNELS_BACKWARD + (KERNELS_FORWARD if work.recompute else 0.0)
    return _columns(seconds, rates, work, recipe, kernels=kernels, weight_passes=WEIGHT_PASSES_BACKWARD)


def _columns(
    seconds: PhaseSeconds,
    rates: MeasuredRates,
    work: PointWork,
    recipe: str,
    *,
    kernels: float,
    weight_passes: float,
) -> tuple[float, ...]:
    """Products, attention, traffic and launches of the layers; products and traffic of the ends."""
    traffic = seconds.traffic + weight_passes * work.weights * pass_seconds(rates, recipe)
    launch_s = rates.launch_s.value if rates.launch_s else NOMINAL_LAUNCH_S
    launches = kernels * work.layers * launch_s
    return (seconds.products, seconds.attention, traffic, launches, seconds.end_products, seconds.end_traffic)
