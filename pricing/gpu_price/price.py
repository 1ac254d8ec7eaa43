"""The price of a GPU-hour: the user's, a provider's, or the market's (`quote_gpu`)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from planner.costs.prices import GpuPrice
from planner.errors import Message, UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from pricing.base.listing import listed
from pricing.book.conversion import later_rates
from pricing.book.current import implausible, is_historic, votes
from pricing.book.reading import load_book
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceBook, PriceRow
from pricing.files.exchange_rates import ExchangeRate, load_rates, usd_rate
from pricing.gpu_price.like import nearest_priced
from pricing.gpu_price.market import market_price, provider_price
from pricing.gpu_price.query import PriceQuery, check_names, parse_commitment, selected_rows
from pricing.gpu_price.reserved import less_discount
from pricing.place.places import place_named

RESERVED = ("1y", "3y")
"""Commitments at a discount on the on-demand price."""


def quote_gpu(
    gpu_id: str,
    *,
    price_usd_per_gpu_h: float | None = None,
    provider: str | None = None,
    region: str | None = None,
    commitment: str = "on-demand",
    as_of: date,
) -> GpuPrice:
    """Return the price of an hour of this GPU.

    The first of these that applies is used:

    1. The given price. 2. The cheapest current price of the named provider, or of the only provider in the named
    region, as low and mid; high is the provider's most expensive region. 3. The market, restricted to the named region
    if there is one: the median over providers, one vote each (its cheapest current price, without marketplace offers).
    The range is the 5th and 95th percentile of the votes. Below five providers it is the lowest and highest vote,
    widened where it is narrower than the typical spread of the GPUs that have five, and up to the highest price that
    any of these providers asks in another region or instance.

    A country includes its states and the regions in them. A reserved price without a recent row is the on-demand price
    less the discount of `discounts.csv`, as an assumption.

    Args:
        gpu_id: catalogue id; for a GPU without rows the price has a gap, which is not an error.
        price_usd_per_gpu_h: the user's own price.
        provider: a provider of the book, in any case.
        region: a provider's region, or a place (`US-VA`, `Germany`) that includes the regions in it.
        commitment: one of `COMMITMENTS`.
        as_of: the day of the price.

    Raises:
        UsageError: the price is not a plausible positive number; the provider, region or commitment is unknown; or no
            price of the named provider or region matches.
    """
    kind = parse_commitment(commitment)
    if price_usd_per_gpu_h is not None:
        return given_price(gpu_id, price_usd_per_gpu_h, kind)
    query = PriceQuery(
        gpu=gpu_id, provider=provider.strip().lower() if provider else None, region=region, commitment=kind, as_of=as_of
    )
    book = load_book(gpu_id)
    price = quote_from(book, load_rates(), query)
    return replace(price, warnings=(*price.warnings, *book.set_aside.warnings()))


def given_price(gpu: str, usd_per_gpu_h: float, commitment: str = "on-demand") -> GpuPrice:
    """Return the price that the user gave, without a range.

    Raises:
        UsageError: it is not above 0 and at most 200 USD per GPU-hour.
    """
    if not 0 < usd_per_gpu_h <= HIGHEST_PLAUSIBLE_PER_GPU_H:
        raise UsageError(
            f"`--price {usd_per_gpu_h:g}` is not a plausible price in USD per GPU-hour",
            hint="give the price of one GPU for one hour, more than 0 and at most 200: not of a server, not in cents",
        )
    evidence = Evidence(
        id="price:given",
        kind=EvidenceKind.GIVEN,
        what=f"{usd_per_gpu_h:g} USD per GPU-hour",
        source="--price",
        gpu=gpu,
        used_in=("cost_usd",),
        public=True,
    )
    return GpuPrice(
        gpu=gpu,
        usd_per_gpu_h=Estimate.exactly(usd_per_gpu_h),
        basis=Message.of("price.basis.given"),
        evidence=(evidence,),
        commitment=commitment,
    )


def quote_from(book: PriceBook, rates: tuple[ExchangeRate, ...], query: PriceQuery) -> GpuPrice:
    """Return the price of `quote_gpu` from a given price book.

    Raises:
        UsageError: the provider or region is unknown, or has no price that matches.
    """
    check_names(query)
    rows = selected_rows(book, query)
    if query.commitment in RESERVED and all(is_historic(row, query.as_of) for row in rows):
        on_demand = replace(query, commitment="on-demand")
        recent = [row for row in selected_rows(book, on_demand) if not is_historic(row, query.as_of)]
        if recent:
            return less_discount(quote_from(book, rates, on_demand), query)
    if not rows and query.provider is None and query.region and place_named(query.region):
        everywhere = quote_from(book, rates, replace(query, region=None))
        note = Message.of("price.warning.whole_market", commitment=query.commitment, gpu=query.gpu, region=query.region)
        return replace(everywhere, warnings=(*everywhere.warnings, note))
    if not rows:
        return _missing(book, query)
    ballot = votes(rows, query.as_of, rates)
    dear = _too_dear(rows, rates, query)
    if not ballot:
        return _too_dear_alone(dear, query) if dear else _no_rate(rows, query)
    single = query.provider is not None or (query.region and len(ballot) == 1)
    price = provider_price(ballot[0], query) if single else market_price(rates, ballot, query)
    left_out = (
        *_left_out(book, query),
        *_without_rate(rows, rates, query),
        *later_rates({row.currency for row in rows}, rates, query.as_of),
    )
    if query.commitment in RESERVED:
        price = replace(price, list_usd_per_gpu_h=_on_demand_usd(book, rates, query))
    warned = tuple(Message.of("price.warning.implausible", gpu=query.gpu, rows=dear) for _ in dear[:1])
    return replace(price, warnings=(*price.warnings, *warned, *left_out))


def _on_demand_usd(book: PriceBook, rates: tuple[ExchangeRate, ...], query: PriceQuery) -> float | None:
    """Return the on-demand price of the same query at mid; None where no row matches."""
    on_demand = replace(query, commitment="on-demand")
    price = quote_from(book, rates, on_demand).usd_per_gpu_h if selected_rows(book, on_demand) else None
    return None if price is None else price.mid


def _too_dear(rows: tuple[PriceRow, ...], rates: tuple[ExchangeRate, ...], query: PriceQuery) -> tuple[Message, ...]:
    """Return the prices that conversion to USD shows to be implausible, which are not used."""
    return tuple(
        Message.of(
            "price.too_dear",
            provider=row.provider,
            amount=f"{row.price_per_gpu_h:f}",
            currency=row.currency,
            usd=float(row.price_per_gpu_h * rate.usd_per_unit),
            rate=f"{rate.usd_per_unit:f}",
            date=str(rate.date),
        )
        for row, rate in implausible(rows, query.as_of, rates)
    )


def _too_dear_alone(dear: tuple[Message, ...], query: PriceQuery) -> GpuPrice:
    return _unpriced(query, Message.of("price.only_implausible", gpu=query.gpu, rows=dear))


def _left_out(book: PriceBook, query: PriceQuery) -> tuple[Message, ...]:
    """Warn of rows dated after the day: harmless for a past day, but the only sign of a wrong clock."""
    later = [row for row in book.rows if row.gpu == query.gpu and row.date_earliest > query.as_of]
    if not later:
        return ()
    newest = max(row.date_earliest for row in later)
    return (Message.of("price.warning.later_rows", count=len(later), as_of=str(query.as_of), newest=str(newest)),)


def _without_rate(
    rows: tuple[PriceRow, ...], rates: tuple[ExchangeRate, ...], query: PriceQuery
) -> tuple[Message, ...]:
    """Warn of rows in a currency without an exchange rate, beside rows that have one."""
    currencies = sorted({row.currency for row in rows if usd_rate(row.currency, query.as_of, rates) is None})
    if not currencies:
        return ()
    values = {"gpu": query.gpu, "currencies": listed(currencies), "as_of": str(query.as_of)}
    return (Message.of("price.warning.no_rate", **values),)


def _missing(book: PriceBook, query: PriceQuery) -> GpuPrice:
    of_gpu = [row for row in book.rows if row.gpu == query.gpu]
    same = [row for row in of_gpu if row.commitment == query.commitment]
    if query.provider is not None or query.region is not None:
        _raise_nowhere(same, query)
    like = nearest_priced(query.gpu)
    if not of_gpu and like is not None:
        why = Message.of("price.no_row_like", gpu=query.gpu, like=like)
    elif not of_gpu:
        why = Message.of("price.no_row", gpu=query.gpu)
    elif not same:
        has = listed(sorted({row.commitment for row in of_gpu}))
        why = Message.of("price.no_commitment_row", commitment=query.commitment, gpu=query.gpu, known=has)
    elif all(row.date_earliest > query.as_of for row in same):
        first = min(row.date_earliest for row in same)
        why = Message.of("price.all_later", gpu=query.gpu, first=str(first))
    else:
        named = listed(sorted({row.provider for row in same}))
        why = Message.of("price.only_marketplaces", gpu=query.gpu, providers=named)
    return _unpriced(query, why)


def _unpriced(query: PriceQuery, why: Message) -> GpuPrice:
    return GpuPrice(
        gpu=query.gpu,
        usd_per_gpu_h=None,
        basis=Message.of("price.basis.none"),
        evidence=(),
        gap=Gap.of("price.missing", why=why),
        commitment=query.commitment,
    )


def _no_rate(rows: tuple[PriceRow, ...], query: PriceQuery) -> GpuPrice:
    currencies = listed(sorted({row.currency for row in rows}))
    why = Message.of("price.no_exchange_rate", gpu=query.gpu, currencies=currencies, as_of=str(query.as_of))
    return _unpriced(query, why)


def _raise_nowhere(same: list[PriceRow], query: PriceQuery) -> None:
    at = f" at {query.provider}" if query.provider else ""
    where = f" in {query.region}" if query.region else ""
    known = same if not query.provider else [row for row in same if row.provider == query.provider] or same
    offers = listed(sorted({f"{row.provider} {row.region}".strip() for row in known}))
    raise UsageError(
        f"no {query.commitment} price of {query.gpu}{at}{where} on {query.as_of}",
        hint=f"the book has {offers}; or give --price" if offers else "give --price, or `mpplan prices add`",
    )
