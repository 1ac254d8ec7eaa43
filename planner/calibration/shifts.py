"""Move parameters and their ranges in the logarithm, and factorise a covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.evidence import Z90
from planner.rates.parameters import NEARLY_ALL, Parameter, Parameters, moved
from planner.rates.terms import Floats


def is_share(parameters: Parameters, name: str) -> bool:
    """Return whether a row is a share of something, so that it must stay below 1."""
    return parameters.families[parameters.rows[name].family].bound == "share"


def at_shift(parameters: Parameters, ids: Sequence[str], shift: Floats) -> Parameters:
    """Return the parameters with rows moved by `shift` in their logarithms, `[parameter]`, and without a posterior."""
    rows = [
        replace(row, value=float(moved(row.value, float(by), share=is_share(parameters, row.id))))
        for row, by in zip((parameters.rows[name] for name in ids), shift, strict=True)
    ]
    return replace(parameters.replaced(rows), joint=None)


def slope_ratios(before: Parameters, after: Parameters, ids: Sequence[str]) -> Floats:
    """Return the ratio of a small shift counted from the new value to the same shift from the old one, `[parameter]`.

    It is 1 except for shares, which bend as they approach 1, so that a shift moves them less.
    """
    ratios = np.ones(len(ids))
    for number, name in enumerate(ids):
        value = before.rows[name].value
        if is_share(before, name) and value < NEARLY_ALL:
            ratios[number] = (1.0 - after.rows[name].value) / (1.0 - value)
    return ratios


def with_range(row: Parameter, value: float, sd: float, *, share: bool) -> Parameter:
    """Return a row with another value and the 90 % range of a normal distribution of its shift around that value.

    Args:
        row: row to change.
        value: its new value.
        sd: standard deviation of the logarithm.
        share: whether it is a share of something, whose range bends so that it stays below 1.
    """
    low, high = (float(moved(value, side * Z90 * sd, share=share)) for side in (-1, 1))
    return replace(row, value=value, low=low, high=high)


def cholesky(covariance: Floats) -> Floats:
    """Return the lower triangular factor of a covariance."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
