"""Exact causal attention of some of the queries to the keys and values of all ranks, which are gathered for it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional as fn
from torch.nn.attention.bias import causal_lower_right

from probes.ranks.team import RankGroup


def positions_of(rank: int, ranks: int, length: int, device: torch.device) -> torch.Tensor:
    """Return the positions of a rank's tokens: of `2 ranks` chunks, chunk `rank` from the head and from the tail."""
    chunks = torch.arange(length, device=device).chunk(2 * ranks)
    return torch.cat([chunks[rank], chunks[2 * ranks - 1 - rank]])


class _Gather(torch.autograd.Function):  # type: ignore[misc] # torch is untyped here
    """All-gather along the first dimension; its backward pass is the reduce-scatter."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor, group: RankGroup) -> torch.Tensor:
        ctx.group = group
        gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)  # torch 2.13 renamed it
        whole = part.new_empty((group.size * part.shape[0], *part.shape[1:]))
        gather(whole, part.contiguous(), group=group.handle)
        return whole

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
        whole = grads[0].contiguous()
        part = whole.new_empty((whole.shape[0] // ctx.group.size, *whole.shape[1:]))
        scatter(part, whole, group=ctx.group.handle)
        return part, None


class GatheredAttention:
    """Attention of one rank's two chunks."""

    def __init__(self, group: RankGroup, rank: int, length: int) -> None:
        """Prepare the attention of a rank.

        Args:
            group: the ranks that share the sequences.
            rank: this one.
            length: tokens of a whole sequence.
        """
        self._group = group
        index = group.index_of(rank)
        chunk = length // (2 * group.size)
        self._ends = (index + 1) * chunk, (2 * group.size - index) * chunk
        self._masks = tuple(causal_lower_right(chunk, end) for end in self._ends)

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Map `q` `[B, n_q, S / ranks, d]`, `k` and `v` `[B, n_kv, S / ranks, d]` to `[B, n_q, S / ranks, d]`."""
        keys, values = self._whole(torch.stack([k, v])).unbind()
        groups = q.shape[1] // k.shape[1]
        if groups > 1:  # a lower-right causal mask requires equal numbers of heads
            keys, values = keys.repeat_interleave(groups, dim=1), values.repeat_interleave(groups, dim=1)
        parts = [
            fn.scaled_dot_product_attention(part, keys[:, :, :end], values[:, :, :end], mask)
            for part, end, mask in zip(q.chunk(2, dim=2), self._ends, self._masks, strict=True)
        ]
        return torch.cat(parts, dim=2)

    def _whole(self, pair: torch.Tensor) -> torch.Tensor:
        """Gather keys and values `[2, B, n_kv, S / ranks, d]` of all ranks, in the order of positions."""
        head, tail = _Gather.apply(pair, self._group).unflatten(0, (-1, 2)).chunk(2, dim=-2)
        return torch.cat([*head.unbind(), *tail.flip(0).unbind()], dim=-2)
