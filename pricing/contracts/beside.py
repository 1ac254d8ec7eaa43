"""beside.toml: costs of a run beyond its GPUs, one line each; only costs that the user states are charged."""

from __future__ import annotations

from pathlib import Path

from planner.costs.prices import OtherCosts
from planner.costs.quantity import DataSize
from planner.evidence import Evidence, EvidenceKind
from planner.units import parse_bytes
from pricing.files.toml_file import TomlFile, read_toml

_KEYS = (
    "storage.usd_per_gb_month",
    "storage.checkpoints_kept",
    "storage.data",
    "storage.months_after",
    "egress.usd_per_gb",
    "egress.data",
    "network.ratio",
    "hosts.count",
    "hosts.usd_per_h",
    "experiments.ratio",
    "failed.ratio",
)


def read_beside(path: Path) -> OtherCosts:
    """Read beside.toml.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not TOML, has an unknown key or a value out of bounds, a size without a unit, or lacks one
            of two keys that need each other.
    """
    file = read_toml(path)
    file.only(_KEYS)
    _require_pair(file, "hosts.count", "hosts.usd_per_h")
    _require_pair(file, "egress.data", "egress.usd_per_gb")
    price, stored = "storage.usd_per_gb_month", ("storage.data", "storage.checkpoints_kept")
    for key in (*stored, "storage.months_after"):
        if file.get(key) is not None and file.get(price) is None:
            raise file.fail(price, f"expected a price, since {key} is stated")
    if file.get(price) is not None and all(file.get(key) is None for key in stored):
        raise file.fail(stored[0], f"expected a size, or {stored[1]}, since {price} is stated")
    return OtherCosts(
        storage_usd_per_gb_month=file.number("storage.usd_per_gb_month", 0, 10, 0),
        checkpoints_kept=file.number("storage.checkpoints_kept", 0, 100_000, 0),
        data=_size(file, "storage.data"),
        months_after=file.number("storage.months_after", 0, 600, 0),
        egress_usd_per_gb=file.number("egress.usd_per_gb", 0, 10, 0),
        egress=_size(file, "egress.data"),
        network_ratio=file.number("network.ratio", 0, 1, 0),
        hosts=file.number("hosts.count", 0, 100_000, 0),
        usd_per_host_h=file.number("hosts.usd_per_h", 0, 1000, 0),
        experiments_ratio=file.number("experiments.ratio", 0, 100, 0),
        failed_ratio=file.number("failed.ratio", 0, 10, 0),
        evidence=_stated(file),
    )


def _stated(file: TomlFile) -> Evidence | None:
    values = [f"{key} = {file.get(key)}" for key in _KEYS if file.get(key) is not None]
    if not values:
        return None
    return Evidence(
        id="beside:file",
        kind=EvidenceKind.GIVEN,
        what="; ".join(values),
        source=file.name,
        used_in=("cost_usd",),
    )


def _require_pair(file: TomlFile, first: str, second: str) -> None:
    for stated, missing in ((first, second), (second, first)):
        if file.get(stated) is not None and file.get(missing) is None:
            raise file.fail(missing, f"expected a value, since {stated} is stated")


def _size(file: TomlFile, key: str) -> DataSize:
    return DataSize(size_bytes=file.parsed(key, parse_bytes))
