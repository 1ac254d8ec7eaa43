"""Precision policies: which tensor has which type, and which matrix products run in which compute type.

A *precision* is what a user asks for (`fp8`); a *policy* is a named recipe behind it (`fp8`, `fp8-rowwise`, `mxfp8`).
Rows: `catalog/policies.csv`, each with its source.
"""

from __future__ import annotations

from planner.evidence import Evidence
from planner.lazy import dataclass

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
"""The precisions every answer compares, worst to best known first."""
EXTRA_PRECISIONS = ("mxfp8", "nvfp4")
"""Shown only when asked for."""

NARROW_BYTES = {"fp8": 1.0, "fp4": 0.5}
"""Compute types of linear layers alone, with the bytes of an element without its scale: PyTorch and Transformer Engine
have no convolutions in them, and run attention, norms and the output layer in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionPolicy:
    """How a precision is applied to a model: bytes per element by tensor, compute type by kind of operation."""

    id: str
    """Name of the policy, for example `bf16`, `bf16-fsdp`, `fp8-rowwise`."""
    precision: str
    """The precision it belongs to: fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4."""
    linear_compute: str
    """Compute type of the linear layers' matrix products (fp32, tf32, fp16, bf16, fp8, fp4)."""
    other_compute: str
    """Compute type of attention, the output layer and the router."""
    weight_bytes: float
    """Compute copy of the weights, per parameter (0 where the master weights are used directly)."""
    master_bytes: float
    """Full-precision weights that the optimizer updates (0 where it updates the compute copy)."""
    gradient_bytes: float
    """Accumulated gradients, per parameter."""
    activation_bytes: float
    """Stored activations, per element."""
    moment_bytes: float
    """Bytes per element of an optimizer moment (the optimizer says how many moments)."""
    reduce_bytes: float
    """Element size of the gradient reduction across data parallel ranks."""
    gather_bytes: float
    """Element size of the parameter all-gather (ZeRO/FSDP)."""
    loss_scaling: bool
    """True: dynamic loss scaling with unscale and overflow check (FP16)."""
    scaling: str
    """FP8 scaling: none, delayed, tensorwise, rowwise, blockwise, mx, nvfp4."""
    low_weight_copy_bytes: float
    """Transient low-precision weight copies (both layouts), per linear parameter."""
    cast_bytes_per_element: float
    """Extra memory traffic of amax and casts, per element of a linear layer's operand (0 without FP8)."""
    evidence: Evidence

    @property
    def narrow(self) -> bool:
        """Whether linear layers multiply in 8 or 4 bits."""
        return self.linear_compute in NARROW_BYTES

    @property
    def operand_bytes(self) -> float:
        """Bytes per element of an operand of a linear layer's product, without its scale."""
        return NARROW_BYTES.get(self.linear_compute, self.activation_bytes)

    @property
    def autocast(self) -> bool:
        """Whether 16-bit products take casts of weights that lie, and are updated, in FP32."""
        return self.weight_bytes == 4 and self.activation_bytes == 2
