"""The uncertain inputs of the equations: `Rates` as numbers or draws, `RateSet` as terms with range and evidence.

`ladder.resolve_rates` makes a `RateSet`; `RateSet.sample` turns it into mid values (`draws=None`) or draws `[draw]`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from planner.evidence import Evidence

Value = float | npt.NDArray[np.float64]
"""One value, or a thousand draws of it: the arithmetic is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Every uncertain input of the equations, as scalars or as draws `[draw]`."""

    linear_flop_per_s: Value
    """Asymptotic rate of matrix products in the policy's linear compute type."""
    other_flop_per_s: Value
    """The same in the policy's other compute type."""
    operand_bytes_per_s: Value
    matmul_overlap: Value
    """Share of the lesser of arithmetic and operand traffic that hides behind the greater."""
    memory_bytes_per_s: Value
    attention_flop_per_s: Value
    norm_passes: Value
    dropout_passes: Value
    ffn_passes: Value
    qkv_passes: Value
    score_passes: Value
    misaligned_rate: Value
    """Rate of the score products with a head that is no multiple of 16 bytes, over the usual rate."""
    moe_passes: Value
    logit_bytes: Value
    fusion: Value
    framework: Value
    """Compute on the critical path over the sum of its kernels: gaps, allocator, unfused odds and ends of a stack."""
    cast_fusion: Value
    """FP8 cast traffic over that of separate kernels."""
    kernels_per_layer: Value
    kernels_moe: Value
    """Further kernels of a layer with routed experts."""
    grouped_efficiency: Value
    """Rate of grouped expert products over plain ones."""
    kernel_s: Value
    launch_s: Value
    step_overhead_s: Value
    optimizer_bytes_per_s: Value
    nvlink_bytes_per_s: Value
    """Ring bus bandwidth inside the NVLink domain (PCIe where there is no NVLink)."""
    nvls_gain: Value
    """All-reduce over ring, 1 where the switch does not reduce."""
    nvlink_latency_s: Value
    hop_latency_s: Value
    nic_bytes_per_s: Value
    nic_latency_s: Value
    pcie_bytes_per_s: Value
    overlap_dp: Value
    overlap_tp: Value
    overlap_cp: Value
    overlap_pp: Value
    overlap_ep: Value
    interference: Value
    jitter: Value
    expert_imbalance: Value
    model_error: Value
    """What the equations leave out, on the step time."""
    precision_error: Value
    """What the equations leave out of one precision against another: drawn apart for each."""
    memory_error: Value
    """The same on the peak memory."""
    power_error: Value
    """What the equations leave out, on the power of the GPUs."""
    power_idle_w: Value
    power_linear_w: Value
    power_other_w: Value
    power_attention_w: Value
    power_memory_w: Value
    power_wait_w: Value
    host_share: Value
    network_share: Value
    context_bytes: Value
    nccl_bytes: Value
    fragmentation: Value
    stored_extra: Value
    logit_stored: Value
    """Bytes per logit at the peak of the loss, with 16-bit activations."""
    mtbf_failures_per_gpu_h: Value
    restart_s: Value
    checkpoint_s: Value
    evaluation_share: Value
    stops: Value
    """Wall time of a run over what its steps, failures and evaluation take; a draw below 1 counts as 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One uncertain input: mid, spread, and where it comes from."""

    name: str
    value: float
    log_sd: float
    """Standard deviation of its logarithm."""
    ceiling: float
    """Largest value that makes sense (1 for a ratio)."""
    label: str
    evidence: Evidence
    own_draws: str = ""
    """Set where the input is drawn apart from its namesakes in other precisions."""

    @property
    def drawn_as(self) -> str:
        """Name of its draws: terms of one name draw alike in every precision, GPU and layout."""
        return self.name + self.own_draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Common random numbers: the same input gets the same draws in every precision, GPU and layout."""

    count: int
    seed: int

    def normal(self, name: str) -> npt.NDArray[np.float64]:
        """Standard normal draws of one input, `[draw]`."""
        return _normal(self.count, self.seed, name)


@cache
def _normal(count: int, seed: int, name: str) -> npt.NDArray[np.float64]:
    drawn = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(count)
    drawn.flags.writeable = False
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSet:
    """The terms of one GPU, stack and policy."""

    terms: Mapping[str, Term]

    def sample(self, draws: Draws | None = None, only: str | None = None) -> Rates:
        """Mid values (`draws=None`) or draws `[draw]`; with `only`, just that term varies."""
        values: dict[str, Value] = {}
        for name, term in self.terms.items():
            vary = draws is not None and term.log_sd > 0 and (only is None or only == name)
            values[name] = self._draw(term, draws) if vary and draws is not None else term.value
        return Rates(**values)

    @staticmethod
    def _draw(term: Term, draws: Draws) -> Value:
        # Compute types share their silicon: one GPU's FP8 and BF16 rates err together, so they share draws by name.
        return np.minimum(term.value * np.exp(term.log_sd * draws.normal(term.drawn_as)), term.ceiling)
