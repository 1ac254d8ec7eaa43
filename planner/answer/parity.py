"""What is known of the loss of a precision: measured by `mpplan numerics`, published of another model, or nothing."""

from __future__ import annotations

from planner.evidence import Estimate
from planner.lazy import dataclass

MEASURED, PUBLISHED, NOT_TESTED, REFERENCE = "measured", "published", "not_tested", "reference"
BASES = (MEASURED, PUBLISHED, NOT_TESTED, REFERENCE)
"""Where it is known from: own training, a published comparison, nowhere; or it is what the others are held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredParity:
    """A test of equivalence by `mpplan numerics`: paired runs of a small task, which is not the plan's."""

    baseline: str
    """The higher precision."""
    metric: str
    """`loss` (nats) or `accuracy`."""
    difference: Estimate | None
    """Precision minus baseline, with its 90 % interval; None where runs diverged."""
    margin: float | None
    """Half the width of what counts as equal."""
    verdict: str
    """`equivalent`, `not_equivalent` or `cannot_tell`."""
    seeds: int | None
    """Pairs of runs."""
    steps: int | None
    """Steps of each run."""
    task: str
    """What was trained: a built-in task, or `own`."""
    recipe: str
    """How the precision was applied."""
    emulated: bool
    """Whether the arithmetic was emulated, at least in part, on a device that has none of it."""
    device: str
    """Name of the device."""
    source: str | None
    """Record or document."""
    date: str | None
    diverged: int | None = None
    """Of the pairs, those of which a run ended without a finite figure; None where that is not told."""
    like_plan: bool = True
    """Whether the task may stand for the plan's model: text for a language model, images for one that sees them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrained:
    """Training in which the loss scale let no step pass, or hardly one: the precision does not train."""

    task: str
    """What was tried: a built-in task, or `own`."""
    steps: int | None
    """Steps that were tried."""
    skipped: int | None
    """Of them, those that an overflow undid."""
    emulated: bool
    device: str
    """Name of the device."""
    source: str | None
    """Record or document."""
    date: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRate:
    """Speed and power that others published of a precision where no loss was compared."""

    baseline: str
    model: str
    gpu: str | None
    """Catalogue id; None where the source does not say."""
    gpus: int | None
    rate_gain_ratio: float
    """Throughput over that of the baseline, less 1."""
    power_gain_ratio: float | None
    """Power over that of the baseline, less 1."""
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedParity:
    """A comparison that others published (`catalog/precision_losses.csv`): of another model than the plan's."""

    baseline: str
    difference: float
    """Loss in nats, precision minus baseline; of one run each, so without an interval."""
    model: str
    params: float
    steps: int | None
    """Steps at which the losses were compared."""
    recipe: str
    framework: str
    rate_gain_ratio: float | None
    """Throughput over that of the baseline in the same runs, less 1."""
    source: str
    date: str
    rates: tuple[PublishedRate, ...] = ()
    """Speeds of other runs in the precision, without a loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPerNat:
    """What a plan saves for each nat by which its loss is known to be higher; a rough rate, of other training."""

    basis: str
    """Where the loss is known from: `measured` or `published`."""
    baseline: str
    """The precision that the saving is held against; a measured loss is held against FP32."""
    nats: float
    """By how much the loss is higher."""
    saved_gpu_hours: float
    """At mid."""
    gpu_hours_per_nat: float
    saved_usd: float | None
    """At mid; None without a price."""
    usd_per_nat: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """What is known of the loss of one plan's precision against a higher one."""

    gpu: str
    """Of the plan."""
    precision: str
    """Of the plan."""
    basis: str
    """The best of what is known, one of `BASES`."""
    measured: MeasuredParity | None = None
    published: PublishedParity | None = None
    """Also where there is a measurement: small tasks show less than long training of large models."""
    per_nat: CostPerNat | None = None
    """Of the measured loss where a task like the plan's model shows it to be higher, else of the published one.

    None where no loss is known to be higher, nothing is saved, the baseline has no plan, or nothing trains.
    """
    untrained: Untrained | None = None
    """Where training showed that the precision does not train: what it saves is then no saving."""
    published_per_nat: CostPerNat | None = None
    """Of the published loss, also where there is a measured one."""
