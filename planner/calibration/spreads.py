"""The spreads of the hierarchical model, their place in `catalog/parameters.csv`, and how to replace one.

The spread of a lineage's own deviation (a lineage is a team and its software) is in the column `lineage_sd`. The spread
of the model error of a precision, a GPU, a model or a single run is the range of a separate row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.calibration.shifts import with_range
from planner.rates.parameters import Figure, Parameter, Parameters
from planner.validation.predict import WIDENED

TEAM = {
    Figure.TIME: "stack_error_ratio", Figure.MEMORY: "memory_stack_error_ratio",
    Figure.POWER: "power_stack_error_ratio", Figure.RUN: "run_error_ratio",
}  # fmt: skip
"""Row whose spread is widened until the ranges of a figure cover teams that were left out.

It is the deviation of one team from all others beyond the terms that its software determines. Whole runs have no such
row, so the error of the single run is widened instead.
"""

RESIDUALS = {
    "model_error_ratio": Figure.TIME, "memory_error_ratio": Figure.MEMORY, "power_error_ratio": Figure.POWER,
    "run_error_ratio": Figure.RUN,
}  # fmt: skip
"""Rows that hold the model error of a single run, by figure."""

BY_PART = {
    "gpu_error_ratio": Figure.TIME, "shape_error_ratio": Figure.TIME,
    "memory_architecture_error_ratio": Figure.MEMORY, "memory_shape_error_ratio": Figure.MEMORY,
}  # fmt: skip
"""Rows that hold the error of one GPU, architecture or model against another within a lineage.

The family of the row defines which of the three it is. Memory goes by architecture, which decides the available kernels
and the workspace that they allocate; two cards of one architecture run the same kernels.
"""


def fitted_ids(parameters: Parameters) -> list[str]:
    """Return the rows that runs move: rows of fitted families that had a range before any fit."""
    return [
        row.id
        for row in parameters.rows.values()
        if parameters.families[row.family].fitted_to and row.before_fit.log_sd > 0
    ]


def apart_ids(parameters: Parameters) -> list[str]:
    """Return the rows that are 1 overall but differ by lineage: the error of one precision against another."""
    return [row.id for row in parameters.rows.values() if parameters.families[row.family].deviates == "apart"]


def joint_ids(parameters: Parameters) -> list[str]:
    """Return the rows that have a joint posterior, fitted rows first."""
    return [*fitted_ids(parameters), *apart_ids(parameters)]


def deviation_groups(parameters: Parameters) -> dict[str, list[str]]:
    """Return the possible deviations of a lineage: for each row that holds a spread, the rows that move with it."""
    fitted = set(fitted_ids(parameters))
    groups: dict[str, list[str]] = {}
    holders: dict[str, str] = {}
    for row in parameters.rows.values():
        deviates = parameters.families[row.family].deviates
        if deviates == "apart":
            groups[row.id] = [row.id]
        elif deviates == "together":
            holder = holders.setdefault(row.family, row.id)
            if row.id in fitted:
                groups.setdefault(holder, []).append(row.id)
    return groups


def spread(parameters: Parameters, name: str) -> float:
    """Return a spread in the logarithm: the deviation between lineages where the row holds one, else its own range."""
    row = parameters.rows[name]
    return row.lineage_sd if row.lineage_sd is not None else row.log_sd


def with_spreads(parameters: Parameters, spreads: Mapping[str, float]) -> Parameters:
    """Return the parameters with other spreads."""
    rows = (parameters.rows[name] for name in spreads)
    return parameters.replaced(_with_spread(row, sd) for row, sd in zip(rows, spreads.values(), strict=True))


def _with_spread(row: Parameter, sd: float) -> Parameter:
    if row.lineage_sd is not None:
        return replace(row, lineage_sd=sd)
    return with_range(row, row.value, sd, share=False)


def spreads_of(parameters: Parameters, figure: Figure) -> list[str]:
    """Return the names of all spreads that affect the range of a figure."""
    about = {family.name for family in parameters.families.values() if family.figure is figure}
    groups = [name for name in deviation_groups(parameters) if parameters.rows[name].family in about]
    parts = [name for rows in (BY_PART, RESIDUALS) for name, of in rows.items() if of is figure]
    return [*groups, *parts, *(WIDENED[name] for name in parts if name in WIDENED)]
