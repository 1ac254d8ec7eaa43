"""Queries to the price book: GPU, provider, region, commitment and day, and the matching rows."""

from __future__ import annotations

from datetime import date

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.rows import near_names
from pricing.base.listing import listed
from pricing.book.current import counting_rows, without_historic
from pricing.book.reading import load_book
from pricing.book.rows import COMMITMENTS, PriceBook, PriceRow
from pricing.place.places import country_of, place_named, place_of

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


EVERYWHERE = "all"
"""Region of a row whose price is the same in every region of its provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceQuery:
    """A query for a price from the book."""

    gpu: str
    """Catalogue id."""
    provider: str | None
    """Slug; None for the whole market."""
    region: str | None
    """A provider's region, or a place; None for any."""
    commitment: str
    """One of `COMMITMENTS`."""
    as_of: date
    """The day of the price."""


def parse_commitment(text: str) -> str:
    """Return the commitment for a name in any of its usual spellings, one of `COMMITMENTS`.

    Raises:
        UsageError: there is no such commitment.
    """
    plain = text.strip().lower()
    plain = _COMMITMENT_WORDS.get(plain, plain)
    if plain not in COMMITMENTS:
        raise UsageError(f"unknown commitment `{text}`", hint=f"use one of {', '.join(COMMITMENTS)}")
    return plain


def check_names(query: PriceQuery) -> None:
    """Check that the price book knows the provider and the region.

    Raises:
        UsageError: one of them is unknown; similar names are suggested.
    """
    if query.provider is None and query.region is None:
        return
    book = load_book()
    if query.provider is not None and query.provider not in book.providers():
        near = near_names(query.provider, book.providers())
        raise UsageError(
            f"no prices of a provider `{query.provider}`",
            hint=f"did you mean {listed(near)}?" if near else f"the book has {listed(book.providers(), 40)}",
        )
    regions = _regions(book, query.provider)
    if query.region is None or _is_known(query.region, query.provider, regions):
        return
    near = near_names(query.region, regions)
    regions_hint = (
        f"the book has {listed(sorted(regions))}" if regions else "its prices name no region: leave out --region"
    )
    raise UsageError(
        f"no prices in a region `{query.region}`" + (f" of {query.provider}" if query.provider else ""),
        hint=f"did you mean {listed(near)}?" if near else regions_hint,
    )


def check_place(region: str, provider: str | None) -> None:
    """Check that a region is known where its price is not asked for: it then decides only the place of the run.

    The regions of a provider without a row in the price book cannot be checked.

    Raises:
        UsageError: it is neither a place nor a region of the price book, or not one of that provider's.
    """
    book = load_book()
    if provider is not None and provider not in book.providers():
        return
    regions = _regions(book, provider)
    if _is_known(region, provider, regions):
        return
    near = near_names(region, regions - {EVERYWHERE})
    raise UsageError(
        f"no region or place `{region}`" + (f" of {provider}" if provider else "") + " is known",
        hint=(f"did you mean {listed(near)}? " if near else "")
        + "give a country, a US state or a cloud region; or give the grid of the place with --grid",
    )


def _regions(book: PriceBook, provider: str | None) -> set[str]:
    return {row.region for row in book.rows if row.region and provider in (None, row.provider)}


def _is_known(region: str, provider: str | None, regions: set[str]) -> bool:
    """Return whether a region is a place or in the book; a provider with one price everywhere may have any place."""
    if _is_place(region, provider) or region.lower() in {known.lower() for known in regions}:
        return True
    return EVERYWHERE in regions and _is_place(region, None)


def _is_place(region: str, provider: str | None) -> bool:
    """Return whether a name is a place; a region's name is one for its own provider, or with no provider given."""
    owner, colon, _ = region.strip().lower().partition(":")
    foreign = bool(colon) and provider not in (None, owner)
    return not foreign and place_named(region, provider) is not None


def _in_region(row: PriceRow, query: PriceQuery) -> bool:
    if query.region is None:
        return True
    if row.region.lower() == query.region.lower():
        return True
    if row.region == EVERYWHERE:
        return query.provider is not None
    asked, place = place_named(query.region, query.provider), place_of(row.provider, row.region)
    return asked is not None and place is not None and asked in (place, country_of(place))


def selected_rows(book: PriceBook, query: PriceQuery) -> tuple[PriceRow, ...]:
    """Return the matching rows that count on the day; historic rows only where there are no others."""
    candidates = [
        row
        for row in book.rows
        if row.gpu == query.gpu
        and row.commitment == query.commitment
        and (row.provider == query.provider if query.provider else row.seller != "marketplace")
    ]
    counting = tuple(row for row in counting_rows(candidates, query.as_of) if _in_region(row, query))
    return without_historic(counting, query.as_of)
