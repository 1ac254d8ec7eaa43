"""Power of a matrix product by its shape, and the clock that a power limit allows: one law for time and energy.

A GPU raises its clock until it reaches its power limit. At the full clock, a product would draw `idle + J/FLOP x FLOP/s
+ J/byte x byte/s`; if that exceeds the limit, the clock falls until the power meets it. Measured rates are sustained at
the limit as sold and already include the clock there, so only a lower limit slows them down.
"""

from __future__ import annotations

import numpy as np

from planner.kernels.surface import Value
from planner.lazy import dataclass

OPERAND_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp8": 1.0, "fp8-block": 1.0, "fp4": 0.5625}
"""Bytes per element of a product's operands, including block scales."""
LEAST_RESULT_BYTES = 2.0
"""Bytes per element of the result of 16-bit and narrower products; wider products give results as wide as operands."""

LEAST_DYNAMIC = 0.05
"""Least power above idle that any limit leaves, as a share of the limit as sold."""


def product_bytes(m: Value, n: Value, k: Value, compute: str) -> Value:
    """Fewest bytes that a product `[m, k] x [k, n]` of a type can read and write."""
    each = OPERAND_BYTES[compute]
    return (m * k + n * k) * each + max(each, LEAST_RESULT_BYTES) * m * n


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """Relation of clock and power: power above idle is a power law of the clock as long as the voltage follows it."""

    idle_ratio: float
    """Idle power over the limit as sold."""
    clock_exponent: float
    """Exponent of the clock in the power above idle."""
    voltage_floor: float
    """Clock below which the voltage is constant and power falls linearly with the clock, relative to the clock that
    large products sustain at the limit as sold."""

    def clock(self, dynamic: Value) -> Value:
        """Clock relative to the one at which work draws its full power.

        Args:
            dynamic: power above idle that is available, over the power above idle that the work would draw in full.
        """
        lowest = self.voltage_floor**self.clock_exponent
        followed = np.maximum(dynamic, lowest) ** (1.0 / self.clock_exponent)
        return np.asarray(followed * np.minimum(dynamic / lowest, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPower:
    """Power draw of products of one type on one GPU, and the effect of a lower power limit on them."""

    law: PowerLaw
    compute: str
    """Type of the operands, named as for surfaces, or `tf32` or `fp32`."""
    sold_w: float
    """Power limit as sold."""
    limit_w: float
    """Power limit that is set; at most `sold_w`."""
    held_w: float
    """Power of a product that runs at the limit as sold."""
    j_per_flop: float
    """Energy per FLOP at the full clock."""
    j_per_byte: float

    @property
    def idle_w(self) -> float:
        """Idle power."""
        return self.law.idle_ratio * self.sold_w

    def alone_w(self, m: Value, n: Value, k: Value, seconds: Value) -> Value:
        """Watts of a product `[m, k] x [k, n]` that runs alone and without pause under the limit as sold.

        Args:
            m: rows.
            n: columns.
            k: inner dimension.
            seconds: its sustained duration.
        """
        work_w = self.j_per_flop * 2.0 * m * n * k / seconds
        traffic_w = self.j_per_byte * product_bytes(m, n, k, self.compute) / seconds
        return np.minimum(self.idle_w + work_w + traffic_w, self.held_w)

    def limited_power_ratio(self, alone_w: Value) -> Value:
        """Watts under the limit that is set, relative to a product that runs at that limit."""
        return np.minimum(alone_w, self.limit_w) / min(self.held_w, self.limit_w)

    def clock(self, alone_w: Value) -> Value:
        """Clock under the limit that is set relative to the limit as sold; 1 for products that draw less than it."""
        room_w = max(self.limit_w - self.idle_w, LEAST_DYNAMIC * self.sold_w)
        return self.law.clock(np.minimum(room_w / (alone_w - self.idle_w), 1.0))
