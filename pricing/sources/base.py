"""The interface of a live price source, and an HTTP client with a limited number of retries."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from pricing.book.rows import PriceRow

TRIES = 3
TIMEOUT_S = 20.0
LARGEST_ANSWER_BYTES = 64 * 2**20


class FetchError(Exception):
    """A source did not answer, or its answer was not what it documents; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The unchanged answer of a source, so that it can be read again without a network."""

    source: str
    """Name of the source."""
    text: str
    """JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The price rows in an answer, and what was left out."""

    rows: tuple[PriceRow, ...]
    """Their ids are given when they are added to a book."""
    skipped: dict[str, int]
    """Entries left out, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One live source of prices."""

    name: str
    """As the user types it."""
    what: str
    """Description in one line."""
    address: str
    """URL of the service; a mirror can be given instead."""
    fetch: Callable[[str], Fetched]
    """Request the prices from a URL. Raises `FetchError`."""
    read: Callable[[Fetched, date], Read]
    """Turn an answer into rows dated with a day. Raises `FetchError` where the answer is not what is documented."""


def cheapest(rows: Iterable[PriceRow]) -> tuple[PriceRow, ...]:
    """The cheapest row of each provider, GPU, region, machine and commitment, over its zones or meters."""
    best: dict[tuple[str, ...], PriceRow] = {}
    for row in rows:
        key = (row.provider, row.gpu, row.region.lower(), row.instance, row.commitment)
        if key not in best or row.price_per_gpu_h < best[key].price_per_gpu_h:
            best[key] = row
    return tuple(best.values())


def get_json(url: str, *, headers: dict[str, str] | None = None, pause_s: float = 1.0) -> Any:
    """GET a JSON document in up to three tries with growing pauses; a status of 4xx but 408 and 429 ends them.

    Args:
        url: the address.
        headers: further request headers.
        pause_s: seconds before the second try; twice as many before the third.

    Raises:
        FetchError: no answer, an HTTP error, an answer that is too large, or one that is not JSON.
    """
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"Accept": "application/json", **(headers or {})})
    reason = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(pause_s * 2 ** (attempt - 1))
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                body = answer.read(LARGEST_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"HTTP {error.code}"
            if error.code < 500 and error.code not in (408, 429):
                break
        except (OSError, ValueError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        else:
            if len(body) > LARGEST_ANSWER_BYTES:
                raise FetchError(f"{_place(url)} answered more than {LARGEST_ANSWER_BYTES >> 20} MiB")
            try:
                return json.loads(body)
            except ValueError:
                reason = "the answer is not JSON"
    raise FetchError(f"{_place(url)}: {reason}")


def _place(url: str) -> str:
    return url.split("?", 1)[0]
