"""The cost or emission of one unit, as the planner needs it: price per GPU-hour, electricity, PUE, grid factor.

`pricing` makes these from its price books; the planner only multiplies. Each carries its range and its evidence.
"""

from __future__ import annotations

from dataclasses import replace

from planner.costs.quantity import DataSize
from planner.errors import Message
from planner.evidence import Estimate, Evidence, Gap
from planner.lazy import dataclass

NO_DATA = DataSize(size_bytes=0.0)
FREE = Estimate.exactly(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """Price of one GPU-hour of one GPU, in USD."""

    gpu: str
    """Catalogue id."""
    usd_per_gpu_h: Estimate | None
    """Price of a GPU-hour; None where none is known, so that the cost of a run is unknown too."""
    basis: Message
    """How the price was found, for example the median over 6 providers."""
    evidence: tuple[Evidence, ...]
    """The price rows used."""
    gap: Gap | None = None
    """Set where the price is missing or stale."""
    commitment: str = "on-demand"
    """on-demand, spot, 1y, 3y or owned; for an offer, as quoted."""
    provider: str | None = None
    """The provider chosen; None for the market."""
    region: str | None = None
    """The region chosen; None for any."""
    stale: bool = False
    """Whether a row or an exchange rate used is more than 90 days old, or an offer ended; `gap` names it."""
    warnings: tuple[Message, ...] = ()
    """Further messages for the reader: historic rows, vague dates, a borrowed range."""
    like: str | None = None
    """The GPU whose price is used for one that has none, as the user requested; None: the price is this GPU's own."""
    list_usd_per_gpu_h: float | None = None
    """What the same offer lists for an hour on demand, at mid; None: not known, or the price has no discount on it."""
    machine_gpus: int = 1
    """GPUs of the smallest machine that a named provider rents at this price; 1 also where this is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """Facts that depend on where the machines are: power usage effectiveness, electricity price, grid carbon."""

    pue: Estimate
    """Facility power over IT power, at least 1."""
    pue_evidence: Evidence
    electricity_usd_per_kwh: Estimate | None
    electricity_evidence: Evidence | None = None
    """None where the price is not known."""
    electricity_gap: Gap | None = None
    """Why the price is not known, or that it is stale."""
    grid_kg_co2e_per_kwh: Estimate
    """Location-based factor."""
    grid_evidence: Evidence
    grid_gap: Gap | None = None
    """Set where the factor of another place is used."""
    market_kg_co2e_per_kwh: float | None
    """Market-based factor, used only for a second, labelled number."""
    market_evidence: Evidence | None = None

    def evidence(self, *, billed: bool = True) -> tuple[Evidence, ...]:
        """Return the sources; electricity is included only where it is `billed` separately from the GPU price."""
        power = self.electricity_evidence if billed else None
        rows = (self.pue_evidence, self.grid_evidence, power, self.market_evidence)
        return tuple(row for row in rows if row is not None)

    def gaps(self, *, billed: bool = True) -> tuple[Gap, ...]:
        """Return what is missing; the electricity price only where it is `billed` separately from the GPU price."""
        gaps = (self.grid_gap, self.electricity_gap if billed else None)
        return tuple(gap for gap in gaps if gap is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One line of a cost tree; its children sum to it."""

    id: str
    """For example `gpu_rental`, `electricity`."""
    label: Message
    usd: Estimate
    quantity: float | None = None
    """Units bought at mid, for example GPU-hours."""
    unit: str | None = None
    unit_price_usd: Estimate | None = None
    evidence_ids: tuple[str, ...] = ()
    children: tuple[CostLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCosts:
    """Costs other than the GPUs; a 0 leaves the line out."""

    storage_usd_per_gb_month: float = 0.0
    checkpoints_kept: float = 0.0
    """Number of checkpoints that are stored at once."""
    data: DataSize = NO_DATA
    """Data set kept for the run."""
    months_after: float = 0.0
    """Number of months for which everything is kept after the run."""
    egress_usd_per_gb: float = 0.0
    egress: DataSize = NO_DATA
    """Data moved out once."""
    network_ratio: float = 0.0
    """Network between servers, where it is billed separately, as a share of the GPU line."""
    hosts: float = 0.0
    """Number of CPU machines for data and control."""
    usd_per_host_h: float = 0.0
    experiments_ratio: float = 0.0
    """GPU-hours of experiments before the run, as a share of the run's."""
    failed_ratio: float = 0.0
    """Whole runs or parts of them that are repeated, beyond the restarts that goodput counts, as a share of the run."""
    evidence: Evidence | None = None
    """The file that states these costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A vendor's offer, including what it bills beyond the hours used."""

    vendor: str
    price: GpuPrice
    """Price of a GPU-hour, with the commitment that is quoted."""
    minimum_term_h: float
    """Least number of hours billed; 0 where there is no minimum."""
    minimum_gpus: int
    """Least number of GPUs billed."""
    setup_fee_usd: float
    """Fee that is paid once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedPrice:
    """The cost of an hour on the user's own GPU, compared with renting one."""

    price: GpuPrice
    """Hourly cost, with commitment `owned`, electricity included."""
    items_usd_per_gpu_h: dict[str, float]
    """Items at mid: server, network, storage, financing, housing, electricity, staff; they sum to the mid."""
    break_even_utilisation_ratio: float | None
    """Utilisation at which owning costs as much as the rental price at mid; None: at none, or no rental price is
    known."""
    rental_usd_per_gpu_h: float | None
    break_even_low_ratio: float | None = None
    """The same for machines, PUE and electricity at their lows against a rental price at its high."""
    break_even_high_ratio: float | None = None
    """The same at the opposite ends; None although the low is known: there, owning costs more at any utilisation."""
    rental_low_usd_per_gpu_h: float | None = None
    rental_high_usd_per_gpu_h: float | None = None
    rental_basis: Message | None = None
    """How the rental price was found."""
    rental_evidence: tuple[Evidence, ...] = ()
    """The rows of the rental price."""
    utilisation_ratio: float | None = None
    """Planned share of all hours that are used."""
    life_years: float | None = None
    """Service life, over which the machines' embodied carbon is also spread."""
    busy_usd_per_gpu_h: Estimate = FREE
    """The part of the price that is electricity of working hours; a plan bills the electricity of its own energy
    instead."""

    @property
    def without_energy(self) -> GpuPrice:
        """The price without the electricity of working hours, which a plan bills from its own energy."""
        price = self.price.usd_per_gpu_h
        if price is None:
            return self.price
        busy = self.busy_usd_per_gpu_h
        low, mid, high = price.low - busy.low, price.mid - busy.mid, price.high - busy.high
        # Where electricity makes up the whole range, the three differ only by rounding, in any order.
        remaining = Estimate(low=min(low, mid), mid=mid, high=max(mid, high), at_least=price.at_least)
        basis = Message.of("price.basis.without_electricity", basis=self.price.basis)
        return replace(self.price, usd_per_gpu_h=remaining, basis=basis)

    @property
    def idle_items_usd_per_gpu_h(self) -> dict[str, float]:
        """The items of `without_energy`: of electricity, only the part of hours without work."""
        items = self.items_usd_per_gpu_h
        return items | {"electricity": max(items.get("electricity", 0.0) - self.busy_usd_per_gpu_h.mid, 0.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbodiedRate:
    """Carbon of manufacturing a GPU, spread over the hours of its life."""

    kg_co2e_per_gpu_h: Estimate
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Costs of one kind of GPU beyond the price of an hour, and its embodied carbon."""

    quote: Quote | None = None
    """The offer that the price comes from: minimum term and size, set-up fee."""
    owned: OwnedPrice | None = None
    """The user's own machines that the price comes from."""
    other_costs: OtherCosts | None = None
    """Lines that the user states beside the GPUs."""
    embodied: EmbodiedRate | None = None
    """Embodied carbon; None where no figure is known for the GPU."""

    @property
    def has_lines(self) -> bool:
        """Whether a bill has more than GPU-hours and electricity."""
        return self.quote is not None or self.other_costs is not None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The sources beyond the price's own rows."""
        other = None if self.other_costs is None else self.other_costs.evidence
        embodied = None if self.embodied is None else self.embodied.evidence
        rented = () if self.owned is None else self.owned.rental_evidence
        compared = (replace(row, used_in=("rental_usd_per_gpu_h",)) for row in rented)
        return (*(row for row in (other, embodied) if row is not None), *compared)


NO_LEDGER = Ledger()
"""A ledger without any further costs."""
