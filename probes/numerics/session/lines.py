"""Short summaries of a part's findings, as lines of the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.lazy import dataclass
from planner.records.figures import TrainingNumerics
from probes.numerics.lowering.recipes import REAL, lower_by_id

Plain = dict[str, Any]
OWN = "own"
"""Name in a record for any of the user's own tasks, so that the record reveals no names from the user's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLine:
    """One line of the record."""

    probe_id: str
    precision: str
    recipe: str
    figures: TrainingNumerics


def lines_of(task: str, instrument: str, document: Plain) -> Iterator[FindingLine]:
    """Yield the lines of a part: one per pair of precisions, one for loss scaling, or one for a policy."""
    makers = {"parity": _parity, "loss_scaling": _scaling, "policy": _policy}
    if instrument in makers:
        yield from makers[instrument](OWN if ":" in task else task, document)


def _line(task: str, instrument: str, recipe: str, figures: TrainingNumerics) -> FindingLine:
    return FindingLine(
        probe_id=f"numerics/{task}/{instrument}/{recipe}",
        precision=lower_by_id(recipe).precision,
        recipe=recipe,
        figures=figures,
    )


def _parity(task: str, document: Plain) -> Iterator[FindingLine]:
    for pair in document["pairs"]:
        if pair["pairs"] + pair["diverged"] == 0:
            continue
        names = (
            "difference_low", "difference_mid", "difference_high", "verdict", "seeds_needed", "seeds_would_show",
            "metric", "margin", "real_layers", "lowered_layers",
        )  # fmt: skip
        figures = TrainingNumerics(
            task=task, instrument="parity", baseline=pair["baseline"], emulated=pair["mode"] != REAL,
            steps=document["steps"], seeds=pair["pairs"] + pair["diverged"],
            skipped_step_ratio=pair["skipped_step_ratio"],
            **{name: pair[name] for name in names},
        )  # fmt: skip
        yield _line(task, "parity", pair["precision"], figures)


def _scaling(task: str, document: Plain) -> Iterator[FindingLine]:
    for run in document["dynamic"]:
        if run["name"] == "usual":
            figures = TrainingNumerics(
                task=task, instrument="loss-scaling", emulated=document["mode"] != REAL, steps=run["steps"],
                skipped_step_ratio=run["skipped_step_ratio"], trains=document["trains"],
                steady_skipped_step_ratio=run["steady_skipped_step_ratio"], steady_basis=run["steady_basis"],
            )  # fmt: skip
            yield _line(task, "loss-scaling", document["precision"], figures)


def _policy(task: str, document: Plain) -> Iterator[FindingLine]:
    if document["lowered_parameters_ratio"] is not None:
        figures = TrainingNumerics(
            task=task, instrument="policy", baseline=document["baseline"], emulated=document["mode"] != REAL,
            metric="loss", steps=document["steps"], seeds=document["seeds"], margin=document["margin"],
            difference_low=document["loss_change_low"], difference_mid=document["loss_change"],
            difference_high=document["loss_change_high"],
            lowered_parameters_ratio=document["lowered_parameters_ratio"],
        )  # fmt: skip
        yield _line(task, "policy", document["precision"], figures)
