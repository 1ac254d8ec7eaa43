"""Small transformers, pre-norm: decoders, encoders, and decoders with routed experts."""

from __future__ import annotations

import torch
from torch import nn

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of a small transformer. Width and tokens per batch are multiples of 16, as FP8 matrix units need."""

    width: int
    layers: int
    heads: int
    context: int
    batch: int
    experts: int = 0
    """Routed experts per feed-forward layer, of which each token takes one; 0: dense."""


class Block(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Attention and a feed-forward network, each preceded by a norm."""

    def __init__(self, shape: Shape, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = shape.heads, causal
        self.attention_norm = nn.LayerNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.attention_out = nn.Linear(shape.width, shape.width)
        self.mlp_norm = nn.LayerNorm(shape.width)
        self.mlp = Experts(shape) if shape.experts else FeedForward(shape.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[batch, tokens, width]` to the same shape."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.mlp_norm(x))


class FeedForward(nn.Module):  # type: ignore[misc]
    """A feed-forward network with an inner width of four times the outer one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[..., width]` to the same shape."""
        return self.down(nn.functional.gelu(self.up(x)))


class Experts(nn.Module):  # type: ignore[misc]
    """Routed experts, one per token, weighted by the router's probability (Switch, arXiv 2101.03961)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.router = nn.Linear(shape.width, shape.experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(shape.width) for _ in range(shape.experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[..., width]` to the same shape."""
        flat = x.reshape(-1, x.shape[-1])
        weight, chosen = self.router(flat).float().softmax(-1).max(-1)
        y = torch.zeros_like(flat, dtype=torch.float32)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero(as_tuple=True)[0]
            if rows.numel():
                y = y.index_add(0, rows, expert(flat[rows]).float() * weight[rows, None])
        return y.reshape(x.shape).to(x.dtype)


class TextModel(nn.Module):  # type: ignore[misc]
    """A transformer from tokens to logits."""

    def __init__(self, shape: Shape, vocabulary: int, *, causal: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, shape.width)
        self.position = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape, causal=causal) for _ in range(shape.layers))
        self.final_norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, vocabulary)
        for table in (self.embedding, self.position):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map `[batch, tokens]` to `[batch, tokens, vocabulary]`."""
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x))


class ImageTransformer(nn.Module):  # type: ignore[misc]
    """A small ViT (arXiv 2010.11929) without a class token, which classifies the mean over the patches."""

    def __init__(self, shape: Shape, patch: int, classes: int) -> None:
        super().__init__()
        self.patch = patch
        self.patches = nn.Linear(patch * patch, shape.width)
        self.position = nn.Parameter(0.02 * torch.randn(shape.context, shape.width))
        self.blocks = nn.ModuleList(Block(shape, causal=False) for _ in range(shape.layers))
        self.final_norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map `[batch, 1, side, side]` to `[batch, classes]`."""
        cut = nn.functional.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        x = self.patches(cut) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x).mean(1))
