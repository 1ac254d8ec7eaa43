"""Fit the shipped surfaces to raw measurements of kernels: `python -m tools.surfaces FOLDER`.

Writes `planner/catalog/kernels.csv` and `planner/catalog/kernel_points.csv`. The folder holds the raw files named in
`tools/kernel_rows.py`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.kernels.catalogue import KERNELS, POINTS
from planner.kernels.fit import fit_surface
from planner.kernels.surface import MATMUL_AXES, Surface
from planner.units import GB
from tools.collective_rows import Collectives, collective_surface, held_out_sizes, read_collectives
from tools.kernel_rows import DATE, SOURCES, Products, ProductWatts, floor_s, read_products

UNKNOWN = Evidence(id="fit", kind=EvidenceKind.PUBLISHED, what="", source="")
"""The catalogue's rows state the source; a surface that is being fitted has none yet."""

CAST_BYTES = {"fp8": 5.0, "fp8-block": 3.03, "fp4": 2.56}
"""Traffic of the cast that was measured, per element: FP8 reads 16 bits for the maximum and again for the cast; blocks
and NVFP4 (with a known scale of the tensor) read once; each writes the operand and its scales."""
FOLDS = 5
"""Parts that the (n, k) pairs are split into to see how held-out ones are met."""


def fit_products(products: Products, floor: float, kept: np.ndarray | None = None, spread: float = 0.0) -> Surface:
    """The surface of the products alone.

    Args:
        products: of one GPU and type.
        floor: least time of a launch.
        kept: which points to use, `[point]`; None: all.
        spread: of held-out shapes.
    """
    use = np.ones(len(products.m), dtype=bool) if kept is None else kept
    return fit_surface(
        f"matmul:{products.gpu}:{products.compute}", MATMUL_AXES, products.sizes[use], products.flop[use],
        products.product_s[use], floor_s=floor, spread=spread, stack_spread=products.stack_spread, evidence=UNKNOWN,
    )  # fmt: skip


def fold_of_pairs(products: Products | ProductWatts) -> np.ndarray:
    """Which part each point is held out with: those of one (n, k) pair together, `[point]`."""
    _, pair = np.unique(products.n * 1e6 + products.k, return_inverse=True)
    return np.asarray(np.random.default_rng(0).permutation(int(pair.max()) + 1)[pair] % FOLDS)


def held_out_pairs(products: Products, floor: float) -> np.ndarray:
    """Logarithm of predicted over measured time, each (n, k) pair predicted without it, `[point]`.

    The time is that of the linear layer: the cast of the activation is added again on both sides.
    """
    fold = fold_of_pairs(products)
    miss = np.zeros(len(fold))
    for part in range(FOLDS):
        out = fold == part
        miss[out] = _miss(products, fit_products(products, floor, ~out), out)
    return miss


def held_out_rows(products: Products, floor: float, row: float) -> np.ndarray:
    """The same for one value of m that is held out, `[point of that m]`."""
    out = products.m == row
    return _miss(products, fit_products(products, floor, ~out), out)


def _miss(products: Products, surface: Surface, out: np.ndarray) -> np.ndarray:
    seconds = surface.seconds(products.flop[out], *products.sizes[out].T)
    cast = products.cast_s[out]
    return np.asarray(np.log((seconds + cast) / (products.product_s[out] + cast)))


def robust_sd(miss: np.ndarray) -> float:
    """Standard deviation of a normal distribution with the same median absolute value."""
    return float(np.median(np.abs(miss)) / 0.6745)


def _index_row(products: Products, surface: Surface) -> dict[str, str]:
    raw = SOURCES["gemm_rates.csv.gz"].replace("<system>", products.system)
    return {
        "id": surface.id, "gpu": products.gpu, "operation": "matmul", "compute": products.compute,
        "axes": _axes(surface),
        "unit_per_s": "1e12", "floor_us": f"{1e6 * surface.floor_s:.3g}", "spread": f"{surface.spread:.3g}",
        "stack_spread": f"{surface.stack_spread:.3g}",
        "cast_gb_per_s": f"{_cast_gb_per_s(products):.4g}" if products.cast_s_per_element else "",
        "points": str(len(products.m)), "source": raw, "date": DATE,
    }  # fmt: skip


def _cast_gb_per_s(products: Products) -> float:
    return CAST_BYTES[products.compute] / products.cast_s_per_element / GB


def _collective_row(collectives: Collectives, surface: Surface) -> dict[str, str]:
    raw = SOURCES["nccl_one_node.csv.gz"].replace("<system>", collectives.system)
    return {
        "id": surface.id, "gpu": collectives.gpu, "operation": collectives.operation, "compute": "any type",
        "axes": _axes(surface), "unit_per_s": "1e9", "floor_us": f"{1e6 * surface.floor_s:.3g}",
        "spread": f"{surface.spread:.3g}", "stack_spread": f"{surface.stack_spread:.3g}", "cast_gb_per_s": "",
        "points": str(collectives.points), "source": f"{raw}: median over releases and types", "date": DATE,
    }  # fmt: skip


def _axes(surface: Surface) -> str:
    return "; ".join(f"{axis.name}:{axis.first}:{axis.count}" for axis in surface.axes)


def _point_rows(surface: Surface, unit_per_s: float) -> Iterable[tuple[str, str, str]]:
    rates = np.exp(surface.log_rate) / unit_per_s
    *leading, _ = surface.axes
    for at in np.ndindex(*(axis.count for axis in leading)):
        nodes = " ".join(f"{axis.nodes[place]:g}" for axis, place in zip(leading, at, strict=True))
        yield surface.id, nodes, " ".join(f"{rate:.4g}" for rate in rates[at])


def main(folder: Path) -> None:
    """Fit every surface and write both files."""
    index: list[dict[str, str]] = []
    points: list[tuple[str, str, str]] = []
    for products in read_products(folder):
        floor = floor_s(folder, products.gpu, products.compute)
        surface = fit_products(products, floor, spread=robust_sd(held_out_pairs(products, floor)))
        index.append(_index_row(products, surface))
        points += _point_rows(surface, 1e12)
        sys.stdout.write(f"{surface.id}: held out {100 * surface.spread:.1f} %\n")
    for collectives in read_collectives(folder):
        surface = collective_surface(collectives, robust_sd(held_out_sizes(collectives)))
        index.append(_collective_row(collectives, surface))
        points += _point_rows(surface, 1e9)
        sys.stdout.write(f"{surface.id}: held out {100 * surface.spread:.1f} %\n")
    with KERNELS.open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, list(index[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(index)
    with POINTS.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(["surface", "at", "rates"])
        lines.writerows(points)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
