"""What is known of the loss of a precision: measured by `mpplan numerics`, published of another model, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from planner.evidence import Estimate

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
    """Whether the arithmetic was emulated, on a device that has none of it."""
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
    """The precision that both the loss and the saving are held against."""
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
    """None where no loss is known to be higher, nothing is saved, or the baseline has no plan."""
