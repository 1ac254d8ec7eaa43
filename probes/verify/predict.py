"""Predictions of time, memory and energy of a step that has not been run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.measured.kernels import LinearFit, fit_linear
from planner.measured.layers.step_energy import fit_energy
from planner.measured.layers.steps import fit_step
from planner.measured.layers.workloads import DescribedWork
from planner.measured.rates import MeasuredRates
from planner.records.figures import PredictedFigures
from planner.records.measurement import Measurement


def predict(
    target: DescribedWork,
    tracked_bytes: float | None,
    anchors: Sequence[tuple[Measurement, float | None]],
    rates: MeasuredRates,
) -> PredictedFigures:
    """Predict a target from the anchors of its family.

    Args:
        target: the step to predict.
        tracked_bytes: tracked peak memory of the step on fake tensors; None if tracking failed.
        anchors: measured points with their own tracked peaks.
        rates: rates of kernels in the same record.
    """
    time_s, energy_j = _time_and_energy(target, [anchor for anchor, _ in anchors], rates)
    return PredictedFigures(
        time_s=time_s,
        memory_bytes=predict_memory(tracked_bytes, anchors),
        energy_j=energy_j,
        probe_ids=tuple(anchor.probe_id for anchor, _ in anchors),
    )


def _time_and_energy(
    target: DescribedWork, anchors: Sequence[Measurement], rates: MeasuredRates
) -> tuple[float | None, float | None]:
    """Return an iteration's seconds and joules: by kind of work at the power limit, else at the anchors' mean power."""
    fit = fit_step(anchors, rates)
    step = fit.seconds(target, rates) if fit else None
    if fit is None or step is None:
        return None, None
    energy = fit_energy(fit, anchors, rates)
    by_kind = energy.at_limit(target) if energy else None
    if by_kind is not None:
        return by_kind.time_s, by_kind.energy_j
    power_w = mean_power(anchors)
    return step.total_s, None if power_w is None else step.total_s * power_w


def predict_memory(tracked_bytes: float | None, anchors: Sequence[tuple[Measurement, float | None]]) -> float | None:
    """Return tracked memory, corrected by a linear fit of the anchors' measured peaks to their tracked peaks."""
    known = [(m.memory.allocated_peak_bytes, t, m.probe_id) for m, t in anchors if m.memory.allocated_peak_bytes and t]
    if not known or tracked_bytes is None:
        return None
    tracked = np.array([t for _, t, _ in known])
    fit: LinearFit = fit_linear(
        np.column_stack([tracked, np.ones(len(known))]),
        np.array([m for m, _, _ in known], dtype=np.float64),
        tracked[:, None],
        [probe_id for _, _, probe_id in known],
        [None] * len(known),
    )
    return float(np.dot(fit.coefficients, (tracked_bytes, 1.0)))


def mean_power(anchors: Sequence[Measurement]) -> float | None:
    """Return the mean power of the anchors whose energy was measured well, weighted by their windows."""
    good = [
        anchor for anchor in anchors if anchor.power.mean_w is not None and anchor.energy.quality in ("ok", "single")
    ]
    if not good:
        return None
    weights = [anchor.energy.window_s or 1.0 for anchor in good]
    return float(np.average([anchor.power.mean_w or 0.0 for anchor in good], weights=weights))
