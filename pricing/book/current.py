"""Select the rows of a price book that count on a given day, and the vote of each provider.

A row counts if it was known on the day (`date_earliest` is not after it) and no newer row replaced it. It is replaced
by a row of the same provider, GPU and commitment that is entirely newer and either is for the same region and instance
(an empty one matches any) or is more than 90 days newer: once a provider's prices were collected again, its old prices
no longer apply. Rows whose newest day is more than 18 months before the day are historic: they count only where no
provider has a newer row, and the answer says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import product

from planner.lazy import dataclass
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, STALE_AFTER_DAYS, PriceRow
from pricing.files.exchange_rates import ExchangeRate, usd_rate

HISTORIC_AFTER_DAYS = 548
"""18 months: AWS cut its on-demand prices by 33 to 44 percent between two snapshots less than 18 months apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One provider's price: its cheapest row that counts."""

    row: PriceRow
    usd_per_gpu_h: Decimal
    highest_usd_per_gpu_h: Decimal
    """Price of the provider's most expensive row that counts, for example in another region."""
    rate: ExchangeRate
    """The exchange rate to USD; 1 for USD rows."""
    machine_gpus: int
    """GPUs of the smallest machine at the provider's cheapest price."""


_Place = tuple[str | None, str | None]


class _Newest:
    """The latest `date_earliest` among rows of one provider, GPU and commitment, by place; None means any place."""

    def __init__(self, rows: Iterable[PriceRow]) -> None:
        self._by_place: dict[_Place, date] = {}
        for row in rows:
            for place in product((row.region.lower(), None), (row.instance, None)):
                known = self._by_place.get(place, row.date_earliest)
                self._by_place[place] = max(known, row.date_earliest)

    def replaces(self, row: PriceRow) -> bool:
        """Return whether some newer row replaces this one (see the module docstring)."""
        if (self._by_place[None, None] - row.date_latest).days > STALE_AFTER_DAYS:
            return True
        regions = (row.region.lower(), "") if row.region else (None,)
        sizes = (row.instance, "") if row.instance else (None,)
        newest = (self._by_place.get(place) for place in product(regions, sizes))
        return any(day is not None and day > row.date_latest for day in newest)


def counting_rows(rows: Iterable[PriceRow], as_of: date) -> tuple[PriceRow, ...]:
    """Return the rows known on a day that no newer known row replaced (see the module docstring)."""
    groups: dict[tuple[str, str, str], list[PriceRow]] = defaultdict(list)
    for row in rows:
        if row.date_earliest <= as_of:
            groups[row.provider, row.gpu, row.commitment].append(row)
    kept: list[PriceRow] = []
    for group in groups.values():
        newest = _Newest(group)
        kept.extend(row for row in group if not newest.replaces(row))
    return tuple(kept)


def without_historic(rows: tuple[PriceRow, ...], as_of: date) -> tuple[PriceRow, ...]:
    """Return the rows that are at most 18 months old; all rows where that would leave none."""
    recent = tuple(row for row in rows if not is_historic(row, as_of))
    return recent or rows


def is_historic(row: PriceRow, as_of: date) -> bool:
    """Return whether a row's newest possible day is more than 18 months before a day."""
    return (as_of - row.date_latest).days > HISTORIC_AFTER_DAYS


def is_implausible(row: PriceRow, rate: ExchangeRate) -> bool:
    """Return whether a price is above the highest plausible one in USD, which only its conversion can show."""
    return row.price_per_gpu_h * rate.usd_per_unit > HIGHEST_PLAUSIBLE_PER_GPU_H


def implausible(
    rows: Iterable[PriceRow], as_of: date, rates: tuple[ExchangeRate, ...]
) -> tuple[tuple[PriceRow, ExchangeRate], ...]:
    """Return the rows whose converted price is not plausible, each with its exchange rate."""
    converted = ((row, usd_rate(row.currency, as_of, rates)) for row in rows)
    return tuple((row, rate) for row, rate in converted if rate is not None and is_implausible(row, rate))


def votes(rows: Iterable[PriceRow], as_of: date, rates: tuple[ExchangeRate, ...]) -> tuple[Vote, ...]:
    """Return one vote per provider, cheapest first.

    Rows in a currency without a rate on or before the day have no vote, and neither do prices that are not plausible
    once they are in USD.
    """
    best: dict[str, Vote] = {}
    for row in rows:
        rate = usd_rate(row.currency, as_of, rates)
        if rate is None or is_implausible(row, rate):
            continue
        usd = row.price_per_gpu_h * rate.usd_per_unit
        machine = row.gpus_per_instance
        vote = Vote(row=row, usd_per_gpu_h=usd, highest_usd_per_gpu_h=usd, rate=rate, machine_gpus=machine)
        other = best.get(row.provider)
        best[row.provider] = vote if other is None else _cheaper(other, vote)
    return tuple(sorted(best.values(), key=lambda vote: (vote.usd_per_gpu_h, vote.row.provider)))


def _cheaper(first: Vote, second: Vote) -> Vote:
    """Return the cheaper of two prices of one provider, of equal ones the first, with what the other adds to it."""
    low = second if second.usd_per_gpu_h < first.usd_per_gpu_h else first
    machines = [vote.machine_gpus for vote in (first, second) if vote.usd_per_gpu_h == low.usd_per_gpu_h]
    highest = max(first.highest_usd_per_gpu_h, second.highest_usd_per_gpu_h)
    return replace(low, highest_usd_per_gpu_h=highest, machine_gpus=min(machines))


def quantile(ordered: tuple[Decimal, ...], share: Decimal) -> Decimal:
    """Return a quantile with linear interpolation (Hyndman and Fan 1996, type 7), like numpy's default."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
