"""Parity beside the savings: evidence on the training loss in each plan's precision, and the savings per nat of loss.

Measured evidence (`mpplan numerics`) takes precedence over published evidence (`catalog/precision_losses.csv`). Both
come from other training than the plan's: small tasks, or a model of 16B parameters after 1,500 steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.answer.parity import (
    MEASURED,
    NOT_TESTED,
    PUBLISHED,
    REFERENCE,
    CostPerNat,
    MeasuredParity,
    Parity,
    PublishedParity,
    PublishedRate,
    Untrained,
)
from planner.answer.plan import Plan
from planner.evidence import Estimate
from planner.measured.skipped_steps import worst_skipping
from planner.safety.tasks import LANGUAGE, is_of, suits
from planner.training.losses import PublishedLoss, published_loss, published_rates

if TYPE_CHECKING:  # an answer without training results does not load the records
    from planner.measured.training import PrecisionFinding

LOSS_REFERENCE = "fp32"
"""Reference precision for the others' loss."""
SAVING_REFERENCE = "bf16"
"""Usual precision of training. Savings of another precision are relative to it, not to FP32."""
WORST_LAST = ("equivalent", "cannot_tell", "not_equivalent")


def parities(
    plans: Iterable[Plan], findings: Iterable[PrecisionFinding], stack: str, kind: str = LANGUAGE
) -> tuple[Parity, ...]:
    """Parity of each plan's precision, in the order of the plans.

    Args:
        plans: plans on the same GPUs, to which their savings refer.
        findings: findings of records and documents of `mpplan numerics`, in any order.
        stack: software stack of the plans, which determines the loss scaler.
        kind: kind of task that is like the plans' model, from `tasks.plan_kind`.
    """
    plans, findings = tuple(plans), tuple(findings)
    tested = [row for row in findings if row.figures.instrument == "parity" and row.figures.verdict is not None]
    on_gpu = {(plan.gpu, plan.precision): plan for plan in plans if plan.fits}
    failed = {plan.precision: _untrained(findings, plan.precision, stack) for plan in plans}
    known = ((_known(plan, tested, failed[plan.precision], kind), plan) for plan in plans)
    return tuple(_with_cost(parity, plan, on_gpu, _priced(parity.measured, tested, kind)) for parity, plan in known)


def _untrained(findings: Iterable[PrecisionFinding], precision: str, stack: str) -> Untrained | None:
    """Training that failed because loss scaling skipped too many steps; None if there was none, or it trained."""
    skipping = worst_skipping(findings, precision, stack)
    if skipping is None or skipping.trains:
        return None
    finding, figures = skipping.finding, skipping.finding.figures
    ratio = figures.skipped_step_ratio
    return Untrained(
        task=str(figures.task), steps=figures.steps,
        skipped=None if ratio is None or figures.steps is None else round(ratio * figures.steps),
        emulated=bool(figures.emulated), device=finding.device_name, source=finding.source or None, date=finding.date,
    )  # fmt: skip


def _known(plan: Plan, tested: list[PrecisionFinding], failed: Untrained | None, kind: str) -> Parity:
    untested = Parity(gpu=plan.gpu, precision=plan.precision, basis=NOT_TESTED, untrained=failed)
    if plan.precision == LOSS_REFERENCE:
        return replace(untested, basis=REFERENCE)
    of_precision = [row for row in tested if row.precision == plan.precision]
    fact = published_loss(plan.precision)
    measured = _measured(max(of_precision, key=lambda row: _weight(row, plan, kind)), kind) if of_precision else None
    basis = MEASURED if measured is not None or failed is not None else PUBLISHED if fact is not None else NOT_TESTED
    return replace(untested, basis=basis, measured=measured, published=None if fact is None else _published(fact))


def _weight(finding: PrecisionFinding, plan: Plan, kind: str) -> tuple[bool, bool, bool, bool, bool, bool, int, float]:
    """Sort key of a finding for a plan; the finding with the largest key is shown.

    In order of priority: a task like the plan's model, a conclusive result or one with an interval, the plan's GPU,
    real arithmetic rather than an emulation, and the plan's recipe. Among equal findings, the worst verdict counts,
    then the highest upper end of the difference.
    """
    figures = finding.figures
    return (
        suits(figures.task, kind),
        figures.verdict != "cannot_tell" or figures.difference_high is not None or bool(finding.diverged),
        finding.gpu == plan.gpu,
        not figures.emulated,
        finding.recipe == plan.policy,
        finding.recipe == plan.precision,
        WORST_LAST.index(figures.verdict) if figures.verdict in WORST_LAST else -1,
        figures.difference_high if figures.difference_high is not None else 0.0,
    )


def _measured(finding: PrecisionFinding, kind: str) -> MeasuredParity:
    figures = finding.figures
    low, mid, high = figures.difference_low, figures.difference_mid, figures.difference_high
    difference = None
    if low is not None and mid is not None and high is not None and low <= mid <= high:
        difference = Estimate(low=low, mid=mid, high=high)
    return MeasuredParity(
        baseline=figures.baseline or LOSS_REFERENCE, metric=figures.metric or "loss", difference=difference,
        margin=figures.margin, verdict=str(figures.verdict), seeds=figures.seeds, steps=figures.steps,
        task=str(figures.task), recipe=finding.recipe, emulated=bool(figures.emulated), device=finding.device_name,
        source=finding.source or None, date=finding.date, diverged=finding.diverged,
        like_plan=suits(figures.task, kind),
    )  # fmt: skip


def _published(fact: PublishedLoss) -> PublishedParity:
    assert fact.loss_difference is not None  # `published_loss` gives only these
    return PublishedParity(
        baseline=fact.baseline, difference=fact.loss_difference, model=fact.model, params=fact.params,
        steps=fact.steps, recipe=fact.recipe, framework=fact.framework, rate_gain_ratio=fact.rate_gain_ratio,
        source=fact.source, date=fact.date, rates=tuple(_rates(fact.precision)),
    )  # fmt: skip


def _rates(precision: str) -> Iterator[PublishedRate]:
    for row in published_rates(precision):
        assert row.rate_gain_ratio is not None  # `published_rates` gives only these
        yield PublishedRate(
            baseline=row.baseline, model=row.model, gpu=row.gpu or None, gpus=row.gpus,
            rate_gain_ratio=row.rate_gain_ratio, power_gain_ratio=row.power_gain_ratio, source=row.source,
            date=row.date,
        )  # fmt: skip


def _priced(measured: MeasuredParity | None, tested: Iterable[PrecisionFinding], kind: str) -> MeasuredParity | None:
    """Return the measurement if its loss can be priced; otherwise None.

    It can be priced if a task of the plan's kind showed the loss to be higher by more than the margin, and the same
    task did not show this for BF16, the reference of the saving.
    """
    if measured is None or measured.difference is None or measured.metric != "loss":
        return None
    higher = measured.verdict == "not_equivalent" and measured.difference.low > 0
    if not higher or not is_of(measured.task, kind):
        return None
    reference_figures = (row.figures for row in tested if row.precision == SAVING_REFERENCE)
    reference_differs = any(row.task == measured.task and row.verdict == "not_equivalent" for row in reference_figures)
    return None if reference_differs else measured


def _with_cost(
    parity: Parity, plan: Plan, on_gpu: Mapping[tuple[str, str], Plan], priced: MeasuredParity | None
) -> Parity:
    """Add the savings per nat to a parity: for the measured loss if it can be priced, and for the published loss."""
    if parity.untrained is not None:
        return parity
    published, measured_per_nat, published_per_nat = parity.published, None, None
    if priced is not None and priced.difference is not None:
        measured_per_nat = _per_nat(
            MEASURED, SAVING_REFERENCE, priced.difference.mid, plan, on_gpu.get((plan.gpu, SAVING_REFERENCE))
        )
    if published is not None and published.difference > 0:
        base = on_gpu.get((plan.gpu, published.baseline))
        published_per_nat = _per_nat(PUBLISHED, published.baseline, published.difference, plan, base)
    return replace(
        parity,
        per_nat=published_per_nat if measured_per_nat is None else measured_per_nat,
        published_per_nat=published_per_nat,
    )


def _per_nat(basis: str, baseline: str, nats: float, plan: Plan, base: Plan | None) -> CostPerNat | None:
    """Savings per nat of loss; None if the plan saves no GPU-hours against the baseline, or either does not fit."""
    if base is None or base.gpu_hours is None or plan.gpu_hours is None:
        return None
    hours = base.gpu_hours.mid - plan.gpu_hours.mid
    if hours <= 0:
        return None
    usd = None
    if base.cost_usd is not None and plan.cost_usd is not None:
        usd = base.cost_usd.mid - plan.cost_usd.mid
    return CostPerNat(
        basis=basis, baseline=baseline, nats=nats, saved_gpu_hours=hours, gpu_hours_per_nat=hours / nats,
        saved_usd=usd, usd_per_nat=None if usd is None else usd / nats,
    )  # fmt: skip
