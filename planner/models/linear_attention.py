"""Layers that carry a state along the sequence instead of attending to it: Mamba-2, and the gated delta rule.

Both have the same parts, under different names: a product into gate, values, keys, queries and some numbers per head;
a short convolution over values, keys and queries; a scan over the sequence; a gated norm; a product back.

Sources: Mamba-2 (Dao and Gu, arXiv 2405.21060, section 7), Gated DeltaNet (Yang et al., arXiv 2412.06464, section 3.4),
and the models' code in the transformers library (`NemotronHMamba2Mixer`, `Qwen3NextGatedDeltaNet`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.lazy import dataclass

if TYPE_CHECKING:  # numpy takes long to import, and a catalogue needs none of it
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """The dimensions of a model's linear-attention layers."""

    layers: int
    """Layers of the model that have one, instead of attention or beside it."""
    key_heads: int
    """Heads of keys and of queries; in Mamba-2 the groups of B and C."""
    key_dim: int
    """Size of one of them; in Mamba-2 the size of the state."""
    value_heads: int
    value_dim: int
    """Size of one value head."""
    head_inputs: int = 1
    """Numbers that a token gives each value head beside its values: Mamba-2's time step; decay and rate of a delta
    rule."""
    convolution: int = 4
    """Tokens that the convolution spans."""
    gated_norm: bool = True
    """Whether a norm with weights stands before the product back."""

    @property
    def inner(self) -> int:
        """Size of the values of a token, all heads."""
        return self.value_heads * self.value_dim

    @property
    def keys(self) -> int:
        """Size of the keys of a token, all heads; the queries are as large."""
        return self.key_heads * self.key_dim

    @property
    def outputs(self) -> int:
        """Outputs of the product into the layer: gate, values, keys, queries, and the numbers per head."""
        return 2 * self.inner + 2 * self.keys + self.head_inputs * self.value_heads

    @property
    def scan_flop(self) -> float:
        """Forward FLOP of the scan per token, counted as the recurrence that it is.

        Decay, outer product of key and value, their sum, and the product with the query (NVIDIA/Megatron-LM,
        `megatron/training/training.py`, `mamba_layer_flops`). Kernels that work on chunks do more.
        """
        return 7.0 * self.inner * self.key_dim

    def scanned_keys(self, tp: npt.NDArray[np.int64], cp: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Size of the keys that a GPU scans for each of its tokens, `[layout]`; the queries are as large.

        Context parallel ranks exchange their parts of the sequence for heads; where they are more than the key heads,
        several scan the same ones (NVIDIA/Megatron-LM, `megatron/core/ssm/mamba_context_parallel.py`).
        """
        keys: npt.NDArray[np.float64] = self.keys * cp / (tp * cp).clip(max=self.key_heads)
        return keys

    def matrix_params(self, hidden: int) -> float:
        """Parameters of the products into one such layer and back."""
        return float(hidden * (self.outputs + self.inner))

    @property
    def vector_params(self) -> float:
        """The convolution with its bias, two numbers per head and the norm: small, but counted."""
        convolved = self.inner + 2 * self.keys
        return convolved * (self.convolution + 1.0) + 3.0 * self.value_heads + self.gated_norm * self.inner
