"""A tape of kernels, forward and backward, as eager or compiled code would launch them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.planner.measured.layers.synthetic.gpu import SyntheticGpu
from tests.planner.measured.layers.synthetic.single import Kernel, attention, nothing, product, stream

CAST_PASSES = (4.0, 2.0, 0.0, 0.0, 6.0, 8.0, 8.0, 5.0)
"""Bytes per element of the kernels of an eager cast to FP8 of 16-bit values: absolute, maximum, two for the scale, to
FP32, divide, clamp, to FP8."""
TURNED_BYTES = 2.0
"""Of the copy that turns the FP8 values, where the other layout is needed."""
FUSED_CAST_PASSES = (2.0, 3.0)
"""The same of compiled code: the maximum, then the cast."""
COMPILED_BYTES, COMPILED_HOST = 0.42, 0.45
"""Traffic and host time of compiled element-wise code over eager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How tensors are held and cast, by recipe and mode."""

    compute: str
    high: str
    """Of what stays in high precision."""
    operand: str
    """Type of attention's operands."""
    held_bytes: float
    """Of a weight."""
    activation_bytes: float
    residual_bytes: float
    autocast: bool
    masters: bool
    compiled: bool
    adds_up: bool
    """Gradients are added to existing ones."""


@dataclass(slots=True, kw_only=True)
class Tape:
    """Kernels of a part of a model."""

    gpu: SyntheticGpu
    style: Style
    forward: list[Kernel] = field(default_factory=list)
    backward: list[Kernel] = field(default_factory=list)

    @property
    def host_s(self) -> float:
        """Of one operation."""
        return self.gpu.operation_s * (COMPILED_HOST if self.style.compiled else 1.0)

    def elementwise(self, *passes_bytes: float, twice: bool = True) -> None:
        """Element-wise kernels of so many bytes each; backward about as many with as much again for two inputs."""
        if self.style.compiled:
            moved = COMPILED_BYTES * sum(passes_bytes)
            self.forward.append(stream(self.gpu, moved, host_s=self.host_s))
            if twice:
                self.backward.append(stream(self.gpu, 1.5 * moved, host_s=self.host_s))
            return
        for moved in passes_bytes:
            self.forward.append(stream(self.gpu, moved, host_s=self.host_s))
            if twice:
                self.backward.append(stream(self.gpu, 1.5 * moved, host_s=self.host_s))

    def linear(self, m: float, n: float, k: float, *, low: bool = True, casts_input: bool = True) -> None:
        """A linear layer with its casts, its three products and what happens to the gradient of its weight."""
        style = self.style
        compute = style.compute if low else style.high
        narrow = compute.startswith("fp8")
        if style.autocast:
            self.elementwise(6.0 * n * k, twice=False)  # the way back is that of the gradient
            if casts_input:
                self.elementwise(6.0 * m * k)
        if narrow:
            self._cast(self.forward, m * k, n * k)
            self._cast(self.backward, m * n, n * k, turned=True)
            self._cast(self.backward, m * n, m * k, turned=True)
        self.forward.append(product(self.gpu, compute, m, n, k, host_s=self.host_s))
        self.backward.append(product(self.gpu, compute, m, k, n, host_s=self.host_s))
        self.backward.append(product(self.gpu, compute, n, k, m, host_s=self.host_s))
        self._gradient(n * k)

    def _cast(self, kernels: list[Kernel], *elements: float, turned: bool = False) -> None:
        passes = FUSED_CAST_PASSES if self.style.compiled else CAST_PASSES + ((TURNED_BYTES,) if turned else ())
        kernels += [stream(self.gpu, each * count, host_s=self.host_s) for count in elements for each in passes]

    def _gradient(self, weights: float) -> None:
        style = self.style
        written = 4.0 if style.masters or style.autocast else style.held_bytes
        moved = 2.0 + written if style.masters or style.autocast else 0.0
        if style.adds_up:
            moved += 2.0 * written + (0.0 if style.masters or style.autocast else written)
        if moved:
            self.backward.append(stream(self.gpu, moved * weights, host_s=self.host_s))

    def attention(self, batch: float, heads: float, kv_heads: float, d: float, length: float, *, causal: bool) -> None:
        """Fused attention; in FP32 its keys and values are copied to as many heads as the queries have."""
        style = self.style
        if style.operand == "float32" and kv_heads < heads:
            self.elementwise(
                4.0 * batch * (heads + kv_heads) * d * length, 4.0 * batch * (heads + kv_heads) * d * length
            )
        sizes = (batch, heads, d, length)
        self.forward.append(attention(self.gpu, style.operand, *sizes, host_s=self.host_s, causal=causal))
        self.backward.append(
            attention(self.gpu, style.operand, *sizes, host_s=self.host_s, backward=True, causal=causal)
        )

    def small(self, count: int) -> None:
        """Kernels too small to matter, forward and backward."""
        kernels = [nothing(self.host_s)] * (count if not self.style.compiled else 1)
        self.forward += kernels
        self.backward += kernels
