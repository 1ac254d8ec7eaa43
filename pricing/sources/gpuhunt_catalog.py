"""Prices through gpuhunt: on-demand and spot prices of nine providers (optional extra `mpplan[prices]`).

Tested with gpuhunt on a local folder of catalogues and on a local server, not with the live service.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from pricing.base.money import plain
from pricing.book.gpu_names import identify
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceRow
from pricing.sources.base import TIMEOUT_S, Fetched, FetchError, Read, Source, cheapest
from pricing.sources.skypilot import MARKETPLACES

_PROVIDERS = {"lambdalabs": "lambda", "vastai": "vast"}


def fetch(address: str) -> Fetched:
    """Request every offer with an NVIDIA or AMD GPU.

    Raises:
        FetchError: gpuhunt is not installed, or failed.
    """
    try:
        import gpuhunt
    except ImportError:
        raise FetchError("gpuhunt is not installed; `pip install 'mpplan[prices]'`") from None
    logger = logging.getLogger("gpuhunt")
    level, timeout = logger.level, socket.getdefaulttimeout()
    logger.setLevel(logging.CRITICAL + 1)  # it logs a traceback for each provider that is down
    socket.setdefaulttimeout(TIMEOUT_S)
    before = os.environ.get("GPUHUNT_CATALOG_URL")
    if address:
        os.environ["GPUHUNT_CATALOG_URL"] = address
    try:
        catalog = gpuhunt.Catalog(auto_reload=False)
        folder = os.environ.get("GPUHUNT_CATALOG_DIR")
        if folder is None:
            catalog.load()
            providers = sorted(catalog.catalog)
        else:
            providers = sorted(name[:-4] for name in os.listdir(folder) if name.endswith(".csv"))
        offers = catalog.query(provider=providers, min_gpu_count=1)
    except Exception as error:  # a third-party library may raise anything; the book must stay unchanged
        raise FetchError(f"gpuhunt: {error}") from error
    finally:
        logger.setLevel(level)
        socket.setdefaulttimeout(timeout)
        if before is None:
            os.environ.pop("GPUHUNT_CATALOG_URL", None)
        else:
            os.environ["GPUHUNT_CATALOG_URL"] = before
    keys = ("provider", "instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
    items = [{key: getattr(offer, key) for key in keys} for offer in offers]
    return Fetched(source="gpuhunt", text=json.dumps(items))


def read(fetched: Fetched, day: date) -> Read:
    """One row per provider, machine, region and commitment: its cheapest zone.

    Raises:
        FetchError: the text is not what `fetch` stores.
    """
    rows: list[PriceRow] = []
    skipped: dict[str, int] = {}
    try:
        for item in json.loads(fetched.text, parse_float=Decimal):
            row = _row(item, day)
            if isinstance(row, PriceRow):
                rows.append(row)
            else:
                skipped[row] = skipped.get(row, 0) + 1
    except (ValueError, KeyError, TypeError, InvalidOperation) as error:
        raise FetchError(f"gpuhunt: an entry that cannot be read ({type(error).__name__}: {error})") from error
    return Read(rows=cheapest(rows), skipped=skipped)


def _row(item: dict[str, Any], day: date) -> PriceRow | str:
    provider = _PROVIDERS.get(item["provider"], item["provider"])
    count = int(item["gpu_count"])
    memory = float(item["gpu_memory"]) if item["gpu_memory"] is not None else None
    gpu = identify(provider, str(item["gpu_name"]), item["instance_name"], memory)
    if gpu is None:
        return f"{item['gpu_name']}: not in the catalogue, or its variant not stated"
    per_gpu = plain(Decimal(item["price"]) / count)
    if not 0 < per_gpu <= HIGHEST_PLAUSIBLE_PER_GPU_H:
        return "a price of 0, or not plausible"
    region = item["location"]
    return PriceRow(
        id="new",
        gpu=gpu,
        provider=provider,
        region=re.sub(r"-[a-z]$", "", region) if provider == "gcp" else region,
        instance=item["instance_name"],
        gpus_per_instance=count,
        commitment="spot" if item["spot"] else "on-demand",
        price_per_gpu_h=per_gpu,
        currency="USD",
        seller="marketplace" if provider in MARKETPLACES else "provider",
        date_earliest=day,
        date_latest=day,
        date_basis="day of the request",
        source="gpuhunt catalogue",
    )


GPUHUNT = Source(
    name="gpuhunt",
    what="gpuhunt: on-demand and spot prices of nine providers",
    address="",
    fetch=fetch,
    read=read,
)
