"""A price from the rows that match a query: from one provider, or from the market with one vote per provider."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from planner.costs.prices import GpuPrice
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from pricing.book.conversion import stale_rate_gap, stale_rates, with_rates
from pricing.book.current import Vote, counting_rows, is_historic, quantile, votes, without_historic
from pricing.book.reading import load_book
from pricing.book.rows import PriceBook, PriceRow
from pricing.files.exchange_rates import ExchangeRate
from pricing.gpu_price.query import PriceQuery

LOW, HIGH = Decimal("0.05"), Decimal("0.95")
FEW_PROVIDERS = 5
"""With fewer votes the range extends from the lowest vote to the highest price of any of these providers, otherwise
from the 5th to the 95th percentile of the votes."""
MOST_NAMED = 12
"""Number of providers that a sentence names."""
TYPICAL_FROM_PROVIDERS = 5
"""GPUs with at least this many votes set the typical spread, to which a narrower range of fewer votes is widened."""
TYPICAL_OF = "on-demand"
"""Commitment whose typical spread is used where no GPU has enough votes in the requested one."""


def _evidence(vote: Vote) -> Evidence:
    row = vote.row
    where = " ".join(part for part in (row.provider, row.region, row.instance) if part)
    what = f"{where}, {row.commitment}: {row.price_per_gpu_h} {row.currency} per GPU-hour"
    if row.currency != "USD":
        what += f" = {vote.usd_per_gpu_h:f} USD at {vote.rate.usd_per_unit} of {vote.rate.date} ({vote.rate.source})"
    if row.notes:
        what += f" ({row.notes})"
    return Evidence(
        id=f"price:{row.id}",
        kind=EvidenceKind.PUBLISHED,
        what=what,
        source=row.source,
        date=row.date_text,
        gpu=row.gpu,
        used_in=("cost_usd",),
    )


def _stale_gap(ballot: tuple[Vote, ...], as_of: date) -> Gap | None:
    """Return the gap for stale rows and exchange rates; stale rates alone have a gap of their own."""
    stale = [vote.row for vote in ballot if vote.row.is_stale(as_of)]
    rates = [vote.rate for vote in ballot]
    if not stale:
        return stale_rate_gap(rates, as_of)
    old = stale_rates(rates, as_of)
    rows = Message.of("price.of_dates", rows=(_dated(stale), *old)) if old else _dated(stale)
    return Gap.of("price.stale", as_of=str(as_of), rows=rows)


def _date_warnings(ballot: tuple[Vote, ...], as_of: date) -> tuple[Message, ...]:
    warnings = []
    historic = [vote.row for vote in ballot if is_historic(vote.row, as_of)]
    if historic:
        warnings.append(Message.of("price.warning.historic", rows=_dated(historic)))
    if any(vote.row.may_be_stale(as_of) for vote in ballot):
        warnings.append(Message.of("price.warning.vague_date"))  # the same for every GPU, so it is shown once
    return tuple(warnings)


def _dated(rows: list[PriceRow]) -> Message:
    """Return the providers of rows with their dates, and beyond `MOST_NAMED` only the number of the others."""
    named = tuple(Message.of("price.of_date", provider=row.provider, date=str(row.date_latest)) for row in rows)
    if len(named) <= MOST_NAMED:
        return Message.of("price.of_dates", rows=named)
    return Message.of("price.of_more_dates", rows=named[:MOST_NAMED], more=len(named) - MOST_NAMED)


def _region(query: PriceQuery) -> Message | str:
    return Message.of("price.in_region", region=query.region) if query.region else ""


def provider_price(vote: Vote, query: PriceQuery) -> GpuPrice:
    """Return the cheapest current price of one provider; high is its most expensive, in another region or instance."""
    row = vote.row
    usd = float(vote.usd_per_gpu_h)
    gap = _stale_gap((vote,), query.as_of)
    basis = Message.of(
        "price.basis.provider",
        provider=row.provider,
        region=_region(query),
        commitment=query.commitment,
        row=row.id,
        date=row.date_text,
    )
    return GpuPrice(
        gpu=query.gpu,
        usd_per_gpu_h=Estimate(low=usd, mid=usd, high=float(vote.highest_usd_per_gpu_h)),
        basis=with_rates(basis, [vote.rate]),
        evidence=(_evidence(vote),),
        gap=gap,
        commitment=query.commitment,
        provider=row.provider,
        region=query.region,
        stale=gap is not None,
        warnings=_date_warnings((vote,), query.as_of),
        machine_gpus=vote.machine_gpus,
    )


def _spread(prices: tuple[Decimal, ...]) -> tuple[Decimal, Decimal, Decimal]:
    mid = quantile(prices, Decimal("0.5"))
    if len(prices) < FEW_PROVIDERS:
        return prices[0], mid, prices[-1]
    return quantile(prices, LOW), mid, quantile(prices, HIGH)


def typical_spread(
    book: PriceBook, rates: tuple[ExchangeRate, ...], commitment: str, as_of: date
) -> tuple[Decimal, Decimal] | None:
    """Return low and high over the median, averaged over GPUs with at least five votes; None where there are none."""
    candidates = [row for row in book.rows if row.commitment == commitment and row.seller != "marketplace"]
    ratios = []
    for gpu in sorted({row.gpu for row in candidates}):
        rows = without_historic(counting_rows((row for row in candidates if row.gpu == gpu), as_of), as_of)
        prices = tuple(vote.usd_per_gpu_h for vote in votes(rows, as_of, rates))
        if len(prices) >= TYPICAL_FROM_PROVIDERS:
            low, mid, high = _spread(prices)
            ratios.append((low / mid, high / mid))
    if not ratios:
        return None
    count = Decimal(len(ratios))
    return sum((low for low, _ in ratios), Decimal(0)) / count, sum((high for _, high in ratios), Decimal(0)) / count


def _widened(
    rates: tuple[ExchangeRate, ...], price: tuple[Decimal, Decimal, Decimal], count: int, query: PriceQuery
) -> tuple[Decimal, Decimal, Message] | None:
    """Return low and high of a few votes widened to the typical spread, with the warning about it.

    None where the range already has the typical width. A few votes that happen to agree say little about the market:
    the three cheapest spot prices of an H100 are within a factor of 1.6, on-demand prices of GPUs with five votes
    within 2.4.
    """
    low, mid, high = price
    own = typical_spread(load_book(), rates, query.commitment, query.as_of)
    typical = own or typical_spread(load_book(), rates, TYPICAL_OF, query.as_of)
    if typical is None or high * typical[0] >= low * typical[1]:
        return None
    warning = Message.of("price.warning.few_providers", count=count, gpu=query.gpu)
    if own is None:
        warning = Message.of(
            "price.warning.few_providers_of", count=count, gpu=query.gpu, commitment=query.commitment, known=TYPICAL_OF
        )
    return min(low, mid * typical[0]), max(high, mid * typical[1]), warning


def market_price(rates: tuple[ExchangeRate, ...], ballot: tuple[Vote, ...], query: PriceQuery) -> GpuPrice:
    """Return the median vote, with the spread of the votes as range (see `quote_gpu`)."""
    low, mid, high = _spread(tuple(vote.usd_per_gpu_h for vote in ballot))
    warnings = list(_date_warnings(ballot, query.as_of))
    if len(ballot) < FEW_PROVIDERS and query.region is None:
        wider = _widened(rates, (low, mid, high), len(ballot), query)
        if wider is not None:
            low, high, warning = wider
            warnings.append(warning)
    if len(ballot) < FEW_PROVIDERS:  # a run may have to go where one of these few charges more
        high = max(high, *(vote.highest_usd_per_gpu_h for vote in ballot))
    gap = _stale_gap(ballot, query.as_of)
    basis = Message.of(
        "price.basis.market",
        count=len(ballot),
        region=_region(query),
        commitment=query.commitment,
        as_of=str(query.as_of),
    )
    return GpuPrice(
        gpu=query.gpu,
        usd_per_gpu_h=Estimate(low=float(low), mid=float(mid), high=float(high)),
        basis=with_rates(basis, [vote.rate for vote in ballot]),
        evidence=tuple(_evidence(vote) for vote in ballot),
        gap=gap,
        commitment=query.commitment,
        region=query.region,
        stale=gap is not None,
        warnings=tuple(warnings),
    )
