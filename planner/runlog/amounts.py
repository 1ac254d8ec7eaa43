"""A number that a file holds, as text or as a JSON value; strict, since what other tools write is anything."""

from __future__ import annotations

import re

LARGEST_AMOUNT, SMALLEST_AMOUNT = 1e15, 1e-12
"""No file holds more seconds, watts, joules or bytes of anything, nor less of it unless it has none."""
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+")
_LONGEST_NUMBER = 40


def as_number(value: object) -> float | None:
    """A number that is 0 or from `SMALLEST_AMOUNT` to `LARGEST_AMOUNT`; None where a value is none."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_NUMBER or not _DECIMAL.fullmatch(text):
            return None
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == 0 or SMALLEST_AMOUNT <= value <= LARGEST_AMOUNT else None
