"""Raw measurements of kernels, as their publishers left them, brought to what surfaces are fitted to.

The raw files are not part of this repository; `SOURCES` says where each is from. Two things are done to a time:

- What the dynamic cast of the activation takes is set apart (FP8 and FP4): the time that is left at n = 0, per element.
- A short burst overstates what a GPU at its power limit sustains. Pairs of one kernel, measured in a burst and for a
  second, say by how much; it depends on how long the kernel runs, since several milliseconds are throttled already.
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
"""Apache-2.0. Forward kernels in CUDA graphs on random normal inputs."""
DATE = "2026-08-21"
"""Of that commit."""

SOURCES = {
    "gemm_rates.csv.gz": f"{AIC}/<system>/gemm/<stack>/<version>/gemm_perf.parquet: median over stacks by shape",
    "gemm_power.csv.gz": f"{AIC}/<system>/gemm/<stack>/<version>/gemm_perf.parquet: runs of a second, with watts",
    "kernel_floor_us.csv": f"{AIC}/<system>/gemm/<stack>/<version>/gemm_perf.parquet: fastest tiny product",
    "attention_forward.csv.gz": f"{AIC}/<system>/attention/<stack>/<version>/context_attention_perf.parquet",
    "fp8_quantize_cost.csv.gz": f"{AIC}/<system>/quantize/<stack>/<version>/*_perf.parquet",
    "moe_forward.csv.gz": f"{AIC}/<system>/moe/<stack>/<version>/moe_perf.parquet",
    "nccl_one_node.csv.gz": f"{AIC}/<system>/comm/nccl/<version>/nccl_perf.parquet",
}
"""Raw file to where it is from."""

GPUS = {
    "a100_sxm": "a100-sxm4-80gb", "h100_sxm": "h100-sxm5-80gb", "h200_sxm": "h200-sxm-141gb",
    "b200_sxm": "b200-sxm-180gb", "gb200": "gb200-186gb", "b300_sxm": "b300-sxm-288gb", "gb300": "gb300-288gb",
    "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-blackwell",
}  # fmt: skip
"""System of the raw files to the catalogue id of its GPU."""

COMPUTES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "fp4"}
"""Type of the raw files to that of a surface."""

LEAST_M = 16
"""Smaller products belong to inference: no node lies there."""
SUSTAINED_STACK, SUSTAINED_TYPE = "vllm-0.22.0", "bfloat16"
"""Runs of a second by one kernel on three systems: what bursts are compared with."""
THROTTLED = ("h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300")
"""Systems whose bursts overstate what they sustain: those with pairs, and their closest relatives. An A100 sustains its
rate (gpus.csv: 271 TFLOP/s as the mean of 100 products), and nobody measured the others both ways."""
LATENCY_KNOTS_S = np.array([1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
"""Burst latencies between which sustained over burst is interpolated."""

HARDLY = 0.1
"""Share of a time that a cast takes at most where the rest of it tells how fast products are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """Matrix products of one GPU and type, `[point]` each."""

    system: str
    """As the raw files name it."""
    gpu: str
    compute: str
    m: Floats
    n: Floats
    k: Floats
    burst_s: Floats
    """Median over stacks, with the cast of the activation where operands are narrow."""
    sustained_ratio: Floats
    """Sustained over burst rate at this latency."""
    cast_s_per_element: float
    """Of the activation; 0 where nothing is cast."""
    stack_spread: float
    """Standard deviation of the logarithm between stacks, median of large shapes."""

    @property
    def cast_s(self) -> Floats:
        """Cast of the activation: it leaves the product no faster than the fastest that a cast hardly touches."""
        usual_s = self.m * self.k * self.cast_s_per_element
        alone = usual_s <= HARDLY * self.burst_s
        fastest_flop_per_s = np.max(self.flop[alone] / (self.burst_s - usual_s)[alone])
        return np.asarray(np.clip(self.burst_s - self.flop / fastest_flop_per_s, 0.0, usual_s))

    @property
    def product_s(self) -> Floats:
        """Sustained time of the product alone."""
        return (self.burst_s - self.cast_s) / self.sustained_ratio

    @property
    def flop(self) -> Floats:
        """Arithmetic."""
        return 2.0 * self.m * self.n * self.k

    @property
    def sizes(self) -> Floats:
        """In the order of `MATMUL_AXES`, `[point, axis]`."""
        return np.column_stack([self.n, self.k, self.m])


def read_raw(folder: Path, name: str) -> Iterator[Mapping[str, str]]:
    """Rows of a raw file."""
    path = folder / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def read_products(folder: Path) -> list[Products]:
    """The matrix products of every GPU and type."""
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
    # the worst are early releases that nobody trains with: the better half alone says how far stacks differ
    between = np.median(np.log(burst[large] / best[large])) / BEST_OF_STACKS
    return Products(
        system=system, gpu=GPUS[system], compute=COMPUTES[kind], m=m, n=n, k=k, burst_s=burst,
        sustained_ratio=sustained_over_burst(folder, burst) if system in THROTTLED else np.ones_like(burst),
        cast_s_per_element=0.0 if kind == "bfloat16" else _cast_s_per_element(m, n, k, burst),
        stack_spread=float(between),
    )  # fmt: skip


def _cast_s_per_element(m: Floats, n: Floats, k: Floats, seconds: Floats) -> float:
    """Time left at n = 0, per element of the activation: median over its sizes of a straight line's intercept."""
    per_element = []
    for rows, inner in {(a, b) for a, b in zip(m, k, strict=True) if a >= 2048 and 2048 <= b <= 16384}:
        line = (m == rows) & (k == inner) & (n >= 2048) & (n <= 16384)
        intercept = np.polyfit(n[line], seconds[line], 1, w=1.0 / seconds[line])[1]
        per_element.append(intercept / (rows * inner))
    return float(max(np.median(per_element), 0.0))


def sustained_over_burst(folder: Path, burst_s: Floats) -> Floats:
    """Sustained over burst rate of products that take so long in a burst, `[point]`; at most 1."""
    return np.asarray(np.interp(np.log(burst_s), np.log(LATENCY_KNOTS_S), sustained_curve(folder)))


@cache
def sustained_curve(folder: Path) -> Floats:
    """Sustained over burst rate at `LATENCY_KNOTS_S`: median over shapes, one vote for each system with both."""
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
    """Median burst over sustained time near each knot, half a step to either side in the logarithm."""
    distance = np.abs(np.log(pairs[:, :1]) - np.log(LATENCY_KNOTS_S))
    ratio = pairs[:, 0] / pairs[:, 1]
    return np.array([np.median(ratio[distance[:, knot] <= np.log(10) / 4]) for knot in range(len(LATENCY_KNOTS_S))])


def floor_s(folder: Path, gpu: str, compute: str) -> float:
    """Fastest tiny product of the median stack; entries below half a microsecond are faults of a clock."""
    floors = [
        float(row["min_us"])
        for row in read_raw(folder, "kernel_floor_us.csv")
        if GPUS[row["system"]] == gpu and COMPUTES.get(row["gemm_dtype"]) == compute and float(row["min_us"]) > 0.5
    ]
    return float(np.median(floors)) * 1e-6


LARGE = 4096
"""Least of the three dimensions of what counts as a large product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductWatts:
    """Watts of products that ran for a second, of one GPU, type and stack, `[point]` each."""

    gpu: str
    compute: str
    stack: str
    limit_w: float
    m: Floats
    n: Floats
    k: Floats
    seconds: Floats
    """Of one product, with the cast of its activation where operands are narrow."""
    power_w: Floats
    """Mean over the run."""

    @property
    def large(self) -> npt.NDArray[np.bool_]:
        """Which products have every dimension at least `LARGE`."""
        return np.asarray(np.minimum(np.minimum(self.m, self.n), self.k) >= LARGE)

    @property
    def j_per_flop(self) -> Floats:
        """Board energy per arithmetic operation."""
        return self.power_w * self.seconds / (2.0 * self.m * self.n * self.k)


def read_power(folder: Path) -> list[ProductWatts]:
    """Power of products; only windows long enough for the sensor."""
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
