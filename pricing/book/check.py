"""Check a price book for rows that are wrong, stale or outliers (`mpplan prices check`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from statistics import median

from planner.hardware.catalogue import load_gpus
from planner.lazy import dataclass
from pricing.book.current import counting_rows, implausible, is_historic, is_implausible, votes
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceBook, PriceRow
from pricing.files.exchange_rates import ExchangeRate, usd_rate

OUTLIER = Decimal(6)
"""A price this many times above or below the median of its GPU and commitment is reported: an instance has 8 GPUs and a
dollar 100 cents, while providers differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFinding:
    """A problem with one row of a price book."""

    row_id: str
    is_error: bool
    """Whether the row is wrong; otherwise it is old or unusual."""
    what: str
    """The problem, to be read after the row's id."""
    is_stale: bool = False
    """Whether the problem is only the row's age."""


def check_book(book: PriceBook, rates: tuple[ExchangeRate, ...], as_of: date) -> tuple[PriceFinding, ...]:
    """Check every row: errors first, then warnings. Rows that a newer one replaced get no warning for their age.

    Args:
        book: the rows.
        rates: exchange rates.
        as_of: today.
    """
    findings = [
        *_row_findings(book, rates, as_of), *_implausible(book, rates, as_of), *_spot_above_on_demand(book),
        *_contradictions(book), *_outliers(book, rates, as_of),
    ]  # fmt: skip
    return tuple(sorted(findings, key=lambda finding: not finding.is_error))


def _row_findings(book: PriceBook, rates: tuple[ExchangeRate, ...], as_of: date) -> Iterator[PriceFinding]:
    counting = {row.id for row in counting_rows(book.rows, as_of)}
    for row in book.rows:
        if row.gpu not in load_gpus():
            yield PriceFinding(row_id=row.id, is_error=True, what=f"`{row.gpu}` is not in the GPU catalogue")
        if row.date_earliest > as_of:
            yield PriceFinding(
                row_id=row.id, is_error=False, what=f"is from {row.date_earliest}, after {as_of}: is the clock right?"
            )
        if row.id not in counting:
            continue
        if row.is_stale(as_of):
            age = "18 months" if is_historic(row, as_of) else "90 days"
            what = f"stale: {row.date_latest} is more than {age} ago"
            yield PriceFinding(row_id=row.id, is_error=False, what=what, is_stale=True)
        if usd_rate(row.currency, as_of, rates) is None:
            what = (
                f"not used: `exchange_rates.csv` of your data folder has no rate of {row.currency} on or before {as_of}"
            )
            yield PriceFinding(row_id=row.id, is_error=False, what=what)


def _too_dear(row: PriceRow, rate: ExchangeRate) -> str:
    """Return what is wrong with a price that is not plausible in USD, and the two likely mistakes."""
    usd = row.price_per_gpu_h * rate.usd_per_unit
    converted = f"{row.price_per_gpu_h:f} {row.currency} are {usd:,.2f} USD per GPU-hour"
    return (
        f"{converted} at {rate.usd_per_unit:f} of {rate.date}, more than {HIGHEST_PLAUSIBLE_PER_GPU_H}: "
        f"is it per instance, or is the rate not in USD for one {row.currency}?"
    )


def _implausible(book: PriceBook, rates: tuple[ExchangeRate, ...], as_of: date) -> Iterator[PriceFinding]:
    for row, rate in implausible(counting_rows(book.rows, as_of), as_of, rates):
        yield PriceFinding(row_id=row.id, is_error=True, what=_too_dear(row, rate))


def _spot_above_on_demand(book: PriceBook) -> Iterator[PriceFinding]:
    on_demand: dict[tuple[object, ...], Decimal] = {}
    for row in book.rows:
        if row.commitment == "on-demand":
            on_demand[_place(row)] = row.price_per_gpu_h
    for row in book.rows:
        list_price = on_demand.get(_place(row))
        if row.commitment == "spot" and list_price is not None and row.price_per_gpu_h > list_price:
            what = f"the spot price {row.price_per_gpu_h} is above the on-demand price {list_price}"
            yield PriceFinding(row_id=row.id, is_error=True, what=what)


def _contradictions(book: PriceBook) -> Iterator[PriceFinding]:
    """Yield rows with another price than an earlier row for the same offer on the same days, as no import adds."""
    first: dict[tuple[str, ...], PriceRow] = {}
    for row in book.rows:
        other = first.setdefault(row.offer, row)
        if other.price_per_gpu_h != row.price_per_gpu_h:
            what = (
                f"{row.price_per_gpu_h:f} {row.currency}, but row {other.id} has {other.price_per_gpu_h:f} for the same"
            )
            yield PriceFinding(
                row_id=row.id, is_error=True, what=f"{what} offer on the same days: remove one of the two"
            )


def _place(row: PriceRow) -> tuple[object, ...]:
    return (row.provider, row.gpu, row.region.lower(), row.instance, row.currency, row.date_earliest, row.date_latest)


def _outliers(book: PriceBook, rates: tuple[ExchangeRate, ...], as_of: date) -> Iterator[PriceFinding]:
    groups: dict[tuple[str, str], list[PriceRow]] = defaultdict(list)
    for row in counting_rows(book.rows, as_of):
        groups[row.gpu, row.commitment].append(row)
    for (gpu, commitment), rows in groups.items():
        ballot = votes(rows, as_of, rates)
        if len(ballot) < 3:
            continue
        mid = median(vote.usd_per_gpu_h for vote in ballot)
        for row in rows:
            rate = usd_rate(row.currency, as_of, rates)
            if rate is None or is_implausible(row, rate):
                continue  # another finding says so
            usd = row.price_per_gpu_h * rate.usd_per_unit
            if not mid / OUTLIER <= usd <= mid * OUTLIER:
                what = f"{usd:f} USD, against a median of {mid:.2f} for {gpu}, {commitment}: is it per instance?"
                yield PriceFinding(row_id=row.id, is_error=False, what=what)
