"""Reserved prices without a recent row: the on-demand price less a published discount, as an assumption."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from planner.costs.prices import GpuPrice
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import Row, read_rows
from pricing.base.folder import DATA
from pricing.book.current import quantile
from pricing.book.rows import COMMITMENTS
from pricing.gpu_price.query import PriceQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Discount:
    """The discount of a provider on its on-demand price for a commitment."""

    id: str
    provider: str
    commitment: str
    """`1y` or `3y`."""
    discount_ratio: Decimal
    """Share of the on-demand price that is taken off."""
    date: str
    source: str


@lru_cache(maxsize=1)
def discounts() -> tuple[Discount, ...]:
    """Return the rows of `discounts.csv`."""
    return tuple(_discount(row) for row in read_rows(DATA / "discounts.csv"))


def _discount(row: Row) -> Discount:
    return Discount(
        id=row.text("id"),
        provider=row.text("provider"),
        commitment=row.choice("commitment", COMMITMENTS),
        discount_ratio=row.decimal("discount_ratio", above_zero=True, high=0.95),
        date=row.text("date"),
        source=row.text("source"),
    )


def less_discount(on_demand: GpuPrice, query: PriceQuery) -> GpuPrice:
    """Return the reserved price, derived from the on-demand price of the same query.

    A provider with a row in `discounts.csv` has its own discount; otherwise low, mid and high use the largest, the
    median and the smallest discount for that commitment. An unknown price stays unknown.
    """
    price = on_demand.usd_per_gpu_h
    if price is None:
        return replace(on_demand, commitment=query.commitment)
    rows = [row for row in discounts() if row.commitment == query.commitment]
    own = [row for row in rows if row.provider == query.provider]
    used = own or rows
    shares = tuple(sorted(row.discount_ratio for row in used))
    keep_low, keep_mid, keep_high = (
        float(1 - shares[-1]),
        float(1 - quantile(shares, Decimal("0.5"))),
        float(1 - shares[0]),
    )
    assumed = tuple(
        Evidence(
            id=f"discount:{row.id}",
            kind=EvidenceKind.ASSUMED,
            what=f"{row.provider} takes {row.discount_ratio * 100:f}% off for {row.commitment}",
            source=row.source,
            date=row.date,
            used_in=("cost_usd",),
        )
        for row in used
    )
    return replace(
        on_demand,
        usd_per_gpu_h=Estimate(low=price.low * keep_low, mid=price.mid * keep_mid, high=price.high * keep_high),
        basis=Message.of(
            "price.basis.reserved", basis=on_demand.basis, commitment=query.commitment, discount_ratio=1 - keep_mid
        ),
        evidence=on_demand.evidence + assumed,
        commitment=query.commitment,
        list_usd_per_gpu_h=price.mid,
        warnings=(
            *on_demand.warnings,
            Message.of("price.warning.no_recent_reserved", commitment=query.commitment, gpu=query.gpu),
        ),
    )
