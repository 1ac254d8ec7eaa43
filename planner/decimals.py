"""Decimal arithmetic for money that does not depend on the decimal context of the calling program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_EVEN, Context, DivisionByZero, InvalidOperation, Overflow, localcontext

OWN = Context(prec=28, rounding=ROUND_HALF_EVEN, traps=[DivisionByZero, InvalidOperation, Overflow], flags=[])
"""Python's default decimal context."""


@contextmanager
def own_decimals() -> Iterator[None]:
    """Compute decimal numbers with mpplan's own context; also usable as a decorator of public functions.

    The caller's precision, rounding and traps have no effect inside, and the caller's flags are not changed.
    """
    with localcontext(OWN):
        yield
