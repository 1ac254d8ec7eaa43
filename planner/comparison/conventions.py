"""The MFU of a run under every counting convention, and the convention that a printed figure follows.

A framework's TFLOP/s are FLOP per token by its own count, times tokens per second. Its MFU is that rate over a peak of
its own choice. Counts differ in three ways. They may include the recomputation of checkpointing (8N instead of 6N;
Narayanan et al. 2021, arXiv 2104.04473). They may count attention by its causal half (Megatron-LM since 2025), in full
(torchtitan) or not at all. And they may multiply the matrices with the output layer, without it, or with the input
embedding. A method with frozen weights multiplies less than 6N, and a method with a reference model more, although some
frameworks count 6N in every case. Peaks differ by structured sparsity, which datasheets print first, and by type (FP8
runs measured against BF16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from planner.comparison.basis import Basis
from planner.hardware.architectures import find_architecture
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.performance.operations import (
    attention_flop_per_token,
    matrix_flop_per_token,
    recomputed_flop_per_token,
    worked_flop_per_token,
)
from planner.performance.products import head_shares, layer_shares
from planner.training.method import PRETRAIN
from planner.training.policies import default_policy
from planner.training.recipe import Recipe
from planner.units import TERA

Floats = npt.NDArray[np.float64]

ATTENTIONS = ("causal", "full", "none")
"""Attention counted by the half that a causal mask leaves, in full, or not at all."""
PARAMETERS = ("matrices", "layers", "all")
"""Parameters counted: matrices with the output layer, matrices without it, or all including the input embedding."""
USUAL_PEAKS = ("bf16", "fp16")
"""Compute types whose peaks frameworks divide by, whatever the run multiplies in."""
CLOSE_RATIO = 0.005
"""Tolerance within which two counts agree: they differ by vocabulary padding, norms and biases."""
MOST_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A way of counting FLOP per token."""

    recompute: bool
    """8N, which adds a second forward pass of the layers; False: 6N."""
    attention: str
    """One of `ATTENTIONS`."""
    parameters: str
    """One of `PARAMETERS`."""
    flop_per_parameter: float = 6.0
    """FLOP per parameter of the layers: 6 where every weight is trained, 8 with recomputation, 4 for LoRA."""
    method: str = PRETRAIN
    """Id of the counted method; pre-training where every weight counts as trained."""

    @property
    def rarity(self) -> int:
        """0 for what frameworks print by default, more for what fewer print."""
        return (self.parameters != "matrices") + 2 * self.recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The rate in the denominator of an MFU."""

    compute: str
    """Compute type: fp32, tf32, fp16, bf16, fp8 or fp4."""
    sparse: bool
    """Whether the rate is with structured sparsity, which no training of dense weights uses."""
    flop_per_s: float
    own: bool
    """Whether it is the peak of the type in which the run multiplies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """A run's rate under one counting convention."""

    count: Count
    flop_per_token: float
    tflops_per_gpu: float | None
    mfu_dense_ratio: float | None
    mfu_sparse_ratio: float | None
    """None where the GPU has no structured sparsity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A convention that a printed figure agrees with."""

    count: Count | None
    """None where only the peak is identified."""
    peak: Peak | None
    """None where the figure is TFLOP/s."""
    error_ratio: float
    """Printed figure over the expected one, less 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """The convention that a printed figure follows."""

    figure: str
    """`tflops_per_gpu` or `mfu`."""
    printed: float
    """Median over the log's lines; an MFU as a ratio."""
    verdict: str
    """`named`: exactly one convention agrees; `several`: several indistinguishable ones agree; `none`: none agrees;
    `unknown`: too little is known."""
    readings: tuple[Reading, ...]
    """Conventions that agree, usual ones first; for the verdict `none`, the nearest convention."""
    lacks: tuple[str, ...] = ()
    """Names of the missing inputs, for the verdict `unknown`."""


def counts_of(recipe: Recipe) -> list[Count]:
    """Return every distinct count of FLOP per token for a recipe, with the recipe's own method first.

    With tied embeddings, all parameters are the matrices. Where a method does other work than 6N, both are counted.
    """
    model = recipe.model
    parameters = PARAMETERS[:2] if model.tied_embeddings else PARAMETERS
    attentions = ATTENTIONS if model.kind == "decoder" else ATTENTIONS[1:]
    whole = replace(recipe, method=PRETRAIN)
    differs = layer_shares(recipe) != layer_shares(whole)
    counts = [
        Count(
            recompute=r, attention=a, parameters=p, method=way.method,
            flop_per_parameter=2.0 * (layer_shares(way).total + (way.backward_share if r else 0.0)),
        )
        for way, r, p, a in product(
            (recipe, whole) if differs else (whole,), (False, True), parameters, attentions
        )
    ]  # fmt: skip
    counts.sort(key=lambda count: (count.rarity, count.method == PRETRAIN, ATTENTIONS.index(count.attention)))
    return [count for count in counts if flop_per_token(recipe, count) > 0]


def flop_per_token(recipe: Recipe, count: Count) -> float:
    """Return the FLOP of a token over all passes of a step under one count.

    Under the count that plans use, it equals a plan's FLOP.
    """
    way = recipe if count.method == recipe.method else replace(recipe, method=PRETRAIN)
    model, causal = way.model, count.attention == "causal"
    flop = matrix_flop_per_token(way) if count.attention == "none" else worked_flop_per_token(way, causal_half=causal)
    beside = 2.0 * head_shares(way).total
    if count.parameters == "layers":
        flop -= beside * model.head_params * model.head_ratio
    elif count.parameters == "all":
        flop += beside * model.embedding_params
    if count.recompute:
        flop += recomputed_flop_per_token(way, "full", causal_half=causal)
        if count.attention == "none":
            flop -= way.backward_share * attention_flop_per_token(model, way.mean_len, causal_half=causal)
    return flop


def peaks_of(gpu: Gpu, precision: str) -> list[Peak]:
    """Return the peaks that an MFU could refer to: the run's own type, then dense peaks, then sparse peaks.

    Of peaks with equal rates only the first is kept: an FP8 run's MFU over 989 TFLOP/s refers to dense BF16, not to
    sparse TF32.
    """
    own = default_policy(precision).linear_compute
    ratio = find_architecture(gpu.arch).sparse_ratio
    peaks: list[Peak] = []
    for compute, sparse in sorted(
        product(gpu.peak_flop_per_s, (False, True)), key=lambda peak: _peak_order(peak[0], peak[1], own)
    ):
        if sparse and (ratio is None or compute == "fp32"):
            continue
        flop_per_s = gpu.peak_flop_per_s[compute] * (ratio if sparse and ratio is not None else 1.0)
        if all(abs(flop_per_s / peak.flop_per_s - 1.0) > CLOSE_RATIO for peak in peaks):
            peaks.append(Peak(compute=compute, sparse=sparse, flop_per_s=flop_per_s, own=compute == own))
    return peaks


def _peak_order(compute: str, sparse: bool, own: str) -> tuple[bool, bool, int]:
    usual = USUAL_PEAKS.index(compute) if compute in USUAL_PEAKS else len(USUAL_PEAKS)
    return compute != own, sparse, usual


def utilisations(basis: Basis, rate: float | None) -> tuple[Utilisation, ...]:
    """Return a run's rate under every count; empty where the model or the sequence length is unknown.

    Args:
        basis: what is known about the run.
        rate: tokens per second and GPU of a steady step; None where the log does not tell.
    """
    if basis.recipe is None:
        return ()
    peaks = [] if basis.gpu is None or basis.precision is None else peaks_of(basis.gpu, basis.precision)
    dense = next((peak.flop_per_s for peak in peaks if peak.own and not peak.sparse), None)
    sparse = next((peak.flop_per_s for peak in peaks if peak.own and peak.sparse), None)
    rows = []
    for count in counts_of(basis.recipe):
        flop = flop_per_token(basis.recipe, count)
        per_s = None if rate is None else flop * rate
        rows.append(
            Utilisation(
                count=count,
                flop_per_token=flop,
                tflops_per_gpu=None if per_s is None else per_s / TERA,
                mfu_dense_ratio=None if per_s is None or dense is None else per_s / dense,
                mfu_sparse_ratio=None if per_s is None or sparse is None else per_s / sparse,
            )
        )
    return tuple(rows)


def tokens_per_s_per_gpu(basis: Basis, step_s: float | None) -> float | None:
    """Return the tokens per second and GPU of a steady step; None where a factor is unknown."""
    if step_s is None or basis.tokens_per_step is None or basis.gpus is None:
        return None
    return basis.tokens_per_step / step_s / basis.gpus


def reveal_tflops(basis: Basis, printed: Floats, tokens_rate: Floats) -> Revealed | None:
    """Identify the count behind the printed TFLOP/s; None where none are printed.

    Args:
        basis: what is known about the run.
        printed: TFLOP/s per GPU, `[line]`.
        tokens_rate: tokens per second and GPU of the same lines, `[line]`; NaN where unknown.
    """
    known = ~np.isnan(printed)
    if not np.any(known):
        return None
    value = float(np.median(printed[known]))
    comparable = known & ~np.isnan(tokens_rate)
    if basis.recipe is None or not np.any(comparable):
        return Revealed(
            figure="tflops_per_gpu", printed=value, verdict="unknown", readings=(), lacks=_lacks(basis, comparable)
        )
    flops = printed[comparable] * TERA / tokens_rate[comparable]
    tolerance = CLOSE_RATIO + rounding_ratio(printed[known]) + _error_ratio(flops)
    observed = float(np.median(flops))
    readings = [
        Reading(count=count, peak=None, error_ratio=observed / flop_per_token(basis.recipe, count) - 1.0)
        for count in counts_of(basis.recipe)
    ]
    return _verdict("tflops_per_gpu", value, readings, tolerance)


def reveal_mfu(basis: Basis, printed: Floats, tflops: Floats, tokens_rate: Floats) -> Revealed | None:
    """Identify the peak of the printed MFU and, where no TFLOP/s are printed, its count; None where no MFU is printed.

    Args:
        basis: what is known about the run.
        printed: MFU as a ratio, `[line]`.
        tflops: TFLOP/s per GPU of the same lines, `[line]`; NaN where none are printed.
        tokens_rate: tokens per second and GPU of the same lines, `[line]`.
    """
    known = ~np.isnan(printed)
    if not np.any(known):
        return None
    value = float(np.median(printed[known]))
    with_tflops = known & ~np.isnan(tflops)
    if basis.gpu is None or basis.precision is None:
        names = tuple(name for name in ("gpu", "precision") if getattr(basis, name) is None)
        counted = () if np.any(with_tflops) else _lacks(basis, known & ~np.isnan(tokens_rate))
        return Revealed(figure="mfu", printed=value, verdict="unknown", readings=(), lacks=(*counted, *names))
    peaks = peaks_of(basis.gpu, basis.precision)
    rounding = CLOSE_RATIO + rounding_ratio(printed[known])
    if np.any(with_tflops):
        observed = tflops[with_tflops] * TERA / printed[with_tflops]
        readings = [
            Reading(count=None, peak=peak, error_ratio=peak.flop_per_s / float(np.median(observed)) - 1.0)
            for peak in peaks
        ]
        return _verdict("mfu", value, readings, rounding + _error_ratio(observed))
    comparable = known & ~np.isnan(tokens_rate)
    if basis.recipe is None or not np.any(comparable):
        return Revealed(figure="mfu", printed=value, verdict="unknown", readings=(), lacks=_lacks(basis, comparable))
    per_token = printed[comparable] / tokens_rate[comparable]  # MFU = FLOP per token x tokens per second / peak
    observed_ratio, tolerance = float(np.median(per_token)), rounding + _error_ratio(per_token)
    readings = [
        Reading(
            count=count, peak=peak,
            error_ratio=observed_ratio * peak.flop_per_s / flop_per_token(basis.recipe, count) - 1.0,
        )
        for peak, count in product(peaks, counts_of(basis.recipe))
    ]  # fmt: skip
    return _verdict("mfu", value, readings, tolerance)


def _lacks(basis: Basis, timed: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the missing inputs of a count: model and sequence length, and without a printed rate batch and GPUs."""
    names = ("model", "seq_len") if np.any(timed) else ("model", "seq_len", "global_batch", "gpus")
    return tuple(name for name in names if getattr(basis, name) is None)


def _rarity(reading: Reading) -> int:
    """Return how unusual a convention is, by its count and by a peak of another type than the run's."""
    peak = 0 if reading.peak is None or reading.peak.own else 4
    return peak + (0 if reading.count is None else reading.count.rarity)


def _verdict(figure: str, printed: float, readings: Sequence[Reading], tolerance: float) -> Revealed:
    """Choose among the readings within the tolerance; a rarer convention counts only where no more usual one agrees."""
    agreeing = [reading for reading in readings if abs(reading.error_ratio) <= tolerance]
    if not agreeing:
        nearest = min(readings, key=lambda reading: abs(reading.error_ratio))
        return Revealed(figure=figure, printed=printed, verdict="none", readings=(nearest,))
    agreeing.sort(key=lambda reading: (_rarity(reading), abs(reading.error_ratio)))
    usual = [reading for reading in agreeing if _rarity(reading) == _rarity(agreeing[0])]
    verdict = "named" if len(usual) == 1 else "several"
    return Revealed(figure=figure, printed=printed, verdict=verdict, readings=tuple(agreeing))


def rounding_ratio(values: Floats) -> float:
    """Return half of the last printed digit over the median, with the decimals estimated from the first values."""
    few = values[:50]
    for decimals in range(MOST_DECIMALS):
        if np.allclose(np.round(few, decimals), few, rtol=0.0, atol=10.0 ** -(decimals + 4)):
            half = 0.5 / 10.0**decimals
            return half / float(np.median(few))
    return 0.0


def _error_ratio(values: Floats) -> float:
    """Return two standard errors of the median over the median, at most 0.02."""
    if len(values) < 3:
        return 0.0
    spread = float(np.subtract(*np.percentile(values, [75, 25])))
    return min(float(2.0 * 0.93 * spread / np.sqrt(len(values)) / np.median(values)), 0.02)
