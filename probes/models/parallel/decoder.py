"""A Llama decoder written to be split, as training frameworks do: separate projections, which are sharded by heads.

Strategies take it apart: tensor parallelism shards its projections, pipeline parallelism keeps a range of its layers,
and context parallelism replaces its attention. The same seed gives all of them the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import nn
from torch.nn import functional as fn
from torch.utils.checkpoint import checkpoint

from probes.models.parallel.case import ParallelCase
from probes.models.shapes import LayerShape
from probes.models.transformer import causal_attention, randomise, rotate
from probes.ranks.team import ALONE, Team

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Norm(nn.RMSNorm):  # type: ignore[misc] # torch is untyped here
    """RMSNorm that keeps the type of its input, whatever type its weight is held in."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        return fn.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps).to(x.dtype)


class Attention(nn.Module):  # type: ignore[misc]
    """Grouped-query attention; a shard has as many heads as its projections have."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.q = nn.Linear(shape.hidden, shape.heads * shape.head_dim, bias=False)
        self.k = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.v = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.o = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)
        self.attend: Attend = causal_attention

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        q, k, v = (
            part.view(part.shape[0], part.shape[1], -1, self.head_dim).transpose(1, 2)
            for part in (self.q(x), self.k(x), self.v(x))
        )
        y = self.attend(rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.o(y.transpose(1, 2).flatten(2))


class GatedMlp(nn.Module):  # type: ignore[misc]
    """SwiGLU."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.up = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        return self.down(fn.silu(self.gate(x)) * self.up(x))


class DecoderLayer(nn.Module):  # type: ignore[misc]
    """Attention and feed-forward with their norms and residuals, registered in order of use."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.norm1 = Norm(shape.hidden, eps=1e-5)
        self.attention = Attention(shape)
        self.norm2 = Norm(shape.hidden, eps=1e-5)
        self.mlp = GatedMlp(shape)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):  # type: ignore[misc]
    """The whole model, or one pipeline stage of it."""

    def __init__(self, case: ParallelCase) -> None:
        super().__init__()
        shape = case.shape
        self.embedding: nn.Module | None = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleDict({str(i): DecoderLayer(shape) for i in range(case.layers)})
        self.norm: nn.Module | None = Norm(shape.hidden, eps=1e-5)
        self.output: nn.Module | None = nn.Linear(shape.hidden, shape.vocab, bias=False)
        halves = 500000.0 ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
        angles = torch.outer(torch.arange(case.seq_len), halves).repeat(1, 2)
        self.cos, self.sin = angles.cos(), angles.sin()  # not buffers, which DDP would broadcast before each step
        self.recompute = False
        self.region: Callable[[], AbstractContextManager[object]] = nullcontext
        """Context of the forward pass."""
        self.stream: torch.dtype | None = None
        """Type of the hidden states between layers; None: the type of the embedding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens `[B, S]`, or hidden states of the previous stage, to logits `[B, S, V]`, or hidden states."""
        with self.region():
            if self.embedding is not None:
                x = self.embedding(x)
                x = x if self.stream is None else x.to(self.stream)
            for layer in self.layers.values():
                run = partial(checkpoint, layer, use_reentrant=False) if self.recompute else layer
                x = run(x, self.cos, self.sin)
            return x if self.norm is None or self.output is None else self.output(self.norm(x))


def build_decoder(case: ParallelCase, seed: int, device: torch.device, team: Team = ALONE) -> Decoder:
    """Build the whole model on the device in FP32, and wait until all ranks have built theirs.

    Raises:
        PeerFailed: another rank does not have enough memory for it.
    """
    with torch.device(device):
        decoder = Decoder(case)
    randomise(decoder, seed)
    team.meet()
    return decoder


def stage_of(decoder: Decoder, stage: int, stages: int) -> Decoder:
    """Keep one stage of a model; all stages have equally many layers, and embedding and output are at the ends."""
    each = len(decoder.layers) // stages
    kept = range(stage * each, (stage + 1) * each)
    decoder.layers = nn.ModuleDict({str(i): decoder.layers[str(i)] for i in kept})
    if stage > 0:
        decoder.embedding = None
    if stage < stages - 1:
        decoder.norm = decoder.output = None
    return decoder


def global_batch(case: ParallelCase, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random tokens and their targets, shifted by one: both `[sequences, S]`, and the same on every rank."""
    generator = torch.Generator(device=device).manual_seed(seed)
    size = (case.sequences, case.seq_len + 1)
    tokens = torch.randint(0, case.shape.vocab, size, generator=generator, device=device)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy in FP32."""
    return fn.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
