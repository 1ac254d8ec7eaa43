"""The limits of number formats, computed with NumPy's IEEE 754 binary16 instead of taken from a table."""

from __future__ import annotations

import numpy as np

from planner.claims.case import Case

SOURCE = "IEEE 754-2019 binary16, computed with numpy.float16"


def _is(value: float, claimed: float, what: str) -> Case:
    return Case.exactly(value, what=what, basis="format", source=SOURCE, claimed=(claimed, claimed))


def largest_fp16(largest: float, rounded: float, overflows: float) -> list[Case]:
    """Return the largest finite value, what a value above it rounds to, and the smallest value that overflows.

    Args:
        largest: claimed largest finite value.
        rounded: value that is claimed to round to it.
        overflows: value at which overflow is claimed to start.
    """
    with np.errstate(over="ignore"):
        exact = np.arange(largest, overflows + 64.0, dtype=np.float64)
        first = float(exact[np.isinf(exact.astype(np.float16))][0])
    return [
        _is(float(np.finfo(np.float16).max), largest, "max(FP16)"),
        _is(float(np.float16(rounded)), largest, f"FP16({rounded:.0f})"),
        _is(first, overflows, "smallest value that overflows"),
    ]


def smallest_normal_fp16() -> Case:
    """Return the smallest normal value."""
    value = float(np.finfo(np.float16).smallest_normal)
    return Case.exactly(value, what="min normal(FP16)", basis="format", source=SOURCE)
