"""Training results in lower precisions that are available for one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.lazy import dataclass

if TYPE_CHECKING:  # an answer without training results does not load the modules that read them
    from planner.answer.training_shown import TrainingShown
    from planner.measured.training import PrecisionFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Findings, and data that a report draws."""

    findings: tuple[PrecisionFinding, ...] = ()
    """Findings of the document if one is named, otherwise of a record."""
    shown: tuple[TrainingShown, ...] = ()
    """Data that a report may draw from the document: each of its tasks."""


NO_TRAINING = Training()
"""No training results are available."""
