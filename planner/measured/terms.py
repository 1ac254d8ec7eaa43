"""Planner terms from measured rates; measured values replace published and assumed ones."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.kernels.surface import Surface, large_flop_per_s
from planner.measured.clocks import clock_ratio_of
from planner.measured.device import evidence_of
from planner.measured.kernels import ALONE_AS, HIGH, USUAL_HEAD
from planner.measured.layers.power import attention_power
from planner.measured.layers.traffic import memory_bandwidth
from planner.measured.rates import Activity, ActivityKind, LayerRun, MeasuredRates, MeasuredValue
from planner.measured.surfaces import measured_attention, measured_surface
from planner.performance.compute import FLASH_BACKWARD
from planner.performance.optimizer_step import gradient_passes_bytes, stepped_bytes, update_bytes_per_param
from planner.rates.terms import Term
from planner.training.policies import find_policy
from planner.training.recipe import Recipe

LEAST_SD = 0.01
"""Run-to-run repeatability of a GPU, as `benchmarks/h200/compare_records.py` allows; no rate is known better."""

RECIPES = {
    "fp32": ("fp32",),
    "tf32": ("tf32",),
    "fp16": ("fp16",),
    "bf16": ("bf16-fsdp", "bf16-autocast", "bf16-pure"),
    "fp8": ("fp8", "fp8-rowwise"),
    "mxfp8": ("mxfp8",),
}
"""Map from precision to the probe's recipes that represent it, best first."""


def _compute(recipe: Recipe) -> str:
    """Compute type of the linear layers' products, as the record names it."""
    policy = recipe.policy
    if policy.linear_compute != "fp8":
        return policy.linear_compute
    return {"rowwise": "fp8-rowwise", "mx": "mxfp8"}.get(policy.scaling, "fp8")


def _backward_ratio(rates: MeasuredRates, compute: str) -> MeasuredValue | None:
    """Rate of the backward attention kernel over the forward one."""
    forward = rates.attention_forward_flop_per_s.get(compute)
    backward = rates.attention_backward_flop_per_s.get(compute)
    if forward is None or backward is None or compute not in rates.attention_fits:
        return None
    spread = float(np.hypot(forward.relative_sd, backward.relative_sd))
    return MeasuredValue(value=backward.value / forward.value, relative_sd=spread, probe_ids=backward.probe_ids)


def _attention(rates: MeasuredRates, compute: str) -> MeasuredValue | None:
    """Single rate of forward and backward attention together, weighted by their FLOP (1 to 2.5)."""
    forward = rates.attention_forward_flop_per_s.get(compute)
    backward = rates.attention_backward_flop_per_s.get(compute)
    if forward is None or backward is None:
        return None
    together = (1.0 + FLASH_BACKWARD) / (1.0 / forward.value + FLASH_BACKWARD / backward.value)
    spread = max(forward.relative_sd, backward.relative_sd)
    return MeasuredValue(value=together, relative_sd=spread, probe_ids=forward.probe_ids + backward.probe_ids)


def _memory(rates: MeasuredRates, recipe: Recipe) -> MeasuredValue | None:
    """Bandwidth of memory-bound work over its fused minimum, as the stack runs it; else, if compiled, that of copies.

    None for a fused stack, whose kernels the probe does not run. They are faster than PyTorch's operations and slower
    than its copies.
    """
    if recipe.fused:
        return None
    compiled = recipe.stack != "eager"
    measured = memory_bandwidth(rates, recipe.policy.activation_bytes, compiled=compiled)
    return measured or (rates.copy_bytes_per_s if compiled else None)


def _optimizer(rates: MeasuredRates, recipe: Recipe) -> MeasuredValue | None:
    """Bandwidth of a whole update.

    The probe times the optimizer alone, on FP32 weights and gradients. The optimizer of this recipe moves its own bytes
    at the bandwidth of that run; the further passes over the gradients (norm, clearing, unscaling) move theirs at the
    bandwidth of copies. None for an optimizer whose time is arithmetic as well as traffic (Muon).
    """
    optimizer, policy = recipe.optimizer, recipe.policy
    measured = rates.optimizer_s_per_param.get(optimizer.id)
    if measured is None or measured.value <= 0 or optimizer.extra_flop_per_param:
        return None
    alone_bytes_per_s = stepped_bytes(find_policy("fp32"), optimizer) / measured.value
    copies = rates.copy_bytes_per_s
    passes_bytes_per_s = alone_bytes_per_s if copies is None else copies.value
    update_s = stepped_bytes(policy, optimizer) / alone_bytes_per_s
    update_s += gradient_passes_bytes(policy) / passes_bytes_per_s
    rate = update_bytes_per_param(recipe) / update_s
    return MeasuredValue(value=rate, relative_sd=measured.relative_sd, probe_ids=measured.probe_ids)


def _run(recipe: Recipe, measured: Container[LayerRun]) -> LayerRun | None:
    """How the probe ran layers in the same way as this recipe; None if it did not.

    Without fusion, each FP8 cast takes several separate kernels, so eager layers represent only an eager stack. No
    layers of the probe represent delayed or blockwise scaling, for which Transformer Engine casts in one kernel.
    """
    if recipe.policy.scaling in ("delayed", "blockwise"):
        return None
    compiled = recipe.stack != "eager"
    runs = [LayerRun(recipe=name, compiled=compiled) for name in RECIPES.get(recipe.policy.precision, ())]
    return next((run for run in runs if run in measured), None)


def _composition(rates: MeasuredRates, recipe: Recipe) -> MeasuredValue | None:
    """Time of whole layers over the sum of their kernels; only for the stacks that the probe runs."""
    run = None if recipe.fused else _run(recipe, rates.composition_ratio)
    return None if run is None else rates.composition_ratio[run]


CASTS_PER_OPERAND = 2.0
"""Number of times that each tensor in a layer's three products is cast, since every product casts both operands."""


def _casts(rates: MeasuredRates, recipe: Recipe, memory: MeasuredValue | None) -> MeasuredValue | None:
    """Traffic of casts over that of separate kernels, such that they take their measured time.

    As in `_composition`, it is known only for the stacks that the probe runs. The casts' time was measured; expressing
    it as traffic at a bandwidth adds no uncertainty.
    """
    run = None if recipe.fused else _run(recipe, rates.cast_s)
    if run is None or memory is None or not recipe.policy.cast_bytes_per_element:
        return None
    cast = rates.cast_s[run]
    moved_bytes = CASTS_PER_OPERAND * cast.value * memory.value
    ratio = moved_bytes / recipe.policy.cast_bytes_per_element
    return MeasuredValue(value=ratio, relative_sd=cast.relative_sd, probe_ids=cast.probe_ids)


def _alike(recipe: Recipe) -> list[LayerRun]:
    """Runs of layers whose power may represent a recipe's, best first.

    Stacks that are not eager prefer compiled layers. Eager FP8 layers represent only the eager stack, because they
    wait for their casts.
    """
    precision = recipe.policy.precision
    kinds = (
        precision,
        ALONE_AS.get(precision, precision),
        "bf16" if recipe.policy.cast_bytes_per_element else precision,
    )
    modes = (False,) if recipe.stack == "eager" else (True, False)
    return [
        LayerRun(recipe=name, compiled=compiled)
        for kind in dict.fromkeys(kinds)
        for compiled in modes
        for name in RECIPES.get(kind, ())
        if compiled or recipe.stack == "eager" or kind not in HIGH
    ]


def _layer_power(
    rates: MeasuredRates, recipe: Recipe, values: Mapping[str, MeasuredValue | None], base: Mapping[str, Term]
) -> MeasuredValue | None:
    """Power of whole layers over the sum that the equations give for their work (`performance.run.gpu_step_j`)."""
    run = next((run for run in _alike(recipe) if run in rates.layer_power), None)
    if run is None:
        return None
    layer = rates.layer_power[run]

    def watts(name: str) -> float:
        value = values.get(name)
        return base[name].value if value is None else value.value

    modelled_w = (
        layer.products_ratio * watts("power_linear_w") * base["product_power_ratio"].value
        + layer.attention_ratio * watts("power_attention_w")
        + layer.memory_ratio * watts("power_memory_w")
    )
    power = layer.power_w
    return MeasuredValue(value=power.value / modelled_w, relative_sd=power.relative_sd, probe_ids=power.probe_ids)


def _fragmentation(rates: MeasuredRates, recipe: Recipe) -> MeasuredValue | None:
    return rates.fragmentation_ratios.get("compiled" if recipe.stack == "fsdp-compile" else "eager")


def _power(rates: MeasuredRates, kind: ActivityKind, of: str | None = None) -> MeasuredValue | None:
    return rates.power_w.get(Activity(kind=kind, of=of))


def products_in_layers(rates: MeasuredRates, recipe: Recipe, compute: str) -> float:
    """Time of products within the layers of a fused stack over their time alone, hot and one by one.

    Alone, products draw the most power and run at the lowest clock; in layers, they alternate with work that draws
    less. The result is 1 for other stacks, where the effect is part of the composition ratio.
    """
    return clock_ratio_of(rates.sustained_clock_hz.get(compute), _layer_clock_hz(rates, recipe, compute)) or 1.0


def attention_in_layers(rates: MeasuredRates, recipe: Recipe, compute: str) -> float:
    """Time of attention within the layers of a fused stack over its time alone, where its clock may be higher."""
    held_hz = rates.attention_clock_hz.get(compute)
    return clock_ratio_of(held_hz, _layer_clock_hz(rates, recipe, _compute(recipe))) or 1.0


def _layer_clock_hz(rates: MeasuredRates, recipe: Recipe, compute: str) -> float | None:
    """Clock of the layers that are most like a fused stack's: compiled layers of a compute type.

    None if there are none. Eager layers have more work that draws little power, and hold a higher clock than fused
    layers would.
    """
    if not recipe.fused:
        return None
    kinds = (compute, ALONE_AS.get(compute, compute))
    runs = [LayerRun(recipe=name, compiled=True) for kind in kinds for name in RECIPES.get(kind, ())]
    return next((rates.layer_clock_hz[run] for run in runs if run in rates.layer_clock_hz), None)


LAYER_CLOCK_SD = 0.05
"""Standard deviation of the logarithm of the clock between layers of one recipe. On an H100, eager layers of 8B, 70B
and 405B models held 1570, 1590 and 1425 MHz."""


def _slowed(rate: MeasuredValue | None, slowdown: float) -> MeasuredValue | None:
    if rate is None or slowdown == 1.0:
        return rate
    spread = float(np.hypot(rate.relative_sd, LAYER_CLOCK_SD))
    return replace(rate, value=rate.value / slowdown, relative_sd=spread)


def _product_power(rates: MeasuredRates, compute: str) -> MeasuredValue | None:
    """Power of products of a compute type; if it was not read, that of the type on the same hardware units."""
    own_power = _power(rates, ActivityKind.MATMUL, compute)
    return own_power or _power(rates, ActivityKind.MATMUL, ALONE_AS.get(compute, compute))


def _exactly(value: float) -> MeasuredValue:
    return MeasuredValue(value=value, relative_sd=0.0, probe_ids=())


def _values(rates: MeasuredRates, recipe: Recipe, base: Mapping[str, Term]) -> dict[str, MeasuredValue | None]:
    compute, other = _compute(recipe), recipe.policy.other_compute
    linear, attention = rates.matmul_flop_per_s.get(compute), attention_power(rates, other, USUAL_HEAD)
    values: dict[str, MeasuredValue | None] = {
        "linear_flop_per_s": _slowed(linear, products_in_layers(rates, recipe, compute)),
        "other_flop_per_s": _slowed(rates.matmul_flop_per_s.get(other), products_in_layers(rates, recipe, other)),
        "attention_flop_per_s": _slowed(_attention(rates, other), attention_in_layers(rates, recipe, other)),
        "attention_backward_ratio": _backward_ratio(rates, other),
        "memory_bytes_per_s": _memory(rates, recipe),
        "optimizer_bytes_per_s": _optimizer(rates, recipe),
        "kernel_s": None if recipe.fused else rates.kernel_s,
        "framework_ratio": _composition(rates, recipe),
        "power_idle_w": _power(rates, ActivityKind.CONTEXT) or _power(rates, ActivityKind.IDLE),
        "power_linear_w": _product_power(rates, compute),
        "power_memory_w": _power(rates, ActivityKind.MEMORY),
        "power_attention_w": attention.power_w if attention else None,
    }
    if not recipe.fused:  # a stack with its own kernels and buffers also has its own context and heap
        values |= {"context_bytes": rates.context_bytes, "fragmentation_ratio": _fragmentation(rates, recipe)}
    if linear is not None:
        # The fit of the products is a plain sum of arithmetic, traffic and a fixed time.
        values["operand_bytes_per_s"] = rates.operand_bytes_per_s.get(compute) or _exactly(float("inf"))
        values["matmul_overlap_ratio"] = _exactly(0.0)
    if values["memory_bytes_per_s"] is not None and values["memory_bytes_per_s"] is not rates.copy_bytes_per_s:
        values["fusion_ratio"] = _exactly(1.0)  # the measured bandwidth already refers to the fused minimum
    values["cast_fusion_ratio"] = _casts(rates, recipe, values["memory_bytes_per_s"])
    values["power_stack_error_ratio"] = _layer_power(rates, recipe, values, base)
    return values


def _surfaces(rates: MeasuredRates, recipe: Recipe, evidence: Evidence) -> dict[str, Surface]:
    """Surfaces of the measured rates of products and attention by shape, by the name of their term."""
    other = recipe.policy.other_compute
    computes = {"linear_flop_per_s": _compute(recipe), "other_flop_per_s": other}
    surfaces = {
        name: measured_surface(
            rates.product_fits[compute],
            compute,
            evidence,
            products_in_layers(rates, recipe, compute)
            * (1.0 + sum(rates.gradient_ratios.get(compute, (1.0, 1.0))))
            / 3.0,
        )
        for name, compute in computes.items()
        if compute in rates.product_fits
    }
    if _backward_ratio(rates, other) is not None:  # a surface covers the forward phase alone
        floor_s = rates.kernel_s.value if rates.kernel_s else 0.0
        surfaces["attention_flop_per_s"] = measured_attention(
            rates.attention_fits[other][0], other, floor_s, evidence, attention_in_layers(rates, recipe, other)
        )
    return surfaces


def measured_terms(
    rates: MeasuredRates, recipe: Recipe, base: Mapping[str, Term], *, shipped: bool = False
) -> dict[str, Term]:
    """The terms for which a record is better evidence than `base`.

    Args:
        rates: rates of this GPU, from the record.
        recipe: the model, precision and stack of the training.
        base: the terms from published, datasheet and assumed evidence, for labels.
        shipped: the record came with the package.
    """
    evidence: Evidence = evidence_of(rates, EvidenceKind.SHIPPED if shipped else EvidenceKind.MEASURED)
    surfaces = _surfaces(rates, recipe, evidence)
    return {
        name: replace(
            base[name],
            value=large_flop_per_s(surfaces[name]) if name in surfaces else value.value,
            surface=surfaces.get(name),
            power=None,  # power by shape was not read
            own_sd=max(value.relative_sd, LEAST_SD) if value.relative_sd else 0.0,
            rests_on=(),
            ceiling=float("inf"),
            evidence=evidence,
            measured_limit_w=rates.power_limit_w,
        )
        for name, value in _values(rates, recipe, base).items()
        if value is not None
    }
