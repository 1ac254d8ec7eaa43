"""The MFU of a run in every convention, and which of them a printed figure reveals itself to be.

A framework's TFLOP/s are FLOP per token by its own count, times tokens per second; its MFU is that over a peak of its
own choice. Counts differ by the recomputation of checkpointing (6N against 8N; Narayanan et al. 2021, arXiv
2104.04473), by attention (the causal half, as Megatron-LM counts since 2025; all of it, as torchtitan; or none), and by
which parameters are multiplied: matrices with the output layer, without it, or with the input embedding. Peaks differ
by structured sparsity, which datasheets print first, and by the type (FP8 runs held against BF16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from planner.comparison.basis import Basis
from planner.hardware.architectures import find_architecture
from planner.hardware.gpu import Gpu
from planner.models.shape import ModelShape
from planner.performance.operations import attention_flop_per_token
from planner.training.policies import default_policy
from planner.units import TERA

Floats = npt.NDArray[np.float64]

ATTENTIONS = ("causal", "full", "none")
"""The half of attention that a causal mask leaves; all of it; none."""
PARAMETERS = ("matrices", "layers", "all")
"""Matrices with the output layer; without it; all parameters, the input embedding among them."""
CLOSE_RATIO = 0.005
"""How far two numbers may lie apart that count the same: padding of the vocabulary, norms and biases."""
MOST_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A way of counting FLOP per token."""

    recompute: bool
    """8N: the forward pass of the layers a second time; False: 6N."""
    attention: str
    """One of `ATTENTIONS`."""
    parameters: str
    """One of `PARAMETERS`."""

    @property
    def rarity(self) -> int:
        """0 for what frameworks print by default, more for what fewer print."""
        return (self.parameters != "matrices") + 2 * self.recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The rate in an MFU's denominator."""

    compute: str
    """fp32, tf32, fp16, bf16, fp8 or fp4."""
    sparse: bool
    """With structured sparsity, which no training of dense weights uses."""
    flop_per_s: float
    own: bool
    """Whether it is of the type in which the run multiplies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """A run's rate in one way of counting."""

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
    """None where only the peak is told."""
    peak: Peak | None
    """None for TFLOP/s."""
    error_ratio: float
    """Printed over expected, less 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """Which convention a printed figure is in."""

    figure: str
    """`tflops_per_gpu` or `mfu`."""
    printed: float
    """Median of the lines; an MFU as a ratio."""
    verdict: str
    """`named`: one convention alone; `several`: some that look the same; `none`; `unknown`: too little to say."""
    readings: tuple[Reading, ...]
    """Those that agree, the usual ones first; of `none`, the nearest."""
    lacks: tuple[str, ...] = ()
    """Of `unknown`: names of the inputs that are missing."""


def counts_of(model: ModelShape) -> list[Count]:
    """Every way of counting that differs for a model: with tied embeddings, all parameters are the matrices."""
    parameters = PARAMETERS[:2] if model.tied_embeddings else PARAMETERS
    attentions = ATTENTIONS if model.kind == "decoder" else ATTENTIONS[1:]
    counts = [
        Count(recompute=r, attention=a, parameters=p) for r, p, a in product((False, True), parameters, attentions)
    ]
    return sorted(counts, key=lambda count: (count.rarity, ATTENTIONS.index(count.attention)))


def flop_per_token(model: ModelShape, seq_len: int, count: Count) -> float:
    """FLOP of a token, forward and backward, in one way of counting."""
    head = model.head_params * model.head_ratio
    core = 0.0
    if count.attention != "none":
        core = 3.0 * attention_flop_per_token(model, seq_len, causal_half=count.attention == "causal")
    layers = 6.0 * (model.matrix_params_active - head) + core
    beside = {"layers": 0.0, "matrices": head, "all": head + model.embedding_params}[count.parameters]
    return layers * (4.0 / 3.0 if count.recompute else 1.0) + 6.0 * beside


def peaks_of(gpu: Gpu, precision: str) -> list[Peak]:
    """Peaks that an MFU could be held against, those of the run's own type first."""
    own = default_policy(precision).linear_compute
    ratio = find_architecture(gpu.arch).sparse_ratio
    peaks: list[Peak] = []
    for compute, rate in sorted(gpu.peak_flop_per_s.items(), key=lambda entry: entry[0] != own):
        for sparse in (False, True) if ratio is not None and compute not in ("fp32",) else (False,):
            flop_per_s = rate * (ratio or 1.0) if sparse else rate
            if all(abs(flop_per_s / peak.flop_per_s - 1.0) > CLOSE_RATIO for peak in peaks):
                peaks.append(Peak(compute=compute, sparse=sparse, flop_per_s=flop_per_s, own=compute == own))
    return peaks


def utilisations(basis: Basis, rate: float | None) -> tuple[Utilisation, ...]:
    """The rate of a run in every way of counting; empty where model or sequence length is unknown.

    Args:
        basis: what is known.
        rate: tokens per second and GPU of a steady step; None where the log does not say.
    """
    if basis.model is None or basis.seq_len is None:
        return ()
    peaks = [] if basis.gpu is None or basis.precision is None else peaks_of(basis.gpu, basis.precision)
    dense = next((peak.flop_per_s for peak in peaks if peak.own and not peak.sparse), None)
    sparse = next((peak.flop_per_s for peak in peaks if peak.own and peak.sparse), None)
    rows = []
    for count in counts_of(basis.model):
        flop = flop_per_token(basis.model, basis.seq_len, count)
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
    """Of a steady step; None where a part of it is unknown."""
    if step_s is None or basis.tokens_per_step is None or basis.gpus is None:
        return None
    return basis.tokens_per_step / step_s / basis.gpus


def reveal_tflops(basis: Basis, printed: Floats, tokens_rate: Floats) -> Revealed | None:
    """What the printed TFLOP/s count; None where none are printed.

    Args:
        basis: what is known.
        printed: TFLOP/s per GPU, `[line]`.
        tokens_rate: tokens per second and GPU of the same lines, `[line]`; NaN where unknown.
    """
    known = ~np.isnan(printed)
    if not np.any(known):
        return None
    value = float(np.median(printed[known]))
    both = known & ~np.isnan(tokens_rate)
    if basis.model is None or basis.seq_len is None or not np.any(both):
        return Revealed(
            figure="tflops_per_gpu", printed=value, verdict="unknown", readings=(), lacks=_lacks(basis, both)
        )
    flops = printed[both] * TERA / tokens_rate[both]
    tolerance = CLOSE_RATIO + rounding_ratio(printed[known]) + _error_ratio(flops)
    observed = float(np.median(flops))
    readings = [
        Reading(count=count, peak=None, error_ratio=observed / flop_per_token(basis.model, basis.seq_len, count) - 1.0)
        for count in counts_of(basis.model)
    ]
    return _verdict("tflops_per_gpu", value, readings, tolerance)


def reveal_mfu(basis: Basis, printed: Floats, tflops: Floats, tokens_rate: Floats) -> Revealed | None:
    """What the printed MFU is held against, and where no TFLOP/s are printed, what it counts; None where none is.

    Args:
        basis: what is known.
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
    both = known & ~np.isnan(tokens_rate)
    if basis.model is None or basis.seq_len is None or not np.any(both):
        return Revealed(figure="mfu", printed=value, verdict="unknown", readings=(), lacks=_lacks(basis, both))
    per_token = printed[both] / tokens_rate[both]  # MFU = FLOP per token x tokens per second / peak
    observed_ratio, tolerance = float(np.median(per_token)), rounding + _error_ratio(per_token)
    readings = [
        Reading(
            count=count, peak=peak,
            error_ratio=observed_ratio * peak.flop_per_s / flop_per_token(basis.model, basis.seq_len, count) - 1.0,
        )
        for peak, count in product(peaks, counts_of(basis.model))
    ]  # fmt: skip
    return _verdict("mfu", value, readings, tolerance)


def _lacks(basis: Basis, timed: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    """What it takes to tell a count: model and sequence length, and where no rate is printed, batch and GPUs."""
    names = ("model", "seq_len") if np.any(timed) else ("model", "seq_len", "global_batch", "gpus")
    return tuple(name for name in names if getattr(basis, name) is None)


def _rarity(reading: Reading) -> int:
    """How unusual a convention is: by its count, and by a peak of another type."""
    peak = 0 if reading.peak is None or reading.peak.own else 4
    return peak + (0 if reading.count is None else reading.count.rarity)


def _verdict(figure: str, printed: float, readings: Sequence[Reading], tolerance: float) -> Revealed:
    """Named where one usual convention agrees: a rarer one is taken only where no more usual one does."""
    agreeing = [reading for reading in readings if abs(reading.error_ratio) <= tolerance]
    if not agreeing:
        nearest = min(readings, key=lambda reading: abs(reading.error_ratio))
        return Revealed(figure=figure, printed=printed, verdict="none", readings=(nearest,))
    agreeing.sort(key=lambda reading: (_rarity(reading), abs(reading.error_ratio)))
    usual = [reading for reading in agreeing if _rarity(reading) == _rarity(agreeing[0])]
    verdict = "named" if len(usual) == 1 else "several"
    return Revealed(figure=figure, printed=printed, verdict=verdict, readings=tuple(agreeing))


def rounding_ratio(values: Floats) -> float:
    """Half of the last printed digit over the value, from how many decimals a few of the values have."""
    few = values[:50]
    for decimals in range(MOST_DECIMALS):
        if np.allclose(np.round(few, decimals), few, rtol=0.0, atol=10.0 ** -(decimals + 4)):
            half = 0.5 / 10.0**decimals
            return half / float(np.median(few))
    return 0.0


def _error_ratio(values: Floats) -> float:
    """Two standard errors of the median, over the median."""
    if len(values) < 3:
        return 0.0
    spread = float(np.subtract(*np.percentile(values, [75, 25])))
    return min(float(2.0 * 0.93 * spread / np.sqrt(len(values)) / np.median(values)), 0.02)
