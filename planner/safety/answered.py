"""An answer with what training showed of its precisions: parity beside savings, what is drawn, what is assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.answer.plan import Answer
from planner.answer.training_shown import TrainingShown
from planner.errors import Message
from planner.evidence import Assumption
from planner.measured.skipped_steps import skipping
from planner.measured.training import PrecisionFinding
from planner.safety.mixture import placed
from planner.safety.parity import parities


def with_safety(answer: Answer, findings: Iterable[PrecisionFinding], shown: TrainingShown | None = None) -> Answer:
    """Add what is known of the loss of each precision.

    Args:
        answer: without it; its goodput has the skipped steps already (`measured.skipped_steps`).
        findings: of records and documents of `mpplan numerics`.
        shown: what the document that was named shows.
    """
    at_hand = tuple(findings)
    if shown is not None and answer.plans:
        leading = [plan for plan in answer.plans if plan.gpu == answer.plans[0].gpu]
        shown = replace(shown, mixtures=placed(shown.mixtures, leading))
    return replace(
        answer,
        parity=parities(answer.plans, at_hand),
        numerics=shown,
        assumptions=(*answer.assumptions, *_skipped(answer, at_hand)),
    )


def _skipped(answer: Answer, findings: tuple[PrecisionFinding, ...]) -> Iterable[Assumption]:
    """That a run skips as many steps as small training did, for each precision whose plans take it so."""
    for precision in dict.fromkeys(plan.precision for plan in answer.plans if plan.skipped_step_ratio):
        finding = skipping(findings, precision)
        if finding is None:
            continue
        figures = finding.figures
        key = "assumption.skipped_steps_emulated" if figures.emulated else "assumption.skipped_steps"
        text = Message.of(
            key, precision=precision.upper(), ratio=figures.steady_skipped_step_ratio or 0.0,
            task=str(figures.task), device=finding.device_name,
        )  # fmt: skip
        yield Assumption(id="skipped_steps", message=text, input="records")
