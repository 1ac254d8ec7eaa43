"""The arithmetic of money, whatever the decimal context of the program that calls: `cents` must not depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_EVEN, Context, DivisionByZero, InvalidOperation, Overflow, localcontext

OWN = Context(prec=28, rounding=ROUND_HALF_EVEN, traps=[DivisionByZero, InvalidOperation, Overflow], flags=[])
"""As Python starts with it."""


@contextmanager
def own_decimals() -> Iterator[None]:
    """Within it, decimal numbers are computed as everywhere in mpplan; also a decorator of what others call.

    Precision, rounding and traps are the caller's to set for their own sums, and their flags tell of these alone.
    """
    with localcontext(OWN):
        yield
