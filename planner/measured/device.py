"""Rates of a device from one record: the planner's best evidence.

Rates of matrix products come from least squares over the measured products (`kernels`), bandwidths and powers from
order statistics, and the composition ratio from layers measured whole, compared with the sum of their kernels
(`composition`). Every value carries its relative standard deviation and the points it rests on. Quantities that were
not measured are absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from planner.errors import InputFileError
from planner.evidence import Evidence, EvidenceKind
from planner.measured.kernels import (
    COMPUTE,
    LinearFit,
    attention_clock_hz,
    attention_flop_per_s,
    fit_attention,
    fit_products,
    gradient_ratios,
    sustained_clock_hz,
    usable,
)
from planner.measured.layers.composition import composition_ratios, layer_clocks_hz
from planner.measured.layers.layer_power import layer_powers
from planner.measured.layers.power import attention_powers, measured_powers
from planner.measured.layers.traffic import layer_bandwidths
from planner.measured.memory import context_bytes, fragmentation_ratios
from planner.measured.rates import LayerRun, MeasuredRates, MeasuredValue, Values
from planner.performance.compute import FLASH_BACKWARD
from planner.records.measurement import Measurement
from planner.records.store import fleet_size, gpu_of
from planner.records.summary import last_limit_w

CASTS = {"cast_fp8_tensorwise": "fp8", "cast_fp8_rowwise": "fp8-rowwise"}
"""Memory-bound operations that only FP8 has, mapped to the recipe that uses them."""


def measured_rates(records: Iterable[Measurement]) -> MeasuredRates:
    """Derive all rates from the points of one record.

    Raises:
        InputFileError: there are no points.
    """
    points = tuple(records)
    if not points:
        raise InputFileError("the record contains no usable point", hint="measure again with `mpplan probe`")
    last = points[-1]
    gradients = gradient_ratios(points)
    products = fit_products(points, gradients)
    forward, backward = fit_attention(points, "forward"), fit_attention(points, "backward")
    rates = MeasuredRates(
        gpu=gpu_of(last),
        device_name=last.device.name,
        run_id=last.run_id,
        date=max((point.timestamp_utc for point in points if point.timestamp_utc), default=None),
        torch_version=last.software.torch_version,
        driver_version=last.software.driver_version,
        matmul_flop_per_s=_inverse(products, 0),
        operand_bytes_per_s=_inverse(products, 1),
        best_matmul_flop_per_s=_best(points),
        attention_forward_flop_per_s=_attention(forward),
        attention_backward_flop_per_s=_attention(backward, scale=FLASH_BACKWARD),
        copy_bytes_per_s=_copy(points),
        memory_bytes_per_s=layer_bandwidths(points),
        cast_s=_casts(points),
        kernel_s=_launch(points, "graph"),
        launch_s=_launch(points, "host"),
        optimizer_s_per_param=_optimizers(points),
        optimizer_state_bytes_per_param=_states(points),
        power_w=measured_powers(points),
        attention_power=attention_powers(points),
        composition_ratio={},
        product_fits=products,
        gradient_ratios=gradients,
        sustained_clock_hz={
            compute: clock_hz for compute in products if (clock_hz := sustained_clock_hz(points, compute)) is not None
        },
        attention_clock_hz={
            compute: clock_hz for compute in forward if (clock_hz := attention_clock_hz(points, compute)) is not None
        },
        layer_clock_hz=layer_clocks_hz(points),
        full_clock_hz=max((point.device_state.sm_clock_median_hz or 0.0 for point in points), default=0.0) or None,
        power_limit_w=last_limit_w(points),
        fleet=fleet_size(points),
        imported=_imported(points),
        context_bytes=context_bytes(points),
        fragmentation_ratios=fragmentation_ratios(points),
        attention_fits={key: (forward[key], backward[key]) for key in forward if key in backward},
    )
    return replace(rates, composition_ratio=composition_ratios(rates, points), layer_power=layer_powers(rates, points))


def evidence_of(rates: MeasuredRates, kind: EvidenceKind = EvidenceKind.MEASURED) -> Evidence:
    """Describe the record behind the rates as one piece of evidence."""
    device = f"slowest of {rates.fleet} {rates.device_name}" if rates.fleet else rates.device_name
    measured = f"{device} measured with torch {rates.torch_version or 'of unknown version'}"
    return Evidence(
        id=f"record:{rates.run_id[:8]}",
        kind=kind,
        what=measured if rates.imported is None else f"{rates.device_name}: imported, not measured by mpplan",
        source=rates.imported or f"mpplan probe, run {rates.run_id[:8]}",
        date=rates.date,
        gpu=rates.gpu,
        public=kind is EvidenceKind.SHIPPED,
    )


def _imported(points: Sequence[Measurement]) -> str | None:
    """Tools and files that points were imported from; None if no point was imported."""
    files = dict.fromkeys(f"{p.imported.tool} ({p.imported.file})" for p in points if p.imported.tool is not None)
    return ", ".join(files) or None


def _attention(fits: dict[str, LinearFit], scale: float = 1.0) -> Values:
    """Rates of long attention. `scale` is the FLOP of the phase over the forward FLOP that its fit counts."""
    return {
        key: MeasuredValue(value=scale * rate, relative_sd=fit.spread, probe_ids=fit.probe_ids)
        for key, fit in fits.items()
        if (rate := attention_flop_per_s(fit)) is not None
    }


def _inverse(fits: dict[str, LinearFit], column: int) -> Values:
    """Convert one column's positive coefficients from seconds per unit to units per second."""
    return {
        key: MeasuredValue(value=1.0 / fit.coefficients[column], relative_sd=fit.spread, probe_ids=fit.probe_ids)
        for key, fit in fits.items()
        if fit.coefficients[column] > 0
    }


def _best(points: Sequence[Measurement]) -> Values:
    fastest: Values = {}
    for point in usable(points, "gemm"):
        compute = COMPUTE.get(point.setup.recipe or "")
        rate = (point.counts.flop_model or 0.0) / (point.time.median_s or 1.0)
        if compute and (compute not in fastest or rate > fastest[compute].value):
            fastest[compute] = _value(rate, point)
    return fastest


def _value(value: float, point: Measurement) -> MeasuredValue:
    return MeasuredValue(value=value, relative_sd=point.time_relative_sd or 0.0, probe_ids=(point.probe_id,))


def _traffic_rate(point: Measurement) -> float:
    """Least traffic of a point over its time, in bytes/s."""
    return (point.counts.bytes_min or 0.0) / (point.time.median_s or 1.0)


def _copy(points: Sequence[Measurement]) -> MeasuredValue | None:
    by_pattern = {point.setup.role: point for point in usable(points, "bandwidth") if point.counts.bytes_min}
    point = by_pattern.get("copy") or by_pattern.get("add")
    return None if point is None else _value(_traffic_rate(point), point)


def _casts(points: Sequence[Measurement]) -> dict[LayerRun, MeasuredValue]:
    """Seconds per element cast to FP8, by recipe and mode."""
    return {
        LayerRun(recipe=CASTS[role], compiled=bool(point.setup.compiled)): _value(
            (point.time.median_s or 0.0) / (point.shape.tokens * point.shape.hidden), point
        )
        for point in usable(points, "memory_op")
        if (role := point.setup.role) in CASTS and point.shape.tokens and point.shape.hidden
    }


def _launch(points: Sequence[Measurement], role: str) -> MeasuredValue | None:
    launches = [point for point in usable(points, "launch") if point.setup.role == role]
    return _value(launches[-1].time.median_s or 0.0, launches[-1]) if launches else None


def _optimizers(points: Sequence[Measurement]) -> Values:
    return {
        point.setup.optimizer: _value((point.time.median_s or 0.0) / point.counts.params, point)
        for point in usable(points, "optimizer")
        if point.setup.optimizer and point.counts.params
    }


def _states(points: Sequence[Measurement]) -> Values:
    return {
        point.setup.optimizer: MeasuredValue(
            value=point.memory.optimizer_state_bytes_per_param, relative_sd=0.0, probe_ids=(point.probe_id,)
        )
        for point in points
        if point.kind == "optimizer"
        and point.setup.optimizer
        and point.memory.optimizer_state_bytes_per_param is not None
    }
