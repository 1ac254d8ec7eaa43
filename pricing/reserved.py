"""Reserved prices without a recent row: the on-demand price less a published discount, marked as assumed."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.price import GpuPrice
from pricing.book import DATA, PriceBook
from pricing.current import quantile
from pricing.market import Question, quote_from
from pricing.rates import ExchangeRate


@dataclass(frozen=True, slots=True, kw_only=True)
class Discount:
    """What a provider takes off its on-demand price for a commitment."""

    id: str
    provider: str
    commitment: str
    discount_ratio: Decimal
    date: str
    source: str


@lru_cache(maxsize=1)
def discounts() -> tuple[Discount, ...]:
    """The rows of `discounts.csv`."""
    with (DATA / "discounts.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Discount(
                id=row["id"],
                provider=row["provider"],
                commitment=row["commitment"],
                discount_ratio=Decimal(row["discount_ratio"]),
                date=row["date"],
                source=row["source"],
            )
            for row in csv.DictReader(file)
        )


def from_on_demand(book: PriceBook, rates: tuple[ExchangeRate, ...], question: Question) -> GpuPrice | None:
    """The reserved price derived from the on-demand price; None where that is unknown or historic too.

    A provider with a row in `discounts.csv` takes its own discount; else the range runs from the largest to the
    smallest discount of that commitment, mid the median.

    Raises:
        UsageError: the provider or region has no on-demand price either.
    """
    on_demand = quote_from(book, rates, replace(question, commitment="on-demand"))
    price = on_demand.usd_per_gpu_h
    if price is None or any("18 months" in warning for warning in on_demand.warnings):
        return None
    rows = [row for row in discounts() if row.commitment == question.commitment]
    own = [row for row in rows if row.provider == question.provider]
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
            what=f"{row.provider} takes {row.discount_ratio * 100:f} % off for {row.commitment}",
            source=row.source,
            date=row.date,
            used_in=("cost_usd",),
        )
        for row in used
    )
    return replace(
        on_demand,
        usd_per_gpu_h=Estimate(low=price.low * keep_low, mid=price.mid * keep_mid, high=price.high * keep_high),
        basis=f"{on_demand.basis}, less the {question.commitment} discount of {1 - keep_mid:.0%} (assumed)",
        evidence=on_demand.evidence + assumed,
        commitment=question.commitment,
        warnings=(*on_demand.warnings, f"no recent {question.commitment} price of {question.gpu}: it is assumed"),
    )
