"""The interface of a live price source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from planner.lazy import dataclass
from planner.text import shortened
from pricing.book.rows import PriceRow
from pricing.sources.web import FetchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The unchanged answer of a source, kept so that it can be read again without a network."""

    source: str
    """Name of the source."""
    text: str
    """JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The price rows in an answer, and the number of entries left out."""

    rows: tuple[PriceRow, ...]
    """Rows, whose ids are assigned when they are added to a book."""
    skipped: dict[str, int]
    """Number of entries left out, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One live source of prices."""

    name: str
    """Name that the user types."""
    what: str
    """Description in one line."""
    address: str
    """URL of the service; a mirror can be given instead."""
    fetch: Callable[[str], Fetched]
    """Request the prices from a URL. Raises `FetchError`."""
    read: Callable[[Fetched, date], Read]
    """Convert an answer to rows dated with a day. Raises `FetchError` where the answer is not as documented."""


def read_entries(source: str, entries: object, row_of: Callable[[Any], PriceRow | str]) -> Read:
    """Return the rows of an answer's entries; entries without a row are counted by reason.

    Args:
        source: name of the source, for the error.
        entries: the list in the answer, with whatever the server sent.
        row_of: returns the row of an entry, or why it has none.

    Raises:
        FetchError: there is no list, or an entry is not as the source documents.
    """
    rows: list[PriceRow] = []
    skipped: dict[str, int] = {}
    try:
        if not isinstance(entries, list):
            raise TypeError("no list of entries")
        for entry in entries:
            row = row_of(entry)
            if isinstance(row, PriceRow):
                rows.append(row)
            else:
                reason = shortened(row)
                skipped[reason] = skipped.get(reason, 0) + 1
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        what = f"{type(error).__name__}: {shortened(str(error))}"
        raise FetchError(f"{source}: an entry that cannot be read ({what})") from error
    return Read(rows=cheapest(rows), skipped=skipped)


def parse_answer(fetched: Fetched) -> Any:
    """Return the JSON value of an answer; numbers with a point are Decimal.

    Raises:
        FetchError: it is not JSON.
    """
    try:
        return json.loads(fetched.text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise FetchError(f"{fetched.source}: an answer that cannot be read ({type(error).__name__})") from error


def text_in(entry: dict[str, Any], key: str) -> str:
    """Return the text under a key of an entry.

    Raises:
        TypeError: the value is not a text.
        KeyError: the key is missing.
    """
    if not isinstance(entry[key], str):
        raise TypeError(f"`{key}` is not text")
    return str(entry[key])


def cheapest(rows: Iterable[PriceRow]) -> tuple[PriceRow, ...]:
    """Return the cheapest row of each provider, GPU, region, machine and commitment, over its zones or meters."""
    best: dict[tuple[str, ...], PriceRow] = {}
    for row in rows:
        key = (row.provider, row.gpu, row.region.lower(), row.instance, row.commitment)
        if key not in best or row.price_per_gpu_h < best[key].price_per_gpu_h:
            best[key] = row
    return tuple(best.values())
