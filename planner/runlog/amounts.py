"""Strict reading of a number from a file, as text or as a JSON value, since other tools may write anything."""

from __future__ import annotations

import re

LARGEST_AMOUNT, SMALLEST_AMOUNT = 1e15, 1e-12
"""Range of plausible amounts other than 0: no file holds more seconds, watts, joules or bytes than this, or less."""
DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+")
"""Form of a number that is not negative, without separators between its thousands."""
LONGEST_NUMBER = 40
"""Most characters of a number."""


def as_number(value: object) -> float | None:
    """Read a number that is 0 or between `SMALLEST_AMOUNT` and `LARGEST_AMOUNT`; None if the value is not."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > LONGEST_NUMBER or not DECIMAL.fullmatch(text):
            return None
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == 0 or SMALLEST_AMOUNT <= value <= LARGEST_AMOUNT else None
