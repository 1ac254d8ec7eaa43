"""The bill of a run: GPU line, electricity, minimum term, set-up fee and the user's other lines, drawn together.

The same lines serve a search over layouts (one amount per layout) and a plan (one amount per draw), where they become a
tree that sums to the cent.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from planner.costs.lines import (
    DrawnLine,
    cost_tree,
    egress_usd,
    electricity_usd,
    gpu_rental_usd,
    hosts_usd,
    share_usd,
    storage_usd,
    unused_term_gpu_h,
)
from planner.costs.prices import NO_DATA, NO_LEDGER, CostLine, GpuPrice, Ledger, OtherCosts, OwnedPrice, Quote
from planner.costs.quantity import DataSize, Energy, Value
from planner.errors import Message
from planner.evidence import Estimate, middle
from planner.lazy import dataclass
from planner.units import MONTH_H

Amounts = npt.NDArray[np.float64]

CONTRACT = "contract"
"""Block name of the hours of a contract, used or not: within a minimum term their sum stays the same."""
MINIMUM = "minimum_term"
"""Id of the line for the hours of a contract that neither the run nor work beside it uses."""
WORK = ("failed_work", "experiments")
"""Ids of the lines for GPU-hours of work beside the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDraws:
    """Quantities that a run takes, per draw or per layout; one index is the same draw of every uncertain input."""

    gpus: Value
    """A single number for draws of one layout, else one per layout."""
    gpu_h: Amounts
    """Number of GPUs times wall-clock hours, goodput included."""
    usd_per_gpu_h: Amounts | None
    """Price of a GPU-hour; None where none is known, so that the cost is unknown."""
    checkpoint: DataSize = NO_DATA
    """One checkpoint of the model and its optimizer."""
    energy: Energy | None = None
    """Energy at the facility's meter; only where electricity is paid separately from the GPU price."""
    energy_mid: Energy | None = None
    """Mid of that energy as it is shown; None: the middle of its amounts."""
    usd_per_kwh: Amounts | None = None
    """Price of electricity where it is paid separately."""

    @property
    def wall_h(self) -> Amounts:
        """Wall-clock hours."""
        return np.asarray(self.gpu_h / self.gpus, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BillPrices:
    """The prices behind the lines, so that people can check them."""

    gpu: GpuPrice
    usd_per_kwh: Estimate | None = None
    electricity_evidence: tuple[str, ...] = ()
    ledger: Ledger = field(default=NO_LEDGER)

    @property
    def evidence_ids(self) -> tuple[str, ...]:
        """Ids of the sources of the GPU price."""
        return tuple(row.id for row in self.gpu.evidence)


def bill_lines(run: RunDraws, prices: BillPrices) -> list[DrawnLine]:
    """Return every known line with its amounts; empty where none is known."""
    lines = [] if run.usd_per_gpu_h is None else [_gpu_line(run, run.usd_per_gpu_h, prices)]
    rental = lines[:1]
    if run.usd_per_gpu_h is not None and prices.ledger.quote is not None:
        lines += _quote_lines(run, run.usd_per_gpu_h, prices, prices.ledger.quote)
    worked = rental
    if run.energy is not None and run.usd_per_kwh is not None:
        lines.append(_electricity_line(run.energy, run.energy_mid, run.usd_per_kwh, prices))
        worked = [*rental, lines[-1]]
    if prices.ledger.other_costs is not None:
        lines += _other_cost_lines(run, rental, worked, prices, prices.ledger.other_costs)
    return _with_work_in_contract(lines)


def _with_work_in_contract(lines: list[DrawnLine]) -> list[DrawnLine]:
    """Put work beside the run into the contract where that has unused hours, of which such work takes some."""
    if not any(line.id == MINIMUM for line in lines):
        return lines
    return [replace(line, block=CONTRACT) if line.id in WORK else line for line in lines]


def run_bill(run: RunDraws, prices: BillPrices) -> tuple[Estimate | None, tuple[CostLine, ...]]:
    """Return the total and the lines that sum to it at low, mid and high; a lower bound where a minor price is missing.

    Without a price of the GPUs there is no total, since the sum of the other lines is not the cost of the run.
    """
    price = prices.gpu.usd_per_gpu_h
    if price is None:
        return None, ()
    return cost_tree(bill_lines(run, prices), at_least=price.at_least)


def total_draws_usd(run: RunDraws, prices: BillPrices) -> Amounts:
    """Return the sum of all lines, one amount per draw or layout."""
    total = np.zeros(run.gpu_h.shape)
    for line in bill_lines(run, prices):
        total = total + line.amounts
    return total


def _gpu_line(run: RunDraws, usd_per_gpu_h: Amounts, prices: BillPrices) -> DrawnLine:
    amounts = np.asarray(gpu_rental_usd(run.gpu_h, usd_per_gpu_h), dtype=np.float64)
    hours, owned = middle(run.gpu_h), prices.ledger.owned
    return DrawnLine(
        id="gpu_rental" if owned is None else "gpu_owned",
        label=Message.of("cost.gpu_rental") if owned is None else Message.of("cost.gpu_owned"),
        usd=amounts,
        quantity=hours,
        unit="GPU-hour",
        unit_price_usd=prices.gpu.usd_per_gpu_h,
        evidence_ids=prices.evidence_ids,
        block=CONTRACT,
        children=() if owned is None else _owned_items(amounts, hours, prices, owned),
    )


_OWNED_LABELS = {
    "server": Message.of("cost.owned_server"),
    "network": Message.of("cost.owned_network"),
    "storage": Message.of("cost.owned_storage"),
    "financing": Message.of("cost.owned_financing"),
    "housing": Message.of("cost.owned_housing"),
    "electricity": Message.of("cost.owned_idle_electricity"),
    "staff": Message.of("cost.owned_staff"),
}
"""Labels of `OwnedPrice.items_usd_per_gpu_h`; of electricity, only the part of hours without work is shown."""


def _owned_items(amounts: Amounts, hours: float, prices: BillPrices, owned: OwnedPrice) -> tuple[DrawnLine, ...]:
    """Return the items of an owned GPU-hour; electricity of working hours is billed separately by the plan's energy."""
    items, price = owned.idle_items_usd_per_gpu_h, prices.gpu.usd_per_gpu_h
    whole = sum(items.values())
    return tuple(
        DrawnLine(
            id=f"owned_{name}",
            label=_OWNED_LABELS[name],
            usd=np.asarray(share_usd(amounts, usd / whole), dtype=np.float64),
            quantity=hours,
            unit="GPU-hour",
            unit_price_usd=None if price is None else scaled(price, usd / whole),
            evidence_ids=prices.evidence_ids,
        )
        for name, usd in items.items()
        if usd > 0
    )


def scaled(estimate: Estimate, ratio: float) -> Estimate:
    """Return an estimate times a plain number, 0 or more."""
    return Estimate(
        low=estimate.low * ratio, mid=estimate.mid * ratio, high=estimate.high * ratio, at_least=estimate.at_least
    )


def _electricity_line(energy: Energy, energy_mid: Energy | None, usd_per_kwh: Amounts, prices: BillPrices) -> DrawnLine:
    return DrawnLine(
        id="electricity",
        label=Message.of("cost.electricity"),
        usd=np.asarray(electricity_usd(energy, usd_per_kwh), dtype=np.float64),
        quantity=middle(energy.kwh) if energy_mid is None else float(energy_mid.kwh),
        unit="kWh",
        unit_price_usd=prices.usd_per_kwh,
        evidence_ids=prices.electricity_evidence,
    )


def _quote_lines(run: RunDraws, usd_per_gpu_h: Amounts, prices: BillPrices, quote: Quote) -> list[DrawnLine]:
    """Return what an offer bills beyond the hours used; failed work and experiments use hours of the minimum too."""
    lines = []
    billed = np.maximum(run.gpus, quote.minimum_gpus)
    beside = work_ratio(prices.ledger.other_costs)
    left = unused_term_gpu_h(billed, run.wall_h, quote.minimum_term_h) + (billed - run.gpus) * run.wall_h
    unused = np.asarray(np.maximum(left - run.gpu_h * beside, 0.0), dtype=np.float64)
    if (unused > 0).any():
        lines.append(
            DrawnLine(
                id=MINIMUM,
                label=Message.of("cost.minimum_term"),
                usd=np.asarray(gpu_rental_usd(unused, usd_per_gpu_h), dtype=np.float64),
                quantity=_unused_at_mid(run, billed, quote, beside),
                unit="GPU-hour",
                unit_price_usd=prices.gpu.usd_per_gpu_h,
                evidence_ids=prices.evidence_ids,
                block=CONTRACT,
            )
        )
    if quote.setup_fee_usd > 0:
        fee = np.full(run.gpu_h.shape, quote.setup_fee_usd)
        label = Message.of("cost.setup_fee")
        lines.append(DrawnLine(id="setup_fee", label=label, usd=fee, evidence_ids=prices.evidence_ids))
    return lines


def work_ratio(other: OtherCosts | None) -> float:
    """Return the GPU-hours of failed work and experiments as a share of the run's."""
    return 0.0 if other is None else other.failed_ratio + other.experiments_ratio


def _unused_at_mid(run: RunDraws, billed: Value, quote: Quote, beside: float) -> float:
    """Return the GPU-hours of the minimum that are left at mid; with those used they make up the contract.

    The middle of the unused hours themselves would not add up to the contract: middles multiply, but do not subtract.

    Args:
        run: the quantities that the run takes.
        billed: GPUs that the offer bills.
        quote: the offer.
        beside: GPU-hours of work beside the run, as a share of the run's.
    """
    whole = middle(billed) * max(quote.minimum_term_h, middle(run.wall_h))
    return max(whole - middle(run.gpu_h) * (1.0 + beside), 0.0)


def _share(lines: list[DrawnLine], ratio: float, shape: tuple[int, ...]) -> tuple[Amounts, float]:
    """Return a share of some lines: its draws, and the share of their mids."""
    drawn = sum((line.amounts for line in lines), start=np.zeros(shape))
    return np.asarray(share_usd(drawn, ratio), dtype=np.float64), ratio * sum(line.mid_usd for line in lines)


def _storage_line(run: RunDraws, other: OtherCosts, ids: tuple[str, ...]) -> DrawnLine:
    """Return the line for data kept during the run and, as a separate part, for a fixed number of months after it."""
    stored = DataSize(size_bytes=run.checkpoint.size_bytes * other.checkpoints_kept + other.data.size_bytes)
    price = Estimate.exactly(other.storage_usd_per_gb_month)

    def line(name: str, label: Message, months: Amounts) -> DrawnLine:
        usd = np.asarray(storage_usd(stored, months, other.storage_usd_per_gb_month), dtype=np.float64)
        return DrawnLine(
            id=name, label=label, usd=usd, quantity=middle(stored.gb * months), unit="GB-month", unit_price_usd=price,
            evidence_ids=ids,
        )  # fmt: skip

    during, label = run.wall_h / MONTH_H, Message.of("cost.storage")
    if other.months_after <= 0:
        return line("storage", label, during)
    parts = (
        line("storage_run", Message.of("cost.storage_run"), during),
        line("storage_after", Message.of("cost.storage_after"), np.full(during.shape, other.months_after)),
    )
    whole = np.asarray(parts[0].usd + parts[1].usd, dtype=np.float64)
    return DrawnLine(id="storage", label=label, usd=whole, evidence_ids=ids, children=parts)


def _other_cost_lines(
    run: RunDraws, rental: list[DrawnLine], worked: list[DrawnLine], prices: BillPrices, other: OtherCosts
) -> list[DrawnLine]:
    """Return the lines that the user states; work beside the run also takes electricity where that is paid separately.

    Args:
        run: the quantities that the run takes.
        rental: the line of the GPUs; empty where their price is unknown.
        worked: that line and the line of electricity.
        prices: the prices behind the lines.
        other: the costs that the user states.
    """
    ids = () if other.evidence is None else (other.evidence.id,)
    per_gpu_h = prices.gpu.usd_per_gpu_h
    work_price = per_gpu_h if run.usd_per_kwh is None else None  # otherwise the line is made of two prices
    network_price = None if per_gpu_h is None else scaled(per_gpu_h, other.network_ratio)

    def line(
        name: str, label: Message, usd: Value, quantity: Value | None = None, unit: str | None = None,
        unit_price: Estimate | None = None, base_usd: float | None = None,
    ) -> DrawnLine:  # fmt: skip
        return DrawnLine(
            id=name,
            label=label,
            usd=np.broadcast_to(np.asarray(usd, dtype=np.float64), run.gpu_h.shape),
            quantity=None if quantity is None or unit_price is None else middle(quantity),
            unit=unit if unit_price is not None else None,
            unit_price_usd=unit_price,
            base_usd=base_usd,
            evidence_ids=ids,
        )

    def share(
        name: str, label: Message, of: list[DrawnLine], ratio: float, quantity: Value, unit_price: Estimate | None
    ) -> DrawnLine:
        usd, base_usd = _share(of, ratio, run.gpu_h.shape)
        return line(name, label, usd, quantity, "GPU-hour", unit_price, base_usd)

    lines = [
        share("network", Message.of("cost.network"), rental, other.network_ratio, run.gpu_h, network_price),
        _storage_line(run, other, ids),
        line("egress", Message.of("cost.egress"), egress_usd(other.egress, other.egress_usd_per_gb),
             other.egress.gb, "GB", Estimate.exactly(other.egress_usd_per_gb)),
        line("cpu_hosts", Message.of("cost.cpu_hosts"), hosts_usd(other.hosts, run.wall_h, other.usd_per_host_h),
             other.hosts * run.wall_h, "host-hour", Estimate.exactly(other.usd_per_host_h)),
        share("failed_work", Message.of("cost.failed_work"), worked, other.failed_ratio,
              run.gpu_h * other.failed_ratio, work_price),
        share("experiments", Message.of("cost.experiments"), worked, other.experiments_ratio,
              run.gpu_h * other.experiments_ratio, work_price),
    ]  # fmt: skip
    return [drawn for drawn in lines if (drawn.usd > 0).any()]
