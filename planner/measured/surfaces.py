"""Matrix products and attention of a record as surfaces, which plans read."""

from __future__ import annotations

import numpy as np

from planner.evidence import Evidence
from planner.kernels.fit import rising
from planner.kernels.surface import Axis, Surface
from planner.measured.kernels import ELEMENT_BYTES, LinearFit, attention_columns

MEASURED_AXES = (
    Axis(name="n", first=5, count=12),
    Axis(name="k", first=5, count=12),
    Axis(name="m", first=4, count=13),
)
"""Shapes of a record's surface of products. They start small, because a laptop plans small models, too."""

MEASURED_ATTENTION_AXES = (
    Axis(name="head_dim", first=6, count=2),
    Axis(name="heads", first=0, count=13),
    Axis(name="length", first=7, count=9),
)
"""Shapes of a record's surface of attention: head sizes of 64 and 128, lengths of 128 to 32 768."""


def measured_surface(fit: LinearFit, compute: str, evidence: Evidence, slowdown: float = 1.0) -> Surface:
    """Surface of a record's products: the fit with its residuals, evaluated at nodes from small to large shapes.

    Args:
        fit: fit of the products.
        compute: compute type.
        evidence: evidence of the record.
        slowdown: mean time of a layer's three products, run within layers, over the time by the fit.
    """
    n, k, m = (grid.ravel() for grid in np.meshgrid(*(axis.nodes for axis in MEASURED_AXES), indexing="ij"))
    size = ELEMENT_BYTES.get(compute, 2.0)
    flop, moved = 2.0 * m * n * k, (m * k + n * k) * size + m * n * max(size, 2.0)
    seconds = slowdown * fit.all_seconds(np.column_stack([flop, moved, np.ones_like(flop)]), np.column_stack([m, n, k]))
    shape = [axis.count for axis in MEASURED_AXES]
    log_s = rising(np.log(seconds).reshape(shape))
    return Surface(
        id=f"{evidence.id}:{compute}", axes=MEASURED_AXES, log_rate=np.log(flop).reshape(shape) - log_s,
        floor_s=fit.coefficients[2], spread=fit.spread, stack_spread=0.0, evidence=evidence,
    )  # fmt: skip


def measured_attention(
    fit: LinearFit, compute: str, floor_s: float, evidence: Evidence, slowdown: float = 1.0
) -> Surface:
    """Surface of a record's forward attention: its fit over FLOP and length, for any number of heads.

    Records hold few head sizes, and enough heads to fill the device. Other head sizes take the rate of the nearest
    measured size, and few heads are assumed to run at the same rate as many.

    Args:
        fit: fit of the forward phase.
        compute: compute type, for the surface's name.
        floor_s: least time of a kernel.
        evidence: evidence of the record.
        slowdown: time within layers over the time by the fit.
    """
    d, heads, length = (
        grid.ravel() for grid in np.meshgrid(*(a.nodes for a in MEASURED_ATTENTION_AXES), indexing="ij")
    )
    flop = 2.0 * d * heads * length**2
    columns = np.column_stack(attention_columns(flop, length, d))
    seconds = slowdown * fit.all_seconds(columns, np.column_stack([length, d]))
    shape = [axis.count for axis in MEASURED_ATTENTION_AXES]
    log_s = rising(np.log(seconds).reshape(shape))
    return Surface(
        id=f"{evidence.id}:attention:{compute}", axes=MEASURED_ATTENTION_AXES,
        log_rate=np.log(flop).reshape(shape) - log_s, floor_s=floor_s, spread=fit.spread, stack_spread=0.0,
        evidence=evidence,
    )  # fmt: skip
