"""The shipped surfaces: `catalog/kernels.csv` describes each, and `catalog/kernel_points.csv` holds its nodes.

Surfaces are read lazily, and only the lines of the requested surface are parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.files import read_text
from planner.kernels.surface import Axis, Surface
from planner.lazy import dataclass
from planner.rows import CATALOG, Row, keyed, parse_rows, read_rows
from planner.units import GB, MICRO

KERNELS = CATALOG / "kernels.csv"
POINTS = CATALOG / "kernel_points.csv"

OPERATIONS = ("matmul", "attention", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
"""Kinds of kernel for which there are surfaces."""

WHAT = {
    "matmul": "matrix products by shape, sustained",
    "attention": "causal attention, forward, by heads and length",
    "all_reduce": "all-reduce by size inside one node",
    "all_gather": "all-gather by size inside one node",
    "reduce_scatter": "reduce-scatter by size inside one node",
    "all_to_all": "all-to-all by size inside one node",
}
"""Description of an operation's surfaces for readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """Description of a surface without its nodes."""

    id: str
    gpu: str
    """Catalogue id of the GPU that was measured."""
    operation: str
    """One of `OPERATIONS`."""
    compute: str
    """Type of the operands: bf16, fp8 (one scale per tensor or row), fp8-block, fp4."""
    axes: tuple[Axis, ...]
    """Dimensions of the surface, in the order of the nodes."""
    unit_per_s: float
    """Work per second of one unit of the nodes' figures."""
    floor_s: float
    spread: float
    stack_spread: float
    cast_bytes_per_s: float | None
    """Bandwidth of casting an activation to the operands' type; None if operands are not cast."""
    evidence: Evidence


def _axis(text: str) -> Axis:
    name, first, count = text.split(":")
    return Axis(name=name, first=int(first), count=int(count))


def _kernel_row(row: Row) -> KernelRow:
    operation, gpu, compute = row.choice("operation", OPERATIONS), row.text("gpu"), row.text("compute")
    cast_gb_per_s = row.opt_number("cast_gb_per_s")
    try:
        axes = tuple(_axis(word) for word in row.words("axes"))
    except ValueError:
        raise row.fail("axes", "`name:exponent of the first node:number of nodes`, separated by semicolons") from None
    what = f"{WHAT[operation]}: {compute} on {gpu}, {row.integer('points')} shapes"
    return KernelRow(
        id=row.text("id"),
        gpu=gpu,
        operation=operation,
        compute=compute,
        axes=axes,
        unit_per_s=row.number("unit_per_s"),
        floor_s=row.number("floor_us") * MICRO,
        spread=row.number("spread"),
        stack_spread=row.number("stack_spread"),
        cast_bytes_per_s=None if cast_gb_per_s is None else cast_gb_per_s * GB,
        evidence=Evidence(
            id=f"kernels:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=what,
            source=row.text("source"),
            date=row.text("date"),
            gpu=gpu,
            public=True,
        ),
    )


@cache
def kernel_rows() -> Mapping[str, KernelRow]:
    """All rows of `catalog/kernels.csv`, by id of the surface.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return keyed(read_rows(KERNELS), _kernel_row)


@cache
def _lines() -> tuple[str, dict[str, tuple[int, list[str]]]]:
    """Header of the points file, and for each surface the number of preceding lines and its own consecutive lines."""
    header, *lines = read_text(POINTS).split("\n")
    by_surface: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(lines):
        by_surface.setdefault(line.partition(",")[0], (number, []))[1].append(line)
    return header, by_surface


def _points(name: str) -> Iterator[Row]:
    """The rows of one surface; the other lines of this large file are not parsed."""
    header, by_surface = _lines()
    before, own = by_surface[name]
    return parse_rows("\n".join([header, *own]), POINTS.name, left_out=before)


@cache
def load_surface(name: str) -> Surface:
    """A shipped surface with its nodes.

    Raises:
        KeyError: no such surface (a programming error).
        InputFileError: a row of the catalogue is wrong.
    """
    known = kernel_rows()[name]
    nodes = np.array([_line(row, known) for row in _points(name)])
    return Surface(
        id=name,
        axes=known.axes,
        log_rate=np.log(nodes.reshape([axis.count for axis in known.axes]) * known.unit_per_s),
        floor_s=known.floor_s,
        spread=known.spread,
        stack_spread=known.stack_spread,
        evidence=known.evidence,
        cast_bytes_per_s=known.cast_bytes_per_s,
    )


def _line(row: Row, known: KernelRow) -> list[float]:
    """Rates at the nodes along the last axis, from one row."""
    try:
        rates = [float(word) for word in row.text("rates").split()]
    except ValueError:
        rates = []
    if len(rates) != known.axes[-1].count or not min(rates) > 0:
        raise row.fail("rates", f"{known.axes[-1].count} positive numbers")
    return rates
