"""Training results about an answer's precisions: parity beside savings, data for figures, assumptions and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.answer.parity import Parity
from planner.answer.plan import Answer
from planner.answer.training_shown import TrainingShown
from planner.errors import Message, MessageValue
from planner.evidence import Assumption
from planner.measured.skipped_steps import ARITHMETIC, Skipping, worst_skipping
from planner.safety.mixture import placed
from planner.safety.parity import parities
from planner.safety.tasks import plan_kind, suits

if TYPE_CHECKING:  # an answer without training results does not load the records
    from planner.measured.training import PrecisionFinding

SAME_GPUS = "same_gpus"
"""The view of savings in which all plans run on the same GPUs."""


def with_safety(
    answer: Answer, findings: Iterable[PrecisionFinding], stack: str, shown: Iterable[TrainingShown] = ()
) -> Answer:
    """Add the evidence about the training loss of each precision to an answer.

    Args:
        answer: the answer without it; its goodput already includes skipped steps (`measured.skipped_steps`).
        findings: findings of records and documents of `mpplan numerics`.
        stack: software stack of the plans.
        shown: tasks of the document that the user named, of which a report draws one.
    """
    at_hand = tuple(findings)
    kind = plan_kind(sees_images=answer.model.has_network)
    parity = parities(answer.plans, at_hand, stack, kind)
    drawn = _drawn(answer, parity, tuple(shown), kind)
    if drawn is not None and answer.plans:
        gpu = answer.plans[0].gpu
        leading = [plan for plan in answer.plans if plan.gpu == gpu]
        savings = [row for row in answer.savings if row.view == SAME_GPUS and row.gpu == gpu]
        idle = {row.precision for row in parity if row.gpu == gpu and row.untrained is not None}
        mixtures = (
            replace(point, recommended=False) if point.precision in idle else point  # do not advise what fails to train
            for point in placed(drawn.mixtures, leading, savings)
        )
        drawn = replace(drawn, mixtures=tuple(mixtures))
    taken = {plan.precision for plan in answer.plans if plan.skipped_step_ratio}
    told = [
        (precision, skips)
        for precision in dict.fromkeys(plan.precision for plan in answer.plans)
        if (skips := worst_skipping(at_hand, precision, stack)) is not None
    ]
    return replace(
        answer,
        parity=parity,
        numerics=drawn,
        assumptions=(*answer.assumptions, *(_skipped(name, skips) for name, skips in told if name in taken)),
        warnings=(*answer.warnings, *(_untrained(name, skips) for name, skips in told if not skips.trains)),
    )


def _drawn(
    answer: Answer, parity: tuple[Parity, ...], shown: tuple[TrainingShown, ...], kind: str
) -> TrainingShown | None:
    """Task to draw: the one that the plan's parity names, else the first like the plan's model, else the first."""
    asked = answer.question.get("precision")
    gpu = answer.plans[0].gpu if answer.plans else None
    named = [(row, told.task) for row in parity if row.gpu == gpu and (told := row.measured or row.untrained)]
    named.sort(key=lambda told: (asked is None or told[0].precision != asked.value, not suits(told[1], kind)))
    wanted = named[0][1] if named else None
    first = sorted(shown, key=lambda task: (task.task != wanted, not suits(task.task, kind)))
    return first[0] if first else None


def _skipped(precision: str, told: Skipping) -> Assumption:
    """Assumption about the share of skipped steps, with the scaler's arithmetic or the measurement behind it."""
    figures, scaler = told.finding.figures, told.scaler
    common: dict[str, MessageValue] = {
        "precision": precision.upper(), "ratio": told.ratio or 0.0, "task": _task(figures.task),
        "device": told.finding.device_name,
    }  # fmt: skip
    if told.basis == ARITHMETIC:
        common |= {
            "most": 2.0 * (told.ratio or 0.0), "scaler": scaler.name, "count": scaler.hysteresis,
            "interval": scaler.growth_interval_steps,
        }  # fmt: skip
        text = Message.of("assumption.skipped_steps", **common)
    else:
        text = Message.of(
            "assumption.skipped_steps_emulated" if figures.emulated else "assumption.skipped_steps_measured", **common
        )
    return Assumption(id="skipped_steps", message=text, input="records")


def _untrained(precision: str, told: Skipping) -> Message:
    """Warning that the precision did not train, so that a saving in it is void."""
    figures = told.finding.figures
    ratio = 1.0 if figures.skipped_step_ratio is None else figures.skipped_step_ratio
    return Message.of(
        "warning.untrained", precision=precision.upper(), ratio=ratio, task=_task(figures.task),
        device=told.finding.device_name,
    )  # fmt: skip


def _task(name: str | None) -> str | Message:
    from planner.safety.document import OWN  # needed by few answers

    return Message.of("task.own") if name == OWN else str(name)
