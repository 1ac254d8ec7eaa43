"""What a record says about a GPU, as rates: the planner's best evidence.

Matrix rates come from least squares over the products measured (`kernel_fit`), bandwidths and powers from order
statistics, the composition ratio from layers measured whole against the sum of their kernels. Every value carries
its relative standard deviation and the points it rests on; what was not measured is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.errors import InputFileError
from planner.evidence import Evidence, EvidenceKind
from planner.measured.kernels import (
    COMPUTE,
    ELEMENT_BYTES,
    HIGH,
    LinearFit,
    fit_attention,
    fit_products,
    log_mean,
    product_seconds,
    quiet_first,
    usable,
)
from planner.measured.workloads import FLASH_BACKWARD, PointWork, Product, work_of
from planner.records.measurement import Measurement
from planner.records.store import gpu_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredValue:
    """One figure with its spread and the points it rests on."""

    value: float
    relative_sd: float
    probe_ids: tuple[str, ...]


Values = dict[str, MeasuredValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRates:
    """Rates of one device from one record. A missing key or None: not measured."""

    gpu: str | None
    """Catalogue id, or `cpu-local`."""
    device_name: str
    run_id: str
    date: str | None
    """ISO 8601 time of the last point."""
    torch_version: str | None
    driver_version: str | None
    matmul_flop_per_s: Values
    """Asymptotic rate by compute (fp32, tf32, fp16, bf16, fp8, fp8-rowwise, mxfp8): time = flop / rate + bytes /
    `operand_bytes_per_s` + `matmul_fixed_s`."""
    operand_bytes_per_s: Values
    """By compute; missing where the fit found no such term."""
    matmul_fixed_s: Values
    best_matmul_flop_per_s: Values
    """Fastest product measured, by compute."""
    attention_forward_flop_per_s: Values
    """By compute; causal half counted."""
    attention_backward_flop_per_s: Values
    """By compute; 2.5 times the forward FLOP counted."""
    copy_bytes_per_s: MeasuredValue | None
    """Read plus write of large buffers."""
    memory_bytes_per_s: Values
    """Memory-bound operations over their fused minimum of traffic, by mode: eager, compiled."""
    kernel_s: MeasuredValue | None
    """Fixed time of a kernel on the device."""
    launch_s: MeasuredValue | None
    """Time the host needs to launch one."""
    optimizer_s_per_param: Values
    """By optimizer."""
    optimizer_state_bytes_per_param: Values
    power_w: Values
    """By activity: idle, context, memory, matmul:<compute>, block:<recipe>, optimizer:<optimizer>."""
    composition_ratio: Values
    """Layers measured whole over the sum of their kernels, by recipe (`+compiled`, `+recompute` appended)."""
    product_fits: dict[str, LinearFit]
    attention_fits: dict[str, tuple[LinearFit, LinearFit]]
    """Forward and backward by compute."""


def measured_rates(records: Iterable[Measurement]) -> MeasuredRates:
    """Everything that the points of one record say about their device.

    Raises:
        InputFileError: there is no point at all.
    """
    points = tuple(records)
    if not points:
        raise InputFileError("the record holds no usable point", hint="measure anew with `mpplan probe`")
    last = points[-1]
    products = fit_products(points)
    forward, backward = fit_attention(points, "forward"), fit_attention(points, "backward")
    rates = MeasuredRates(
        gpu=gpu_of(last),
        device_name=last.device_name,
        run_id=last.run_id,
        date=max((one.timestamp_utc for one in points if one.timestamp_utc), default=None),
        torch_version=last.torch_version,
        driver_version=last.driver_version,
        matmul_flop_per_s=_inverse(products, 0),
        operand_bytes_per_s=_inverse(products, 1),
        matmul_fixed_s=_direct(products, 2),
        best_matmul_flop_per_s=_best(points),
        attention_forward_flop_per_s=_inverse(forward, 0),
        attention_backward_flop_per_s=_inverse(backward, 0, scale=FLASH_BACKWARD),
        copy_bytes_per_s=_copy(points),
        memory_bytes_per_s=_memory_ops(points),
        kernel_s=_launch(points, "graph"),
        launch_s=_launch(points, "host"),
        optimizer_s_per_param=_optimizers(points),
        optimizer_state_bytes_per_param=_states(points),
        power_w=_powers(points),
        composition_ratio={},
        product_fits=products,
        attention_fits={key: (forward[key], backward[key]) for key in forward if key in backward},
    )
    return _with_composition(rates, points)


def composed_seconds(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float] | None:
    """Forward and backward time of a point's work as the sum of its kernels; None where a kernel was not measured."""
    compute = COMPUTE.get(recipe)
    if compute is None or compute not in rates.product_fits:
        return None
    high = HIGH.get(compute, compute)
    if high not in rates.product_fits or (work.attention_flop and high not in rates.attention_fits):
        return None
    layers = _products_s(rates, work.products, compute, high)
    edges = _products_s(rates, work.edge_products, compute, high)
    attention = _attention_s(rates, work, high)
    passes_s = _pass_seconds(rates, compute)
    grads_s = work.weights * _gradient_bytes(recipe) / _bandwidth(rates)
    casts_s = _cast_seconds(rates, work, compute)
    forward = layers + attention[0] + 0.4 * (work.element_passes * passes_s) + casts_s / 3.0
    again = forward if work.recompute else 0.0
    backward = 2.0 * layers + attention[1] + 0.6 * (work.element_passes * passes_s) + grads_s + casts_s * 2.0 / 3.0
    edge_memory = work.edge_passes * passes_s
    return forward + edges + 0.4 * edge_memory, backward + again + 2.0 * edges + 0.6 * edge_memory


def evidence_of(rates: MeasuredRates, kind: EvidenceKind = EvidenceKind.MEASURED) -> Evidence:
    """The record as one source."""
    return Evidence(
        id=f"record:{rates.run_id[:8]}",
        kind=kind,
        what=f"{rates.device_name} measured with torch {rates.torch_version or 'of unknown version'}",
        source=f"mpplan probe, run {rates.run_id[:8]}",
        date=rates.date,
        gpu=rates.gpu,
    )


def _inverse(fits: dict[str, LinearFit], column: int, scale: float = 1.0) -> Values:
    """Coefficients that are seconds per unit, as units per second."""
    return {
        key: MeasuredValue(value=scale / fit.coefficients[column], relative_sd=fit.spread, probe_ids=fit.probe_ids)
        for key, fit in fits.items()
        if fit.coefficients[column] > 0
    }


def _direct(fits: dict[str, LinearFit], column: int) -> Values:
    return {
        key: MeasuredValue(value=fit.coefficients[column], relative_sd=fit.spread, probe_ids=fit.probe_ids)
        for key, fit in fits.items()
    }


def _best(points: Sequence[Measurement]) -> Values:
    found: Values = {}
    for one in usable(points, "gemm"):
        key = COMPUTE.get(one.recipe or "")
        rate = (one.flop_model or 0.0) / (one.time_median_s or 1.0)
        if key and (key not in found or rate > found[key].value):
            found[key] = _value(rate, one)
    return found


def _value(value: float, one: Measurement) -> MeasuredValue:
    return MeasuredValue(value=value, relative_sd=one.time_relative_sd or 0.0, probe_ids=(one.probe_id,))


def _copy(points: Sequence[Measurement]) -> MeasuredValue | None:
    found = {one.role: one for one in usable(points, "bandwidth") if one.bytes_min}
    one = found.get("copy") or found.get("add")
    return None if one is None else _value((one.bytes_min or 0.0) / (one.time_median_s or 1.0), one)


def _memory_ops(points: Sequence[Measurement]) -> Values:
    found: Values = {}
    for mode, compiled in (("eager", False), ("compiled", True)):
        mine = quiet_first(
            [
                one
                for one in usable(points, "memory_op")
                if bool(one.compiled) is compiled and not (one.role or "").startswith("cast")
            ]
        )
        if mine:
            value, spread = log_mean([(one.bytes_min or 0.0) / (one.time_median_s or 1.0) for one in mine])
            found[mode] = MeasuredValue(value=value, relative_sd=spread, probe_ids=tuple(m.probe_id for m in mine))
    return found


def _launch(points: Sequence[Measurement], role: str) -> MeasuredValue | None:
    found = [one for one in usable(points, "launch") if one.role == role]
    return _value(found[-1].time_median_s or 0.0, found[-1]) if found else None


def _optimizers(points: Sequence[Measurement]) -> Values:
    return {
        one.optimizer: _value((one.time_median_s or 0.0) / one.params, one)
        for one in usable(points, "optimizer")
        if one.optimizer and one.params
    }


def _states(points: Sequence[Measurement]) -> Values:
    return {
        one.optimizer: MeasuredValue(
            value=one.optimizer_state_bytes_per_param, relative_sd=0.0, probe_ids=(one.probe_id,)
        )
        for one in points
        if one.kind == "optimizer" and one.optimizer and one.optimizer_state_bytes_per_param is not None
    }


def _powers(points: Sequence[Measurement]) -> Values:
    """Mean power by activity; windows that were too short or inconsistent are left out."""
    found: Values = {}
    for one in points:
        if one.power_mean_w is None or one.energy_quality in ("inconsistent", "short"):
            continue
        activity = _activity(one)
        if activity is not None:
            sd = 0.10 if one.energy_quality == "single" else 0.02
            found[activity] = MeasuredValue(value=one.power_mean_w, relative_sd=sd, probe_ids=(one.probe_id,))
    return found


def _activity(one: Measurement) -> str | None:
    if one.kind == "idle":
        return "idle" if one.role == "bare" else "context"
    if one.kind == "power":
        return "memory" if one.role == "copy" else f"matmul:{COMPUTE.get(one.recipe or '', one.recipe)}"
    if one.kind == "block" and one.recompute == "none" and not one.compiled:
        return f"block:{one.recipe}"
    return f"optimizer:{one.optimizer}" if one.kind == "optimizer" else None


def _with_composition(rates: MeasuredRates, points: Sequence[Measurement]) -> MeasuredRates:
    ratios: dict[str, list[tuple[float, str]]] = {}
    for one in quiet_first(usable(points, "block")):
        work = work_of(one)
        composed = composed_seconds(rates, work, one.recipe or "") if work else None
        if composed and one.time_median_s:
            key = (
                (one.recipe or "") + ("+compiled" if one.compiled else "") + ("+recompute" * (one.recompute == "full"))
            )
            ratios.setdefault(key, []).append((one.time_median_s / sum(composed), one.probe_id))
    for key, found in ratios.items():
        value, spread = log_mean([ratio for ratio, _ in found])
        rates.composition_ratio[key] = MeasuredValue(
            value=value, relative_sd=spread, probe_ids=tuple(probe_id for _, probe_id in found)
        )
    return rates


def _way(one: Measurement) -> str:
    """Recipe, and how the layers were run."""
    return f"{one.recipe}{'+compiled' if one.compiled else ''}{'+recompute' if one.recompute == 'full' else ''}"


def _products_s(rates: MeasuredRates, products: Sequence[Product], compute: str, high: str) -> float:
    total = 0.0
    for one in products:
        key = compute if one.low else high
        total += one.count * product_seconds(rates.product_fits[key], key, one.m, one.n, one.k)
    return total


def _attention_s(rates: MeasuredRates, work: PointWork, high: str) -> tuple[float, float]:
    """Forward and backward of all layers."""
    if not work.attention_flop:
        return 0.0, 0.0
    columns = (work.attention_flop / work.layers, 1.0)
    forward, backward = (
        work.layers * fit.seconds(columns, (work.attention_tokens,)) for fit in rates.attention_fits[high]
    )
    return forward, backward


def _bandwidth(rates: MeasuredRates) -> float:
    return rates.copy_bytes_per_s.value if rates.copy_bytes_per_s else float(np.inf)


def _pass_seconds(rates: MeasuredRates, compute: str) -> float:
    """Time of one read or write of an element by memory-bound work."""
    eager = rates.memory_bytes_per_s.get("eager")
    bandwidth = eager.value if eager else _bandwidth(rates)
    return max(ELEMENT_BYTES.get(compute, 2.0), 2.0) / bandwidth


def _gradient_bytes(recipe: str) -> float:
    """Traffic of a weight gradient per parameter: written, read and added to the accumulated one."""
    return {"fp32": 12.0, "tf32": 12.0, "fp16": 14.0, "bf16-autocast": 14.0, "bf16-pure": 6.0}.get(recipe, 12.0)


def _cast_seconds(rates: MeasuredRates, work: PointWork, compute: str) -> float:
    """FP8: each operand of the three products is read in high precision for its maximum and its cast, and written."""
    if compute not in HIGH:
        return 0.0
    elements = sum(one.count * (one.m * one.k + one.m * one.n + one.n * one.k) for one in work.products if one.low)
    return elements * 6.0 / _bandwidth(rates)
