"""Convert raw kernel measurements, as published, to the data to which surfaces are fitted.

The raw files are not part of this repository; `SOURCES` gives the origin of each. Two corrections are made to a time:

- The time of the activation's dynamic cast is separated (FP8 and FP4): it is the time left at n = 0, per element.
- A short burst overstates the rate that a GPU at its power limit sustains. The correction comes from kernels measured
  both in a burst and for a second. It depends on the kernel's duration, because kernels of several milliseconds are
  already throttled.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.rates.ladder import BEST_OF_STACKS

Floats = npt.NDArray[np.float64]

AIC = "ai-dynamo/aiconfigurator@095f58a51: aic-core/src/aiconfigurator_core/systems/data"
"""Apache-2.0. Forward kernels in CUDA graphs on normally distributed random inputs."""
DATE = "2026-08-21"
"""Date of that commit."""

SOURCES = {
    "gemm_rates.csv.gz": f"{AIC}/<system>/gemm/<stack>/<version>/gemm_perf.parquet: median over stacks by shape",
    "gemm_power.csv.gz": f"{AIC}/<system>/gemm/<stack>/<version>/gemm_perf.parquet: runs of a second, with watts",
    "kernel_floor_us.csv": f"{AIC}/<system>/gemm/<stack>/<version>/gemm_perf.parquet: fastest tiny product",
    "attention_forward.csv.gz": f"{AIC}/<system>/attention/<stack>/<version>/context_attention_perf.parquet",
    "fp8_quantize_cost.csv.gz": f"{AIC}/<system>/quantize/<stack>/<version>/*_perf.parquet",
    "moe_forward.csv.gz": f"{AIC}/<system>/moe/<stack>/<version>/moe_perf.parquet",
    "nccl_one_node.csv.gz": f"{AIC}/<system>/comm/nccl/<version>/nccl_perf.parquet",
}
"""Origin of each raw file."""

GPUS = {
    "a100_sxm": "a100-sxm4-80gb", "h100_sxm": "h100-sxm5-80gb", "h200_sxm": "h200-sxm-141gb",
    "b200_sxm": "b200-sxm-180gb", "gb200": "gb200-186gb", "b300_sxm": "b300-sxm-288gb", "gb300": "gb300-288gb",
    "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-blackwell",
}  # fmt: skip
"""Catalogue id of the GPU for each system in the raw files."""

COMPUTES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "fp4"}
"""Type of a surface for each type in the raw files."""

LEAST_M = 16
"""Smaller products occur in inference only; the surface has no nodes there."""
SUSTAINED_STACK, SUSTAINED_TYPE = "vllm-0.22.0", "bfloat16"
"""Runs of a second by one kernel on three systems, with which bursts are compared."""
THROTTLED = ("h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300")
"""Systems whose bursts overstate the sustained rate: those measured both ways, and their closest relatives. An A100
sustains its rate (gpus.csv: 271 TFLOP/s as the mean of 100 products), and the others were not measured both ways."""
LATENCY_KNOTS_S = np.array([1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
"""Burst latencies between which the ratio of sustained to burst rate is interpolated."""

MOST_CAST_RATIO = 0.1
"""Maximum share of the cast in a measured time that is used to determine the fastest rate of products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """Matrix products of one GPU and type, each array `[point]`."""

    system: str
    """Name in the raw files."""
    gpu: str
    compute: str
    m: Floats
    n: Floats
    k: Floats
    burst_s: Floats
    """Median over stacks, including the activation's cast for narrow operands."""
    sustained_ratio: Floats
    """Ratio of sustained to burst rate at this latency."""
    cast_s_per_element: float
    """Cast time per element of the activation; 0 without a cast."""
    stack_spread: float
    """Standard deviation of the logarithm between stacks: the median over large shapes."""

    @property
    def cast_s(self) -> Floats:
        """Time of the activation's cast, limited so that no product beats the fastest one with a small cast."""
        usual_s = self.m * self.k * self.cast_s_per_element
        alone = usual_s <= MOST_CAST_RATIO * self.burst_s
        fastest_flop_per_s = np.max(self.flop[alone] / (self.burst_s - usual_s)[alone])
        return np.asarray(np.clip(self.burst_s - self.flop / fastest_flop_per_s, 0.0, usual_s))

    @property
    def product_s(self) -> Floats:
        """Sustained time of the product alone."""
        return (self.burst_s - self.cast_s) / self.sustained_ratio

    @property
    def flop(self) -> Floats:
        """FLOP of the products."""
        return 2.0 * self.m * self.n * self.k

    @property
    def sizes(self) -> Floats:
        """Sizes in the order of `MATMUL_AXES`, `[point, axis]`."""
        return np.column_stack([self.n, self.k, self.m])


def read_raw(folder: Path, name: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a raw file."""
    path = folder / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def read_products(folder: Path) -> list[Products]:
    """Read the matrix products of every GPU and type."""
    tables: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for row in read_raw(folder, "gemm_rates.csv.gz"):
        if int(row["m"]) >= LEAST_M:
            times = (float(row[key]) * 1e-6 for key in ("median_us", "best_us"))
            shape = (float(row[key]) for key in ("m", "n", "k"))
            tables.setdefault((row["system"], row["gemm_dtype"]), []).append((*shape, *times))
    return [_products(folder, *key, np.array(rows)) for key, rows in sorted(tables.items())]


def _products(folder: Path, system: str, kind: str, table: Floats) -> Products:
    m, n, k, burst, best = table.T
    large = (m >= 1024) & (n >= 2048) & (k >= 2048)
    # the slowest are early releases that nobody trains with, so only the better half gives the spread between stacks
    between = np.median(np.log(burst[large] / best[large])) / BEST_OF_STACKS
    return Products(
        system=system, gpu=GPUS[system], compute=COMPUTES[kind], m=m, n=n, k=k, burst_s=burst,
        sustained_ratio=sustained_over_burst(folder, burst) if system in THROTTLED else np.ones_like(burst),
        cast_s_per_element=0.0 if kind == "bfloat16" else _cast_s_per_element(m, n, k, burst),
        stack_spread=float(between),
    )  # fmt: skip


def _cast_s_per_element(m: Floats, n: Floats, k: Floats, seconds: Floats) -> float:
    """Return the time left at n = 0 per element of the activation: the median of linear intercepts over its sizes."""
    per_element = []
    for rows, inner in {(a, b) for a, b in zip(m, k, strict=True) if a >= 2048 and 2048 <= b <= 16384}:
        line = (m == rows) & (k == inner) & (n >= 2048) & (n <= 16384)
        intercept = np.polyfit(n[line], seconds[line], 1, w=1.0 / seconds[line])[1]
        per_element.append(intercept / (rows * inner))
    return float(max(np.median(per_element), 0.0))


def sustained_over_burst(folder: Path, burst_s: Floats) -> Floats:
    """Return the ratio of sustained to burst rate for these burst times, `[point]`; at most 1."""
    return np.asarray(np.interp(np.log(burst_s), np.log(LATENCY_KNOTS_S), sustained_curve(folder)))


@cache
def sustained_curve(folder: Path) -> Floats:
    """Return the sustained-to-burst rate at `LATENCY_KNOTS_S`: median over shapes, one vote per system with both."""
    burst = {
        (row["system"], row["m"], row["n"], row["k"]): float(row["median_us"]) * 1e-6
        for row in read_raw(folder, "gemm_rates.csv.gz")
        if row["gemm_dtype"] == SUSTAINED_TYPE
    }
    pairs: dict[str, list[tuple[float, float]]] = {}
    for row in read_raw(folder, "gemm_power.csv.gz"):
        key = (row["system"], row["m"], row["n"], row["k"])
        if row["fw"] == SUSTAINED_STACK and row["gemm_dtype"] == SUSTAINED_TYPE and key in burst:
            pairs.setdefault(row["system"], []).append((burst[key], float(row["latency_us"]) * 1e-6))
    curves = [_curve(np.array(rows)) for rows in pairs.values()]
    return np.asarray(np.minimum(np.mean(curves, axis=0), 1.0))


def _curve(pairs: Floats) -> Floats:
    """Return the median ratio of burst to sustained time near each knot, within half a step in the logarithm."""
    distance = np.abs(np.log(pairs[:, :1]) - np.log(LATENCY_KNOTS_S))
    ratio = pairs[:, 0] / pairs[:, 1]
    return np.array([np.median(ratio[distance[:, knot] <= np.log(10) / 4]) for knot in range(len(LATENCY_KNOTS_S))])


def floor_s(folder: Path, gpu: str, compute: str) -> float:
    """Return the shortest time of a tiny product in the median stack; times below 0.5 microseconds are clock errors."""
    floors = [
        float(row["min_us"])
        for row in read_raw(folder, "kernel_floor_us.csv")
        if GPUS[row["system"]] == gpu and COMPUTES.get(row["gemm_dtype"]) == compute and float(row["min_us"]) > 0.5
    ]
    return float(np.median(floors)) * 1e-6


LARGE = 4096
"""Minimum of each of the three dimensions of a large product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductWatts:
    """Power of products that ran for a second, of one GPU, type and stack, each array `[point]`."""

    gpu: str
    compute: str
    stack: str
    limit_w: float
    m: Floats
    n: Floats
    k: Floats
    seconds: Floats
    """Time of one product, including the activation's cast for narrow operands."""
    power_w: Floats
    """Mean power during the run."""

    @property
    def large(self) -> npt.NDArray[np.bool_]:
        """Whether every dimension of a product is at least `LARGE`."""
        return np.asarray(np.minimum(np.minimum(self.m, self.n), self.k) >= LARGE)

    @property
    def j_per_flop(self) -> Floats:
        """Board energy per FLOP."""
        return self.power_w * self.seconds / (2.0 * self.m * self.n * self.k)


def read_power(folder: Path) -> list[ProductWatts]:
    """Read the power of products, using only windows long enough for the sensor."""
    runs: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    limits_w: dict[str, float] = {}
    for row in read_raw(folder, "gemm_power.csv.gz"):
        if row["window_ok"] == "True":
            figures = tuple(float(row[key]) for key in ("m", "n", "k", "latency_us", "power_w"))
            runs.setdefault((row["system"], row["gemm_dtype"], row["fw"]), []).append(figures)
            limits_w[row["system"]] = float(row["power_limit_w"])
    return [_watts(key, limits_w[key[0]], np.array(rows)) for key, rows in sorted(runs.items())]


def _watts(key: tuple[str, str, str], limit_w: float, table: Floats) -> ProductWatts:
    system, kind, stack = key
    m, n, k, latency_us, power_w = table.T
    return ProductWatts(
        gpu=GPUS[system], compute=COMPUTES[kind], stack=stack, limit_w=limit_w, m=m, n=n, k=k,
        seconds=latency_us * 1e-6, power_w=power_w,
    )  # fmt: skip
