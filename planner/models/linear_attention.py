"""Layers that carry a state along the sequence instead of attending to it.

These are Mamba-1 and Mamba-2, the gated delta rule, Kimi Delta Attention (KDA), and gated short convolutions, whose
state is the last few tokens. They have the same parts under different names: an input product to gates, values, keys,
queries and some numbers per head; a short convolution; a scan over the sequence; a gated norm; and an output product.
Three of them differ in one part each:

- Mamba-1: time steps of every channel, keys and queries are products of the convolved values (`step_rank`), and all
  channels share the keys, so that a channel is a value head of size 1.
- KDA: the gate and a decay for every channel of the keys come through a small rank (`gate_rank`).
- Short convolutions: a gate before and a gate behind the convolution (`gates`), and neither keys nor a scan.

Sources: Mamba (Gu and Dao, arXiv 2312.00752, section 3.4), Mamba-2 (Dao and Gu, arXiv 2405.21060, section 7), Gated
DeltaNet (Yang et al., arXiv 2412.06464, section 3.4), Kimi Linear (arXiv 2510.26692), and the models' code in the
transformers library (`JambaMambaMixer`, `NemotronHMamba2Mixer`, `Qwen3NextGatedDeltaNet`, `KimiLinearDeltaAttention`,
`Lfm2ShortConv`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.lazy import dataclass

if TYPE_CHECKING:  # numpy takes long to import, and the catalogue does not need it
    import numpy as np
    import numpy.typing as npt

    Size = npt.NDArray[np.float64] | float


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerMatrix:
    """A matrix of a layer between its input product and its output product."""

    inputs: int
    outputs: int
    split: str
    """What tensor parallel ranks share out: `outputs`, `inputs`, or `none` if each of them holds the whole matrix."""


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
    gates: int = 1
    """Gates, each of the size of the values, among the outputs of the input product."""
    gate_rank: int = 0
    """KDA: rank through which the gate and the decays of the keys come; 0 for other kinds."""
    step_rank: int = 0
    """Mamba-1: rank through which the time step of each channel comes from the values; 0 for other kinds."""

    @property
    def inner(self) -> int:
        """Size of a token's values over all heads."""
        return self.value_heads * self.value_dim

    @property
    def keys(self) -> int:
        """Size of a token's keys over all heads; the queries have the same size."""
        return self.key_heads * self.key_dim

    @property
    def scans(self) -> bool:
        """Whether it has keys, and a state that is scanned; otherwise it is a short convolution."""
        return self.keys > 0

    @property
    def input_products(self) -> tuple[int, ...]:
        """Outputs of each product of the hidden state (the first is fused from several in most implementations)."""
        if self.gate_rank:  # queries, keys, values and numbers per head are separate in KDA
            return (self.keys, self.keys, self.inner, self.head_inputs * self.value_heads)
        return (self.outputs,)

    @property
    def outputs(self) -> int:
        """Outputs of the input product: gates, values, keys, queries, and the numbers per head."""
        keys = 0 if self.step_rank else 2 * self.keys
        return (1 + self.gates) * self.inner + keys + self.head_inputs * self.value_heads

    @property
    def keys_of_input(self) -> int:
        """The part of `outputs` in keys and queries, which is split over tensor parallel ranks by key heads."""
        return 0 if self.step_rank else 2 * self.keys

    def inner_matrices(self, hidden: int) -> tuple[InnerMatrix, ...]:
        """The matrices of one layer besides those of the input and output products; none in Mamba-2, for example."""
        if self.gate_rank:
            down = InnerMatrix(inputs=hidden, outputs=self.gate_rank, split="none")
            decays = InnerMatrix(inputs=self.gate_rank, outputs=self.keys, split="outputs")
            gate = InnerMatrix(inputs=self.gate_rank, outputs=self.inner, split="outputs")
            return down, decays, down, gate
        if self.step_rank:
            from_values = InnerMatrix(inputs=self.inner, outputs=self.step_rank + 2 * self.keys, split="inputs")
            return from_values, InnerMatrix(inputs=self.step_rank, outputs=self.inner, split="outputs")
        return ()

    def products(self, hidden: int, tp: npt.NDArray[np.float64]) -> Iterator[tuple[Size, Size]]:
        """The outputs and the inputs of each product of a tensor parallel rank, `[layout]` or for all layouts.

        Args:
            hidden: size of the hidden state.
            tp: tensor parallel size, `[layout]`.
        """
        keys = self.keys_of_input
        yield (self.outputs - keys) / tp + keys / tp.clip(max=self.key_heads), float(hidden)
        for matrix in self.inner_matrices(hidden):
            outputs, inputs = float(matrix.outputs), float(matrix.inputs)
            yield (
                outputs / tp if matrix.split == "outputs" else outputs,
                inputs / tp if matrix.split == "inputs" else inputs,
            )
        yield float(hidden), self.inner / tp

    @property
    def further_values(self) -> int:
        """Values per token that enter the scan, besides keys, queries, values and gates of the input product."""
        return (self.inner + self.keys) * bool(self.gate_rank) + self.inner * bool(self.step_rank)

    @property
    def heads_to_split(self) -> int:
        """The number that a tensor parallel size must divide.

        Megatron-Core does not split a group of Mamba-2 over two ranks (`megatron/core/ssm/mamba_mixer.py`). The
        channels of Mamba-1 and of a short convolution are independent of one another.
        """
        if self.step_rank or not self.scans:
            return self.inner
        return math.gcd(self.key_heads, self.value_heads)

    @property
    def scan_flop(self) -> float:
        """Forward FLOP of the scan per token, counted as a recurrence.

        These are the decay, the outer product of key and value, their sum, and the product with the query
        (NVIDIA/Megatron-LM, `megatron/training/training.py`, `mamba_layer_flops`). Kernels that work on chunks need
        more. A short convolution has two FLOP for each of its taps, and its two gates.
        """
        if not self.scans:
            return (2.0 * self.convolution + self.gates) * self.inner
        return 7.0 * self.inner * self.key_dim

    def scanned_keys(self, tp: npt.NDArray[np.int64], cp: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Size of the keys that a GPU scans for each of its tokens, `[layout]`; the queries have the same size.

        Context parallel ranks exchange their parts of the sequence for heads. If there are more ranks than key heads,
        several ranks scan the same heads (NVIDIA/Megatron-LM, `megatron/core/ssm/mamba_context_parallel.py`).
        """
        keys: npt.NDArray[np.float64] = self.keys * cp / (tp * cp).clip(max=self.key_heads)
        return keys

    def matrix_params(self, hidden: int) -> float:
        """Parameters of the matrices of one such layer."""
        between = sum(matrix.inputs * matrix.outputs for matrix in self.inner_matrices(hidden))
        return float(hidden * (self.outputs + self.inner) + between)

    @property
    def is_delta_rule(self) -> bool:
        """Whether the layers follow the gated delta rule, which has a decay and a rate per value head, not Mamba-2."""
        return self.head_inputs == 2

    @property
    def vector_params(self) -> float:
        """Parameters of one such layer outside its matrices: convolution, numbers per value head, and norm.

        Mamba-2 has a bias in its convolution, three numbers per value head (`A_log`, `dt_bias`, `D`), and a norm over
        all heads (`NemotronHMamba2Mixer`). The gated delta rule has no bias, two numbers (`A_log`, `dt_bias`), and one
        norm that all heads share (`Qwen3NextGatedDeltaNet`). Mamba-1 has a bias, two numbers per channel, and a decay
        for each channel and number of its state.
        """
        convolved, norm = self.inner + self.keys_of_input, self.value_dim if self.is_delta_rule else self.inner
        decays = self.inner * self.key_dim if self.step_rank else 0
        per_head = (2.0 if self.is_delta_rule or self.step_rank else 3.0) * self.scans
        bias = 0.0 if self.is_delta_rule else 1.0
        return convolved * (self.convolution + bias) + per_head * self.value_heads + decays + self.gated_norm * norm
