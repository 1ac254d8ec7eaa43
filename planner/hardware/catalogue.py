"""The GPU catalogue: rows of `catalog/gpus.csv`, found by name or by the device name that the driver reports."""

from __future__ import annotations

import re
from functools import cache

from planner.errors import UsageError
from planner.evidence import Evidence, EvidenceKind
from planner.hardware.gpu import Gpu
from planner.rows import CATALOG, Catalogue, Row, read_rows
from planner.units import GB, GIGA, MEGA, MIB, TERA

COMPUTE_TYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
"""Compute types that have a column for their peak."""

PCIE_X16_BYTES_PER_S = {3: 15.75e9, 4: 31.5e9, 5: 63.0e9, 6: 121.0e9}
"""Rate of x16 per direction after line coding, by PCIe generation: 8, 16 and 32 GT/s at 128b/130b, 64 GT/s in 242 of
256 byte FLITs (PCI-SIG)."""

MEMORY_TOLERANCE_RATIO = 0.08
"""Allowed deviation of the driver's memory size from the row's; ECC and firmware take up to 6 % of the label."""


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _rates(row: Row, prefix: str, suffix: str, types: tuple[str, ...]) -> dict[str, float]:
    tflops = {type_: row.opt_number(f"{prefix}{type_}{suffix}", low=1, high=50_000) for type_ in types}
    return {type_: value * TERA for type_, value in tflops.items() if value is not None}


def _pcie_bytes_per_s(row: Row) -> float:
    generation = row.integer("pcie_gen")
    if generation not in PCIE_X16_BYTES_PER_S:
        raise row.fail("pcie_gen", "a PCIe generation from 3 to 6")
    return PCIE_X16_BYTES_PER_S[generation]


def _evidence(row: Row) -> Evidence:
    return Evidence(
        id=f"gpu:{row.text('id')}",
        kind=EvidenceKind.DATASHEET,
        what=f"{row.text('name')}: rates, memory, links and power of the part",
        source=row.text("source"),
        date=row.text("source_date"),
        gpu=row.text("id"),
        public=True,
    )


def _gpu(row: Row) -> Gpu:
    return Gpu(
        id=row.text("id"),
        name=row.text("name"),
        arch=row.text("arch"),
        year=row.integer("year", low=2012, high=2035),
        memory_bytes=row.number("memory_mib", low=4096, high=2**20) * MIB,
        memory_bytes_per_s=row.number("memory_gb_per_s", low=100, high=30_000) * GB,
        peak_flop_per_s=_rates(row, "", "_tflops", COMPUTE_TYPES),
        l2_bytes=_scaled(row.opt_number("l2_mib", low=1, high=1024), MIB),
        sm_count=row.opt_integer("sm_count", low=10, high=1000),
        boost_hz=_scaled(row.opt_number("boost_mhz", low=500, high=5000), MEGA),
        load_hz=_scaled(row.opt_number("load_mhz", low=500, high=5000), MEGA),
        tdp_w=row.number("tdp_w", low=30, high=5000),
        power_scope=row.choice("power_scope", ("board", "module")),
        nvlink_bytes_per_s=_scaled(row.opt_number("nvlink_gb_per_s_per_direction", low=20, high=10_000), GB),
        nvlink_domain_gpus=row.integer("nvlink_domain_gpus", low=1, high=1024),
        pcie_bytes_per_s=_pcie_bytes_per_s(row),
        gpus_per_node=row.integer("gpus_per_node", low=1, high=128),
        nic_bytes_per_s=_scaled(row.opt_number("nic_gbit_per_s", low=1, high=10_000), GIGA / 8),
        host_power_w=row.opt_number("host_power_w", low=100, high=100_000),
        measured_matmul_flop_per_s=_rates(row, "measured_", "_tflops", ("bf16", "fp8")),
        measured_matmul_gpu=row.opt_text("measured_matmul_gpu"),
        measured_memory_bytes_per_s=_scaled(row.opt_number("measured_memory_gb_per_s", low=100, high=30_000), GB),
        confidence=row.choice("confidence", ("A", "B", "C")),
        evidence=_evidence(row),
        device_name_pattern=row.opt_text("device_name_pattern"),
        device_power_limit_max_w=row.opt_number("device_power_limit_max_w", low=30, high=5000),
        power_limit_min_w=row.opt_number("power_limit_min_w", low=5, high=5000),
        c2c_bytes_per_s=_scaled(row.opt_number("c2c_gb_per_s_per_direction", low=50, high=10_000), GB),
        notes=row.cell("notes"),
    )


@cache
def gpu_aliases() -> dict[str, str]:
    """Catalogue ids by other names in use (in clouds, papers and published runs)."""
    return {row.text("alias"): row.text("gpu") for row in read_rows(CATALOG / "gpu_aliases.csv")}


def _other_names() -> dict[str, str]:
    return gpu_aliases() | {gpu.name: gpu.id for gpu in load_gpus().values()}


GPUS = Catalogue(CATALOG / "gpus.csv", _gpu, what="GPU", listing="mpplan gpus", aliases=_other_names)


def load_gpus() -> dict[str, Gpu]:
    """The catalogue by id, oldest architecture first; rates are dense and in SI units.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return GPUS.by_id


def find_gpu(name: str) -> Gpu:
    """Find a GPU by id, vendor's name or alias, ignoring case and punctuation.

    Raises:
        UsageError: no GPU has the name; similar names are offered. A family name such as `h100` is rejected with the
            list of its parts, since they differ by more than a third in speed and price.
    """
    gpu = GPUS.get(name)
    if gpu is not None:
        return gpu
    family = [id_ for id_ in load_gpus() if id_.split("-")[0] == name.strip().casefold()]
    if len(family) > 1:
        parts = ", ".join(f"`{id_}`" for id_ in family)
        raise UsageError(f"GPU `{name}` matches several models", hint=f"say which one: {parts}")
    return GPUS.find(name)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def bears_name(gpu: Gpu, device_name: str) -> bool:
    """Whether a device whose driver reports this name may be this GPU; also true if the name or the pattern is unknown.

    A name alone does not distinguish all parts; see `match_device`.
    """
    name = device_name.strip()
    return not name or gpu.device_name_pattern is None or bool(_pattern(gpu.device_name_pattern).fullmatch(name))


def match_device(device_name: str, memory_bytes: float, power_limit_w: float | None = None) -> Gpu | None:
    """The catalogue row of a device as reported by its driver, or None if not exactly one row fits.

    A name alone does not distinguish all parts, so three conditions must hold: the row's pattern matches the whole
    name, the memory is within 8 % of the row's, and, for a name that several parts share, the part can have this power
    limit. A lowered power limit does not rule out any part.

    Args:
        device_name: name as in `nvidia-smi -L`, for example `NVIDIA H100 80GB HBM3`.
        memory_bytes: total device memory.
        power_limit_w: enforced power limit; None if it cannot be read.
    """
    matches = [
        gpu
        for gpu in load_gpus().values()
        if gpu.device_name_pattern
        and bears_name(gpu, device_name)
        and abs(memory_bytes / gpu.memory_bytes - 1) <= MEMORY_TOLERANCE_RATIO
        and (power_limit_w or 0) <= (gpu.device_power_limit_max_w or float("inf"))
    ]
    return matches[0] if len(matches) == 1 else None
