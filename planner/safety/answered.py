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
    findings = tuple(findings)
    kind = plan_kind(sees_images=answer.model.has_network)
    parity = parities(answer.plans, findings, stack, kind)
    drawn = _drawn(answer, parity, tuple(shown), kind)
    if drawn is not None and answer.plans:
        gpu = answer.plans[0].gpu
        own_plans = [plan for plan in answer.plans if plan.gpu == gpu]
        savings = [row for row in answer.savings if row.view == SAME_GPUS and row.gpu == gpu]
        failing = {row.precision for row in parity if row.gpu == gpu and row.untrained is not None}
        mixtures = (
            replace(point, recommended=False) if point.precision in failing else point  # never advise a failed training
            for point in placed(drawn.mixtures, own_plans, savings)
        )
        drawn = replace(drawn, mixtures=tuple(mixtures))
    with_skips = {plan.precision for plan in answer.plans if plan.skipped_step_ratio}
    skippings = [
        (precision, skipping)
        for precision in dict.fromkeys(plan.precision for plan in answer.plans)
        if (skipping := worst_skipping(findings, precision, stack)) is not None
    ]
    return replace(
        answer,
        parity=parity,
        numerics=drawn,
        assumptions=(*answer.assumptions, *(_skipped(name, row) for name, row in skippings if name in with_skips)),
        warnings=(*answer.warnings, *(_untrained(name, row) for name, row in skippings if not row.trains)),
    )


def _drawn(
    answer: Answer, parity: tuple[Parity, ...], shown: tuple[TrainingShown, ...], kind: str
) -> TrainingShown | None:
    """Task to draw: the one that the plan's parity names, else the first like the plan's model, else the first."""
    asked = answer.question.get("precision")
    gpu = answer.plans[0].gpu if answer.plans else None
    tested = [(row, result.task) for row in parity if row.gpu == gpu and (result := row.measured or row.untrained)]
    tested.sort(key=lambda pair: (asked is None or pair[0].precision != asked.value, not suits(pair[1], kind)))
    first_task = tested[0][1] if tested else None
    by_priority = sorted(shown, key=lambda task: (task.task != first_task, not suits(task.task, kind)))
    return by_priority[0] if by_priority else None


def _skipped(precision: str, skipping: Skipping) -> Assumption:
    """Assumption about the share of skipped steps, with the scaler's arithmetic or the measurement behind it."""
    figures, scaler = skipping.finding.figures, skipping.scaler
    common: dict[str, MessageValue] = {
        "precision": precision.upper(), "ratio": skipping.ratio or 0.0, "task": _task(figures.task),
        "device": skipping.finding.device_name,
    }  # fmt: skip
    if skipping.basis == ARITHMETIC:
        common |= {
            "most": 2.0 * (skipping.ratio or 0.0), "scaler": scaler.name, "count": scaler.hysteresis,
            "interval": scaler.growth_interval_steps,
        }  # fmt: skip
        text = Message.of("assumption.skipped_steps", **common)
    else:
        text = Message.of(
            "assumption.skipped_steps_emulated" if figures.emulated else "assumption.skipped_steps_measured", **common
        )
    return Assumption(id="skipped_steps", message=text, input="records")


def _untrained(precision: str, skipping: Skipping) -> Message:
    """Warning that the precision did not train, so that a saving in it is void."""
    figures = skipping.finding.figures
    ratio = 1.0 if figures.skipped_step_ratio is None else figures.skipped_step_ratio
    return Message.of(
        "warning.untrained", precision=precision.upper(), ratio=ratio, task=_task(figures.task),
        device=skipping.finding.device_name,
    )  # fmt: skip


def _task(name: str | None) -> str | Message:
    from planner.safety.document import OWN  # needed by few answers

    return Message.of("task.own") if name == OWN else str(name)
