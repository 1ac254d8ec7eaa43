"""The price of a GPU-hour: of one provider, or of the market with one vote per provider."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from planner.errors import UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.price import GpuPrice
from pricing.book import COMMITMENTS, PriceBook, PriceRow, load_book
from pricing.current import Vote, counting_rows, is_historic, quantile, votes, without_historic
from pricing.near import listed, near_names
from pricing.places import place_named, place_of
from pricing.rates import ExchangeRate, load_rates

_COMMITMENT_WORDS = {
    "ondemand": "on-demand",
    "on demand": "on-demand",
    "on_demand": "on-demand",
    "1-year": "1y",
    "1-y": "1y",
    "reserved-1y": "1y",
    "3-year": "3y",
    "3-y": "3y",
    "reserved-3y": "3y",
}
LOW, HIGH = Decimal("0.05"), Decimal("0.95")
FEW_PROVIDERS = 5
"""Below this many votes the range is the lowest and the highest vote; from here on the 5th and 95th percentile."""
TYPICAL_FROM_PROVIDERS = 5
"""GPUs with at least this many votes lend their spread to those with one or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of the book."""

    gpu: str
    provider: str | None
    region: str | None
    commitment: str
    as_of: date


def parse_commitment(text: str) -> str:
    """One of `COMMITMENTS`, however it is written.

    Raises:
        UsageError: none of them.
    """
    plain = text.strip().lower()
    plain = _COMMITMENT_WORDS.get(plain, plain)
    if plain not in COMMITMENTS:
        raise UsageError(f"unknown commitment `{text}`", hint=f"use one of {', '.join(COMMITMENTS)}")
    return plain


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
    if not 0 < usd_per_gpu_h <= 200:
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
    _check_names(question)
    rows = _selected(book, question)
    if question.commitment in ("1y", "3y") and not any(not is_historic(row, question.as_of) for row in rows):
        from pricing.reserved import from_on_demand

        derived = from_on_demand(book, rates, question)
        if derived is not None:
            return derived
    if not rows and question.provider is None and question.region and place_named(question.region):
        everywhere = quote_from(book, rates, replace(question, region=None))
        note = f"no {question.commitment} price of {question.gpu} in {question.region}: the whole market stands in"
        return replace(everywhere, warnings=(*everywhere.warnings, note))
    if not rows:
        return _missing(book, question)
    ballot = votes(rows, question.as_of, rates)
    if not ballot:
        return _no_rate(rows, question)
    if question.provider is not None or (question.region and len(ballot) == 1):
        return _of_provider(ballot[0], question)
    return _of_market(book, rates, ballot, question)


def _check_names(question: Question) -> None:
    if question.provider is None and question.region is None:
        return
    book = load_book()
    if question.provider is not None and question.provider not in book.providers():
        near = near_names(question.provider, book.providers())
        raise UsageError(
            f"no prices of a provider `{question.provider}`",
            hint=f"did you mean {listed(near)}?" if near else f"the book has {listed(book.providers(), 40)}",
        )
    if question.region is None or place_named(question.region) is not None:
        return
    regions = {row.region for row in book.rows if row.region and question.provider in (None, row.provider)}
    if question.region.lower() in {one.lower() for one in regions}:
        return
    near = near_names(question.region, regions)
    raise UsageError(
        f"no prices in a region `{question.region}`" + (f" of {question.provider}" if question.provider else ""),
        hint=f"did you mean {listed(near)}?" if near else f"the book has {listed(sorted(regions))}",
    )


def _in_region(row: PriceRow, question: Question) -> bool:
    if question.region is None:
        return True
    if row.region.lower() == question.region.lower():
        return True
    if row.region == "all":
        return question.provider is not None
    place = place_named(question.region)
    return place is not None and place_of(row.provider, row.region) == place


def _selected(book: PriceBook, question: Question) -> tuple[PriceRow, ...]:
    asked = [
        row
        for row in book.rows
        if row.gpu == question.gpu
        and row.commitment == question.commitment
        and (row.provider == question.provider if question.provider else row.seller != "marketplace")
    ]
    counting = tuple(row for row in counting_rows(asked, question.as_of) if _in_region(row, question))
    return without_historic(counting, question.as_of)


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
    stale = [vote.row for vote in ballot if vote.row.is_stale(as_of)]
    if not stale:
        return None
    named = listed(f"{row.id} ({row.provider}, {row.date_latest})" for row in stale)
    return Gap(
        what="stale prices",
        why=f"more than 90 days old on {as_of}: {named}",
        effect="the cost may be off; `mpplan prices refresh` or `--price` brings a newer one",
    )


def _date_warnings(ballot: tuple[Vote, ...], as_of: date) -> tuple[str, ...]:
    warnings = []
    historic = [vote.row for vote in ballot if is_historic(vote.row, as_of)]
    if historic:
        named = listed(f"{row.id} ({row.provider}, {row.date_latest})" for row in historic)
        warnings.append(f"no price of the last 18 months is known; older rows are used: {named}")
    vague = [vote.row for vote in ballot if vote.row.date_latest > as_of]
    if vague:
        named = listed(f"{row.id} ({row.provider}, {row.date_text})" for row in vague)
        warnings.append(f"the day of these prices is known only to lie in an interval that has not ended: {named}")
    return tuple(warnings)


def _of_provider(vote: Vote, question: Question) -> GpuPrice:
    row = vote.row
    usd = float(vote.usd_per_gpu_h)
    gap = _stale_gap((vote,), question.as_of)
    where = f" in {question.region}" if question.region else ""
    return GpuPrice(
        gpu=question.gpu,
        usd_per_gpu_h=Estimate(low=usd, mid=usd, high=float(vote.highest_usd_per_gpu_h)),
        basis=f"{row.provider}{where}, {question.commitment}: cheapest row {row.id} of {row.date_text}",
        evidence=(_evidence(vote),),
        gap=gap,
        commitment=question.commitment,
        provider=row.provider,
        region=question.region,
        stale=gap is not None,
        warnings=_date_warnings((vote,), question.as_of),
    )


def _spread(prices: tuple[Decimal, ...]) -> tuple[Decimal, Decimal, Decimal]:
    mid = quantile(prices, Decimal("0.5"))
    if len(prices) < FEW_PROVIDERS:
        return prices[0], mid, prices[-1]
    return quantile(prices, LOW), mid, quantile(prices, HIGH)


def typical_spread(
    book: PriceBook, rates: tuple[ExchangeRate, ...], commitment: str, as_of: date
) -> tuple[Decimal, Decimal] | None:
    """Low and high over the median, averaged over the GPUs with at least five votes; None where there are none."""
    asked = [row for row in book.rows if row.commitment == commitment and row.seller != "marketplace"]
    ratios = []
    for gpu in sorted({row.gpu for row in asked}):
        rows = without_historic(counting_rows((row for row in asked if row.gpu == gpu), as_of), as_of)
        prices = tuple(vote.usd_per_gpu_h for vote in votes(rows, as_of, rates))
        if len(prices) >= TYPICAL_FROM_PROVIDERS:
            low, mid, high = _spread(prices)
            ratios.append((low / mid, high / mid))
    if not ratios:
        return None
    count = Decimal(len(ratios))
    return sum((low for low, _ in ratios), Decimal(0)) / count, sum((high for _, high in ratios), Decimal(0)) / count


def _of_market(
    book: PriceBook, rates: tuple[ExchangeRate, ...], ballot: tuple[Vote, ...], question: Question
) -> GpuPrice:
    low, mid, high = _spread(tuple(vote.usd_per_gpu_h for vote in ballot))
    warnings = list(_date_warnings(ballot, question.as_of))
    if len(ballot) <= 2 and question.region is None:
        typical = typical_spread(load_book(), rates, question.commitment, question.as_of)
        if typical is not None:
            low, high = min(low, mid * typical[0]), max(high, mid * typical[1])
            warnings.append(
                f"only {len(ballot)} provider{'s' if len(ballot) > 1 else ''} known for {question.gpu}: "
                "the range is the typical spread of GPUs with five or more"
            )
    gap = _stale_gap(ballot, question.as_of)
    count = f"{len(ballot)} providers" if len(ballot) > 1 else "1 provider"
    where = f" in {question.region}" if question.region else ""
    return GpuPrice(
        gpu=question.gpu,
        usd_per_gpu_h=Estimate(low=float(low), mid=float(mid), high=float(high)),
        basis=f"median over {count}{where}, {question.commitment}, one vote each (its cheapest current price), "
        f"no marketplace asks, as of {question.as_of}",
        evidence=tuple(_evidence(vote) for vote in ballot),
        gap=gap,
        commitment=question.commitment,
        region=question.region,
        stale=gap is not None,
        warnings=tuple(warnings),
    )


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
