"""The spreads of the hierarchical model, where they stand in `catalog/parameters.csv`, and how one is replaced.

What a lineage (a team and its software) has of its own stands in `lineage_sd`; what the equations leave out of a
precision, a GPU, a model or a single run is the range of a row of its own.
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
"""Row whose spread grows until the ranges of a figure hold teams that were left out.

It is what one team has against all others beyond the terms that its software decides. Whole runs have no such row:
there the error of the single run grows.
"""

RESIDUALS = {
    "model_error_ratio": Figure.TIME, "memory_error_ratio": Figure.MEMORY, "power_error_ratio": Figure.POWER,
    "run_error_ratio": Figure.RUN,
}  # fmt: skip
"""Rows that hold what the equations leave out of a single run, by figure."""

BY_PART = {
    "gpu_error_ratio": Figure.TIME, "shape_error_ratio": Figure.TIME,
    "memory_architecture_error_ratio": Figure.MEMORY, "memory_shape_error_ratio": Figure.MEMORY,
}  # fmt: skip
"""Rows that hold what the equations leave out of one GPU, architecture or model against another, within a lineage.

Which of the three is what their family differs by. Bytes go by the architecture: it decides which kernels there are and
what they ask for, while two cards of one architecture run the same ones.
"""


def fitted_ids(parameters: Parameters) -> list[str]:
    """Rows that runs move: those of families that are fitted, where they had a range before any fit."""
    return [
        row.id
        for row in parameters.rows.values()
        if parameters.families[row.family].fitted_to and row.before_fit.log_sd > 0
    ]


def apart_ids(parameters: Parameters) -> list[str]:
    """Rows that are 1 for all lineages together and differ in each: the errors of one precision against another."""
    return [row.id for row in parameters.rows.values() if parameters.families[row.family].deviates == "apart"]


def joint_ids(parameters: Parameters) -> list[str]:
    """Rows that have a joint posterior, fitted ones first."""
    return [*fitted_ids(parameters), *apart_ids(parameters)]


def deviation_groups(parameters: Parameters) -> dict[str, list[str]]:
    """What a lineage may have of its own: the row that holds the spread, and the rows that move with it."""
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
    """A spread, in the logarithm: of a deviation between lineages by its holder, of what is left out by its row."""
    row = parameters.rows[name]
    return row.lineage_sd if row.lineage_sd is not None else row.log_sd


def with_spreads(parameters: Parameters, spreads: Mapping[str, float]) -> Parameters:
    """The same with other spreads."""
    rows = (parameters.rows[name] for name in spreads)
    return parameters.replaced(_with_spread(row, sd) for row, sd in zip(rows, spreads.values(), strict=True))


def _with_spread(row: Parameter, sd: float) -> Parameter:
    if row.lineage_sd is not None:
        return replace(row, lineage_sd=sd)
    return with_range(row, row.value, sd, share=False)


def spreads_of(parameters: Parameters, figure: Figure) -> list[str]:
    """Names of all spreads that the range of a figure rests on."""
    about = {family.name for family in parameters.families.values() if family.figure is figure}
    groups = [name for name in deviation_groups(parameters) if parameters.rows[name].family in about]
    parts = [name for rows in (BY_PART, RESIDUALS) for name, of in rows.items() if of is figure]
    return [*groups, *parts, *(WIDENED[name] for name in parts if name in WIDENED)]
