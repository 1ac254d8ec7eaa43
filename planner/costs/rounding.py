"""Rounding of a bill, so that quantity times unit price gives each amount to the cent and lines sum to their total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal

from planner.evidence import Estimate

LUMP_SUM = "lump sum"
"""Unit of a line that is bought as a whole."""
CENT = Decimal("0.01")
QUANTITY_DECIMALS, PRICE_DECIMALS = 3, 6
"""Decimals of a quantity and of a unit price on a bill, for values of at least 1."""
DIGITS, MOST_DECIMALS = 6, 9
"""Significant digits of smaller values, and the most decimals that these have."""


def exact(amount: float | Decimal) -> Decimal:
    """Return a number exactly as it is written: 0.1 is a tenth."""
    return amount if isinstance(amount, Decimal) else Decimal(repr(float(amount)))


def cents(amount: float | Decimal) -> Decimal:
    """Round an amount of dollars to whole cents, half a cent up."""
    return exact(amount).quantize(CENT, ROUND_HALF_UP)


def product_usd(quantity: float, unit_price_usd: float) -> Decimal:
    """Return the cost of a quantity in whole cents."""
    return cents(exact(quantity) * exact(unit_price_usd))


def line_usd(usd: float, quantity: float | None, unit_price_usd: float | None) -> Decimal:
    """Return the amount of a line in whole cents: quantity times unit price where it has both, else its own amount."""
    if quantity is None or unit_price_usd is None:
        return cents(usd)
    return product_usd(quantity, unit_price_usd)


def billed_quantity(quantity: float) -> float:
    """Round a quantity as a bill states and multiplies it."""
    return _short(quantity, QUANTITY_DECIMALS)


def billed_price(price: Estimate) -> Estimate:
    """Round a unit price as a bill states and multiplies it."""
    low, mid, high = (_short(end, PRICE_DECIMALS) for end in (price.low, price.mid, price.high))
    return Estimate(low=low, mid=mid, high=high, at_least=price.at_least)


def in_cents(usd: Estimate) -> Estimate:
    """Round the ends of an amount to whole cents."""
    low, mid, high = (float(cents(end)) for end in (usd.low, usd.mid, usd.high))
    return Estimate(low=low, mid=mid, high=high, at_least=usd.at_least)


def summed(parts: Sequence[Estimate]) -> Estimate:
    """Return the sum of amounts in whole cents, at every end; a lower bound where one of them is."""
    low, mid, high = (
        float(sum((exact(end) for end in ends), Decimal(0)))
        for ends in zip(*((part.low, part.mid, part.high) for part in parts), strict=True)
    )
    return Estimate(low=low, mid=mid, high=high, at_least=any(part.at_least for part in parts))


def _short(value: float, decimals: int) -> float:
    if not value or abs(value) >= 1.0:
        return round(value, decimals)
    return round(value, min(DIGITS - 1 - math.floor(math.log10(abs(value))), MOST_DECIMALS))


def apportioned(amounts: Sequence[Decimal], unit: Decimal, total: Decimal) -> tuple[Decimal, ...]:
    """Round amounts to whole units so that they sum to a total (largest remainder method, Hare quota).

    Args:
        amounts: exact amounts; where they sum to about the total, each changes by less than one unit.
        unit: for example 0.01 for cents.
        total: in whole units; its difference from the sum of the amounts is spread over them.
    """
    floors = [(amount / unit).to_integral_value(ROUND_FLOOR) * unit for amount in amounts]
    missing = int((total - sum(floors, Decimal(0))) / unit)
    share, remainder = divmod(missing, len(floors)) if floors else (0, 0)
    by_remainder = sorted(range(len(floors)), key=lambda index: floors[index] - amounts[index])
    for place, index in enumerate(by_remainder):
        floors[index] += unit * (share + (place < remainder))
    return tuple(floors)
