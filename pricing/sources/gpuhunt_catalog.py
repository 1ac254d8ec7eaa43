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
from decimal import Decimal
from typing import Any

from planner.text import shortened
from pricing.base.money import plain
from pricing.book.gpu_names import identify
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceRow
from pricing.sources.base import Fetched, Read, Source, parse_answer, read_entries, text_in
from pricing.sources.skypilot import MARKETPLACES
from pricing.sources.web import DEADLINE_S, TIMEOUT_S, FetchError, parse_address, within

_PROVIDERS = {"lambdalabs": "lambda", "vastai": "vast"}


def fetch(address: str) -> Fetched:
    """Request every offer with at least one GPU.

    Raises:
        FetchError: gpuhunt is not installed, or failed.
    """
    try:
        import gpuhunt
    except ImportError:
        raise FetchError("gpuhunt is not installed; `pip install 'mpplan[prices]'`") from None
    mirror = parse_address(address) if address else None
    if mirror is not None and mirror.authorization is not None:
        raise FetchError("gpuhunt: an address with a user name and password is not accepted")
    logger = logging.getLogger("gpuhunt")
    level, timeout = logger.level, socket.getdefaulttimeout()
    logger.setLevel(logging.CRITICAL + 1)  # it logs a traceback for each provider that is down
    socket.setdefaulttimeout(TIMEOUT_S)
    before = os.environ.get("GPUHUNT_CATALOG_URL")
    if mirror is not None:
        os.environ["GPUHUNT_CATALOG_URL"] = mirror.url
    try:
        offers = within(DEADLINE_S, lambda: _offers(gpuhunt), "gpuhunt")
    except FetchError:
        raise
    except Exception as error:  # a third-party library may raise anything; the book must stay unchanged
        raise FetchError(f"gpuhunt: {shortened(str(error), 200)}") from error
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


def _offers(gpuhunt: Any) -> list[Any]:
    """Return every offer, from the folder of catalogues that `GPUHUNT_CATALOG_DIR` names or from the service."""
    catalog = gpuhunt.Catalog(auto_reload=False)
    folder = os.environ.get("GPUHUNT_CATALOG_DIR")
    if folder is None:
        catalog.load()
        providers = sorted(catalog.catalog)
    else:
        providers = sorted(name[:-4] for name in os.listdir(folder) if name.endswith(".csv"))
    return list(catalog.query(provider=providers, min_gpu_count=1))


def read(fetched: Fetched, day: date) -> Read:
    """Return one row per provider, machine, region and commitment: its cheapest zone.

    Raises:
        FetchError: the text is not what `fetch` stores.
    """
    return read_entries("gpuhunt", parse_answer(fetched), lambda item: _row(item, day))


def _row(item: dict[str, Any], day: date) -> PriceRow | str:
    provider = _PROVIDERS.get(text_in(item, "provider"), item["provider"])
    count = int(item["gpu_count"])
    if count < 1:
        return "no GPU"
    memory = float(item["gpu_memory"]) if item["gpu_memory"] is not None else None
    gpu = identify(provider, str(item["gpu_name"]), text_in(item, "instance_name"), memory)
    if gpu is None:
        return f"{item['gpu_name']}: not in the catalogue, or its variant not stated"
    per_gpu = plain(Decimal(str(item["price"])) / count)
    if not 0 < per_gpu <= HIGHEST_PLAUSIBLE_PER_GPU_H:
        return "a price of 0, or not plausible"
    region = text_in(item, "location")
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
