"""The parts of `docs/kernels.md` on collectives and routed layers: held-out sizes, GPUs and models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.pages.markdown import percent, table
from planner.kernels.collectives import COLLECTIVES, Link, measured_link, transferred
from planner.kernels.surface import Floats, Surface
from planner.parallelism.slowest import expected_max
from planner.rates.parameters import shipped_parameters
from tools.collective_rows import COLLECTIVE_SIZES, Collectives, collective_surface, held_out_sizes, read_collectives
from tools.kernel_rows import read_raw
from tools.routed_rows import Routed, fit_factors, read_routed

TRAINING_NODE = 10
"""Index of the node of 1 MiB: smaller messages have no effect on training."""
LEAST_S = 1e-7
"""Time assumed where a line falls below 0."""
FOLDS = 5
"""Parts into which the models of routed layers are divided, each left out once."""

TEXT = """## Collectives inside a node

{points:,} measured times of collectives by operation, size (1 KiB to 512 MiB) and group (2, 4, 8 GPUs), medians over
releases of NCCL (`tools/collective_rows.py`). Every second size is held out and predicted in three ways:

- *nodes*: interpolated between the other sizes, as plans do;
- *line*: latency plus bytes over bandwidth, fitted to the other sizes of the operation and group;
- *curve*: the line plus a term in the square root of the size.

{sizes}

A GPU that was not measured uses the surface of the GPU with the nearest link rate. The time of the smallest message
stays; the additional time of larger messages is scaled by the ratio of the rates. These are the errors for messages of
1 MiB and more, with each GPU predicted from another:

{transfers}

GB200 and GB300 were measured on only 2 and 4 GPUs, so they use the surfaces of B200 and B300. The host with the L40S
GPUs is faulty (5 GB/s over 4 GPUs, 1 GB/s over 8), so it is left out. Above 512 MiB, a message takes as long per
additional byte as from 256 to 512 MiB.

## Mixture-of-experts layers

This table is about the forward time of whole expert layers under balanced routing, with at least 32 tokens per expert,
in the fastest stack. Models (combinations of hidden and inner size, experts, and experts per token) are held out in
fifths. Three formulas are compared:

- *law*, which plans use: the time of one product as wide as all experts on the GPU, divided by a *ratio*, plus routing,
  which is *passes* over the hidden states, a *start*-up time, and a time *per choice* of an expert;
- *ratio alone*: no routing;
- *by tokens*: a ratio for each doubling of the tokens per expert, no routing.

*Median stack* is the time of the median stack divided by that of the fastest.

{routed}

If routing is counted separately, the ratio depends neither on the tokens per expert (the median error is {by_tokens}
from 32 to 1,024 tokens) nor on the number of experts on a GPU. Bursts make it a tenth too high, as for
plain products.

The fastest kernel represents training stacks, but the shipped surface is a median over stacks, so plans use a
slightly lower ratio, `grouped_matmul_ratio`. Ratios far above 1 belong to narrow types whose plain products were
measured with slow kernels. A100 is left out: its only data come from one untuned stack at 7% of the peak.

## Routing imbalance

This table shows how much longer the slowest rank takes than under balanced routing: measured at 16,384 tokens in BF16
on H100, as the median over models (`moe_imbalance_penalty.csv`), and as assumed for a training run, with 128 and 256
experts and an `expert_load_sd_ratio` of {sd:g}. EP is the number of GPUs that share the experts.

{skew}

The penalties were measured with routing that follows a power law, as in inference on narrow topics. Training
balances the experts with auxiliary losses or biases. The standard deviation of an expert's load is assumed; it
implies that with few GPUs, each with many experts, the busiest GPU is less overloaded.
"""


def figures_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose columns after the first two are figures, without a line end."""
    return table(headers, rows, text_columns=2).rstrip()


def error(miss: Floats) -> float:
    """Return the median absolute relative error."""
    return float(np.median(np.abs(np.expm1(miss))))


def line_miss(collectives: Collectives, powers: Sequence[float]) -> Floats:
    """Return the errors as in `held_out_sizes`, `[point]`, for a least-squares sum of powers of the size.

    The fit minimises the relative error.
    """
    misses, sizes = [], COLLECTIVE_SIZES
    design = np.column_stack([sizes**power for power in powers])
    for seconds in collectives.seconds:
        for first in (0, 1):
            kept = np.arange(len(seconds)) % 2 == first
            factors = np.linalg.lstsq(design[kept] / seconds[kept, None], np.ones(kept.sum()), rcond=None)[0]
            least, most = sizes[kept][[0, -1]]
            out = ~kept & (sizes > least) & (sizes < most)
            misses.append(np.log(np.maximum(design[out] @ factors, LEAST_S) / seconds[out]))
    return np.concatenate(misses)


def size_rows(collectives: Sequence[Collectives]) -> Iterator[list[str]]:
    """Yield the errors of each GPU, over all operations and groups."""
    for gpu in dict.fromkeys(each.gpu for each in collectives):
        of_gpu = [each for each in collectives if each.gpu == gpu]

        def over(miss: Callable[[Collectives], Floats], of_gpu: list[Collectives] = of_gpu) -> Floats:
            return np.concatenate([miss(each) for each in of_gpu])

        nodes = over(held_out_sizes)
        yield [
            gpu, "sizes", percent(error(nodes)), percent(float(np.percentile(np.abs(np.expm1(nodes)), 90))),
            percent(error(over(lambda each: line_miss(each, (0.0, 1.0))))),
            percent(error(over(lambda each: line_miss(each, (0.0, 0.5, 1.0))))),
        ]  # fmt: skip


def transfer_rows(collectives: Sequence[Collectives]) -> Iterator[list[str]]:
    """Yield the errors of each GPU's surface when transferred to the link of each other GPU."""
    surfaces = {(each.gpu, each.operation): collective_surface(each) for each in collectives}
    gpus = list(dict.fromkeys(each.gpu for each in collectives))
    for gpu in gpus:
        yield [gpu, "", *("" if other == gpu else _transfer(surfaces, other, gpu) for other in gpus)]


def _transfer(surfaces: dict[tuple[str, str], Surface], source: str, target: str) -> str:
    links: tuple[Link, Link] = (measured_link(source), measured_link(target))
    misses = [
        surfaces[target, operation].log_rate - transferred(surfaces[source, operation], operation, *links).log_rate
        for operation in COLLECTIVES
    ]
    return percent(error(np.stack(misses)[:, :, TRAINING_NODE : len(COLLECTIVE_SIZES)].ravel()))


def routed_row(routed: Routed) -> tuple[list[str], Floats]:
    """Return the errors of the law and its alternatives, with models left out, and the errors of the law."""
    fold = np.random.default_rng(0).permutation(int(routed.shape.max()) + 1)[routed.shape] % FOLDS
    octave = np.floor(np.log2(routed.tokens_per_expert)).astype(np.intp)
    log_ratio = np.log(routed.seconds / routed.one_product_s)
    law, alone, by_tokens = (np.zeros(len(fold)) for _ in range(3))
    for part in range(FOLDS):
        out = fold == part
        law[out] = np.log(
            routed.parts[out] @ fit_factors(routed.parts[~out], routed.seconds[~out]) / routed.seconds[out]
        )
        alone[out] = np.median(log_ratio[~out]) - log_ratio[out]
        for each in np.unique(octave[out]):
            alike = ~out & (octave == each)
            level = np.median(log_ratio[alike if alike.any() else ~out])
            by_tokens[out & (octave == each)] = level - log_ratio[out & (octave == each)]
    product, passes, start, choice = fit_factors(routed.parts, routed.seconds)
    slower = float(np.median(routed.median_s / routed.seconds))
    return [
        routed.gpu, routed.compute, percent(error(law)), percent(error(alone)), percent(error(by_tokens)),
        f"{1 / product:.2f}", f"{passes:.1f}", f"{10 * start:.0f} us", f"{choice:.2f} ns", f"{slower:.2f}x",
    ], law  # fmt: skip


def skew_rows(folder: Path, sd: float) -> Iterator[list[str]]:
    """Yield penalties by expert-parallel size: measured under two power laws, and as assumed for training."""
    measured = {
        (row["distribution"], int(row["moe_ep_size"])): float(row["penalty_p50"])
        for row in read_raw(folder, "moe_imbalance_penalty.csv")
        if (row["system"], row["moe_dtype"], row["num_tokens"]) == ("h100_sxm", "bfloat16", "16384")
    }
    for ep in (1, 2, 4, 8, 16, 32, 64):
        busiest = [
            1 + sd * float(expected_max(float(ep))) * ((ep - 1) / (experts - 1)) ** 0.5 for experts in (128, 256)
        ]
        laws = [measured[f"power_law_{power}", ep] for power in ("1.01", "1.2")]
        yield [str(ep), "", *(f"{ratio:.2f}" for ratio in (*laws, *busiest))]


def beside_text(folder: Path) -> str:
    """Return the parts of the page as Markdown.

    Args:
        folder: folder of the raw files.
    """
    collectives, routed = read_collectives(folder), read_routed(folder)
    lines, off = [], []
    for each in routed:
        line, law = routed_row(each)
        lines.append(line)
        octave = np.floor(np.log2(each.tokens_per_expert))
        off += [float(np.median(law[octave == size])) for size in range(5, 10) if (octave == size).any()]
    sd = shipped_parameters().find("expert_load_sd_ratio").value
    return TEXT.format(
        points=sum(each.points for each in collectives),
        sizes=figures_table(["GPU", "left out", "nodes, median", "nodes, 90th percentile", "line", "curve"],
                            size_rows(collectives)),
        transfers=figures_table(["GPU", "by", *dict.fromkeys(each.gpu for each in collectives)],
                                transfer_rows(collectives)),
        routed=figures_table(["GPU", "type", "law", "ratio alone", "by tokens", "ratio", "passes", "start",
                              "per choice", "median stack"], lines),
        by_tokens=percent(float(np.median(np.abs(off)))), sd=sd,
        skew=figures_table(["EP", "", "power law 1.01", "power law 1.2", "training, 128 experts", "training, 256"],
                           skew_rows(folder, sd)),
    )  # fmt: skip
