"""Layers that carry a state along the sequence instead of attending to it: Mamba-2 and the gated delta rule.

Both have the same parts under different names: an input product to gate, values, keys, queries and some numbers per
head; a short convolution over values, keys and queries; a scan over the sequence; a gated norm; and an output product.

Sources: Mamba-2 (Dao and Gu, arXiv 2405.21060, section 7), Gated DeltaNet (Yang et al., arXiv 2412.06464, section 3.4),
and the models' code in the transformers library (`NemotronHMamba2Mixer`, `Qwen3NextGatedDeltaNet`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.lazy import dataclass

if TYPE_CHECKING:  # numpy takes long to import, and the catalogue does not need it
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """The dimensions of a model's linear-attention layers."""

    layers: int
    """Number of layers with linear attention, instead of attention or in parallel with it."""
    key_heads: int
    """Number of key heads and of query heads; in Mamba-2 the groups of B and C."""
    key_dim: int
    """Size of a key or query head; in Mamba-2 the size of the state."""
    value_heads: int
    value_dim: int
    """Size of one value head."""
    head_inputs: int = 1
    """Further inputs per token and value head, in addition to the values: Mamba-2's time step, or decay and rate of a
    delta rule."""
    convolution: int = 4
    """Number of tokens that the convolution spans."""
    gated_norm: bool = True
    """Whether a norm with weights precedes the output product."""

    @property
    def inner(self) -> int:
        """Size of a token's values over all heads."""
        return self.value_heads * self.value_dim

    @property
    def keys(self) -> int:
        """Size of a token's keys over all heads; the queries have the same size."""
        return self.key_heads * self.key_dim

    @property
    def outputs(self) -> int:
        """Outputs of the input product: gate, values, keys, queries, and the numbers per head."""
        return 2 * self.inner + 2 * self.keys + self.head_inputs * self.value_heads

    @property
    def scan_flop(self) -> float:
        """Forward FLOP of the scan per token, counted as a recurrence.

        These are the decay, the outer product of key and value, their sum, and the product with the query
        (NVIDIA/Megatron-LM, `megatron/training/training.py`, `mamba_layer_flops`). Kernels that work on chunks need
        more.
        """
        return 7.0 * self.inner * self.key_dim

    def scanned_keys(self, tp: npt.NDArray[np.int64], cp: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Size of the keys that a GPU scans for each of its tokens, `[layout]`; the queries have the same size.

        Context parallel ranks exchange their parts of the sequence for heads. If there are more ranks than key heads,
        several ranks scan the same heads (NVIDIA/Megatron-LM, `megatron/core/ssm/mamba_context_parallel.py`).
        """
        keys: npt.NDArray[np.float64] = self.keys * cp / (tp * cp).clip(max=self.key_heads)
        return keys

    def matrix_params(self, hidden: int) -> float:
        """Parameters of the input and output products of one such layer."""
        return float(hidden * (self.outputs + self.inner))

    @property
    def is_delta_rule(self) -> bool:
        """Whether the layers follow the gated delta rule, which has a decay and a rate per value head, not Mamba-2."""
        return self.head_inputs == 2

    @property
    def vector_params(self) -> float:
        """Parameters of one such layer outside its matrices: convolution, numbers per value head, and norm.

        Mamba-2 has a bias in its convolution, three numbers per value head (`A_log`, `dt_bias`, `D`), and a norm over
        all heads (`NemotronHMamba2Mixer`). The gated delta rule has no bias, two numbers (`A_log`, `dt_bias`), and one
        norm that all heads share (`Qwen3NextGatedDeltaNet`).
        """
        convolved, norm = self.inner + 2 * self.keys, self.value_dim if self.is_delta_rule else self.inner
        per_head = 2.0 if self.is_delta_rule else 3.0
        bias = 0.0 if self.is_delta_rule else 1.0
        return convolved * (self.convolution + bias) + per_head * self.value_heads + self.gated_norm * norm
