"""Rounding the lines of a bill so that they still add up."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal


def apportioned(amounts: Sequence[Decimal], unit: Decimal, total: Decimal) -> tuple[Decimal, ...]:
    """Round amounts to whole units so that they sum to a total (largest remainder method, Hare quota).

    Args:
        amounts: exact; where they sum to about the total, each changes by less than one unit.
        unit: for example 0.01 for cents.
        total: in whole units; what the amounts miss of it is spread over them.
    """
    floors = [(amount / unit).to_integral_value(ROUND_FLOOR) * unit for amount in amounts]
    missing = int((total - sum(floors, Decimal(0))) / unit)
    each, rest = divmod(missing, len(floors)) if floors else (0, 0)
    by_remainder = sorted(range(len(floors)), key=lambda index: floors[index] - amounts[index])
    for place, index in enumerate(by_remainder):
        floors[index] += unit * (each + (place < rest))
    return tuple(floors)
