"""Builds the module for the shape of a shard."""

from __future__ import annotations

import torch
from torch import nn

from probes.models.moe import Experts
from probes.models.shapes import LayerShape
from probes.models.transformer import Attention, DecoderLayer, GatedMlp, Stack, randomise


def build_stack(
    shape: LayerShape, layers: int, seq_len: int, *, recompute: bool, device: torch.device, seed: int = 0
) -> Stack:
    """Build the layers of a shard with random weights on the device, in FP32."""
    with torch.device(device):
        stack = Stack([_layer(shape) for _ in range(layers)], seq_len, shape.head_dim, recompute=recompute)
    randomise(stack, seed)
    return stack


def _layer(shape: LayerShape) -> nn.Module:
    attention = Attention(shape.hidden, shape.local_heads, shape.local_kv_heads, shape.head_dim)
    mlp: nn.Module
    if shape.experts:
        mlp = Experts(shape.hidden, shape.local_ffn, shape.experts, shape.local_experts, shape.top_k)
    else:
        mlp = GatedMlp(shape.hidden, shape.local_ffn)
    return DecoderLayer(attention, mlp, shape.hidden, shape.tp)
