"""How the loss of a precision compares: measured by `mpplan numerics`, published for another model, or unknown."""

from __future__ import annotations

from planner.evidence import Estimate
from planner.lazy import dataclass

MEASURED, PUBLISHED, NOT_TESTED, REFERENCE = "measured", "published", "not_tested", "reference"
BASES = (MEASURED, PUBLISHED, NOT_TESTED, REFERENCE)
"""Sources of that knowledge: own training, a published comparison, or none; or the precision is the reference
itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredParity:
    """A test of equivalence by `mpplan numerics`: paired runs of a small task, which is not the plan's."""

    baseline: str
    """The higher precision that it is compared with."""
    metric: str
    """The metric compared: `loss` (nats) or `accuracy`."""
    difference: Estimate | None
    """Loss or accuracy of the precision minus the baseline's, with its 90% interval; None where runs diverged."""
    margin: float | None
    """Half the width of the range of differences that count as equal."""
    verdict: str
    """Result of the test: `equivalent`, `not_equivalent` or `cannot_tell`."""
    seeds: int | None
    """Number of pairs of runs."""
    steps: int | None
    """Number of steps of each run."""
    task: str
    """The task that was trained: a built-in one, or `own`."""
    recipe: str
    """How the precision was applied."""
    emulated: bool
    """Whether the arithmetic was emulated, at least in part, on a device without hardware support for it."""
    device: str
    """Name of the device."""
    source: str | None
    """Name of the record or document."""
    date: str | None
    diverged: int | None = None
    """Number of pairs in which a run ended without a finite figure; None where the document does not say."""
    like_plan: bool = True
    """Whether the task resembles the plan's model: text for a language model, images for a vision model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrained:
    """Training in which the loss scale let almost no step pass: the precision does not train."""

    task: str
    """The task that was tried: a built-in one, or `own`."""
    steps: int | None
    """Number of steps that were tried."""
    skipped: int | None
    """Number of those steps that an overflow undid."""
    emulated: bool
    device: str
    """Name of the device."""
    source: str | None
    """Name of the record or document."""
    date: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRate:
    """Speed and power of a precision from a publication that compares no loss."""

    baseline: str
    model: str
    gpu: str | None
    """Catalogue id of the GPU; None where the source does not say."""
    gpus: int | None
    rate_gain_ratio: float
    """Throughput relative to the baseline's, less 1."""
    power_gain_ratio: float | None
    """Power relative to the baseline's, less 1."""
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedParity:
    """A published comparison of losses (`catalog/precision_losses.csv`), for another model than the plan's."""

    baseline: str
    difference: float
    """Loss in nats, precision minus baseline, from one run of each and therefore without an interval."""
    model: str
    params: float
    steps: int | None
    """Step at which the losses were compared."""
    recipe: str
    framework: str
    rate_gain_ratio: float | None
    """Throughput relative to the baseline's in the same runs, less 1."""
    source: str
    date: str
    rates: tuple[PublishedRate, ...] = ()
    """Speeds of other runs in the precision, without a loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPerNat:
    """The saving of a plan per nat of higher loss; a rough rate, since the loss is from other training."""

    basis: str
    """Source of the loss: `measured` or `published`."""
    baseline: str
    """The precision that the saving is relative to; a measured loss is relative to FP32."""
    nats: float
    """By how many nats the loss is higher."""
    saved_gpu_hours: float
    """GPU-hours that the plan saves, at mid."""
    gpu_hours_per_nat: float
    saved_usd: float | None
    """Money that the plan saves, at mid; None without a price."""
    usd_per_nat: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Evidence on the loss of one plan's precision against a higher one."""

    gpu: str
    """GPU of the plan."""
    precision: str
    """Precision of the plan."""
    basis: str
    """The best source available, one of `BASES`."""
    measured: MeasuredParity | None = None
    published: PublishedParity | None = None
    """The published comparison, given beside a measurement too: small tasks show less than long training of large
    models."""
    per_nat: CostPerNat | None = None
    """The rate of the measured loss, where a task like the plan's model shows a higher one, else of the published loss.

    None where no loss is known to be higher, nothing is saved, the baseline has no plan, or the precision does not
    train.
    """
    untrained: Untrained | None = None
    """Set where training showed that the precision does not train, so that its savings mean nothing."""
    published_per_nat: CostPerNat | None = None
    """The rate of the published loss, given beside a measured loss too."""
