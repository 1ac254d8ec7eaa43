"""Precision policies: the type of each tensor, and the compute type of each kind of matrix product.

A user asks for a *precision* (`fp8`); a *policy* is a named recipe that implements it (`fp8`, `fp8-rowwise`, `mxfp8`).
The rows are in `catalog/policies.csv`, each with its source.
"""

from __future__ import annotations

from planner.evidence import Evidence
from planner.lazy import dataclass

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
"""The precisions that every answer compares, from the widest type to the narrowest."""
EXTRA_PRECISIONS = ("mxfp8", "nvfp4")
"""Precisions shown only on request."""

NARROW_BYTES = {"fp8": 1.0, "fp4": 0.5}
"""Bytes per element, without its scale, of the compute types that only linear layers use: PyTorch and Transformer
Engine have no convolutions in these types, and run attention, norms and the output layer in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionPolicy:
    """How a precision is applied to a model: bytes per element by tensor, compute type by kind of operation."""

    id: str
    """Name of the policy, for example `bf16`, `bf16-fsdp`, `fp8-rowwise`."""
    precision: str
    """The precision to which it belongs: fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4."""
    linear_compute: str
    """Compute type of the linear layers' matrix products (fp32, tf32, fp16, bf16, fp8, fp4)."""
    other_compute: str
    """Compute type of attention, the output layer and the router."""
    weight_bytes: float
    """Compute copy of the weights, per parameter (0 if gathered copies of the master weights are used instead)."""
    master_bytes: float
    """Full-precision weights that the optimizer updates, per parameter (0 if it updates the compute copy)."""
    gradient_bytes: float
    """Accumulated gradients, per parameter."""
    activation_bytes: float
    """Stored activations, per element."""
    moment_bytes: float
    """Bytes per element of an optimizer moment (the optimizer determines the number of moments)."""
    reduce_bytes: float
    """Element size of the gradient reduction across data parallel ranks."""
    gather_bytes: float
    """Element size of the parameter all-gather (ZeRO/FSDP)."""
    loss_scaling: bool
    """Whether the loss is scaled dynamically, with unscaling and an overflow check (FP16)."""
    scaling: str
    """FP8 scaling: none, delayed, tensorwise, rowwise, blockwise, mx, nvfp4."""
    low_weight_copy_bytes: float
    """Transient low-precision weight copies (both layouts), per linear parameter."""
    cast_bytes_per_element: float
    """Bytes of extra memory traffic for amax and casts, per element of a linear layer's operand (0 without FP8)."""
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
        """Whether 16-bit products use casts of weights that are stored and updated in FP32."""
        return self.weight_bytes == 4 and self.activation_bytes == 2
