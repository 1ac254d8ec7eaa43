"""What is at hand of training in lower precisions, for one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.lazy import dataclass

if TYPE_CHECKING:  # an answer without such training starts without what reads it
    from planner.answer.training_shown import TrainingShown
    from planner.measured.training import PrecisionFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Findings, and what a report draws."""

    findings: tuple[PrecisionFinding, ...] = ()
    """Of the document where one is named, else of a record."""
    shown: tuple[TrainingShown, ...] = ()
    """What a report may draw of the document: each of its tasks."""


NO_TRAINING = Training()
"""Nothing is at hand."""
