"""The plan of the asked precision: on the GPUs given, checked against the targets, or on a number that meets them."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import Message, NoPlanError, UsageError
from planner.planning.case import Case
from planner.planning.choice import Choice, best_on
from planner.planning.counts import fewest, soonest
from planner.planning.ranges import Ranged, ranged_plan, why_not
from planner.planning.shortage import larger_budget, leaner
from planner.planning.targets import Targets, at_confidence, targets_of
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S


def asked_plan(question: Question, case: Case, draws: Draws) -> Ranged:
    """The asked precision: on the N given (checked against deadline and budget), else on a number that meets them.

    Args:
        question: what was asked.
        case: the asked precision on one kind of GPU.
        draws: the common draws.

    Raises:
        NoPlanError: it fits nowhere, or meets the targets with no number of GPUs or not with the one given.
        UsageError: a budget without a price.
    """
    if question.budget_usd is not None and case.price.usd_per_gpu_h is None:
        raise UsageError(
            Message.of("error.budget_without_price", gpu=case.cluster.gpu.id),
            hint=Message.of("hint.price_or_target"),
        )
    targets = targets_of(question)
    if question.gpus is None:
        return ranged_plan(case, chosen_count(question, case, targets, draws), draws, targets)
    choice = best_on(case, question.fixed, question.gpus)
    if choice.best is None:
        raise NoPlanError(
            Message.of(
                "error.no_plan_on",
                precision=case.policy.precision,
                gpus=question.gpus,
                gpu=case.cluster.gpu.id,
                why=why_not(case, choice),
            ),
            hint=_what_would_fit(question, case, choice, draws),
        )
    result = ranged_plan(case, choice, draws, targets)
    _check_targets(question, case, result, targets, draws)
    return result


def chosen_count(question: Question, case: Case, targets: Targets, draws: Draws) -> Choice:
    """With a budget alone the soonest end within it, else the fewest whole nodes that meet the targets.

    Raises:
        NoPlanError: no number of GPUs meets them; with both targets it names the deadline that the budget allows.
    """
    if targets.deadline_s is None and targets.budget_usd is not None:
        return soonest(case, question.fixed, draws, targets)
    try:
        return fewest(case, question.fixed, draws, targets)
    except NoPlanError as error:
        later_days = _days_within_budget(question, case, targets, draws)
        if later_days is None or error.message.key != "error.too_dear":
            raise
        hint = Message.of("hint.budget_or_deadline", hint=error.hint, deadline_days=later_days * 1.02)
        raise NoPlanError(error.message, hint=hint) from error


def _days_within_budget(question: Question, case: Case, targets: Targets, draws: Draws) -> float | None:
    """The soonest end within the budget, in days at the confidence; None where there is none."""
    if targets.budget_usd is None or targets.deadline_s is None:
        return None
    try:
        choice = soonest(case, question.fixed, draws, replace(targets, deadline_s=None, most_gpus=LATER_MOST_GPUS))
    except NoPlanError:
        return None
    return at_confidence(case.evaluate(choice.winner, draws).wall_s, targets.confidence_ratio) / DAY_S


LATER_MOST_GPUS = 4096
"""Most GPUs of the plan that says which deadline a budget allows."""


def _what_would_fit(question: Question, case: Case, choice: Choice, draws: Draws) -> Message:
    """Other numbers of GPUs, and where memory is short what needs less of it."""
    try:
        least = fewest(case, question.fixed, draws)
    except NoPlanError as error:
        return error.hint
    if not len(choice.layouts):
        return Message.of("hint.splits_on", gpus=least.gpus)
    return Message.of("hint.fits_on", gpus=least.gpus, ways=leaner(case, question.fixed))


def _check_targets(question: Question, case: Case, result: Ranged, targets: Targets, draws: Draws) -> None:
    """Whether the plan on the GPUs given meets deadline and budget at the confidence.

    Raises:
        NoPlanError: it does not; says how likely it does, by how much it misses, and what would.
    """
    plan, likely = result.plan, result.plan.probability
    days = at_confidence(result.draws["duration_days"], targets.confidence_ratio)
    if likely.deadline is not None and likely.deadline < targets.confidence_ratio:
        later_days = days * 1.02
        try:
            enough = fewest(case, question.fixed, draws, replace(targets, budget_usd=None))
            hint = Message.of("hint.more_gpus", gpus=enough.gpus, deadline_days=later_days)
        except NoPlanError:
            hint = Message.of("hint.later_deadline", deadline_days=later_days)
        raise NoPlanError(
            Message.of(
                "error.over_deadline",
                gpus=plan.gpus,
                gpu=plan.gpu,
                precision=plan.precision,
                days=days,
                over_days=days - (targets.deadline_s or 0.0) / DAY_S,
                confidence=targets.confidence_ratio,
                likely=likely.deadline,
            ),
            hint=hint,
        )
    if likely.budget is not None and likely.budget < targets.confidence_ratio:
        usd = at_confidence(result.draws["cost_usd"], targets.confidence_ratio)
        raise NoPlanError(
            Message.of(
                "error.over_budget",
                precision=plan.precision,
                gpus=plan.gpus,
                gpu=plan.gpu,
                usd=usd,
                over_usd=usd - (targets.budget_usd or 0.0),
                confidence=targets.confidence_ratio,
                likely=likely.budget,
            ),
            hint=larger_budget(case, usd * 1.02),
        )
