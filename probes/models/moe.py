"""A mixture-of-experts feed-forward network of one expert-parallel rank, with grouped matrix products.

The rank routes its own tokens and computes its own experts. With `ep` ranks and balanced load it receives as many rows
as it sends, so the exchange is replaced by dealing the rank's rows to its own experts; the collectives are left out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as fn


def grouped_product() -> Any:
    """Return `(rows [T, K], weights [E, K, N], offs=ends of the groups) -> [T, N]`; None if this torch lacks it."""
    return getattr(fn, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)


class Experts(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Routed experts: router, top-k, permutation, grouped SwiGLU, weighted sum."""

    def __init__(self, hidden: int, ffn: int, experts: int, local: int, top_k: int) -> None:
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.up = nn.Parameter(torch.empty(local, hidden, 2 * ffn))
        self.down = nn.Parameter(torch.empty(local, ffn, hidden))
        self.local, self.top_k = local, top_k

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, S, h]` to `[B, S, h]`."""
        flat = x.reshape(-1, x.shape[-1])
        scores = fn.softmax(self.router(flat).float(), dim=-1)
        weights, chosen = scores.topk(self.top_k, dim=-1)
        # Balanced load: row i of the repeated rows goes to expert i mod local, whatever the router chose.
        deal = torch.arange(chosen.numel(), device=x.device) % self.local
        order = torch.argsort(deal, stable=True)
        rows = flat.repeat_interleave(self.top_k, dim=0)[order]
        y = self._experts(rows)
        back = torch.empty_like(y).index_copy(0, order, y).view(-1, self.top_k, x.shape[-1])
        return (back * weights.to(y.dtype).unsqueeze(-1)).sum(dim=1).reshape(x.shape)

    def _experts(self, rows: torch.Tensor) -> torch.Tensor:
        gate, up = _grouped(rows, self.up).chunk(2, dim=-1)
        return _grouped(fn.silu(gate) * up, self.down)


def ends_of_groups(rows: int, groups: int, device: torch.device) -> torch.Tensor:
    """Return where the rows of each expert end if dealt as evenly as possible; `[groups]` int32.

    They are counted on the device: `bincount`, or a copy of the host's own count, would make the host wait for the GPU.
    """
    each = (rows + groups - 1 - torch.arange(groups, device=device)) // groups
    return each.cumsum(0).to(torch.int32)


def _grouped(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    product = grouped_product()
    if torch.is_autocast_enabled(rows.device.type):  # grouped products are not on autocast's list
        dtype = torch.get_autocast_dtype(rows.device.type)
        rows, weights = rows.to(dtype), weights.to(dtype)
    if product is not None and rows.dtype == torch.bfloat16:
        return product(rows, weights, offs=ends_of_groups(len(rows), len(weights), rows.device))
    rows_of = [(len(rows) + len(weights) - 1 - i) // len(weights) for i in range(len(weights))]
    return torch.cat([part @ weight for part, weight in zip(rows.split(rows_of), weights, strict=True)])
