"""`mpplan gpus`: the GPU catalogue, as a list or one GPU in full."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from typing import Annotated, Any

import typer

from mpplan.commands.catalogues.short_names import meant
from mpplan.ui import options
from mpplan.ui.listing import details, figure, table
from planner.hardware.catalogue import COMPUTE_TYPES, find_gpu, gpu_aliases, load_gpus
from planner.hardware.gpu import Gpu
from planner.question import names
from planner.units import GB, GIB, GIGA, TERA

SCHEMA = "mpplan.gpus/1"

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="GPU",
        help="Show this GPU in full (id, name or alias).",
        autocompletion=options.completion(names.gpus),
    ),
]


def gpus(name: Name = None, json: options.JsonFlag = False) -> None:
    """List the GPUs in the catalogue with their sources."""
    rows = [find_gpu(meant("gpu", name, load_gpus()))] if name is not None else list(load_gpus().values())
    if json:
        document = {"schema": SCHEMA, "gpus": [_entry(gpu) for gpu in rows]}
        typer.echo(dumps(document, indent=2, ensure_ascii=False))
    elif name is not None:
        typer.echo(_details(rows[0]), nl=False)
    else:
        typer.echo(_list(rows), nl=False)


def _entry(gpu: Gpu) -> dict[str, Any]:
    return asdict(gpu) | {"aliases": _aliases(gpu)}


def _aliases(gpu: Gpu) -> list[str]:
    return [alias for alias, target in gpu_aliases().items() if target == gpu.id]


def _peaks(gpu: Gpu) -> list[str]:
    return [figure(gpu.peak_flop_per_s.get(compute_type), TERA) for compute_type in COMPUTE_TYPES]


def _list(rows: list[Gpu]) -> str:
    headers = (
        "id",
        "arch",
        "year",
        "GiB",
        "GB/s",
        *COMPUTE_TYPES,
        "W",
        "link GB/s",
        "link GPUs",
        "confidence",
        "dated",
        "source",
    )
    lines = [
        (
            gpu.id,
            gpu.arch,
            str(gpu.year),
            figure(gpu.memory_bytes, GIB, 3),
            figure(gpu.memory_bytes_per_s, GB),
            *_peaks(gpu),
            figure(gpu.tdp_w),
            figure(gpu.nvlink_bytes_per_s, GB),
            str(gpu.nvlink_domain_gpus),
            gpu.confidence,
            gpu.evidence.date or "-",
            gpu.evidence.source,
        )
        for gpu in rows
    ]
    return table(headers, lines)


def _own_host_link(gpu: Gpu) -> tuple[tuple[str, str], ...]:
    """The link to a processor on the same module, if there is one."""
    if gpu.c2c_bytes_per_s is None:
        return ()
    return (("NVLink-C2C", f"{figure(gpu.c2c_bytes_per_s, GB)} GB/s per direction to the processor"),)


def _details(gpu: Gpu) -> str:
    measured = ", ".join(
        f"{compute_type} {figure(rate, TERA)}" for compute_type, rate in gpu.measured_matmul_flop_per_s.items()
    )
    sibling = f" (on {gpu.measured_matmul_gpu} where not on this part)" if gpu.measured_matmul_gpu else ""
    peaks = ", ".join(f"{compute_type} {figure(rate, TERA)}" for compute_type, rate in gpu.peak_flop_per_s.items())
    nic = None if gpu.nic_bytes_per_s is None else gpu.nic_bytes_per_s * 8
    return details(
        (
            ("id", gpu.id),
            ("name", gpu.name),
            ("architecture", f"{gpu.arch}, {gpu.year}"),
            ("memory", f"{figure(gpu.memory_bytes, GIB)} GiB, {figure(gpu.memory_bytes_per_s, GB)} GB/s"),
            ("memory, measured", f"{figure(gpu.measured_memory_bytes_per_s, GB)} GB/s"),
            ("dense peak", f"{peaks} TFLOP/s"),
            ("matrix rate, measured", f"{measured} TFLOP/s{sibling}" if measured else "-"),
            ("board power", f"{figure(gpu.tdp_w)} W"),
            (
                "NVLink or xGMI",
                f"{figure(gpu.nvlink_bytes_per_s, GB)} GB/s per direction, {gpu.nvlink_domain_gpus} GPUs",
            ),
            ("PCIe", f"{figure(gpu.pcie_bytes_per_s, GB)} GB/s per direction"),
            *_own_host_link(gpu),
            ("node", f"{gpu.gpus_per_node} GPUs, {figure(nic, GIGA)} Gbit/s each, host {figure(gpu.host_power_w)} W"),
            ("confidence", f"{gpu.confidence} (A agreeing sources, B one good source, C conflicting or remembered)"),
            ("source", f"{gpu.evidence.source} ({gpu.evidence.date})"),
            ("notes", gpu.notes or "-"),
            ("also called", ", ".join(_aliases(gpu)) or "-"),
        )
    )
