"""The time of a training step that was not run, from small ones that were: kernels give the shape, anchors the scale.

For one recipe and one implementation of a model, forward and backward are fitted to anchors as non-negative
multiples of what the kernels of the same record predict (products, attention, memory traffic, a fixed cost per
layer), with a weak pull towards 1; what is left over at anchors is carried to near shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.measured.device import MeasuredRates
from planner.measured.kernels import COMPUTE, ELEMENT_BYTES, HIGH, LinearFit, fit_linear, product_seconds, quiet_first
from planner.measured.workloads import FLASH_BACKWARD, PointWork, work_of
from planner.records.measurement import Measurement

PULL = 0.1
"""Weight of the pull towards 1: a component that is off by its whole expected share costs as much as a 10 % residual
of that share."""
KERNELS_FORWARD, KERNELS_BACKWARD = 15.0, 30.0
"""Kernels per layer of eager code, about; only the scale of the fixed cost's column."""
WEIGHT_PASSES_FORWARD, WEIGHT_PASSES_BACKWARD = 3.0, 5.0
"""Reads and writes of every weight: cast to the compute type; gradient written, cast, read and added."""
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

    def seconds(self, target: Measurement, rates: MeasuredRates) -> StepTime | None:
        """Time of a target; only the fields of its shape are read. None where its work is unknown."""
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
    """Fit the anchors of one recipe and implementation; None where there is none to rest on."""
    known = [(one, work) for one in anchors if one.usable_time and (work := work_of(one)) is not None]
    quiet = {one.probe_id for one in quiet_first([one for one, _ in known])}
    timed = [
        (one, work)
        for one, work in known
        if one.time_forward_median_s and one.time_backward_median_s and one.probe_id in quiet
    ]
    if not timed:
        return None
    recipe = timed[0][0].recipe or ""
    shapes = np.array([_shape(one) for one, _ in timed])
    ids = [one.probe_id for one, _ in timed]
    sds = [one.time_relative_sd for one, _ in timed]
    pull = PULL if rates.product_fits else 0.0  # a nominal rate is nothing to be pulled towards

    def fit(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> LinearFit:
        return fit_linear(np.array(columns), np.array(seconds), shapes, ids, sds, pull=pull)

    return StepFit(
        recipe=recipe,
        forward=fit([_forward(rates, w, recipe) for _, w in timed], [m.time_forward_median_s or 0.0 for m, _ in timed]),
        backward=fit(
            [_backward(rates, w, recipe) for _, w in timed], [m.time_backward_median_s or 0.0 for m, _ in timed]
        ),
        optimizer=_fit_update(timed),
        closure=float(np.median([_closure(one) for one, _ in timed])),
        probe_ids=tuple(ids),
    )


def _fit_update(timed: Sequence[tuple[Measurement, PointWork]]) -> LinearFit | None:
    updates = [(m, w) for m, w in timed if m.time_optimizer_median_s and w.params]
    if not updates:
        return None
    return fit_linear(
        np.array([[w.params, w.layers] for _, w in updates]),
        np.array([m.time_optimizer_median_s for m, _ in updates], dtype=np.float64),
        np.array([[w.params] for _, w in updates]),
        [m.probe_id for m, _ in updates],
        [m.time_relative_sd for m, _ in updates],
    )


def _closure(one: Measurement) -> float:
    phases = (one.time_forward_median_s, one.time_backward_median_s, one.time_optimizer_median_s)
    return (one.time_median_s or 0.0) / sum(phase or 0.0 for phase in phases)


def _shape(one: Measurement) -> tuple[float, ...]:
    """Where a point stands, for carrying residuals to near ones."""
    return (
        float(one.tokens or 1),
        float(one.seq_len or 1),
        float(one.hidden or 1),
        float(one.layers or 1),
        RECOMPUTE_APART if one.recompute == "full" else 1.0,
    )


def _forward(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, ...]:
    """Products, attention, traffic and fixed cost of the layers; products and traffic of the ends."""
    layers, edges = _product_columns(rates, work, recipe)
    attention = _attention_columns(rates, work, recipe)[0]
    each = _pass_s(rates, recipe)
    traffic = 0.4 * work.element_passes + WEIGHT_PASSES_FORWARD * work.weights
    kernels = KERNELS_FORWARD * work.layers * _launch_s(rates)
    return (layers, attention, traffic * each, kernels, edges, 0.4 * work.edge_passes * each)


def _backward(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, ...]:
    """With the forward pass of the layers once more where activations are checkpointed."""
    layers, edges = _product_columns(rates, work, recipe)
    forward, backward = _attention_columns(rates, work, recipe)
    again = 1.0 if work.recompute else 0.0
    each = _pass_s(rates, recipe)
    traffic = (0.6 + 0.4 * again) * work.element_passes + WEIGHT_PASSES_BACKWARD * work.weights
    kernels = (KERNELS_BACKWARD + again * KERNELS_FORWARD) * work.layers * _launch_s(rates)
    return (
        (2.0 + again) * layers,
        backward + again * forward,
        traffic * each,
        kernels,
        2.0 * edges,
        0.6 * work.edge_passes * each,
    )


def _product_columns(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float]:
    """Forward products of the layers and of the ends; by a nominal rate where a kind was not measured."""
    compute = COMPUTE.get(recipe, recipe)
    total = [0.0, 0.0]
    for place, products in enumerate((work.products, work.edge_products)):
        for one in products:
            key = compute if one.low else HIGH.get(compute, compute)
            fit = rates.product_fits.get(key)
            each = (
                product_seconds(fit, key, one.m, one.n, one.k) if fit else 2.0 * one.m * one.n * one.k / _nominal(rates)
            )
            total[place] += one.count * each
    return total[0], total[1]


def _attention_columns(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float]:
    compute = COMPUTE.get(recipe, recipe)
    fits = rates.attention_fits.get(HIGH.get(compute, compute))
    if not work.attention_flop:
        return 0.0, 0.0
    if fits is None:
        forward = work.attention_flop / _nominal(rates)
        return forward, FLASH_BACKWARD * forward
    columns = (work.attention_flop / work.layers, 1.0)
    forward, backward = (work.layers * fit.seconds(columns, (work.attention_tokens,)) for fit in fits)
    return forward, backward


def _nominal(rates: MeasuredRates) -> float:
    """Some rate for kinds that were not measured; the anchors set its scale."""
    best = [one.value for one in rates.best_matmul_flop_per_s.values()]
    return max(best) if best else 1e12


def _pass_s(rates: MeasuredRates, recipe: str) -> float:
    size = max(ELEMENT_BYTES.get(COMPUTE.get(recipe, recipe), 2.0), 2.0)
    eager = rates.memory_bytes_per_s.get("eager")
    bandwidth = eager or rates.copy_bytes_per_s
    return size / (bandwidth.value if bandwidth else 1e11)


def _launch_s(rates: MeasuredRates) -> float:
    return rates.launch_s.value if rates.launch_s else 5e-6
