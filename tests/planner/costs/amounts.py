"""Amounts in the units in which sources print them."""

from __future__ import annotations

from planner.costs.quantity import DataSize, Energy, Value


def kilowatt_hours(value: Value) -> Energy:
    """Kilowatt-hours."""
    return Energy(j=value * 3.6e6)


def gigabytes(value: Value) -> DataSize:
    """Decimal gigabytes."""
    return DataSize(size_bytes=value * 1e9)
