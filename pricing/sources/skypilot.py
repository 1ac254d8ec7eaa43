"""Import SkyPilot catalogue files: one row per instance and region, with the price of its cheapest zone.

Peculiarities of these files (skypilot-org/skypilot-catalog, versions 8 and 9): prices are per instance. A spot price of
0 means unknown, and one equal to on-demand means that there is no discount. RunPod and Shadeform write GiB into a field
called SizeInMiB. The provider is named only in the path.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.rows import parse_decimal
from planner.units import MIB, gib_from_bytes
from pricing.base.listing import listed
from pricing.base.money import plain
from pricing.book.gpu_names import identify
from pricing.book.rows import HIGHEST_PLAUSIBLE_PER_GPU_H, PriceRow

if TYPE_CHECKING:
    import pandas as pd

HEADER = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
"""Columns by which such a file is recognised."""

SMALLEST_MIB = 2048
"""A smaller number in SizeInMiB is in GiB: every GPU for training has more than 2 GiB, and none has 2048 GiB."""

MOST_GPUS = 10_000
"""Most GPUs of one instance; a higher count is not credible."""

MARKETPLACES = ("vast", "salad", "lium")
"""Providers whose prices are offers of third-party hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Rows of an imported price list, and the number of lines left out."""

    rows: tuple[PriceRow, ...]
    """Rows, whose ids are assigned when they are added to a book."""
    skipped: dict[str, int]
    """Number of lines left out, by reason."""


def provider_in_path(path: Path) -> str | None:
    """Return the provider in a path such as `…/catalogs/v9/aws/vms.csv`; None where it has none."""
    match = re.search(r"catalogs/v\d+/([a-z0-9_-]+)/", path.resolve().as_posix())
    return match[1] if match else None


def read_skypilot(frame: pd.DataFrame, name: str, provider: str, day: date, source: str) -> Imported:
    """Return the rows of a SkyPilot catalogue.

    Args:
        frame: the file, every cell as text.
        name: the file's name, for errors.
        provider: the provider of all rows.
        day: the day on which the file was written.
        source: where the file is from.

    Raises:
        InputFileError: a column is missing.
    """
    missing = [column for column in HEADER if column not in frame.columns]
    if missing:
        raise InputFileError(f"{name}:1: {missing[0]}: expected a column of this name", hint="is it a vms.csv?")
    import pandas as pd

    skipped: dict[str, int] = {}
    gpus = frame[frame["AcceleratorName"].str.strip() != ""].copy()
    if len(frame) > len(gpus):
        skipped["no GPU"] = len(frame) - len(gpus)
    gpus["count"] = pd.to_numeric(gpus["AcceleratorCount"], errors="coerce")
    sized = gpus[(gpus["count"] >= 1) & (gpus["count"] <= MOST_GPUS)]
    if len(gpus) > len(sized):
        skipped["part of a GPU, or no count"] = len(gpus) - len(sized)
    memory = sized["GpuInfo"] if "GpuInfo" in sized else sized["AcceleratorName"]
    ids = [
        identify(provider, gpu, instance, _memory_gib(info))
        for gpu, instance, info in zip(sized["AcceleratorName"], sized["InstanceType"], memory, strict=True)
    ]
    known = sized.assign(gpu=pd.Series(ids, index=sized.index, dtype=object))
    unknown = sorted(set(known["AcceleratorName"][known["gpu"].isna()]))
    if unknown:
        skipped[f"GPU not in the catalogue, or its variant not stated ({listed(unknown)})"] = int(
            known["gpu"].isna().sum()
        )
    rows: list[PriceRow] = []
    known = known[known["gpu"].notna()]
    for column, commitment in (("Price", "on-demand"), ("SpotPrice", "spot")):
        rows += _cheapest_zone(known, column, commitment, provider, day, source, skipped)
    return Imported(rows=tuple(rows), skipped=skipped)


def _memory_gib(info: object) -> float | None:
    match = re.search(r"SizeInMiB['\"]?: *([0-9]{1,9}(?:\.[0-9]{1,9})?)", str(info))
    if match is None:
        return None
    size = float(match[1])
    return gib_from_bytes(size * MIB) if size >= SMALLEST_MIB else size


def _amounts(cells: pd.Series[str]) -> pd.Series[float]:
    """Return the cells as numbers; NaN where a cell is not a valid amount."""
    values = {cell: parse_decimal(cell) for cell in cells.unique()}
    return cells.map({cell: float("nan") if value is None else float(value) for cell, value in values.items()})


def _cheapest_zone(
    known: pd.DataFrame,
    column: str,
    commitment: str,
    provider: str,
    day: date,
    source: str,
    skipped: dict[str, int],
) -> list[PriceRow]:

    number, on_demand = (_amounts(known[name]) for name in (column, "Price"))
    keep = number > 0
    if commitment == "spot":
        equal = keep & (number >= on_demand)
        if equal.any():
            skipped["spot price not below on-demand: no discount"] = int(equal.sum())
        keep &= ~(number >= on_demand)
    priced = known[keep].assign(number=number[keep])
    dear = priced["number"] / priced["count"] > float(HIGHEST_PLAUSIBLE_PER_GPU_H)
    if dear.any():
        skipped[f"more than {HIGHEST_PLAUSIBLE_PER_GPU_H} USD per GPU-hour"] = int(dear.sum())
    best = (
        priced[~dear].sort_values("number", kind="stable").drop_duplicates(["gpu", "InstanceType", "Region", "count"])
    )
    return [
        PriceRow(
            id="new",
            gpu=gpu,
            provider=provider,
            region=region.strip(),
            instance=instance.strip(),
            gpus_per_instance=int(count),
            commitment=commitment,
            price_per_gpu_h=plain(Decimal(str(price)) / int(count)),
            currency="USD",
            seller="marketplace" if provider in MARKETPLACES else "provider",
            date_earliest=day,
            date_latest=day,
            date_basis="day given on import",
            source=source,
            notes="cheapest zone of the region" if commitment == "spot" else "",
        )
        for gpu, region, instance, count, price in zip(
            best["gpu"], best["Region"], best["InstanceType"], best["count"], best["number"], strict=True
        )
    ]
