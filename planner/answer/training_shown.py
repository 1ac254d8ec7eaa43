"""Results of real training in lower precisions that a report plots: part of a document of `mpplan numerics`."""

from __future__ import annotations

from planner.evidence import Estimate
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatShare:
    """The effect of a number format on magnitudes."""

    format: str
    """The number format: `fp16`, `bf16`, `e4m3`, `e5m2` or `e2m1`."""
    label: str
    least_log2: float
    """Base-2 logarithm of the format's smallest positive number."""
    most_log2: float
    """Base-2 logarithm of the format's largest number."""
    flushed_ratio: float
    """Share of the values that become zero without a scale."""
    saturated_ratio: float
    """Share of the values beyond the format's largest number without a scale."""
    flushed_scaled_ratio: float | None = None
    """Share of the values that become zero where each layer has its best scale; None where no scale is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """Exponents of the values of one kind of tensor, all layers together."""

    tensor: str
    """Kind of tensor: `weights`, `activations`, `gradients` or `weight_gradients`."""
    least_exponent: int
    """Exponent e of the first count, which counts values from 2^e to 2^(e+1)."""
    counts: tuple[int, ...]
    """Relative frequency of the values by rising exponent; the most frequent one is 100."""
    formats: tuple[FormatShare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePath:
    """The path of a dynamic loss scale."""

    name: str
    """`usual`: as `torch.amp.GradScaler` starts; `short`: a stress test, from a high scale that soon grows again."""
    steps: int
    skipped: int
    growth_interval: int
    path: tuple[tuple[float, float], ...]
    """Steps at which the scale changed, each with the base-2 logarithm of the scale from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShown:
    """One precision compared with a higher one."""

    precision: str
    """The precision as it was trained, for example `fp8-rowwise`."""
    baseline: str
    metric: str
    verdict: str
    low: float | None
    """Lower end of the interval of the difference; None where no pair ended with a finite figure."""
    mid: float | None
    high: float | None
    margin: float
    pairs: int
    """Number of pairs of runs that ended with finite figures."""
    emulated: bool
    """Whether the arithmetic was emulated, at least in part."""
    task: str = ""
    """The task that was trained."""
    steps: int = 0
    """Number of steps of each run."""
    diverged: int = 0
    """Number of further pairs in which a run ended without a finite figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShown:
    """The effect of lowering the precision of one layer, or group of layers, alone."""

    name: str
    layers: int
    """Number of layers in the group."""
    loss_change: float | None
    gradient_error_ratio: float | None
    kept_high: bool
    """Whether the recommended policy keeps it in the higher precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePoint:
    """A policy or a schedule: its effect on the loss, and its time as a mixture of two plans."""

    name: str
    """What is mixed: `all_high`, `all_low`, `policy`, `high_first` or `high_last`."""
    precision: str
    """The lower precision."""
    high: str
    """The precision of all else."""
    low_share_ratio: float
    """Share of the arithmetic (a policy), or of the steps (a schedule), in the lower precision."""
    loss_change: float | None
    """Change of loss against all in the higher precision; None where runs ended without a finite figure."""
    steps: int
    """Number of steps of the training that showed it."""
    kind: str
    """`policy` or `schedule`; points of one kind share their start and steps, and have a Pareto front of their own."""
    margin: float
    """Half the width of the range of losses that count as equal."""
    loss_range: Estimate | None = None
    """The change with its interval; None where it rests on one run, so that its error is unknown."""
    seeds: int | None = None
    """Number of runs behind it; None where the document does not say."""
    diverged: int = 0
    """Number of runs that ended without a finite figure."""
    duration_days: Estimate | None = None
    """Duration of the plan with this mixture of the two plans; None where one of the two plans is missing."""
    gpu_hours: Estimate | None = None
    on_front: bool = False
    """Whether no other point of its kind is surely as good and sooner; always true of the one all in the higher
    precision."""
    recommended: bool = False
    """Whether the document recommends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingShown:
    """A summary of one task of a document of `mpplan numerics`, with the pairs of all tasks."""

    source: str
    """Name of the document."""
    device: str
    """Name of the device."""
    device_kind: str
    """`cuda` or `cpu`."""
    task: str
    params: int | None
    """Parameters of the task's model."""
    complete: bool
    """Whether the training was not cut short."""
    magnitudes: tuple[Magnitudes, ...] = ()
    scale_path: ScalePath | None = None
    """Path of the usual loss scale, where that was run."""
    scale_stress: ScalePath | None = None
    """Path of the loss scale in the stress test."""
    scale_precision: str | None = None
    pairs: tuple[PairShown, ...] = ()
    """Pairs of every task that was run, those of the plotted task first."""
    lowered_to: str | None = None
    """The precision that layers were lowered to, one at a time."""
    lowered_emulated: bool | None = None
    layers: tuple[LayerShown, ...] = ()
    """Layers in the document's order: the most sensitive first."""
    mixtures: tuple[MixturePoint, ...] = ()
    """Policies and schedules, with the time that the plan would take with them."""
