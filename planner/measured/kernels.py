"""Kernel time as a function of shape, fitted to the kernels of a record.

A matrix product takes `flop / rate + operand bytes / bandwidth + fixed`. The residuals at measured shapes are carried
to nearby shapes, so the prediction matches a measured shape almost exactly and rests on the fit alone far from all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp, log
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.measured.clocks import BURST_SD, clock_ratio, is_burst, median_clock_hz
from planner.records.measurement import Measurement

Floats = npt.NDArray[np.float64]
Number = TypeVar("Number", float, npt.NDArray[np.float64])

COMPUTE = {
    "fp32": "fp32",
    "tf32": "tf32",
    "fp16": "fp16",
    "bf16-autocast": "bf16",
    "bf16-fsdp": "bf16",
    "bf16-pure": "bf16",
    "fp8": "fp8",
    "fp8-rowwise": "fp8-rowwise",
    "mxfp8": "mxfp8",
}
"""Map from recipe to the compute type of its linear layers' matrix products."""
HIGH = {"fp8": "bf16", "fp8-rowwise": "bf16", "mxfp8": "bf16"}
"""Map from the compute type of low-precision products to that of the work kept in high precision (attention, output
layer). A type that is not listed maps to itself."""
ELEMENT_BYTES = {"fp32": 4.0, "tf32": 4.0, "fp8": 1.0, "fp8-rowwise": 1.0, "mxfp8": 1.0}
"""Bytes per element of an operand; 2 if not listed."""

CHECKED_BESIDE = {"fp16": "bf16"}
"""Map from a compute type that the probe runs at only a few shapes to a type on the same hardware units that it runs
beside it."""
ALONE_AS = CHECKED_BESIDE | {"fp8-rowwise": "fp8"}
"""Map from a compute type that never runs alone for seconds to the type whose clock and power are used in its place."""
GRADIENTS = ("dgrad", "wgrad")
"""Roles of the products that compute the gradients of a layer's input and weight."""
USUAL_HEAD = 128.0
"""Head size that is assumed if a record does not give it."""
LARGE_FLOP = 1e12
"""FLOP from which a burst is long enough to reach the power limit."""
REACH = 0.7
"""Length scale, in the logarithm of the shape, over which a measured residual is carried."""
PRIOR = 0.15
"""Weight of the fit itself (a residual of 0) against the residuals of nearby points."""
MOST_DISTANCES = 2**22
"""Most distances between shapes and points that are held at once. Without a limit, a record of tens of thousands of
points took gigabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFit:
    """Time in seconds as a non-negative linear combination of columns, with its residuals by shape."""

    coefficients: tuple[float, ...]
    points: Floats
    """Logarithms of the measured shapes, `[point, dimension]`."""
    residuals: Floats
    """Logarithm of measured over fitted time, `[point]`."""
    probe_ids: tuple[str, ...]
    measurement_sd: float
    """Root mean square of the points' own relative standard errors."""

    @property
    def spread(self) -> float:
        """Relative standard deviation of the fit, from its residuals and the measurement noise of its points."""
        free = max(len(self.residuals) - sum(c > 0 for c in self.coefficients), 1)
        return float(np.hypot(np.sqrt(np.sum(self.residuals**2) / free), self.measurement_sd))

    def seconds(self, columns: Sequence[float], shape: Sequence[float]) -> float:
        """Time at one shape: the fit, corrected by the residuals of nearby points."""
        return float(self.all_seconds(np.array([columns]), np.array([shape], dtype=np.float64))[0])

    def all_seconds(self, columns: Floats, shapes: Floats) -> Floats:
        """Times at many shapes, `[shape]`, from columns `[shape, column]` and shapes `[shape, dimension]`."""
        at_once = max(MOST_DISTANCES // len(self.points), 1)
        if len(shapes) <= at_once:
            return self._seconds_at(columns, shapes)
        parts = range(0, len(shapes), at_once)
        return np.concatenate(
            [self._seconds_at(columns[start : start + at_once], shapes[start : start + at_once]) for start in parts]
        )

    def _seconds_at(self, columns: Floats, shapes: Floats) -> Floats:
        positions = np.log(shapes)
        points = np.broadcast_to(self.points, (len(self.points), positions.shape[1]))
        pairs = zip(points.T, positions.T, strict=True)  # one dimension at a time: all at once take 3 times as long
        distance2 = sum(((point[None] - position[:, None]) ** 2 for point, position in pairs), np.zeros(1))
        weights = np.exp(-0.5 * distance2 / REACH**2) / (distance2 + 1e-3)
        correction = weights @ self.residuals / (weights.sum(axis=1) + PRIOR)
        return np.asarray(columns @ np.array(self.coefficients) * np.exp(correction))


def fit_linear(
    columns: Floats,
    seconds: Floats,
    shapes: Floats,
    probe_ids: Sequence[str],
    sds: Sequence[float | None],
    *,
    pull: float | Sequence[float] = 0.0,
) -> LinearFit:
    """Fit non-negative coefficients by least squares of the relative errors.

    Args:
        columns: `[point, column]`.
        seconds: `[point]`, positive.
        shapes: `[point, dimension]`, positive.
        probe_ids: `[point]`.
        sds: relative standard errors of the points; None if unknown.
        pull: strength of the pull of coefficients towards 1, as one number or `[column]`, for columns that are
            themselves predictions in seconds. A coefficient that is off by 1 costs as much as a relative residual of
            this size.
    """
    relative, target = columns / seconds[:, None], np.ones(len(seconds))
    pulls = np.broadcast_to(np.asarray(pull, dtype=np.float64), columns.shape[1:])
    if np.any(pulls > 0):
        relative, target = np.vstack([relative, np.diag(pulls)]), np.concatenate([target, pulls])
    coefficients = _non_negative(relative, target)
    residuals = np.log(seconds / np.maximum(columns @ coefficients, 1e-300))
    known = [sd for sd in sds if sd is not None]
    return LinearFit(
        coefficients=tuple(float(c) for c in coefficients),
        points=np.log(shapes),
        residuals=residuals,
        probe_ids=tuple(probe_ids),
        measurement_sd=float(np.sqrt(np.mean(np.square(known)))) if known else 0.0,
    )


def _non_negative(relative: Floats, target: Floats) -> Floats:
    """Solve `relative @ c = target` in least squares for `c >= 0` by trying every subset of the few columns."""
    rows, count = relative.shape
    if rows > count and (all_active := _solved(relative, target)) is not None and (all_active > 0).all():
        return all_active  # no subset of the columns fits better
    best, best_error = np.zeros(count), float("inf")
    for size in range(1, min(count, rows) + 1):
        for active in combinations(range(count), size):
            part = relative[:, list(active)]
            solved = _solved(part, target)
            if solved is None or not (solved >= 0).all():
                continue
            error = float(np.sum((part @ solved - target) ** 2))
            if error < best_error * (1 - 1e-9):
                best, best_error = np.zeros(count), error
                best[list(active)] = solved
    return best


def _solved(part: Floats, target: Floats) -> Floats | None:
    """Least squares with columns that differ by many orders of magnitude; None if a column is all zeros."""
    scale = np.linalg.norm(part, axis=0)
    if not scale.all():
        return None
    return np.asarray(np.linalg.lstsq(part / scale, target, rcond=None)[0] / scale)


def usable(points: Sequence[Measurement], kind: str) -> list[Measurement]:
    """Points of one kind that have a usable time."""
    return [point for point in points if point.kind == kind and point.usable_time]


def quiet_first(points: Sequence[Measurement]) -> list[Measurement]:
    """Points that were measured undisturbed, if there are at least two of them; otherwise all points.

    A contended point is slow by an unknown factor, so it must not bias a fit that quiet points alone can support.
    """
    quiet = [point for point in points if point.sampling.quality in (None, "ok")]
    return quiet if len(quiet) >= 2 else list(points)


def gradient_ratios(points: Sequence[Measurement]) -> dict[str, tuple[float, float]]:
    """Time of the input and weight gradients of a layer over that of its forward product, by compute type.

    All three have the same number of FLOP and mostly take the same time. On two H200 and an H100, the weight gradient
    took 1.3 to 1.6 times as long in TF32, and both gradients 1.5 to 2 times as long in FP8 with scales per row. The
    ratio is 1 if bursts at different clocks could explain the difference. Only large products count, because small
    ones differ in more than their role.
    """
    ratios = {}
    for compute in dict.fromkeys(COMPUTE.values()):
        times: dict[str, dict[tuple[float, ...], float]] = {}
        for point in usable(points, "gemm"):
            if computes_in(point, compute) and point.time.median_s and _is_large(point):
                times.setdefault(point.setup.role or "", {})[_layer_shape(point)] = point.time.median_s
        forward = times.get("forward", {})
        role_ratios = [
            [time_s / forward[shape] for shape, time_s in times.get(role, {}).items() if shape in forward]
            for role in GRADIENTS
        ]
        ratios[compute] = (_time_ratio(role_ratios[0]), _time_ratio(role_ratios[1]))
    return ratios


def _is_large(point: Measurement) -> bool:
    return (point.counts.flop_model or 0.0) >= LARGE_FLOP


def _time_ratio(ratios: Sequence[float]) -> float:
    """Geometric mean of ratios between pairs of bursts; 1 if it is within the usual scatter of bursts."""
    mean = log_mean(ratios)[0] if ratios else 1.0
    return mean if abs(log(mean)) > 2.0 * BURST_SD * (2.0 / max(len(ratios), 1)) ** 0.5 else 1.0


def fit_products(
    points: Sequence[Measurement], gradients: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, LinearFit]:
    """Fit matrix products by compute type, at its sustained clock.

    The columns are FLOP, operand bytes and 1; the shapes are `(m, n, k)`.

    Args:
        points: points of a record.
        gradients: the result of `gradient_ratios`, by which the times of gradients are divided; None treats all
            products alike.
    """
    bursts = {}
    for compute in dict.fromkeys(COMPUTE.values()):
        products = quiet_first([m for m in usable(points, "gemm") if computes_in(m, compute)])
        if products:
            time_ratios = dict(zip(GRADIENTS, (gradients or {}).get(compute, (1.0, 1.0)), strict=True))
            work = [(m.counts.flop_model or 0.0, m.counts.bytes_min or 0.0, 1.0) for m in products]
            bursts[compute] = fit_linear(
                np.array(work),
                np.array([(m.time.median_s or 0.0) / time_ratios.get(m.setup.role or "", 1.0) for m in products]),
                np.array([_product_shape(m) for m in products]),
                [m.probe_id for m in products],
                [m.time_relative_sd for m in products],
            )
    fits = {compute: _sustained(fit, bursts, compute, points) for compute, fit in bursts.items()}
    for compute, other in CHECKED_BESIDE.items():
        if compute in fits and other in fits and len(fits[compute].points) < len(fits[other].points):
            fits[compute] = _scaled_from(fits[compute], fits[other], points, compute, other)
    return fits


def _sustained(
    fit: LinearFit, bursts: Mapping[str, LinearFit], compute: str, points: Sequence[Measurement]
) -> LinearFit:
    """Scale a fit of bursts, which are too fast, to products of the same or a similar type that ran hot for seconds.

    The clocks of bursts cannot give the scale, because NVML lags behind and reports the clock of the work before
    (1905 MHz for FP8 after FP32 on an H100 that sustains 1320 MHz). If nothing ran hot, the fit keeps its level, with
    the uncertainty of a burst.
    """
    for kind in (compute, ALONE_AS.get(compute, compute)):
        hot = [m for m in usable(points, "power") if computes_in(m, kind) and m.shape.gemm_m and kind in bursts]
        if hot:
            ratios = [(m.time.median_s or 0.0) / product_seconds(bursts[kind], kind, *_product_shape(m)) for m in hot]
            level = log_mean(ratios)[0]
            ids = tuple(dict.fromkeys((*fit.probe_ids, *(m.probe_id for m in hot))))
            return replace(fit, coefficients=tuple(level * c for c in fit.coefficients), probe_ids=ids)
    if any(is_burst(m) for m in usable(points, "gemm") if computes_in(m, compute)):
        return replace(fit, measurement_sd=float(np.hypot(fit.measurement_sd, BURST_SD)))
    return fit


def _scaled_from(
    own_fit: LinearFit, other_fit: LinearFit, points: Sequence[Measurement], compute: str, other: str
) -> LinearFit:
    """Fit of another compute type, scaled by the time ratio at shared shapes; the type's own fit if none is shared."""
    times = {
        kind: {
            (m.setup.role, _layer_shape(m)): m.time.median_s or 0.0
            for m in usable(points, "gemm")
            if computes_in(m, kind)
        }
        for kind in (compute, other)
    }
    ratios = [time_s / times[other][product] for product, time_s in times[compute].items() if product in times[other]]
    if not ratios:
        return own_fit
    ratio, spread = log_mean(ratios)
    return replace(
        other_fit, coefficients=tuple(ratio * c for c in other_fit.coefficients),
        probe_ids=(*own_fit.probe_ids, *other_fit.probe_ids),
        measurement_sd=float(np.hypot(other_fit.measurement_sd, spread / len(ratios) ** 0.5)),
    )  # fmt: skip


def _layer_shape(point: Measurement) -> tuple[float, float, float]:
    """`(m, n, k)` of the layer whose product or gradient a point runs."""
    m, n, k = (float(size or 1) for size in (point.shape.gemm_m, point.shape.gemm_n, point.shape.gemm_k))
    return m, n, k


def _product_shape(point: Measurement) -> tuple[float, float, float]:
    """`(m, n, k)` of the product `[m, k] x [k, n]` that a point runs; a gradient permutes the sizes of its layer."""
    m, n, k = _layer_shape(point)
    return {"dgrad": (m, k, n), "wgrad": (n, k, m)}.get(point.setup.role or "", (m, n, k))


def computes_in(point: Measurement, compute: str) -> bool:
    """Whether the linear layers of a point compute in the given type."""
    return COMPUTE.get(point.setup.recipe or "") == compute


def sustained_clock_hz(points: Sequence[Measurement], compute: str) -> float | None:
    """Clock that products of a compute type sustain: alone if they ran hot for seconds, otherwise in whole layers."""
    return _held_hz(points, compute, alone_kind="power", burst_kind="gemm")


def attention_clock_hz(points: Sequence[Measurement], compute: str) -> float | None:
    """Clock that attention of a compute type sustains; attention draws less power than products."""
    return _held_hz(points, compute, alone_kind="attention", burst_kind="attention")


def _held_hz(points: Sequence[Measurement], compute: str, *, alone_kind: str, burst_kind: str) -> float | None:
    """Sustained clock of work that ran alone; otherwise that of layers, but at most the clock of its large bursts.

    Layers hold a higher clock while they cast or wait: eager FP8 layers ran at the full clock on an H100 whose FP8
    products sustained two thirds of it.
    """
    for kind in (compute, ALONE_AS.get(compute, compute)):
        held_hz = median_clock_hz(points, lambda m, kind=kind: m.kind == alone_kind and computes_in(m, kind))  # type: ignore[misc]
        if held_hz is not None:
            return held_hz
    in_layers_hz = median_clock_hz(points, lambda m: m.kind == "block" and computes_in(m, compute))
    if in_layers_hz is None:
        return None
    own_hz = [
        m.device_state.sm_clock_median_hz or in_layers_hz
        for m in points
        if m.kind == burst_kind and computes_in(m, compute) and _is_large(m) and clock_ratio(m, in_layers_hz)
    ]
    return min(in_layers_hz, float(np.median(own_hz))) if own_hz else in_layers_hz


def attention_columns(flop: Number, length: Number, head: Number) -> tuple[Number, Number, Number]:
    """Columns for the time of an attention kernel: its forward FLOP, FLOP over length, and FLOP over head size.

    The second column is linear in tokens, heads and head size. It covers the blocks on the diagonal and the traffic of
    queries, keys and values. The third is linear in the scores, whose exponentials cost the same at any head size. The
    fixed cost of a kernel is known from launches (`MeasuredRates.kernel_s`).
    """
    return flop, flop / length, flop / head


def attention_flop_per_s(fit: LinearFit) -> float | None:
    """Rate of long attention with heads of `USUAL_HEAD`; None if the fit assigns it no cost."""
    seconds_per_flop = fit.coefficients[0] + fit.coefficients[2] / USUAL_HEAD
    return 1.0 / seconds_per_flop if seconds_per_flop > 0 else None


def fit_attention(points: Sequence[Measurement], phase: str) -> dict[str, LinearFit]:
    """Fit one phase of attention by compute type: columns of `attention_columns`, shapes `(length, head size)`."""
    fits = {}
    for compute in ("fp32", "tf32", "fp16", "bf16"):
        timed = quiet_first([m for m in usable(points, "attention") if computes_in(m, compute)])
        times = [m.time.forward_median_s if phase == "forward" else m.time.backward_median_s for m in timed]
        known = [(m, t) for m, t in zip(timed, times, strict=True) if t]
        if known:
            flop = [(m.counts.flop_model or 0.0) / 3.0 for m, _ in known]
            lengths = np.array([m.shape.seq_len or 1 for m, _ in known], dtype=np.float64)
            heads = np.array([m.shape.head_dim or USUAL_HEAD for m, _ in known], dtype=np.float64)
            columns = np.column_stack(attention_columns(np.array(flop), lengths, heads))
            if np.all(heads == heads[0]):
                columns[:, 2] = 0.0  # a single head size cannot separate scores from FLOP
            fits[compute] = fit_linear(
                columns,
                np.array([t for _, t in known], dtype=np.float64),
                np.column_stack([lengths, heads]),
                [m.probe_id for m, _ in known],
                [m.time_relative_sd for m, _ in known],
            )
    return fits


def product_seconds(fit: LinearFit, compute: str, m: float, n: float, k: float) -> float:
    """Time of one product `[m, k] x [k, n]`."""
    size = ELEMENT_BYTES.get(compute, 2.0)
    moved = (m * k + n * k) * size + m * n * max(size, 2.0)
    return fit.seconds((2.0 * m * n * k, moved, 1.0), (m, n, k))


def log_mean(values: Sequence[float]) -> tuple[float, float]:
    """Geometric mean and relative standard deviation of positive values."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    return exp(float(np.mean(logs))), float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0
