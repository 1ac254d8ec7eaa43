"""Bandwidth of a layer's memory-bound work, from the operations that it consists of.

Unfused operations differ widely: on an H200, an addition moves its bytes at 4.2 TB/s, a norm at 2.4, and the rotary
embedding, which takes several kernels, at 0.3. Times add up, so the mean weights each operation by its share of a
layer's traffic. The spread of the mean is the effect of different shares, not the scatter between operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot

from planner.measured.kernels import COMPUTE, ELEMENT_BYTES, log_mean, quiet_first, usable
from planner.measured.layers.workloads import FFN_PASSES, HIDDEN_PASSES, QKV_PASSES, ROTARY_PASSES
from planner.measured.rates import MeasuredRates, MeasuredValue, Values
from planner.records.measurement import Measurement

HIDDEN, INNER, QKV, ROTATED = 4096.0, 14336.0, 6144.0, 5120.0
"""Elements per token of the hidden state, the inner activation, q with k and v, and q with k, of Llama 3 8B: the layers
that the probes measure (arXiv 2407.21783, table 3)."""
PASSES = {
    "rmsnorm": 0.5 * HIDDEN_PASSES * HIDDEN,
    "residual": 0.5 * HIDDEN_PASSES * HIDDEN + QKV_PASSES * QKV,
    "silu_mul": FFN_PASSES * INNER,
    "rope": ROTARY_PASSES * ROTATED,
}
"""Elements that a layer reads and writes per token, by the measured operation that represents them. In order, they
belong to two norms; two additions and the copies of q, k and v, which move their bytes like additions; the gated
activation; and the rotary embedding."""
SHARE_SD = 0.25
"""Relative standard deviation of an operation's share of the traffic between models: the uncertainty of the passes
after a fit to published runs (`norm_passes`, `ffn_passes`, `qkv_passes` of `parameters.csv`)."""
UNMEASURED_SD = 0.7
"""Relative standard deviation of the rate of an operation that was not measured, which is assumed to equal the rate of
the others: about a factor of two."""


def layer_bandwidths(points: Sequence[Measurement]) -> Values:
    """Bandwidth of a layer's operations over their fused minimum of traffic, by mode.

    The modes `eager-32` and `compiled-32` are for 32-bit elements. The modes `eager` and `compiled` are for 16-bit
    elements, or for 32-bit elements if a record has no others.
    """
    bandwidths: Values = {}
    for compiled in (False, True):
        operations = [
            point
            for point in usable(points, "memory_op")
            if bool(point.setup.compiled) is compiled and point.setup.role in PASSES
        ]
        wide = [point for point in operations if _element_bytes(point) == WIDE_BYTES]
        narrow = [point for point in operations if _element_bytes(point) != WIDE_BYTES]
        for element_bytes, of_size in ((WIDE_BYTES, wide), (2.0, narrow or wide)):
            if of_size:
                bandwidths[_mode(element_bytes, compiled=compiled)] = _mean(quiet_first(of_size))
    return bandwidths


def memory_bandwidth(rates: MeasuredRates, element_bytes: float, *, compiled: bool) -> MeasuredValue | None:
    """Bandwidth of memory-bound work on elements of a size, else on 16-bit elements; None if neither was measured."""
    modes = (_mode(element_bytes, compiled=compiled), _mode(2.0, compiled=compiled))
    return next((rates.memory_bytes_per_s[mode] for mode in modes if mode in rates.memory_bytes_per_s), None)


WIDE_BYTES = 4.0
"""Bytes of a 32-bit element."""


def _mode(element_bytes: float, *, compiled: bool) -> str:
    return ("compiled" if compiled else "eager") + ("-32" if element_bytes >= WIDE_BYTES else "")


def _element_bytes(point: Measurement) -> float:
    recipe = point.setup.recipe or ""
    return ELEMENT_BYTES.get(COMPUTE.get(recipe, recipe), 2.0)


def _mean(operations: Sequence[Measurement]) -> MeasuredValue:
    """Traffic of a layer over the time that it takes, with the spread of this bandwidth."""
    by_role: dict[str, list[float]] = {}
    for point in operations:
        bytes_per_s = (point.counts.bytes_min or 0.0) / (point.time.median_s or 1.0)
        by_role.setdefault(point.setup.role or "", []).append(bytes_per_s)
    bandwidths = {role: log_mean(role_rates)[0] for role, role_rates in by_role.items()}
    measured = sum(PASSES[role] for role in bandwidths)
    mean = measured / sum(PASSES[role] / bandwidth for role, bandwidth in bandwidths.items())
    return MeasuredValue(
        value=mean, relative_sd=_spread(mean, bandwidths), probe_ids=tuple(point.probe_id for point in operations)
    )


def _spread(mean: float, bandwidths: Mapping[str, float]) -> float:
    """Relative standard deviation of the mean, from the uncertainty of shares and of operations not measured."""
    whole = sum(PASSES.values())
    other_shares = [
        PASSES[role] / whole * (mean / bandwidth - 1.0) * SHARE_SD for role, bandwidth in bandwidths.items()
    ]
    unmeasured = [PASSES[role] / whole * UNMEASURED_SD for role in PASSES if role not in bandwidths]
    return hypot(*other_shares, *unmeasured)
