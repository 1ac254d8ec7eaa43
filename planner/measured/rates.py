"""Rates of one device from one record, each with its uncertainty and the points it rests on."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from planner.lazy import dataclass
from planner.measured.kernels import LinearFit
from planner.records.work import RunSetup


class ActivityKind(Enum):
    """Kind of activity of a device while its power is read."""

    IDLE = "idle"
    """No work, before any process has a context on the device."""
    CONTEXT = "context"
    """No work, with a context and memory held by a process."""
    MEMORY = "memory"
    """Copies of large buffers."""
    MATMUL = "matmul"
    """Matrix products of one compute type."""
    BLOCK = "block"
    """Transformer layers in one recipe."""
    OPTIMIZER = "optimizer"
    """Updates by one optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Activity of a device while its power was read."""

    kind: ActivityKind
    """Kind of work."""
    of: str | None = None
    """Compute type, recipe or optimizer; None if the kind of work has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRun:
    """How whole layers were run."""

    recipe: str
    """The probe's recipe."""
    compiled: bool = False
    """True: through `torch.compile`."""
    recomputed: bool = False
    """True: with full activation checkpointing."""

    @classmethod
    def of(cls, setup: RunSetup) -> LayerRun:
        """Return how a point's layers were run."""
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
    """Mean power of fused attention that ran alone, alternating between forward and backward."""

    head_dim: float
    """Head size; smaller heads run at a lower rate and draw less."""
    power_w: MeasuredValue
    clock_hz: float | None
    """Clock that it held meanwhile; None if none was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPower:
    """Mean power of layers that were run as a whole, and the shares of their kinds of work."""

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
    """Host time to launch a step."""

    step_s: float
    """Fixed time of any step."""
    launch_s: float
    """Time of each kernel in a step."""

    def seconds(self, kernels: float) -> float:
        """Host time of a step with this number of kernels."""
        return self.step_s + self.launch_s * kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRates:
    """Rates of one device from one record. A missing key or None means that the rate was not measured."""

    gpu: str | None
    """Catalogue id, or `cpu-local`."""
    device_name: str
    """Name as the driver or the system reports it."""
    run_id: str
    """Run id of the record."""
    date: str | None
    """ISO 8601 time of the last point."""
    torch_version: str | None
    """PyTorch version of the last point."""
    driver_version: str | None
    """NVIDIA driver version of the last point."""
    matmul_flop_per_s: Values
    """Asymptotic rate by compute type (fp32, tf32, fp16, bf16, fp8, fp8-rowwise, mxfp8): time = flop / rate + bytes /
    `operand_bytes_per_s` + a fixed time."""
    operand_bytes_per_s: Values
    """Bandwidth of operands by compute type; missing if the fit found no such term."""
    best_matmul_flop_per_s: Values
    """Rate of the fastest product measured, by compute type."""
    attention_forward_flop_per_s: Values
    """Rate of forward attention by compute type; only the causal half of the FLOP is counted."""
    attention_backward_flop_per_s: Values
    """Rate of backward attention by compute type; 2.5 times the forward FLOP are counted."""
    copy_bytes_per_s: MeasuredValue | None
    """Bandwidth of copies of large buffers, read plus write."""
    memory_bytes_per_s: Values
    """Bandwidth of the memory-bound operations of a layer over their fused minimum of traffic, by mode and element size
    (`layers.traffic`)."""
    kernel_s: MeasuredValue | None
    """Fixed time of a kernel on the device."""
    launch_s: MeasuredValue | None
    """Time the host needs to launch a kernel."""
    optimizer_s_per_param: Values
    """Seconds of an update per parameter, by optimizer."""
    optimizer_state_bytes_per_param: Values
    """Bytes of optimizer state per parameter, by optimizer."""
    power_w: dict[Activity, MeasuredValue]
    """Mean power by activity."""
    composition_ratio: dict[LayerRun, MeasuredValue]
    """Time of layers measured whole over the sum of their kernels."""
    product_fits: dict[str, LinearFit]
    """Fits of matrix products, by compute type."""
    attention_fits: dict[str, tuple[LinearFit, LinearFit]]
    """Fits of forward and backward attention, by compute type."""
    gradient_ratios: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Time of the input and weight gradients of a layer over that of its forward product, to which `product_fits`
    apply, by compute type; 1 if not listed."""
    cast_s: dict[LayerRun, MeasuredValue] = field(default_factory=dict)
    """Seconds of casting one element of an operand to FP8, by recipe, eager or compiled."""
    layer_power: dict[LayerRun, LayerPower] = field(default_factory=dict)
    """Power of layers measured whole."""
    attention_power: dict[str, tuple[AttentionPower, ...]] = field(default_factory=dict)
    """Power of attention, by compute type."""
    sustained_clock_hz: dict[str, float] = field(default_factory=dict)
    """Clock at which the rates of products hold, by compute type; missing if none was read."""
    attention_clock_hz: dict[str, float] = field(default_factory=dict)
    """Clock at which the rates of attention hold, by compute type; missing if none was read."""
    host: HostTime | None = None
    """Host time of eager steps in 16 and 32 bits (`layers.host.host_line`); only predictions of steps set it."""
    layer_clock_hz: dict[LayerRun, float] = field(default_factory=dict)
    """Sustained clock of layers measured whole. They draw less than products alone, and hold a higher clock."""
    full_clock_hz: float | None = None
    """Highest median clock of any point; None if none was read."""
    power_limit_w: float | None = None
    """Power limit that was enforced at the last point; None if it could not be read."""
    fleet: int = 0
    """Number of GPUs in a fleet whose slowest member sets the rates; 0 if a single GPU was measured."""
    imported: str | None = None
    """Tools and files that the points were imported from; None if mpplan measured them."""
    context_bytes: MeasuredValue | None = None
    """Device memory of a process outside its allocator."""
    fragmentation_ratios: Values = field(default_factory=dict)
    """Reserved minus allocated memory, over allocated memory, by mode: eager, compiled."""
