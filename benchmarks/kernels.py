"""Score the measured surfaces on held-out shapes: `python -m benchmarks.kernels FOLDER [-o docs/kernels.md]`.

The folder holds the raw files named in `tools/kernel_rows.py`. Entire (n, k) pairs and entire values of m are held out,
the surface is refitted without them, and the time of the linear layer (with the cast of its activation) is predicted.
A polynomial fitted to the same data, the alternative that was considered, is scored next to the surface. For attention,
entire head counts and sequence lengths are held out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.kernels_beside import beside_text, figures_table
from benchmarks.pages.markdown import percent, signed
from planner.kernels.surface import large_flop_per_s
from planner.units import TERA
from tools.attention_rows import Attention, read_attention
from tools.kernel_rows import Products, ProductWatts, floor_s, read_power, read_products, sustained_curve
from tools.product_power import ArchitecturePower, by_architecture, predicted_w
from tools.surfaces import (
    FOLDS,
    fit_attention,
    fold_of_pairs,
    held_out_heads,
    held_out_length,
    held_out_pairs,
    held_out_rows,
)

Floats = npt.NDArray[np.float64]

ROWS = (512.0, 2048.0, 8192.0)
"""Values of m that are held out, one at a time."""
TRAINING_ROWS = 256
"""Number of tokens below which a product is taken for inference."""
LENGTHS = (1024.0, 4096.0)
"""Sequence lengths that are held out, one at a time."""
TRAINING_HEADS = 8
"""Number of heads times sequences below which attention is taken for inference."""
DEGREE = 5
"""Degree of the polynomial in the logarithms of m, n and k, which gives 56 coefficients."""

TEXT = """# Kernels by shape

A plan predicts the time of matrix products and of fused attention from measurements by shape. This page shows how
accurately shapes that were not measured are predicted. The measurements are {points:,} products and
{attention_points:,} attention kernels by shape, number format (*type*) and GPU, medians over inference software
(*stacks*).

- **Shape**: the sizes of a product of an m × k and a k × n matrix; m is the number of tokens, k and n are sizes of the
  layer.
- **Surface**: the rate as a function of the shape, interpolated between *nodes*, which are the fitted points.
- **Held out**: left out of the fit, then predicted and compared with the measurement.

`tools/kernel_rows.py` names the raw files and their sources; they are not in the repository. `python -m
tools.surfaces FOLDER` fits the surfaces of `planner/catalog/kernel_points.csv`, `python -m benchmarks.kernels FOLDER`
writes this page.

A surface gives the rates that a GPU *sustains*. A GPU at its power limit is faster in a burst of six runs. The
sustained rate, as a share of the rate in a burst, depends on how long the kernel
runs: {curve}. If it runs for
three milliseconds or more, the burst itself is throttled.

## Held-out shapes

These are the errors in the time of a linear layer, including the cast of its activation, for m of at least 256.

- *Pairs*: a fifth of all (n, k) pairs is held out, five times in turn.
- *Rows*: m of 512, of 2,048 and of 8,192 is held out, each in turn.
- *Polynomial*: a polynomial of degree 5 in the logarithms replaces the surface; pairs are held out.

{products}

## Held-out attention

These are the errors for causal attention in BF16, in the forward pass, by head size, heads times sequences, and
length, from 8 heads and 1,024 tokens up.

Inference stacks also copy keys and values into a cache during the measured time; training does not. The copy is
therefore subtracted, at the time per byte that each further key/value head adds when every head has its own. To
compute the errors, it is added back. Without the copy, the number of key/value heads hardly matters, so one error
covers all groupings.

- *Heads*: a fifth of all values of heads times sequences is held out, five times in turn.
- *Lengths*: 1,024 and 4,096 are held out, each in turn.
- *Bias*: the median signed error with one, with eight and with as many key/value heads as query heads.
- *Large*: the rate for 64 heads of size 128 over 8,192 tokens.

{attention}

## Narrow types against BF16

The *gain* is how much faster a linear layer is in a narrow type. The table gives the error of the predicted gain, with
the (n, k) pair held out in both types, and the median measured gain over all shapes, small ones included.

{gains}

## Power by shape

A GPU raises its clock until it reaches its power limit. At the full clock, a product would draw the idle power, plus
an energy for each FLOP of its type, plus an energy for each byte. If that exceeds the limit, it draws the limit.
`python -m tools.product_power FOLDER` fits these energies:

{energies}

The table gives the errors of this model with the (n, k) pair held out, over all products that ran for a second and
over those whose dimensions are all at least 4,096 (*large*).

{power}

All large products together: median error {large_error}. Most stacks keep the GPU at its limit whatever the type, so
a narrow type saves as much energy as it saves time.

Where the error is large, readings for the same GPU, type and rate contradict each other: some are at the limit, others
at six tenths of it. The likely cause is that the sensor averages over a second, so a window that begins on a cooler
GPU reads too low. The model is therefore fitted to the upper quartile. No reading was dropped.

{beside}
## Limits

- The kernels are forward kernels from inference stacks, on random inputs. Backward products are read from the same
  surface at permuted shapes; other operand layouts were not measured. Backward attention takes 2.5 times as long as
  forward attention, divided by one fitted ratio for all GPUs (`attention_backward_ratio`).
- Unlike products, attention is not slower when sustained than in a burst: kernels that ran for a second (H200, B200,
  GB200) are as fast as the medians. Heads of size 64 were not measured on A100 and are assumed to run at the rate of
  size 128. Beyond 16,384 tokens, queries count as blocks of that length: more heads, at the rate of that length.
- Stacks differ from each other by more than shapes differ from the surface, so the column `stack_spread` of
  `planner/catalog/kernels.csv` is part of every range.
- Outside the measured shapes, the rate at the edge applies: for n and k below 512 or above 65,536, and for m below 16
  or above 32,768.
- A GPU without a surface uses that of the most similar GPU of its architecture, scaled by the ratio of peak,
  bandwidth and power limit. V100, T4, AMD GPUs and CPUs have no surface: the time of their products is arithmetic at a
  share of the peak plus memory traffic, partly overlapped
  ([the model](model.md#time-of-a-layer-computepy-productspy)).
"""


def error(miss: Floats) -> float:
    """Return the median absolute relative error."""
    return float(np.median(np.abs(np.expm1(miss))))


def polynomial_miss(products: Products) -> Floats:
    """Return the errors as in `held_out_pairs`, `[point]`, with a polynomial of the log time instead of a surface."""
    logs = (np.log(products.sizes) - np.log(products.sizes).mean(axis=0)) / 2.0
    columns = [np.ones(len(logs))]
    for degree in range(1, DEGREE + 1):
        columns += [np.prod(logs[:, list(axes)], axis=1) for axes in combinations_with_replacement(range(3), degree)]
    design, target = np.column_stack(columns), np.log(products.product_s + products.cast_s)
    miss, fold = np.zeros(len(target)), fold_of_pairs(products)
    for part in range(int(fold.max()) + 1):
        out = fold == part
        miss[out] = design[out] @ np.linalg.lstsq(design[~out], target[~out], rcond=None)[0] - target[out]
    return miss


def product_line(products: Products, folder: Path) -> tuple[list[str], Floats]:
    """Return the errors of one GPU and type as table cells, and the errors of the held-out pairs."""
    floor = floor_s(folder, products.gpu, products.compute)
    pairs, training = held_out_pairs(products, floor), products.m >= TRAINING_ROWS
    rows = np.concatenate([held_out_rows(products, floor, row) for row in ROWS])
    spread = float(np.percentile(np.abs(np.expm1(pairs[training])), 90))
    figures = (error(pairs[training]), spread, error(rows), error(polynomial_miss(products)[training]))
    return [products.gpu, products.compute, *(percent(figure) for figure in figures)], pairs


def attention_line(attention: Attention) -> list[str]:
    """Return the errors of one GPU, the biases by grouping, and the rate of large attention."""
    miss, heads = held_out_heads(attention), attention.batch * attention.heads
    training = (heads >= TRAINING_HEADS) & (attention.length >= LENGTHS[0])
    lengths = np.concatenate(
        [held_out_length(attention, length)[heads[attention.length == length] >= TRAINING_HEADS] for length in LENGTHS]
    )
    groupings = (attention.kv_heads == 1, attention.kv_heads == 8, attention.kv_heads == attention.heads)
    biases = (signed(float(np.median(miss[training & grouping]))) for grouping in groupings)
    widest = float(np.percentile(np.abs(np.expm1(miss[training])), 90))
    large = large_flop_per_s(fit_attention(attention)) / TERA
    return [
        attention.gpu, attention.compute, percent(error(miss[training])), percent(widest), percent(error(lengths)),
        ", ".join(biases), f"{large:.0f} TFLOP/s",
    ]  # fmt: skip


def gain_line(narrow: Products, wide: Products, misses: Mapping[str, Floats]) -> list[str]:
    """Return the error of the gain of a narrow type over BF16, by shape, with both held out."""
    places = {shape: place for place, shape in enumerate(map(tuple, wide.sizes))}
    pairs = [(i, places[shape]) for i, shape in enumerate(map(tuple, narrow.sizes)) if shape in places]
    narrow_rows, wide_rows = np.array(pairs).T
    training = narrow.m[narrow_rows] >= TRAINING_ROWS
    miss = (misses[wide.compute][wide_rows] - misses[narrow.compute][narrow_rows])[training]
    measured = (wide.product_s[wide_rows] / (narrow.product_s + narrow.cast_s)[narrow_rows])[training]
    return [narrow.gpu, f"{narrow.compute} over bf16", percent(error(miss)), f"{np.median(measured):.2f}x"]


def held_out_power(readings: Sequence[ProductWatts]) -> list[Floats]:
    """Return the log ratio of predicted to measured watts of each reading of one architecture.

    The pair of n and k of each reading is left out of the fit.
    """
    folds = [fold_of_pairs(watts) for watts in readings]
    misses = [np.zeros(len(watts.m)) for watts in readings]
    for part in range(FOLDS):
        fitted = ArchitecturePower(readings, [fold != part for fold in folds])
        for watts, fold, miss in zip(readings, folds, misses, strict=True):
            predicted = predicted_w(watts, fitted.j_per_byte, fitted.j_per_flop(watts.compute))
            miss[fold == part] = np.log(predicted / watts.power_w)[fold == part]
    return misses


def power_line(watts: ProductWatts, miss: Floats) -> list[str]:
    """Return the sustained watts, energy and error of one GPU, type and stack."""
    large = watts.large if watts.large.any() else np.ones_like(watts.large)
    return [
        watts.gpu, f"{watts.compute} ({watts.stack})", f"{len(watts.m)}", f"{int(watts.large.sum())}",
        f"{np.median(watts.power_w[large]):.0f} of {watts.limit_w:.0f} W",
        f"{1e12 * np.median(watts.j_per_flop[large]):.2f} pJ",
        percent(error(miss[watts.large])) if watts.large.any() else "-", percent(error(miss)),
    ]  # fmt: skip


def energies(arch: str, readings: Sequence[ProductWatts]) -> str:
    """Return the fitted energies of an architecture, in words."""
    fitted = ArchitecturePower(readings)
    each = ", ".join(f"{compute} {1e12 * fitted.j_per_flop(compute):.2f}" for compute in fitted.computes)
    return f"- {arch}: {each} pJ per FLOP, and {1e12 * fitted.j_per_byte:.0f} pJ per byte"


def power_section(folder: Path) -> dict[str, str]:
    """Return the power part of the page: the table, the error of all large products, the energies."""
    lines, large = [], []
    grouped = by_architecture(read_power(folder))
    for readings in grouped.values():
        for watts, miss in zip(readings, held_out_power(readings), strict=True):
            lines.append(power_line(watts, miss))
            large.append(miss[watts.large])
    headers = ["GPU", "type (stack)", "products", "large", "power", "energy per FLOP", "error, large", "error, all"]
    return {
        "power": figures_table(headers, lines), "large_error": percent(error(np.concatenate(large))),
        "energies": "\n".join(energies(arch, readings) for arch, readings in grouped.items()),
    }  # fmt: skip


def page(folder: Path) -> str:
    """Return the page as Markdown."""
    all_products, attentions = read_products(folder), read_attention(folder)
    lines, misses = [], dict[str, dict[str, Floats]]()
    for products in all_products:
        line, miss = product_line(products, folder)
        lines.append(line)
        misses.setdefault(products.gpu, {})[products.compute] = miss
        sys.stderr.write(" ".join(line) + "\n")
    wide = {products.gpu: products for products in all_products if products.compute == "bf16"}
    gains = [
        gain_line(narrow, wide[narrow.gpu], misses[narrow.gpu]) for narrow in all_products if narrow.compute != "bf16"
    ]
    curve = ", ".join(
        f"{ratio:.2f} at {us:g} us"
        for us, ratio in zip((10, 30, 100, 300, 1000), sustained_curve(folder), strict=False)
    )
    return TEXT.format(
        points=sum(len(products.m) for products in all_products),
        curve=curve,
        products=figures_table(
            ["GPU", "type", "pairs, median", "pairs, 90th percentile", "rows, median", "polynomial"], lines
        ),
        attention_points=sum(len(attention.length) for attention in attentions),
        attention=figures_table(
            ["GPU", "type", "heads, median", "heads, 90th percentile", "lengths, median", "bias", "large"],
            [attention_line(attention) for attention in attentions],
        ),
        gains=figures_table(["GPU", "types", "error, median", "gain"], gains),
        **power_section(folder),
        beside=beside_text(folder),
    )  # fmt: skip


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    text = page(asked.folder)
    if asked.output is None:
        sys.stdout.write(text)
    else:
        asked.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
