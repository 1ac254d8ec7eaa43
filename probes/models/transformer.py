"""A Llama decoder layer as training frameworks write it: fused qkv and gate-up products, RMSNorm, RoPE, SwiGLU.

A layer may be the shard of one tensor-parallel rank. Its collectives are left out. With sequence parallelism the norms
and residuals see `T/t` tokens; the gathered input of a product is therefore made by repeating the local part, which
writes as much as an all-gather, and the scattered output by keeping only the local part.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as fn
from torch.utils.checkpoint import checkpoint


def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Fused causal attention; `q` `[B, n_q, S, d]`, `k` and `v` `[B, n_kv, S, d]`."""
    k, v, gqa = _matching_heads(q, k, v)
    return fn.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa)


def _matching_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Return keys and values as the fused kernels take them, and whether they have fewer heads than the queries."""
    groups = q.shape[1] // k.shape[1]
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else q.dtype
    if groups > 1 and q.is_cuda and _has_only_efficient(dtype, q.device):
        return k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1), False
    return k, v, groups > 1


def _has_only_efficient(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether the memory-efficient kernel is the only fused one on a GPU; it takes equal numbers of heads.

    FlashAttention and cuDNN's kernel take 16-bit types, from compute capability 8.0 on (PyTorch's
    `transformers/cuda/sdp_utils.cpp`). Without any of them, torch would write out all scores.
    """
    if dtype != torch.float16:
        return bool(dtype == torch.float32)
    capability: tuple[int, int] = torch.cuda.get_device_capability(device)
    return capability < (8, 0)


BACKENDS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
"""`torch.nn.attention.SDPBackend` by number.

On a GPU, FP32 has only `efficient`. From compute capability 8.0 on, that kernel computes each FP32 product as three
TF32 products, whatever torch's TF32 switch says (`OpMultiplyAddFastF32` in PyTorch's
`mem_eff_attention/gemm_kernel_utils.h`). FP32 and TF32 attention are therefore the same kernel at the same speed.
"""


def attention_backend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> str | None:
    """Return the kernel family that torch chooses for `causal_attention`; None if this version does not report it.

    The choice depends on versions: on Hopper, torch prefers cuDNN's kernel from a certain cuDNN release on. The suffix
    `_expanded_kv` means that keys and values are first written out for each query head; `_cpu` means a CPU.
    """
    choose = getattr(torch, "_fused_sdp_choice", None)
    if choose is None:
        return None
    keys, values, gqa = _matching_heads(q, k, v)
    name = BACKENDS.get(int(choose(q, keys, values, is_causal=True, enable_gqa=gqa)))
    if name is None:
        return None
    return name + ("_expanded_kv" if keys.shape[1] > k.shape[1] else "") + ("" if q.is_cuda else "_cpu")


ENOUGH_TOKENS = 2048
"""torch chooses by types, heads and head size, and by length only up to a few tokens. Longer test tensors might not fit
beside trials that fill the device."""


def backend_of_heads(
    heads: int, kv_heads: int, head_dim: int, length: int, *, dtype: str, device: torch.device
) -> str | None:
    """Return `attention_backend` for one sequence, for models whose queries and keys cannot be accessed.

    Args:
        heads: query heads.
        kv_heads: key and value heads.
        head_dim: size of a head.
        length: number of tokens.
        dtype: name of the type that attention runs in: autocast's, else that of the activations.
        device: device that attention runs on.
    """
    q, k, v = (
        torch.empty(
            1, count, min(length, ENOUGH_TOKENS), head_dim, dtype=getattr(torch, dtype), device=device
        ).requires_grad_()
        for count in (heads, kv_heads, kv_heads)
    )
    return attention_backend(q, k, v)


class _Gather(torch.autograd.Function):  # type: ignore[misc] # torch is untyped here
    """Stands in for the all-gather of sequence parallelism; its backward pass keeps the local part of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ranks: int) -> torch.Tensor:
        ctx.rows = x.shape[1]
        return x.repeat(1, ranks, 1)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grads[0][:, : ctx.rows].contiguous(), None


class _Scatter(torch.autograd.Function):  # type: ignore[misc]
    """Stands in for the reduce-scatter; its backward pass gathers the gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ranks: int) -> torch.Tensor:
        ctx.ranks = ranks
        return x[:, : x.shape[1] // ranks].contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grads[0].repeat(1, ctx.ranks, 1), None


class Attention(nn.Module):  # type: ignore[misc]
    """Grouped-query attention of one shard."""

    def __init__(self, hidden: int, heads: int, kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.sizes = (heads, kv_heads, head_dim)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * head_dim, bias=False)
        self.out = nn.Linear(heads * head_dim, hidden, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        batch, length, _ = x.shape
        heads, kv_heads, d = self.sizes
        qkv = self.qkv(x).view(batch, length, heads + 2 * kv_heads, d).transpose(1, 2)
        q, k, v = qkv.split([heads, kv_heads, kv_heads], dim=1)
        y = causal_attention(rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.out(y.transpose(1, 2).reshape(batch, length, heads * d))


class GatedMlp(nn.Module):  # type: ignore[misc]
    """SwiGLU of one shard."""

    def __init__(self, hidden: int, ffn: int) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        gate, up = self.up(x).chunk(2, dim=-1)
        return self.down(fn.silu(gate) * up)


class DecoderLayer(nn.Module):  # type: ignore[misc]
    """Attention and feed-forward with their norms and residuals."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, hidden: int, ranks: int) -> None:
        super().__init__()
        self.attention, self.mlp = attention, mlp
        self.norm1, self.norm2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.ranks = ranks

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Map `[B, S/ranks, h]` to `[B, S/ranks, h]`."""
        x = x + self._scatter(self.attention(self._gather(self.norm1(x)), cos, sin))
        return x + self._scatter(self.mlp(self._gather(self.norm2(x))))

    def _gather(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.ranks == 1 else _Gather.apply(x, self.ranks)

    def _scatter(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.ranks == 1 else _Scatter.apply(x, self.ranks)


class Stack(nn.Module):  # type: ignore[misc]
    """A sequence of layers, each optionally recomputed in the backward pass."""

    def __init__(self, layers: list[nn.Module], length: int, head_dim: int, *, recompute: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.recompute = recompute
        angles = torch.outer(torch.arange(length), 500000.0 ** (-torch.arange(0, head_dim, 2) / head_dim))
        self.register_buffer("cos", torch.cat([angles, angles], dim=-1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], dim=-1).sin(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, S/ranks, h]` to `[B, S/ranks, h]`."""
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for layer in self.layers:
            run = partial(checkpoint, layer, use_reentrant=False) if self.recompute else layer
            x = run(x, cos, sin)
        return x


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Apply rotary position embedding to `[B, n, S, d]`, using tables `[S, d]`."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def randomise(module: nn.Module, seed: int) -> None:
    """Draw weights from N(0, 0.02) and leave norms at 1, so that values resemble training and are not zero."""
    generator = torch.Generator(device=next(module.parameters()).device).manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.02, generator=generator)
