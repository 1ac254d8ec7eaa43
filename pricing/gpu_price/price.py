"""`quote_gpu`: what an hour of a GPU costs, from a given price, a provider's row, or the market."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from planner.costs.prices import GpuPrice
from planner.errors import UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from pricing.base.listing import listed
from pricing.book.current import is_historic, votes
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceBook, PriceRow, load_book
from pricing.files.exchange_rates import ExchangeRate, load_rates
from pricing.gpu_price.ask import Question, check_names, parse_commitment, selected_rows
from pricing.gpu_price.market import market_price, provider_price
from pricing.gpu_price.reserved import less_discount
from pricing.place.places import place_named


def quote_gpu(
    gpu_id: str,
    *,
    price_usd_per_gpu_h: float | None = None,
    provider: str | None = None,
    region: str | None = None,
    commitment: str = "on-demand",
    as_of: date,
) -> GpuPrice:
    """What an hour of this GPU costs.

    In this order: the price given; the cheapest row that counts of the provider or region named (low and mid; high is
    the dearest region of that provider); else the market: the median over providers, one vote each (its cheapest row
    that counts, no marketplace asks), with the 5th and 95th percentile of the votes as range (lowest and highest vote
    below five providers; with one or two, at least the typical spread of the GPUs that have five).

    Reserved prices without a recent row are the on-demand price less the discounts of `discounts.csv`, marked assumed.

    Args:
        gpu_id: catalogue id; one without rows is answered with a gap, not an error.
        price_usd_per_gpu_h: what the user pays.
        provider: a provider of the book, any case.
        region: a provider's region, or a place (`US-VA`, `Germany`) that stands for the regions in it.
        commitment: one of `COMMITMENTS`.
        as_of: the day for which the price is asked.

    Raises:
        UsageError: a price that is not a plausible positive number, or an unknown provider, region or commitment.
    """
    kind = parse_commitment(commitment)
    if price_usd_per_gpu_h is not None:
        return given_price(gpu_id, price_usd_per_gpu_h, kind)
    question = Question(
        gpu=gpu_id, provider=provider.strip().lower() if provider else None, region=region, commitment=kind, as_of=as_of
    )
    return quote_from(load_book(gpu_id), load_rates(), question)


def given_price(gpu: str, usd_per_gpu_h: float, commitment: str = "on-demand") -> GpuPrice:
    """The price the user stated, without a range.

    Raises:
        UsageError: not more than 0 and at most 200 USD per GPU-hour.
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
    )
    return GpuPrice(
        gpu=gpu,
        usd_per_gpu_h=Estimate.exactly(usd_per_gpu_h),
        basis="given with --price",
        evidence=(evidence,),
        commitment=commitment,
    )


def quote_from(book: PriceBook, rates: tuple[ExchangeRate, ...], question: Question) -> GpuPrice:
    """`quote_gpu` on a book at hand.

    Raises:
        UsageError: an unknown provider or region.
    """
    check_names(question)
    rows = selected_rows(book, question)
    if question.commitment in ("1y", "3y") and all(is_historic(row, question.as_of) for row in rows):
        on_demand = replace(question, commitment="on-demand")
        recent = [row for row in selected_rows(book, on_demand) if not is_historic(row, question.as_of)]
        if recent:
            return less_discount(quote_from(book, rates, on_demand), question)
    if not rows and question.provider is None and question.region and place_named(question.region):
        everywhere = quote_from(book, rates, replace(question, region=None))
        note = f"no {question.commitment} price of {question.gpu} in {question.region}: the whole market stands in"
        return replace(everywhere, warnings=(*everywhere.warnings, note))
    if not rows:
        return _missing(book, question)
    ballot = votes(rows, question.as_of, rates)
    if not ballot:
        return _no_rate(rows, question)
    one = question.provider is not None or (question.region and len(ballot) == 1)
    priced = provider_price(ballot[0], question) if one else market_price(rates, ballot, question)
    return replace(priced, warnings=(*priced.warnings, *_left_out(book, question)))


def _left_out(book: PriceBook, question: Question) -> tuple[str, ...]:
    """Rows from after the day: nothing to say where the day is meant, the only sign where the clock is wrong."""
    later = [row for row in book.rows if row.gpu == question.gpu and row.date_earliest > question.as_of]
    if not later:
        return ()
    newest = max(row.date_earliest for row in later)
    return (f"{len(later)} rows from after {question.as_of} (up to {newest}) are left out; not meant? check the clock",)


def _missing(book: PriceBook, question: Question) -> GpuPrice:
    of_gpu = [row for row in book.rows if row.gpu == question.gpu]
    same = [row for row in of_gpu if row.commitment == question.commitment]
    if question.provider is not None or question.region is not None:
        _raise_nowhere(same, question)
    if not of_gpu:
        why = f"the price book has no row for {question.gpu}"
    elif not same:
        has = listed(sorted({row.commitment for row in of_gpu}))
        why = f"the price book has no {question.commitment} row for {question.gpu}, only {has}"
    elif all(row.date_earliest > question.as_of for row in same):
        first = min(row.date_earliest for row in same)
        why = f"every row for {question.gpu} is from {first} or later: check the clock or --as-of"
    else:
        named = listed(sorted({row.provider for row in same}))
        why = f"only marketplace asks are known for {question.gpu} ({named}); choose them with --provider"
    return _unpriced(question, why)


def _unpriced(question: Question, why: str) -> GpuPrice:
    return GpuPrice(
        gpu=question.gpu,
        usd_per_gpu_h=None,
        basis="no price",
        evidence=(),
        gap=Gap(what="GPU price", why=why, effect="the cost is a lower bound; give --price or `mpplan prices add`"),
        commitment=question.commitment,
    )


def _no_rate(rows: tuple[PriceRow, ...], question: Question) -> GpuPrice:
    currencies = listed(sorted({row.currency for row in rows}))
    return _unpriced(
        question,
        f"the rows for {question.gpu} are in {currencies} and no exchange rate of {question.as_of} or before is known",
    )


def _raise_nowhere(same: list[PriceRow], question: Question) -> None:
    at = f" at {question.provider}" if question.provider else ""
    where = f" in {question.region}" if question.region else ""
    known = same if not question.provider else [row for row in same if row.provider == question.provider] or same
    offers = listed(sorted({f"{row.provider} {row.region}".strip() for row in known}))
    raise UsageError(
        f"no {question.commitment} price of {question.gpu}{at}{where} on {question.as_of}",
        hint=f"the book has {offers}; or give --price" if offers else "give --price, or `mpplan prices add`",
    )
