"""What a report draws of real training in lower precisions: a part of a document of `mpplan numerics`."""

from __future__ import annotations

from planner.evidence import Estimate
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatShare:
    """What a number format does to magnitudes."""

    format: str
    """`fp16`, `bf16`, `e4m3`, `e5m2` or `e2m1`."""
    label: str
    least_log2: float
    """Base-2 logarithm of its smallest positive number."""
    most_log2: float
    """Base-2 logarithm of its largest number."""
    flushed_ratio: float
    """Share of the values that become zero without a scale."""
    saturated_ratio: float
    """Share beyond its largest number without a scale."""
    flushed_scaled_ratio: float | None = None
    """Share that becomes zero where each layer has the scale that helps it most; None where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """Exponents of the values of one kind of tensor, all layers together."""

    tensor: str
    """`weights`, `activations`, `gradients` or `weight_gradients`."""
    least_exponent: int
    """Exponent of the first count: values of 2^e to 2^(e+1)."""
    counts: tuple[int, ...]
    """Values by exponent, one after the other, of 100 for the most frequent one."""
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
    """Step and base-2 logarithm of the scale from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShown:
    """One precision held against a higher one."""

    precision: str
    """As it was trained: also `fp8-rowwise` or the like."""
    baseline: str
    metric: str
    verdict: str
    low: float | None
    """Lower end of the interval of the difference; None where no pair ended with a finite figure."""
    mid: float | None
    high: float | None
    margin: float
    pairs: int
    """Pairs of runs that ended with finite figures."""
    emulated: bool
    """Whether the arithmetic was emulated, at least in part."""
    task: str = ""
    """What was trained."""
    steps: int = 0
    """Of each run."""
    diverged: int = 0
    """Further pairs of which a run ended without a finite figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShown:
    """What one layer, or a group, does when it alone is lowered."""

    name: str
    layers: int
    """Layers of the group."""
    loss_change: float | None
    gradient_error_ratio: float | None
    kept_high: bool
    """Whether the recommended policy keeps it in the higher precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePoint:
    """A policy or a schedule: what it does to the loss, and its time as a mixture of two plans."""

    name: str
    """`all_high`, `all_low`, `policy`, `high_first` or `high_last`."""
    precision: str
    """The lower precision."""
    high: str
    """The precision of the rest."""
    low_share_ratio: float
    """Share of the arithmetic (a policy), or of the steps (a schedule), in the lower precision."""
    loss_change: float | None
    """Against all in the higher precision; None where runs ended without a finite figure."""
    steps: int
    """Steps of the training that showed it."""
    kind: str
    """`policy` or `schedule`: the points of one kind come from the same start and steps, and have a front of their
    own."""
    margin: float
    """Half the width of what counts as equal in loss."""
    loss_range: Estimate | None = None
    """The change with its interval; None where it rests on one run, so that its error is not known."""
    seeds: int | None = None
    """Runs behind it; None where the document does not say."""
    diverged: int = 0
    """Runs that ended without a finite figure."""
    duration_days: Estimate | None = None
    """Of the plan, by mixing the two plans; None where a plan of one of the two is missing."""
    gpu_hours: Estimate | None = None
    on_front: bool = False
    """Whether no other point of its kind is surely as good and sooner; always true of all in the higher precision."""
    recommended: bool = False
    """Whether the document recommends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingShown:
    """One task of a document of `mpplan numerics`, in short, and the pairs of all."""

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
    """Whether nothing was cut short."""
    magnitudes: tuple[Magnitudes, ...] = ()
    scale_path: ScalePath | None = None
    """Of the usual scale, where that was run."""
    scale_stress: ScalePath | None = None
    """Of the stress test beside it."""
    scale_precision: str | None = None
    pairs: tuple[PairShown, ...] = ()
    """Of every task that was run, the drawn one first."""
    lowered_to: str | None = None
    """The precision that layers were lowered to, one at a time."""
    lowered_emulated: bool | None = None
    layers: tuple[LayerShown, ...] = ()
    """In the document's order: most sensitive first."""
    mixtures: tuple[MixturePoint, ...] = ()
    """Policies and schedules, against the time of the plan."""
