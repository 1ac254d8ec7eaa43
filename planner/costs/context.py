"""Comparisons beside the plans of an answer: prices used, owning against renting, other places, hours, power limits."""

from __future__ import annotations

from planner.costs.facility_power import LimitBeside
from planner.errors import Message
from planner.evidence import Estimate
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceUsed:
    """The price of a GPU-hour in the plans on one GPU."""

    gpu: str
    usd_per_gpu_h: Estimate | None
    """Price as booked; the electricity of own machines' working hours is a separate line."""
    basis: Message
    """How the price was found."""
    commitment: str
    """on-demand, spot, 1y, 3y or owned."""
    provider: str | None
    region: str | None
    stale: bool
    """Whether a row used is more than 90 days old."""
    evidence_ids: tuple[str, ...]
    """The price rows used."""
    list_usd_per_gpu_h: float | None = None
    """On-demand price without the discount of the commitment or offer; None: not known, or there is no discount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteUsed:
    """A vendor's offer that the plans on one GPU are billed by."""

    gpu: str
    vendor: str
    minimum_term_days: float
    """Minimum term in days; 0: none."""
    minimum_gpus: int
    setup_fee_usd: float
    expired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedBeside:
    """The cost of an hour on the user's own GPU, compared with renting one."""

    gpu: str
    usd_per_gpu_h: Estimate
    """Hourly cost, electricity included."""
    items_usd_per_gpu_h: dict[str, float]
    """Items at mid; they sum to the mid of the hourly cost."""
    utilisation_ratio: float | None
    """Planned share of all hours that are used."""
    rental_usd_per_gpu_h: float | None
    """Rental price; None where none is known."""
    rental_basis: Message | None
    rental_evidence_ids: tuple[str, ...]
    break_even_utilisation_ratio: float | None
    """Utilisation from which owning costs less; None: there is none, or no rental price is known."""
    break_even_low_ratio: float | None = None
    """The same if owning costs its low and renting its high."""
    break_even_high_ratio: float | None = None
    """The same if owning costs its high and renting its low; None although the low is known: there is none."""
    rental_low_usd_per_gpu_h: float | None = None
    rental_high_usd_per_gpu_h: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBeside:
    """The requested plan in another place, by the available price and grid rows, with the same GPU-hours and energy."""

    gpu: str
    precision: str
    provider: str
    region: str
    place: str
    """Country or US state."""
    usd: float
    """GPU-hours at mid, with those of failed work and experiments, times the place's price."""
    usd_here: float | None
    """Part of the bill that rent there replaces: GPUs (also of failed work and experiments), electricity, an offer's
    minimum and fee; None without a price."""
    saved_usd: float | None
    """`usd_here` less `usd`; negative where the place costs more."""
    carbon_tco2e: float | None
    """Carbon in that place; None where the factors of the two places have different scopes and cannot be compared."""
    saved_tco2e: float | None
    scope: str
    """Emissions that the place's grid factor counts."""
    evidence_id: str
    """Id of the price row."""
    source: str
    date: str
    """Date of the price: a day, or the interval that contains it."""
    stale: bool
    """Whether the price is more than 90 days old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartHours:
    """When to start the requested plan under a time-of-use tariff, if it is not interrupted."""

    gpu: str
    precision: str
    tariff: str
    best_start: str
    """Hour of the week, local time."""
    best_usd_per_kwh: float
    """Average price that the run pays when started then."""
    dearest_start: str
    dearest_usd_per_kwh: float
    mean_usd_per_kwh: float
    """Average price over the whole week."""
    saved_usd: float
    """Saving of the best start over the dearest, for the plan's energy at mid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyFacts:
    """All comparisons; empty where nothing is known or requested."""

    prices: tuple[PriceUsed, ...]
    quotes: tuple[QuoteUsed, ...] = ()
    owned: tuple[OwnedBeside, ...] = ()
    here: str | None = None
    """The place that `elsewhere` is compared with; None: it has no grid factor that could be compared."""
    elsewhere: tuple[PlaceBeside, ...] = ()
    """Cheaper or cleaner places; for each GPU, the cheapest and the cleanest come first."""
    start_hours: tuple[StartHours, ...] = ()
    power_limits: tuple[LimitBeside, ...] = ()
    """Measured runs at several power limits, where the named records hold them."""
