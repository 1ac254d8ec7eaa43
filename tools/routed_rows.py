"""Convert raw measurements of routed feed-forward layers (forward) to the terms of the planner's model.

The raw file has the time of a whole layer of experts: routing, permutation, two grouped products with the activation
between them, and the sum. The fastest stack of each row represents training; the median stack reaches half its speed
with kernels that nobody trains with. `num_tokens` counts tokens independently of the expert-parallel size; a GPU
computes those routed to its experts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.hardware.catalogue import load_gpus
from planner.kernels.catalogue import load_surface
from planner.kernels.surface import Floats, product_s
from tools.kernel_rows import GPUS, read_raw

COMPUTES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "fp4"}
"""Type of a surface for each type in the raw file."""
ONE_STACK = ("a100_sxm",)
"""Systems measured with a single untuned stack only: 22 of 312 TFLOP/s is not representative of an A100."""
LEAST_TOKENS, LEAST_ROWS = 32, 1024
"""Fewer tokens per expert, or fewer rows per GPU, occur in inference only."""
BYTES = 2.0
"""Bytes per element of a hidden state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """Routed layers of one GPU and type with balanced routing, each array `[point]`."""

    gpu: str
    compute: str
    shape: npt.NDArray[np.intp]
    """Index of the model shape: hidden and inner size, top-k and number of experts."""
    tokens_per_expert: Floats
    one_product_s: Floats
    """Time of both products, each as a single product over all experts on the GPU, by the shipped surface."""
    traffic_s: Floats
    """Time to read or write the hidden states of all tokens and all routed rows once at the memory bandwidth."""
    choices: Floats
    """Tokens times experts per token."""
    seconds: Floats
    """Time of the fastest stack."""
    median_s: Floats
    """Median time over stacks."""

    @property
    def parts(self) -> Floats:
        """Components of a layer's time: products, traffic, 10 us, 1 ns per choice, `[point, part]`."""
        fixed = np.full(len(self.seconds), 1e-5)
        return np.column_stack([self.one_product_s, self.traffic_s, fixed, self.choices * 1e-9])


def read_routed(folder: Path) -> list[Routed]:
    """Read the routed layers of every GPU and type that has a surface."""
    tables: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    keys = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_ep_size", "best_us", "median_us")
    for row in read_raw(folder, "moe_forward.csv.gz"):
        compute = COMPUTES.get(row["moe_dtype"])
        if row["distribution"] == "balanced" and compute and row["system"] not in ONE_STACK:
            plain = 1.0 if "nongated" in row["best_kernel"] else 2.0
            tables[GPUS[row["system"]], compute].append((*(float(row[key]) for key in keys), plain))
    return [_routed(gpu, compute, np.array(rows)) for (gpu, compute), rows in sorted(tables.items())]


def _routed(gpu: str, compute: str, table: Floats) -> Routed:
    tokens, _, _, top_k, experts, ep = table.T[:6]
    chosen = tokens * top_k / experts
    table = table[(chosen >= LEAST_TOKENS) & (chosen * experts / ep >= LEAST_ROWS)]
    tokens, hidden, inner, top_k, experts, ep, best_us, median_us, ups = table.T
    chosen, local = tokens * top_k / experts, experts / ep
    surface = load_surface(f"matmul:{gpu}:{compute}")
    products_s = product_s(surface, chosen, ups * inner * local, hidden) + product_s(
        surface, chosen, hidden * local, inner
    )
    moved = (tokens + chosen * local) * hidden * BYTES
    _, shape = np.unique(table[:, 1:5], axis=0, return_inverse=True)
    return Routed(
        gpu=gpu, compute=compute, shape=np.ravel(shape), tokens_per_expert=chosen, one_product_s=np.asarray(products_s),
        traffic_s=moved / load_gpus()[gpu].memory_bytes_per_s, choices=tokens * top_k,
        seconds=best_us * 1e-6, median_s=median_us * 1e-6,
    )  # fmt: skip


ROUNDS, HUBER_DELTA, RIDGE = 100, 0.1, 1e-3
"""Gauss-Newton steps; residual beyond which the loss is linear; ridge that holds factors without evidence."""


def fit_factors(parts: Floats, seconds: Floats) -> Floats:
    """Fit positive factors of the parts to the times by robust least squares of the logarithm, `[part]`."""
    logs = np.zeros(parts.shape[1])
    for _ in range(ROUNDS):
        shares = parts * np.exp(logs)
        total = shares.sum(axis=1)
        miss, slopes = np.log(total / seconds), shares / total[:, None]
        weight = 1.0 / np.maximum(np.abs(miss), HUBER_DELTA)
        curvature = slopes.T @ (weight[:, None] * slopes) + RIDGE * len(miss) * np.eye(len(logs))
        logs = logs - np.clip(
            np.linalg.solve(curvature, slopes.T @ (weight * miss) + RIDGE * len(miss) * logs), -0.5, 0.5
        )
    return np.exp(logs)
