"""Azure Retail Prices API: list, spot and 1- and 3-year reserved prices of GPU machines; it needs no key.

Format: learn.microsoft.com, "Azure Retail Prices overview". A reservation's `retailPrice` is for the whole term,
although its `unitOfMeasure` is one hour. Tested with recorded answers and a local server, not with the live service.
"""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from planner.rows import keyed, read_rows
from planner.units import YEAR_H
from pricing.base.folder import DATA
from pricing.base.money import plain
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceRow
from pricing.sources.base import Fetched, Read, Source, parse_answer, read_entries, text_in
from pricing.sources.web import FetchError, Server, place_of

ADDRESS = "https://prices.azure.com/api/retail/prices"
MOST_PAGES = 200
_TERM_H = {"1 Year": ("1y", YEAR_H), "3 Years": ("3y", 3 * YEAR_H)}


@lru_cache(maxsize=1)
def machines() -> dict[str, tuple[str, int]]:
    """Return GPU and number of GPUs by machine (`azure_skus.csv`)."""
    rows = read_rows(DATA / "azure_skus.csv")
    return keyed(rows, lambda row: (row.text("gpu"), row.integer("gpus", low=1, high=128)), key="sku")


def fetch(address: str) -> Fetched:
    """Request all pages of prices for the machines of `azure_skus.csv`.

    Raises:
        FetchError: a page failed or is elsewhere, or there are more than `MOST_PAGES` for one machine.
    """
    server = Server(address)
    place = place_of(server.url)
    items: list[Any] = []
    for sku in machines():
        condition = f"serviceName eq 'Virtual Machines' and armSkuName eq '{sku}'"
        url: str | None = f"{server.url}?$filter={quote(condition)}"
        pages = 0
        while url:
            page = server.get_json(url)
            pages += 1
            if not isinstance(page, dict) or not isinstance(page.get("Items"), list):
                raise FetchError(f"{place}: an answer without `Items`")
            if pages > MOST_PAGES:
                raise FetchError(f"{place}: more than {MOST_PAGES} pages for {sku}")
            items += page["Items"]
            url = page.get("NextPageLink")
            if not isinstance(url, str | None):
                raise FetchError(f"{place}: a `NextPageLink` that is not a URL")
    return Fetched(source="azure", text=json.dumps({"Items": items}))


def read(fetched: Fetched, day: date) -> Read:
    """Return rows for Linux machines: on demand, spot and reserved.

    Raises:
        FetchError: the text is not an answer of the API.
    """
    answer = parse_answer(fetched)
    items = answer.get("Items") if isinstance(answer, dict) else None
    return read_entries("azure", items, lambda item: _row(item, day))


def _row(item: dict[str, Any], day: date) -> PriceRow | str:
    if text_in(item, "armSkuName") not in machines():
        return "not a GPU machine of the list"
    if "Windows" in text_in(item, "productName") or "Low Priority" in text_in(item, "skuName"):
        return "Windows, or low priority"
    if str(item.get("effectiveStartDate", ""))[:10] > day.isoformat():
        return "not in force yet"
    gpu, gpus = machines()[item["armSkuName"]]
    price = Decimal(str(item["retailPrice"]))
    if item["type"] == "Reservation":
        if str(item.get("reservationTerm")) not in _TERM_H:
            return f"a reservation of {item.get('reservationTerm')}"
        commitment, hours = _TERM_H[item["reservationTerm"]]
        price /= Decimal(hours)
    elif item["type"] == "Consumption":
        if item["unitOfMeasure"] != "1 Hour":
            return f"a price per {item['unitOfMeasure']}"
        commitment = "spot" if "Spot" in item["skuName"] else "on-demand"
    else:
        return f"type {item['type']}"
    per_gpu = plain(price / gpus)
    dear = item.get("currencyCode") == "USD" and per_gpu > HIGHEST_PLAUSIBLE_PER_GPU_H
    if per_gpu <= 0 or dear:
        return "a price of 0, or not plausible"
    return PriceRow(
        id="new",
        gpu=gpu,
        provider="azure",
        region=text_in(item, "armRegionName"),
        instance=item["armSkuName"],
        gpus_per_instance=gpus,
        commitment=commitment,
        price_per_gpu_h=per_gpu,
        currency=text_in(item, "currencyCode"),
        seller="provider",
        date_earliest=day,
        date_latest=day,
        date_basis="day of the request",
        source=f"Azure Retail Prices API, meter {item['meterId']}",
    )


AZURE = Source(
    name="azure",
    what="Azure Retail Prices API: list, spot and reserved prices",
    address=ADDRESS,
    fetch=fetch,
    read=read,
)
