"""Watts of a matrix product by its shape, and the clock that a power limit leaves: one law for time and energy.

A GPU raises its clock until it meets its power limit. What a product would draw at the full clock is
`idle + J/FLOP x FLOP/s + J/byte x byte/s`; where that is more than the limit, the clock falls until it is not. Measured
rates are sustained at the limit as sold, so that the clock there is in them already: only a lower limit slows them.
"""

from __future__ import annotations

import numpy as np

from planner.kernels.surface import Value
from planner.lazy import dataclass

OPERAND_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp8": 1.0, "fp8-block": 1.0, "fp4": 0.5625}
"""Bytes per element of a product's operands, scales of blocks included."""
LEAST_RESULT_BYTES = 2.0
"""Bytes per element of the result of 16-bit and narrower products; that of wider ones is as wide as their operands."""

LEAST_DYNAMIC = 0.05
"""Of the limit as sold: what is left to work with under a limit close to idle."""


def product_bytes(m: Value, n: Value, k: Value, compute: str) -> Value:
    """Bytes that a product `[m, k] x [k, n]` of a type reads and writes at least."""
    each = OPERAND_BYTES[compute]
    return (m * k + n * k) * each + max(each, LEAST_RESULT_BYTES) * m * n


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """How the clock follows the power: the part above idle grows with a power of the clock while voltage follows it."""

    idle_ratio: float
    """Idle power over the limit as sold."""
    clock_exponent: float
    """Exponent of the clock in the power above idle."""
    voltage_floor: float
    """Clock, over that which large products sustain at the limit as sold, below which the voltage stays: power then
    falls with the clock alone."""

    def clock(self, dynamic: Value) -> Value:
        """Clock over the one at which work draws its full power, from the power above idle over that full power."""
        lowest = self.voltage_floor**self.clock_exponent
        followed = np.maximum(dynamic, lowest) ** (1.0 / self.clock_exponent)
        return np.asarray(followed * np.minimum(dynamic / lowest, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPower:
    """What products of one type draw on one GPU, and what a lower power limit does to them."""

    law: PowerLaw
    compute: str
    """Type of the operands: as surfaces name it, or `tf32` or `fp32`."""
    sold_w: float
    """Power limit as sold."""
    limit_w: float
    """Power limit that is set; at most `sold_w`."""
    held_w: float
    """What a product that holds the limit as sold draws."""
    j_per_flop: float
    """At the full clock."""
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
            seconds: how long it takes, sustained.
        """
        work_w = self.j_per_flop * 2.0 * m * n * k / seconds
        traffic_w = self.j_per_byte * product_bytes(m, n, k, self.compute) / seconds
        return np.minimum(self.idle_w + work_w + traffic_w, self.held_w)

    def limited_ratio(self, alone_w: Value) -> Value:
        """Watts under the limit that is set, over those of a product that holds it."""
        return np.minimum(alone_w, self.limit_w) / min(self.held_w, self.limit_w)

    def clock(self, alone_w: Value) -> Value:
        """Clock under the limit that is set, over the one under the limit as sold; 1 for what draws less than it."""
        room_w = max(self.limit_w - self.idle_w, LEAST_DYNAMIC * self.sold_w)
        return self.law.clock(np.minimum(room_w / (alone_w - self.idle_w), 1.0))
