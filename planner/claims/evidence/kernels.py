"""Published kernel times as evidence: matrix products of one shape in FP8 and in BF16."""

from __future__ import annotations

from planner.claims.case import Case
from planner.claims.evidence.published import arrow
from planner.kernels.catalogue import load_surface
from planner.kernels.surface import product_s


def product_gain(gpu: str, size: int) -> Case:
    """Return the speed-up of a square product in FP8, with the surfaces' spread as range and without casts.

    Args:
        gpu: id of a GPU with surfaces of both types.
        size: M, N and K.
    """
    narrow, wide = (load_surface(f"matmul:{gpu}:{compute}") for compute in ("fp8", "bf16"))
    ratio = float(product_s(wide, size, size, size) / product_s(narrow, size, size, size))
    spread = 1.0 + (wide.spread**2 + narrow.spread**2) ** 0.5
    return Case(
        what=f"{gpu}, {size}³, {arrow('bf16', 'fp8')}", basis="kernels", low=ratio / spread, mid=ratio,
        high=ratio * spread, source=f"planner/catalog/kernels.csv: matmul:{gpu}:fp8, matmul:{gpu}:bf16",
    )  # fmt: skip
