"""A question to the price book: which GPU, whose, where, how committed, on which day; and the rows that answer it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from planner.errors import UsageError
from planner.rows import near_names
from pricing.base.listing import listed
from pricing.book.current import counting_rows, without_historic
from pricing.book.rows import COMMITMENTS, PriceBook, PriceRow, load_book
from pricing.place.places import place_named, place_of

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


def check_names(question: Question) -> None:
    """See that the provider and the region are known.

    Raises:
        UsageError: one is not; near names are offered.
    """
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


def selected_rows(book: PriceBook, question: Question) -> tuple[PriceRow, ...]:
    """The rows that answer: those that count on the day, historic ones only where there are no others."""
    asked = [
        row
        for row in book.rows
        if row.gpu == question.gpu
        and row.commitment == question.commitment
        and (row.provider == question.provider if question.provider else row.seller != "marketplace")
    ]
    counting = tuple(row for row in counting_rows(asked, question.as_of) if _in_region(row, question))
    return without_historic(counting, question.as_of)
