"""Made-up GPUs: sizes, rates, launch costs and power that a law of time and energy is computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticGpu:
    """A GPU that exists nowhere, and the host that drives it."""

    name: str
    capability: tuple[int, int]
    sm_count: int
    boost_hz: float
    memory_bytes: float
    memory_bytes_per_s: float
    l2_bytes: float
    flop_per_s: dict[str, float]
    """Of products without any loss to shape, at the full clock, by kind of compute."""
    attention_flop_per_s: dict[str, float]
    """Of long causal attention with heads of 128, forward, at the full clock, by type of operand."""
    kernel_s: float = 1.5e-6
    """What every kernel costs on the device beyond its work."""
    launch_s: float = 3.5e-6
    """Host time of a bare kernel."""
    operation_s: float = 6e-6
    """Host time of an operation in a forward or backward pass, with dispatch and autograd."""
    idle_w: float
    limit_w: float
    j_per_flop: dict[str, float]
    """At the full clock, by kind of compute."""
    j_per_byte: float
    clock_exponent: float = 2.4
    """Dynamic power of arithmetic grows with this power of the clock."""


H200_LIKE = SyntheticGpu(
    name="synthetic H200",
    capability=(9, 0),
    sm_count=132,
    boost_hz=1.98e9,
    memory_bytes=141e9,
    memory_bytes_per_s=4.3e12,
    l2_bytes=50e6,
    flop_per_s={
        "fp32": 55e12, "tf32": 430e12, "fp16": 880e12, "bf16": 880e12, "fp8": 1700e12, "fp8-rowwise": 1600e12,
    },
    attention_flop_per_s={"float32": 30e12, "float16": 640e12, "bfloat16": 640e12},
    idle_w=95.0,
    limit_w=700.0,
    j_per_flop={
        "fp32": 8e-12, "tf32": 1.9e-12, "fp16": 1.0e-12, "bf16": 1.0e-12, "fp8": 0.62e-12, "fp8-rowwise": 0.62e-12,
    },
    j_per_byte=80e-12,
)  # fmt: skip
SLOW_HOST = replace(H200_LIKE, name="synthetic H200 with a slow host", operation_s=20e-6, launch_s=12e-6)
A100_LIKE = SyntheticGpu(
    name="synthetic A100",
    capability=(8, 0),
    sm_count=108,
    boost_hz=1.41e9,
    memory_bytes=80e9,
    memory_bytes_per_s=1.75e12,
    l2_bytes=40e6,
    flop_per_s={"fp32": 18.5e12, "tf32": 140e12, "fp16": 285e12, "bf16": 285e12},
    attention_flop_per_s={"float32": 11e12, "float16": 210e12, "bfloat16": 210e12},
    kernel_s=2e-6,
    operation_s=8e-6,
    launch_s=4.5e-6,
    idle_w=60.0,
    limit_w=400.0,
    j_per_flop={"fp32": 12e-12, "tf32": 2.4e-12, "fp16": 1.25e-12, "bf16": 1.25e-12},
    j_per_byte=95e-12,
)
GPUS = (H200_LIKE, SLOW_HOST, A100_LIKE)
