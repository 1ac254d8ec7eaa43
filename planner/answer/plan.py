"""The answer: one `Plan` per precision, the savings between them, and the evidence for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from planner.answer.parity import Parity
from planner.answer.run_totals import RunTotals
from planner.answer.training_shown import TrainingShown
from planner.costs.context import MoneyFacts
from planner.costs.facility_power import CapEffect, LimitSearch
from planner.costs.prices import CostLine
from planner.errors import Message
from planner.evidence import Assumption, Estimate, Evidence, Gap
from planner.kernels.gain import NarrowGain
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout
from planner.question.asked import InputValue
from planner.used.collectives import CollectiveUse
from planner.used.kernels import AttentionUse, ProductUse

MEMORY_ITEMS = (
    "weights",
    "gradients",
    "master_weights",
    "optimizer_states",
    "activations",
    "logits",
    "fp8_copies",
    "gathered_params",
    "comm_buffers",
    "framework",
    "fragmentation",
)
"""Items of `memory_gib`; they sum to its `total`."""

STEP_ITEMS = (
    "matmul",
    "attention",
    "memory_bound",
    "recompute",
    "launch",
    "tp_comm",
    "cp_comm",
    "ep_comm",
    "pp_comm",
    "bubble",
    "dp_comm",
    "optimizer",
    "offload",
    "jitter",
    "allocator",
)
"""Items of `step_s`; they sum to its `total`."""

METRICS = (
    "tokens_per_s_per_gpu",
    "samples_per_s_per_gpu",
    "tflops_per_gpu",
    "mfu",
    "duration_days",
    "gpu_hours",
    "energy_mwh",
    "cost_usd",
    "carbon_tco2e",
)
"""Quantities of a plan that have a range."""

LOWER_IS_BETTER = ("duration_days", "gpu_hours", "energy_mwh", "cost_usd", "carbon_tco2e")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One uncertain input and its share in the variance of a figure."""

    term: str
    label: str
    share_ratio: float
    measure_with: Message | None = None
    """How to narrow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostLayout:
    """A layout that was considered and lost, with its step time in proportion to the plan's."""

    layout: Layout
    step_s: float
    memory_gib: float
    why: Message
    """The reason: it is less simple, slower, too risky or too big, and by how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probability:
    """The probability that a plan meets what was requested."""

    deadline: float | None = None
    """Probability of ending by the deadline, 0..1; None without a deadline."""
    budget: float | None = None
    """Probability of ending within the budget, 0..1; None without a budget or a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The requested precision on one number of GPUs around the plan's."""

    gpu: str
    gpus: int
    global_batch: int
    """Sequences or images per step."""
    duration_days: Estimate
    cost_usd: Estimate | None
    """Cost of the run; None where no price is known."""
    energy_mwh: Estimate | None
    """Energy of the run; None where the GPU's power is unknown."""
    chosen: bool
    """Whether this is the plan."""
    knee: bool
    """Whether more GPUs than these save time at a markedly higher cost of each hour saved."""
    in_time: bool | None
    """Whether it meets the deadline at the confidence; None without one."""
    in_budget: bool | None
    """Whether it meets the budget at the confidence; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One precision on one kind of GPU: does it fit, how long, at what cost? Figures are None where it does not fit."""

    precision: str
    policy: str
    gpu: str
    gpus: int
    nodes: int
    layout: Layout | None
    fits: bool
    why_not: Message | None
    memory_gib: dict[str, float] | None
    """Peak per GPU at mid by item (`MEMORY_ITEMS`), and `total`, which the document gives as a range."""
    memory_capacity_gib: float
    """Memory of a GPU that a process can use, which is a little less than the GPU has."""
    step_s: dict[str, float] | None
    """Step time at mid by item (`STEP_ITEMS`), and `total`."""
    memory_range_gib: Estimate | None = None
    """Range of the peak per GPU; `memory_gib.total` in the document."""
    memory_risk: float | None = None
    """Probability of running out of memory, 0..1."""
    probability: Probability = field(default_factory=Probability)
    step_range_s: Estimate | None = None
    tokens_per_s_per_gpu: Estimate | None = None
    """Throughput in tokens; None for a vision model."""
    samples_per_s_per_gpu: Estimate | None = None
    """Throughput in images, or in sequences of a language model."""
    tflops_per_gpu: Estimate | None = None
    """Model FLOP per second (causal-halved attention, no recomputation; no gradients of weights that LoRA freezes)."""
    mfu: Estimate | None = None
    mfu_full_attention: float | None = None
    """MFU at mid with attention counted in full."""
    hfu: float | None = None
    """Hardware FLOP utilisation at mid, which counts recomputation."""
    goodput_ratio: Estimate | None = None
    skipped_step_ratio: float | None = None
    """Part of the goodput loss: share of steps that an overflow of the loss scale undoes, from training that showed
    that the scale settles; None without such training."""
    duration_days: Estimate | None = None
    gpu_hours: Estimate | None = None
    energy_mwh: Estimate | None = None
    energy_items_mwh: dict[str, float] | None = None
    """gpu, host, network and pue_overhead at mid; they sum to the total."""
    gpu_power_w: Estimate | None = None
    """Mean board power of one GPU while training."""
    peak_power_mw: float | None = None
    """Power that the facility must deliver: GPUs at their limit, host and network, times PUE, at the high end."""
    mean_power_mw: Estimate | None = None
    """Energy at the facility's meter over the wall-clock time."""
    cost_usd: Estimate | None = None
    cost_lines: tuple[CostLine, ...] = ()
    carbon_tco2e: Estimate | None = None
    carbon_market_tco2e: float | None = None
    """Market-based carbon at mid, only where a factor was given."""
    embodied_tco2e: Estimate | None = None
    """The run's share of manufacturing its GPUs; only if requested and a figure is known; not in `carbon_tco2e`."""
    carbon_with_embodied_tco2e: Estimate | None = None
    """Location-based and embodied carbon together, only if embodied carbon was requested."""
    model_flop: float | None = None
    """Model FLOP of the whole run, without recomputation."""
    sci_kg_per_run: Estimate | None = None
    """Software Carbon Intensity (ISO/IEC 21031): location-based operation and embodied share, per run."""
    sci_kg_per_1e21_flop: Estimate | None = None
    """Software Carbon Intensity per 10^21 model FLOP."""
    products: tuple[ProductUse, ...] = ()
    """Matrix products of a layer and of the output layer, by shape, at mid."""
    attention_kernel: AttentionUse | None = None
    """Fused attention of a layer, by shape, at mid; None without such a kernel, or where the plan has no details."""
    narrow_gain: NarrowGain | None = None
    """Where FP8 (MXFP8, NVFP4) products pay off on this GPU, and how far this plan is from there; None: BF16 and
    wider."""
    collectives: tuple[CollectiveUse, ...] = ()
    """Collectives of the layout, by axis and kind of message, at mid."""
    uncertainty: tuple[Contribution, ...] = ()
    """The inputs that contribute most to the range of the duration, largest first."""
    lost_layouts: tuple[LostLayout, ...] = ()
    layouts_evaluated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """How much less `to` takes than `from`, 1 - to/from, computed draw by draw with common draws."""

    view: str
    """`same_gpus` or `same_deadline`."""
    gpu: str
    metric: str
    from_: str
    to: str
    low: float
    mid: float
    high: float
    amount: Estimate | None = None
    """For cost and GPU-hours, how much less in their unit; its mid is the difference of the two plans' mids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A precision that a GPU lacks: it is named and left out, never silently replaced."""

    precision: str
    gpu: str
    reason: Message
    instead: str | None = None
    """The GPU's best precision, planned instead where the requested one exists on other GPUs; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFact:
    """A term that the user's own runs changed."""

    words: Message
    before: float
    """Middle of its range before calibration, in the unit of its parameter."""
    after: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationFacts:
    """The calibration behind an answer."""

    name: str
    """Name of its file."""
    source: str
    """Name of the file of runs."""
    runs: int
    gpus: tuple[str, ...]
    width_ratio: Mapping[str, float]
    """Width of the range, over its middle, after calibration over that before, by figure."""
    learned: tuple[LearnedFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that `mpplan estimate` prints."""

    question: dict[str, InputValue]
    model: ModelShape
    plans: tuple[Plan, ...]
    """Plans on the same GPUs, one per precision (and GPU kind)."""
    same_deadline: tuple[Plan, ...]
    """Plans that each use the fewest whole nodes that finish in time."""
    deadline_days: float
    """Deadline of the second view."""
    savings: tuple[Saving, ...]
    unsupported: tuple[Unsupported, ...]
    assumptions: tuple[Assumption, ...]
    gaps: tuple[Gap, ...]
    warnings: tuple[Message, ...]
    evidence: tuple[Evidence, ...]
    created_at: str
    """Time of the answer, ISO 8601, UTC."""
    version: str
    """Version of mpplan."""
    command: tuple[str, ...] = field(default_factory=tuple)
    power_caps: tuple[CapEffect, ...] = ()
    """The effect of a cap on the facility's power, by GPU; empty without a cap."""
    power_limit_search: tuple[LimitSearch, ...] = ()
    """The power limits that the search found, by GPU; empty unless a search was requested."""
    money: MoneyFacts | None = None
    """Comparisons beside the plans: prices used, own machines against renting, other places and hours."""
    calibration: CalibrationFacts | None = None
    """The calibration on the user's own runs; None without one."""
    confidence: float = 0.8
    """Lowest probability at which deadline and budget count as met."""
    curve: tuple[CurvePoint, ...] = ()
    """The requested precision over numbers of GPUs around the plan's, by GPU, in rising order."""
    run_totals: RunTotals | None = None
    """How published runs compare with the high end predicted for them."""
    tokens_per_sequence: float | None = None
    """Mean tokens of a sequence, without padding; None where samples are not made of tokens."""
    parity: tuple[Parity, ...] = ()
    """Evidence on the loss of each plan's precision, in the order of `plans`."""
    numerics: TrainingShown | None = None
    """Content of the document of `mpplan numerics` that the user named; None without one."""
