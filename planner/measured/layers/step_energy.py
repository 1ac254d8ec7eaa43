"""Energy of a training step that was not run, and the clock that the power limit allows it.

Each kind of work draws the power that the same record measured for it alone, less the idle power of the device. Anchors
with an energy window show which share of that a step draws. If the total exceeds the power limit, the clock falls:
arithmetic then takes longer and uses less energy.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.lazy import dataclass
from planner.measured.clocks import clock_ratio_of
from planner.measured.kernels import COMPUTE, HIGH, log_mean
from planner.measured.layers.power import attention_power
from planner.measured.layers.steps import (
    ATTENTION,
    CASTS,
    END_PRODUCTS,
    END_TRAFFIC,
    PRODUCTS,
    TRAFFIC,
    StepFit,
    StepTime,
)
from planner.measured.layers.workloads import DescribedWork, PointWork, work_of
from planner.measured.rates import Activity, ActivityKind, MeasuredRates
from planner.rates.parameters import shipped_parameters
from planner.records.measurement import Measurement

ATTENTION_KERNELS = {"tf32": "fp32"}
"""Compute type of the products in fused attention, if it differs from that of other products: TF32 leaves attention in
FP32."""
LEAST_CLOCK = 0.4
"""Lowest clock that is considered, as a share of the full clock."""
HALVINGS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnergy:
    """Time and energy of one step."""

    time_s: float
    energy_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyFit:
    """How the energy of steps of one recipe and implementation scales."""

    steps: StepFit
    rates: MeasuredRates
    idle_w: float
    scale: float
    """Energy of the anchors above idle, over the energy that their kinds of work use alone."""

    def at_limit(self, target: DescribedWork) -> StepEnergy | None:
        """Time and energy of a step at the highest clock that the power limit allows; None if its work is unknown."""
        full_hz, limit_w = self.rates.full_clock_hz, self.rates.power_limit_w
        step = self._at(target, full_hz)
        if step is None or full_hz is None or limit_w is None or step.energy_j <= limit_w * step.time_s:
            return step
        low_hz, high_hz = LEAST_CLOCK * full_hz, full_hz
        for _ in range(HALVINGS):
            clock_hz = 0.5 * (low_hz + high_hz)
            step = self._at(target, clock_hz)
            if step is not None and step.energy_j > limit_w * step.time_s:
                high_hz = clock_hz
            else:
                low_hz = clock_hz
        return self._at(target, low_hz)

    def _at(self, target: DescribedWork, clock_hz: float | None) -> StepEnergy | None:
        step, work = self.steps.seconds(target, self.rates, clock_hz), work_of(target)
        if step is None or work is None:
            return None
        drawn_j = dynamic_j(step, work, self.rates, self.steps.recipe, self.idle_w, clock_hz)
        if drawn_j is None:
            return None
        return StepEnergy(time_s=step.total_s, energy_j=self.idle_w * step.total_s + self.scale * drawn_j)


def fit_energy(steps: StepFit, anchors: Sequence[Measurement], rates: MeasuredRates) -> EnergyFit | None:
    """Fit the anchors whose energy was measured reliably; None if there are none or a power is missing."""
    idle = _watts(rates, ActivityKind.CONTEXT) or _watts(rates, ActivityKind.IDLE)
    if idle is None:
        return None
    scales = []
    for anchor in anchors:
        power_w, time_s = anchor.power.mean_w, anchor.time.median_s
        clock_hz = anchor.device_state.sm_clock_median_hz
        step, work = steps.seconds(anchor, rates, clock_hz), work_of(anchor)
        if (
            power_w is None
            or time_s is None
            or step is None
            or work is None
            or anchor.energy.quality not in ("ok", "single")
        ):
            continue
        drawn_j = dynamic_j(step, work, rates, steps.recipe, idle, clock_hz)
        if drawn_j:
            scales.append((power_w - idle) * time_s / drawn_j)
    if not scales or min(scales) <= 0:
        return None
    return EnergyFit(steps=steps, rates=rates, idle_w=idle, scale=log_mean(scales)[0])


def dynamic_j(
    step: StepTime, work: PointWork, rates: MeasuredRates, recipe: str, idle_w: float, clock_hz: float | None
) -> float | None:
    """Energy above idle of the kinds of work of a step, as if each ran alone; None if a power is missing.

    The energy of arithmetic scales with the clock to the power of `clock_exponent` - 1: power scales with
    `clock_exponent`, and time is inversely proportional to the clock.
    """
    compute = COMPUTE.get(recipe, recipe)
    high = HIGH.get(compute, compute)
    memory_w = _watts(rates, ActivityKind.MEMORY)
    products, end_products = (_product_power(rates, kind) for kind in (compute, high))
    if memory_w is None or products is None or end_products is None:
        return None
    attention = _attention_power(rates, high, work.attention_head, end_products)
    exponent = shipped_parameters().find("clock_exponent").value - 1.0

    def arithmetic(kind: int, power: _Power, held_hz: float | None) -> float:
        """Energy of one kind of arithmetic; seconds hold at the clock of the rates, watts at the clock of `power`."""
        slowdown = clock_ratio_of(held_hz, power.clock_hz) or 1.0
        clock_ratio = clock_ratio_of(clock_hz, power.clock_hz) or 1.0
        drawn_w: float = max(power.mean_w - idle_w, 0.0) * clock_ratio**exponent
        return step.kinds_s[kind] * slowdown * drawn_w

    traffic_s = sum(step.kinds_s[kind] for kind in (TRAFFIC, CASTS, END_TRAFFIC)) + step.optimizer_s
    return (
        arithmetic(PRODUCTS, products, rates.sustained_clock_hz.get(compute))
        + arithmetic(ATTENTION, attention, rates.attention_clock_hz.get(high))
        + arithmetic(END_PRODUCTS, end_products, rates.sustained_clock_hz.get(high))
        + traffic_s * max(memory_w - idle_w, 0.0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Power:
    """Power of arithmetic that runs alone."""

    mean_w: float
    clock_hz: float | None
    """Clock that it held meanwhile."""


def _product_power(rates: MeasuredRates, compute: str) -> _Power | None:
    """Power of products. FP16 falls back to BF16, the only one of the two whose power the default suite reads."""
    for kind in (compute, "bf16") if compute == "fp16" else (compute,):
        mean_w = _watts(rates, ActivityKind.MATMUL, kind)
        if mean_w is not None:
            return _Power(mean_w=mean_w, clock_hz=rates.sustained_clock_hz.get(kind))
    return None


def _attention_power(rates: MeasuredRates, high: str, head_dim: float, products: _Power) -> _Power:
    """Measured power of attention; if there is none, the usual fraction of the power of products of its type."""
    window = attention_power(rates, high, head_dim)
    if window is not None:
        return _Power(mean_w=window.power_w.value, clock_hz=window.clock_hz)
    known = shipped_parameters()
    kernel_w = _watts(rates, ActivityKind.MATMUL, ATTENTION_KERNELS.get(high, high)) or products.mean_w
    usual = known.find("power_attention").value / known.find("power_at_limit").value
    return _Power(mean_w=kernel_w * usual, clock_hz=rates.attention_clock_hz.get(high, products.clock_hz))


def _watts(rates: MeasuredRates, kind: ActivityKind, of: str | None = None) -> float | None:
    value = rates.power_w.get(Activity(kind=kind, of=of))
    return None if value is None else value.value
