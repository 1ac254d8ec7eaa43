"""Rates of one device from one record, with what each of them is known by."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from planner.lazy import dataclass
from planner.measured.kernels import LinearFit
from planner.records.work import RunSetup


class ActivityKind(Enum):
    """What a device does while its power is read."""

    IDLE = "idle"
    """Nothing, before any process has a context on it."""
    CONTEXT = "context"
    """Nothing, with a context and memory held."""
    MEMORY = "memory"
    """Copies of large buffers."""
    MATMUL = "matmul"
    """Matrix products of one kind of compute."""
    BLOCK = "block"
    """Transformer layers in one recipe."""
    OPTIMIZER = "optimizer"
    """Updates by one optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a device did while its power was read."""

    kind: ActivityKind
    """Kind of work."""
    of: str | None = None
    """Kind of compute, recipe or optimizer; None where the kind of work has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRun:
    """How layers were run as a whole."""

    recipe: str
    """The probe's recipe."""
    compiled: bool = False
    """True: through `torch.compile`."""
    recomputed: bool = False
    """True: with full activation checkpointing."""

    @classmethod
    def of(cls, setup: RunSetup) -> LayerRun:
        """How a point's layers were run."""
        return cls(recipe=setup.recipe or "", compiled=bool(setup.compiled), recomputed=setup.recompute == "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredValue:
    """One figure with its spread and the points it rests on."""

    value: float
    """In the unit that the field's name gives."""
    relative_sd: float
    """Relative standard deviation."""
    probe_ids: tuple[str, ...]
    """Points of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPower:
    """Mean power of fused attention that ran alone, forward and backward in turns."""

    head_dim: float
    """Size of its heads: smaller ones run at a lower rate and draw less."""
    power_w: MeasuredValue
    clock_hz: float | None
    """That it held meanwhile; None where none was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPower:
    """Mean power of layers that were run as a whole, and what they do meanwhile."""

    power_w: MeasuredValue
    products_ratio: float
    """Share of the matrix products in the sum of the kernels."""
    attention_ratio: float
    """Share of attention."""
    memory_ratio: float
    """Share of all memory-bound work."""


Values = dict[str, MeasuredValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTime:
    """What the host takes to launch a step."""

    step_s: float
    """Of any step."""
    launch_s: float
    """Of each kernel in it."""

    def seconds(self, launches: float) -> float:
        """Of a step of so many kernels."""
        return self.step_s + self.launch_s * launches


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRates:
    """Rates of one device from one record. A missing key or None: not measured."""

    gpu: str | None
    """Catalogue id, or `cpu-local`."""
    device_name: str
    """As the driver or the system reports it."""
    run_id: str
    """Of the record."""
    date: str | None
    """ISO 8601 time of the last point."""
    torch_version: str | None
    """PyTorch of the last point."""
    driver_version: str | None
    """NVIDIA driver of the last point."""
    matmul_flop_per_s: Values
    """Asymptotic rate by compute (fp32, tf32, fp16, bf16, fp8, fp8-rowwise, mxfp8): time = flop / rate + bytes /
    `operand_bytes_per_s` + a fixed time."""
    operand_bytes_per_s: Values
    """By compute; missing where the fit found no such term."""
    best_matmul_flop_per_s: Values
    """Fastest product measured, by compute."""
    attention_forward_flop_per_s: Values
    """By compute; causal half counted."""
    attention_backward_flop_per_s: Values
    """By compute; 2.5 times the forward FLOP counted."""
    copy_bytes_per_s: MeasuredValue | None
    """Read plus write of large buffers."""
    memory_bytes_per_s: Values
    """Memory-bound operations of a layer over their fused minimum of traffic, by mode and size of element
    (`layers.traffic`)."""
    kernel_s: MeasuredValue | None
    """Fixed time of a kernel on the device."""
    launch_s: MeasuredValue | None
    """Time the host needs to launch one."""
    optimizer_s_per_param: Values
    """By optimizer."""
    optimizer_state_bytes_per_param: Values
    """By optimizer."""
    power_w: dict[Activity, MeasuredValue]
    """Mean power by activity."""
    composition_ratio: dict[LayerRun, MeasuredValue]
    """Layers measured whole over the sum of their kernels."""
    product_fits: dict[str, LinearFit]
    """By compute."""
    attention_fits: dict[str, tuple[LinearFit, LinearFit]]
    """Forward and backward, by compute."""
    gradient_ratios: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Time of the gradients of a layer's input and weight over that of its product, which `product_fits` are of, by
    compute; 1 where not listed."""
    cast_s: dict[LayerRun, MeasuredValue] = field(default_factory=dict)
    """Seconds of casting one element of an operand to FP8, by recipe, eager or compiled."""
    layer_power: dict[LayerRun, LayerPower] = field(default_factory=dict)
    """Power of layers measured whole."""
    attention_power: dict[str, tuple[AttentionPower, ...]] = field(default_factory=dict)
    """Power of attention, by compute."""
    sustained_clock_hz: dict[str, float] = field(default_factory=dict)
    """Clock that the rates of products are for, by compute; missing where none was read."""
    attention_clock_hz: dict[str, float] = field(default_factory=dict)
    """The same of attention."""
    host: HostTime | None = None
    """For steps of eager code in 16 and 32 bits (`layers.host.host_line`), which only predictions of steps ask for."""
    layer_clock_hz: dict[LayerRun, float] = field(default_factory=dict)
    """Clock of layers measured whole, hot: they draw less than products alone, and hold a higher one."""
    full_clock_hz: float | None = None
    """Highest clock that any point ran at; None where none was read."""
    power_limit_w: float | None = None
    """Enforced when the last point was measured; None where it could not be read."""
    fleet: int = 0
    """GPUs of a fleet whose slowest sets the rates; 0: one GPU was measured."""
    imported: str | None = None
    """Tools and files that the points were imported from; None: mpplan measured them."""
    context_bytes: MeasuredValue | None = None
    """Device memory of a process beyond what its allocator holds."""
    fragmentation_ratios: Values = field(default_factory=dict)
    """Reserved beyond allocated memory over allocated memory, by mode: eager, compiled."""
