"""Round and format numbers: two to three significant digits, rounded once, identically in Python and on the page.

`templates/arithmetic.js` has the same functions for the sliders; a test runs both over random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One unit of a quantity, used from a given size upwards."""

    at: float
    """Smallest magnitude (in the document's unit) that is written in this unit."""
    per: float
    """Number of the document's units in one of this unit."""
    text: str
    """Format of a value in a sentence, with `{}` for the number: `${} million`."""
    column: str
    """Unit in a column's header: `million $`; empty if the name suffices."""
    decimals: int = 9
    """Largest number of decimals, whatever the range."""
    least: int = -99
    """Smallest number of decimals, for example for the cents of a price."""
    cents: bool = False
    """Whether a number has two decimals or none: `$7.00`, never `$7.0`."""


Ladder = tuple[Rung, ...]
"""The units of one quantity, smallest first."""

MINUS = "−"


def with_minus(number: str) -> str:
    """Return a number as Python formats it with the minus sign of all output (U+2212)."""
    return MINUS + number[1:] if number.startswith("-") else number


def magnitude(value: float) -> int:
    """Return the power of ten of the first significant digit; 0 for 0."""
    return Decimal(value).adjusted() if value else 0


def decimals_for(low: float, mid: float, high: float) -> int:
    """Return the decimals that leave the middle two to three digits and the width of the range at most two.

    The result is negative if tens or hundreds are rounded away.
    """
    most = 2 - magnitude(mid)
    if not high > low:
        return most
    return max(min(1 - magnitude(high - low), most), most - 1)


UNCOUNTED = 1e21
"""Numbers from here on are written with an exponent, because they have more digits than decimal arithmetic keeps."""


def grouped(value: float, decimals: int) -> str:
    """Format a number with thousands separators, rounded half up to `decimals` (negative: to tens and so on)."""
    if abs(value) >= UNCOUNTED:
        return f"{value:.3g}"
    step = Decimal(1).scaleb(-decimals)
    rounded = abs(Decimal(value)).quantize(step, rounding=ROUND_HALF_UP)
    text = f"{rounded:,.{max(decimals, 0)}f}"
    return f"{MINUS}{text}" if value < 0 and rounded else text


RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def power_of_two(exponent: float) -> str:
    """Format a power of two as `2¹⁶`, or as `2^1.5` if the exponent is not a whole number."""
    if exponent != int(exponent):
        return f"2^{exponent:g}"
    return "2" + str(int(exponent)).translate(RAISED)


NEARLY = 0.5
"""A range whose high end reaches the next unit is written in that unit if its middle is at least this share of one."""
LONG, LONGEST, LEAST = 1e5, 1e7, 0.1
"""A column takes a larger unit if its largest value would be longer than `LONG` and its smallest is at least `LEAST` of
that unit, or if its largest value would be longer than `LONGEST`."""


def rung_for(ladder: Ladder, mid: float, high: float | None = None) -> Rung:
    """Return the unit for a value of this size; given a high end, that end's unit if the middle is near it."""
    top = abs(mid) if high is None else abs(high)
    chosen = ladder[0]
    for rung in ladder:
        if abs(mid) >= rung.at or (top >= rung.at and abs(mid) >= NEARLY * rung.at):
            chosen = rung
    return chosen


def shared_rung(ladder: Ladder, values: list[tuple[float, float]]) -> Rung:
    """Return one unit for a column of (middle, high): the smallest value's, or a larger one for long numbers."""
    sizes = [(abs(mid), abs(high)) for mid, high in values if mid]
    if not sizes:
        return ladder[0]
    place = ladder.index(rung_for(ladder, *min(sizes)))
    smallest, largest = min(sizes)[0], max(mid for mid, _ in sizes)
    while place + 1 < len(ladder):
        size, larger = largest / ladder[place].per, ladder[place + 1].per
        if size < LONG or (size < LONGEST and smallest / larger < LEAST):
            break
        place += 1
    return ladder[place]


def axis_labels(values: Sequence[float], rung: Rung, *, unit: bool = True) -> list[str]:
    """Return the labels of ticks in one unit; the last one shows the unit unless the axis label does."""
    scaled = [value / rung.per for value in values]
    step = scaled[1] - scaled[0]
    decimals = next((d for d in range(4) if abs(step * 10**d - round(step * 10**d)) < 1e-6), 3)
    decimals = 2 if rung.cents and decimals else decimals
    labels = [grouped(value, decimals) for value in scaled]
    return [*labels[:-1], rung.text.format(labels[-1])] if unit else labels
