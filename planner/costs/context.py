"""What an answer compares its plans with: prices used, owning against renting, other places, hours and power limits."""

from __future__ import annotations

from planner.costs.facility_power import LimitBeside
from planner.errors import Message
from planner.evidence import Estimate
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceUsed:
    """The price of a GPU-hour in the plans of one GPU."""

    gpu: str
    usd_per_gpu_h: Estimate | None
    """As booked; the electricity of own machines' working hours is a line of its own."""
    basis: Message
    """How the price was found."""
    commitment: str
    """on-demand, spot, 1y, 3y or owned."""
    provider: str | None
    region: str | None
    stale: bool
    """Whether a row used is more than 90 days old."""
    evidence_ids: tuple[str, ...]
    """The rows used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteUsed:
    """A vendor's offer that the plans of one GPU are billed by."""

    gpu: str
    vendor: str
    minimum_term_days: float
    """0: none."""
    minimum_gpus: int
    setup_fee_usd: float
    expired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedBeside:
    """What an hour on the user's own GPU costs, compared with renting one."""

    gpu: str
    usd_per_gpu_h: Estimate
    """Electricity included."""
    items_usd_per_gpu_h: dict[str, float]
    """At mid; they sum to the mid."""
    utilisation_ratio: float | None
    """Share of all hours that are used, as planned."""
    rental_usd_per_gpu_h: float | None
    """None where no rental price is known."""
    rental_basis: Message | None
    rental_evidence_ids: tuple[str, ...]
    break_even_utilisation_ratio: float | None
    """From this utilisation on owning costs less; None: at none, or no rental price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBeside:
    """The asked plan in another place, by the price and grid rows at hand, with the same GPU-hours and energy."""

    gpu: str
    precision: str
    provider: str
    region: str
    place: str
    """Country or US state."""
    usd: float
    """GPU-hours at mid times the place's price."""
    usd_here: float | None
    """What rent replaces of the bill: GPUs, electricity, an offer's minimum and fee; None without a price."""
    saved_usd: float | None
    """The difference; negative where the place costs more."""
    carbon_tco2e: float | None
    """None where the factors of the two places have different scopes and cannot be compared."""
    saved_tco2e: float | None
    scope: str
    """What the place's grid factor counts."""
    evidence_id: str
    """The price row."""
    source: str
    date: str
    """Of the price: a day, or the interval that holds it."""
    stale: bool
    """Whether the price is more than 90 days old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartHours:
    """When to start the asked plan under a time-of-use tariff, if it is not interrupted."""

    gpu: str
    precision: str
    tariff: str
    best_start: str
    """Hour of the week, local time."""
    best_usd_per_kwh: float
    """What the run then pays on average."""
    dearest_start: str
    dearest_usd_per_kwh: float
    mean_usd_per_kwh: float
    """Of the whole week."""
    saved_usd: float
    """Best start against the dearest, for the plan's energy at mid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyFacts:
    """All of these comparisons; empty where nothing is known or asked."""

    prices: tuple[PriceUsed, ...]
    quotes: tuple[QuoteUsed, ...] = ()
    owned: tuple[OwnedBeside, ...] = ()
    here: str | None = None
    """The place that `elsewhere` is compared with; None: it has no grid factor that could be."""
    elsewhere: tuple[PlaceBeside, ...] = ()
    """Cheaper or cleaner places, the cheapest and the cleanest first of each GPU."""
    start_hours: tuple[StartHours, ...] = ()
    power_limits: tuple[LimitBeside, ...] = ()
    """Where the records named hold rates at several power limits."""
