"""Parity beside the savings: for each plan's precision what its training loss is known to be, and what a nat costs.

What was measured (`mpplan numerics`) comes first, then what others published (`catalog/precision_losses.csv`). Both are
of other training than the plan's: small tasks, or a model of 16B parameters after 1,500 steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

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
)
from planner.answer.plan import Plan
from planner.evidence import Estimate
from planner.measured.training import PrecisionFinding
from planner.training.losses import PublishedLoss, published_loss, published_rates

HELD_AGAINST = "fp32"
"""The precision that others are held against."""
WORST_LAST = ("equivalent", "cannot_tell", "not_equivalent")


def parities(plans: Iterable[Plan], findings: Iterable[PrecisionFinding]) -> tuple[Parity, ...]:
    """What is known of the precision of each plan, in their order.

    Args:
        plans: on the same GPUs, which their savings are told of.
        findings: of records and documents of `mpplan numerics`, in any order.
    """
    at_hand = tuple(plans)
    tested = [row for row in findings if row.figures.instrument == "parity" and row.figures.verdict is not None]
    on_gpu = {(plan.gpu, plan.precision): plan for plan in at_hand if plan.fits}
    return tuple(_with_cost(_known(plan, tested), plan, on_gpu) for plan in at_hand)


def _known(plan: Plan, tested: list[PrecisionFinding]) -> Parity:
    nothing = Parity(gpu=plan.gpu, precision=plan.precision, basis=NOT_TESTED)
    if plan.precision == HELD_AGAINST:
        return replace(nothing, basis=REFERENCE)
    own = [row for row in tested if row.precision == plan.precision]
    fact = published_loss(plan.precision)
    measured = _measured(max(own, key=lambda row: _weight(row, plan))) if own else None
    basis = MEASURED if measured is not None else PUBLISHED if fact is not None else NOT_TESTED
    return replace(nothing, basis=basis, measured=measured, published=None if fact is None else _published(fact))


def _weight(finding: PrecisionFinding, plan: Plan) -> tuple[bool, bool, bool, bool, int, float]:
    """This GPU and the arithmetic itself before an emulation, the plan's recipe; of several tasks the worst verdict."""
    figures = finding.figures
    return (
        finding.gpu == plan.gpu,
        not figures.emulated,
        finding.recipe == plan.policy,
        finding.recipe == plan.precision,
        WORST_LAST.index(figures.verdict) if figures.verdict in WORST_LAST else -1,
        figures.difference_high if figures.difference_high is not None else 0.0,
    )


def _measured(finding: PrecisionFinding) -> MeasuredParity:
    figures = finding.figures
    low, mid, high = figures.difference_low, figures.difference_mid, figures.difference_high
    known = low is not None and mid is not None and high is not None and low <= mid <= high
    return MeasuredParity(
        baseline=figures.baseline or HELD_AGAINST, metric=figures.metric or "loss",
        difference=Estimate(low=low, mid=mid, high=high) if known else None,  # type: ignore[arg-type]  # `known`
        margin=figures.margin, verdict=str(figures.verdict), seeds=figures.seeds, steps=figures.steps,
        task=str(figures.task), recipe=finding.recipe, emulated=bool(figures.emulated), device=finding.device_name,
        source=finding.source or None, date=finding.date,
    )  # fmt: skip


def _published(fact: PublishedLoss) -> PublishedParity:
    assert fact.loss_difference is not None  # `published_loss` gives only such
    return PublishedParity(
        baseline=fact.baseline, difference=fact.loss_difference, model=fact.model, params=fact.params,
        steps=fact.steps, recipe=fact.recipe, framework=fact.framework, rate_gain_ratio=fact.rate_gain_ratio,
        source=fact.source, date=fact.date, rates=tuple(_rates(fact.precision)),
    )  # fmt: skip


def _rates(precision: str) -> Iterator[PublishedRate]:
    for row in published_rates(precision):
        assert row.rate_gain_ratio is not None  # `published_rates` gives only such
        yield PublishedRate(
            baseline=row.baseline, model=row.model, gpu=row.gpu or None, gpus=row.gpus,
            rate_gain_ratio=row.rate_gain_ratio, power_gain_ratio=row.power_gain_ratio, source=row.source,
            date=row.date,
        )  # fmt: skip


def _with_cost(parity: Parity, plan: Plan, on_gpu: Mapping[tuple[str, str], Plan]) -> Parity:
    """The same with what is saved per nat: of the measured loss where it is surely higher, else of the published."""
    measured, published = parity.measured, parity.published
    per_nat = None
    lost = None if measured is None or measured.metric != "loss" else measured.difference
    if measured is not None and lost is not None and lost.low > 0:
        base = on_gpu.get((plan.gpu, measured.baseline))
        per_nat = _per_nat(MEASURED, measured.baseline, lost.mid, plan, base)
    if per_nat is None and published is not None and published.difference > 0:
        base = on_gpu.get((plan.gpu, published.baseline))
        per_nat = _per_nat(PUBLISHED, published.baseline, published.difference, plan, base)
    return replace(parity, per_nat=per_nat)


def _per_nat(basis: str, baseline: str, nats: float, plan: Plan, base: Plan | None) -> CostPerNat | None:
    """None where the plan saves no GPU-hours against that of the baseline, or one of the two does not fit."""
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
