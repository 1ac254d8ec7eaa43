"""Parameters moved in their logarithms, and the factor of a covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.rates.parameters import Parameters, moved
from planner.rates.terms import Floats


def is_share(parameters: Parameters, name: str) -> bool:
    """Whether a row is a share of something, so that it stays below 1."""
    return parameters.families[parameters.rows[name].family].bound == "share"


def at_shift(parameters: Parameters, ids: Sequence[str], shift: Floats) -> Parameters:
    """Parameters with rows moved in their logarithms, `[parameter]`; without a posterior."""
    rows = [
        replace(row, value=float(moved(row.value, float(by), share=is_share(parameters, row.id))))
        for row, by in zip((parameters.rows[name] for name in ids), shift, strict=True)
    ]
    return replace(parameters.replaced(rows), joint=None)


def cholesky(covariance: Floats) -> Floats:
    """Lower triangular factor of a covariance."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
