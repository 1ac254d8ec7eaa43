"""Fit the shipped surfaces to raw kernel measurements: `python -m tools.surfaces FOLDER`.

Writes `planner/catalog/kernels.csv` and `planner/catalog/kernel_points.csv`. The folder holds the raw files named in
`tools/kernel_rows.py`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.kernels.catalogue import KERNELS, POINTS
from planner.kernels.fit import fit_surface
from planner.kernels.surface import MATMUL_AXES, Surface
from planner.units import GB, TERA
from tools.attention_rows import Attention, read_attention
from tools.collective_rows import Collectives, collective_surface, held_out_sizes, read_collectives
from tools.kernel_rows import DATE, SOURCES, Products, ProductWatts, floor_s, read_products

UNKNOWN = Evidence(id="fit", kind=EvidenceKind.PUBLISHED, what="", source="")
"""Placeholder source of a surface during the fit; the catalogue's rows state the real source."""

CAST_BYTES = {"fp8": 5.0, "fp8-block": 3.03, "fp4": 2.56}
"""Traffic of the measured cast in bytes per element. FP8 reads 16 bits for the maximum and again for the cast; blocks
and NVFP4 (with a known tensor scale) read once; each writes the operand and its scales."""
FOLDS = 5
"""Number of folds for cross-validation over (n, k) pairs or over numbers of heads."""


def fit_products(products: Products, floor: float, kept: np.ndarray | None = None, spread: float = 0.0) -> Surface:
    """Fit the surface of the products alone.

    Args:
        products: products of one GPU and type.
        floor: minimum time of a launch.
        kept: points to use, `[point]`; None: all.
        spread: spread of held-out shapes.
    """
    use = np.ones(len(products.m), dtype=bool) if kept is None else kept
    return fit_surface(
        f"matmul:{products.gpu}:{products.compute}", MATMUL_AXES, products.sizes[use], products.flop[use],
        products.product_s[use], floor_s=floor, spread=spread, stack_spread=products.stack_spread, evidence=UNKNOWN,
    )  # fmt: skip


def fold_of_pairs(products: Products | ProductWatts) -> np.ndarray:
    """Return the fold of each point; points of one (n, k) pair share a fold, `[point]`."""
    return _folds(products.n * 1e6 + products.k)


def _folds(labels: np.ndarray) -> np.ndarray:
    """Return the fold of each point; points with one label share a fold, `[point]`."""
    _, place = np.unique(labels, return_inverse=True)
    return np.asarray(np.random.default_rng(0).permutation(int(np.max(place)) + 1)[place] % FOLDS)


def held_out_pairs(products: Products, floor: float) -> np.ndarray:
    """Return the log ratio of predicted to measured times, with each (n, k) pair held out of its prediction, `[point]`.

    The times are those of the linear layer: the cast of the activation is added back on both sides.
    """
    fold = fold_of_pairs(products)
    miss = np.zeros(len(fold))
    for part in range(FOLDS):
        out = fold == part
        miss[out] = _miss(products, fit_products(products, floor, ~out), out)
    return miss


def held_out_rows(products: Products, floor: float, row: float) -> np.ndarray:
    """Return the log ratio of predicted to measured times for one held-out value of m, `[point of that m]`."""
    out = products.m == row
    return _miss(products, fit_products(products, floor, ~out), out)


def _miss(products: Products, surface: Surface, out: np.ndarray) -> np.ndarray:
    seconds = surface.seconds(products.flop[out], *products.sizes[out].T)
    cast = products.cast_s[out]
    return np.asarray(np.log((seconds + cast) / (products.product_s[out] + cast)))


def fit_attention(attention: Attention, kept: np.ndarray | None = None, spread: float = 0.0) -> Surface:
    """Fit the surface of attention without copies into a cache; arguments as in `fit_products`.

    Nodes that exceed a GPU's memory continue the trend of their neighbours.
    """
    use = np.ones(len(attention.length), dtype=bool) if kept is None else kept
    return fit_surface(
        f"attention:{attention.gpu}:{attention.compute}", attention.axes, attention.sizes[use], attention.flop[use],
        attention.kernel_s[use], floor_s=attention.floor_s, spread=spread, stack_spread=attention.stack_spread,
        evidence=UNKNOWN,
    )  # fmt: skip


def held_out_heads(attention: Attention) -> np.ndarray:
    """Return the log ratio of predicted to measured times, with each number of heads held out, `[point]`.

    The copy into the cache is added back on both sides.
    """
    fold = _folds(attention.batch * attention.heads)
    miss = np.zeros(len(fold))
    for part in range(FOLDS):
        out = fold == part
        miss[out] = _attention_miss(attention, fit_attention(attention, ~out), out)
    return miss


def held_out_length(attention: Attention, length: float) -> np.ndarray:
    """Return the log ratio of predicted to measured times for one held-out length, `[point of that length]`."""
    out = attention.length == length
    return _attention_miss(attention, fit_attention(attention, ~out), out)


def _attention_miss(attention: Attention, surface: Surface, out: np.ndarray) -> np.ndarray:
    seconds = surface.seconds(attention.flop[out], *attention.sizes[out].T) + attention.copy_s[out]
    return np.asarray(np.log(seconds / attention.measured_s[out]))


def robust_sd(miss: np.ndarray) -> float:
    """Return the standard deviation of a normal distribution with the same median absolute value."""
    return float(np.median(np.abs(miss)) / 0.6745)


def _index_row(surface: Surface, points: int, source: str, cast_gb_per_s: str = "") -> dict[str, str]:
    operation, gpu, compute = surface.id.split(":")
    return {
        "id": surface.id, "gpu": gpu, "operation": operation, "compute": compute, "axes": _axes(surface),
        "unit_per_s": "1e12", "floor_us": f"{1e6 * surface.floor_s:.3g}", "spread": f"{surface.spread:.3g}",
        "stack_spread": f"{surface.stack_spread:.3g}", "cast_gb_per_s": cast_gb_per_s, "points": str(points),
        "source": source, "date": DATE,
    }  # fmt: skip


def _cast_gb_per_s(products: Products) -> str:
    if not products.cast_s_per_element:
        return ""
    return f"{CAST_BYTES[products.compute] / products.cast_s_per_element / GB:.4g}"


def _collective_row(collectives: Collectives, surface: Surface) -> dict[str, str]:
    raw = SOURCES["nccl_one_node.csv.gz"].replace("<system>", collectives.system)
    return {
        "id": surface.id, "gpu": collectives.gpu, "operation": collectives.operation, "compute": "any type",
        "axes": _axes(surface), "unit_per_s": "1e9", "floor_us": f"{1e6 * surface.floor_s:.3g}",
        "spread": f"{surface.spread:.3g}", "stack_spread": f"{surface.stack_spread:.3g}", "cast_gb_per_s": "",
        "points": str(collectives.points), "source": f"{raw}", "date": DATE,
    }  # fmt: skip


def _axes(surface: Surface) -> str:
    return "; ".join(f"{axis.name}:{axis.first}:{axis.count}" for axis in surface.axes)


def _point_rows(surface: Surface, unit_per_s: float) -> Iterable[tuple[str, str, str]]:
    rates = np.exp(surface.log_rate) / unit_per_s
    *leading, _ = surface.axes
    for at in np.ndindex(*(axis.count for axis in leading)):
        nodes = " ".join(f"{axis.nodes[place]:g}" for axis, place in zip(leading, at, strict=True))
        yield surface.id, nodes, " ".join(f"{rate:.4g}" for rate in rates[at])


def _product_surfaces(folder: Path) -> Iterable[tuple[Surface, dict[str, str]]]:
    for products in read_products(folder):
        floor = floor_s(folder, products.gpu, products.compute)
        surface = fit_products(products, floor, spread=robust_sd(held_out_pairs(products, floor)))
        source = SOURCES["gemm_rates.csv.gz"].replace("<system>", products.system)
        yield surface, _index_row(surface, len(products.m), source, _cast_gb_per_s(products))


def _attention_surfaces(folder: Path) -> Iterable[tuple[Surface, dict[str, str]]]:
    for attention in read_attention(folder):
        surface = fit_attention(attention, spread=robust_sd(held_out_heads(attention)))
        source = SOURCES["attention_forward.csv.gz"].replace("<system>", attention.system)
        yield surface, _index_row(surface, len(attention.length), source)


def main(folder: Path) -> None:
    """Fit every surface and write both files."""
    index: list[dict[str, str]] = []
    points: list[tuple[str, str, str]] = []
    for surface, row in chain(_product_surfaces(folder), _attention_surfaces(folder)):
        index.append(row)
        points += _point_rows(surface, TERA)
        sys.stdout.write(f"{surface.id}: held out {100 * surface.spread:.1f}%\n")
    for collectives in read_collectives(folder):
        surface = collective_surface(collectives, robust_sd(held_out_sizes(collectives)))
        index.append(_collective_row(collectives, surface))
        points += _point_rows(surface, 1e9)
        sys.stdout.write(f"{surface.id}: held out {100 * surface.spread:.1f}%\n")
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
