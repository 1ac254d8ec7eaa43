"""Plan the requested precision on the given number of GPUs, or on a number that meets the deadline and budget."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import EnoughBudget, Message, NoPlanError, UsageError
from planner.parallelism.batches import batches_near, is_fixed
from planner.parallelism.search import of_samples
from planner.parallelism.stages import check_chunks
from planner.planning.case import Case
from planner.planning.choice import Choice, best_given
from planner.planning.counting.counts import fewest
from planner.planning.counting.open_count import count_in_budget, counted, within_budget
from planner.planning.fitting.lean import helpful, with_risk, with_ways
from planner.planning.fitting.neighbours import next_above, next_below
from planner.planning.fitting.offers import fits_with, ways_that_fit
from planner.planning.fitting.shortage import at_risk, fits_on, larger_budget
from planner.planning.ranges import Ranged, ranged_plan, why_not
from planner.planning.risk import risk_of
from planner.planning.targets import (
    NO_TARGETS,
    ROOM_RATIO,
    Targets,
    at_confidence,
    digits_apart,
    enough_usd,
    targets_of,
)
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S


class UnpricedError(UsageError):
    """A budget was given for a GPU without a price.

    It is a usage error where that GPU is the only one, and a row without a plan beside other GPUs.
    """

    original_message: Message


def asked_plan(question: Question, case: Case, draws: Draws) -> Ranged:
    """Plan the requested precision on the given number of GPUs, or on a number that meets deadline and budget.

    Args:
        question: the question.
        case: the requested precision on one kind of GPU.
        draws: the common draws.

    Raises:
        NoPlanError: the training fits nowhere, no number of GPUs meets the targets, or the given number misses them.
        UnpricedError: a budget was given, and the GPU has no price.
        UsageError: the virtual stages do not split the layers evenly.
    """
    check_chunks(case.recipe.model, question.fixed)
    if question.budget_usd is not None and case.price.usd_per_gpu_h is None:
        gap = case.price.gap
        why = case.price.basis if gap is None else gap.why
        raise UnpricedError(
            Message.of("error.budget_without_price", gpu=case.cluster.gpu.id, why=why),
            hint=Message.of("hint.price_or_target"),
        )
    targets = targets_of(question)
    chosen = None if question.gpus is not None else counted(question, case, targets, draws)
    if chosen is None:
        return _on_given(replace(question, gpus=question.gpus or 1), case, targets, draws)
    return replace(ranged_plan(case, chosen.choice, draws, targets), why_so_many=chosen.why, more=chosen.more)


def _on_given(question: Question, case: Case, targets: Targets, draws: Draws) -> Ranged:
    """Plan on the number of GPUs that the question gives.

    Raises:
        NoPlanError: the training does not fit, or the plan misses a target.
    """
    gpus = question.gpus or 1
    choice = best_given(case, question.fixed, gpus)
    if choice.best is None:
        if not len(choice.layouts):
            _check_batch(question, case, gpus)
        raise NoPlanError(
            Message.of(
                "error.no_plan_on",
                precision=case.policy.precision,
                gpus=gpus,
                gpu=case.cluster.gpu.id,
                why=why_not(case, choice),
            ),
            hint=_what_would_fit(question, case, choice, draws),
        )
    result = ranged_plan(case, choice, draws, targets)
    _check_targets(question, case, result, targets, draws)
    return result


def _check_batch(question: Question, case: Case, gpus: int) -> None:
    """Check that the given batch divides over a layout that the question fixes in part.

    Raises:
        UsageError: it does not; the hint names the nearest batches that do.
    """
    recipe, fixed = case.recipe, question.fixed
    if recipe.batch_band is not None or not is_fixed(fixed):
        return
    near = batches_near(recipe, case.cluster, fixed, gpus)
    if near is None or recipe.global_batch in near:
        return  # the batch divides, so the misfit is elsewhere
    sizes = {"tp": fixed.tp, "pp": fixed.pp, "cp": fixed.cp, "vp": fixed.vp, "micro_batch": fixed.micro_batch}
    axes = tuple(Message.of("flag.with_value", input=name, value=size) for name, size in sizes.items() if size)
    key = of_samples(recipe, "error.layout_batch", "error.layout_batch_images")
    raise UsageError(
        Message.of(key, gpus=gpus, axes=axes, global_batch=recipe.global_batch),
        hint=Message.of("hint.batch_fits", more=near[1])
        if near[0] == near[1]
        else Message.of("hint.batches_near", fewer=near[0], more=near[1]),
    )


def offered(question: Question, case: Case, draws: Draws) -> Choice | None:
    """Return the layout that would be planned; None where it misses a target or risks running out of memory.

    Args:
        question: the question.
        case: the requested precision on one kind of GPU.
        draws: the common draws.
    """
    targets = replace(targets_of(question), advised=False)
    try:
        chosen = None if question.gpus is not None else counted(question, case, targets, draws)
    except NoPlanError:
        return None
    choice = best_given(case, question.fixed, question.gpus or 1) if chosen is None else chosen.choice
    if choice.best is None or not choice.safe or not targets.met_by(case.evaluate(choice.winner, draws)):
        return None
    return choice


def _what_would_fit(question: Question, case: Case, choice: Choice, draws: Draws) -> Message:
    """Suggest other numbers of GPUs and, where memory is short, ways to train that need less memory."""
    ways = ways_that_fit(question, case, question.gpus or 1) if question.fine_tunes and len(choice.layouts) else ()
    if ways:
        return fits_with(case, question, ways, targets_of(question).most_gpus)
    splits, fixed = len(choice.layouts) > 0, question.fixed
    targets = targets_of(question) if question.under_cap else NO_TARGETS  # beyond the user's limit, it is named
    fewer = None if splits else next_below(case, fixed, question.gpus or 1)
    more = next_above(case, fixed, question.gpus or 1, targets_of(question).most_gpus)
    if fewer is not None and more is not None:
        if more.risk is None:
            return Message.of("hint.splits_near", fewer=fewer, more=more.gpus)
        return Message.of("hint.splits_near_at_risk", fewer=fewer, more=more.gpus, risk=more.risk)
    other, risk = (more.gpus, more.risk) if more is not None else (fewer, None)
    if other is None:
        try:
            far = fewest(case.elsewhere, fixed, draws, replace(targets, deadline_s=None, budget_usd=None))
        except NoPlanError as error:
            return (
                with_ways(error.original_hint, helpful(case, fixed, question.gpus or 1))
                if splits
                else error.original_hint
            )
        other, risk = far.gpus, _risk(case, far)
    if splits:
        ways = helpful(case, fixed, question.gpus or 1)
        return fits_on(case, ("hint.fits_on", "hint.fits_on_at_risk"), other, risk, ways)
    return at_risk(case, Message.of("hint.splits_on", gpus=other), risk)


def _risk(case: Case, choice: Choice) -> float | None:
    """Return the probability that a choice runs out of memory; None where the choice is safe."""
    return None if choice.safe else risk_of(case, choice.winner)


def _check_targets(question: Question, case: Case, result: Ranged, targets: Targets, draws: Draws) -> None:
    """Check that the plan on the given GPUs meets deadline and budget at the confidence.

    Raises:
        NoPlanError: it does not; the error says how likely it is to, by how much it misses, and what would meet them.
    """
    plan, likely, confidence = result.plan, result.plan.probability, targets.confidence_ratio
    late = likely.deadline is not None and likely.deadline < confidence
    dear = likely.budget is not None and likely.budget < confidence
    if not late and not dear:
        return
    days = at_confidence(result.draws["duration_days"], confidence)
    usd = at_confidence(result.draws["cost_usd"], confidence) if dear else 0.0
    values: dict[str, str | int | float] = {
        "gpus": plan.gpus,
        "gpu": plan.gpu,
        "precision": plan.precision,
        "confidence": confidence,
    }
    in_days = {"days": days, "over_days": days - (targets.deadline_s or 0.0) / DAY_S}
    in_usd = {"usd": usd, "over_usd": usd - (targets.budget_usd or 0.0)}
    if late and dear:
        assert likely.deadline is not None
        assert likely.budget is not None
        message = Message.of(
            "error.over_both", **values, **in_days, **in_usd, likely=likely.deadline, likely_budget=likely.budget,
            digits=max(digits_apart(ratio, confidence) for ratio in (likely.deadline, likely.budget)),
        )  # fmt: skip
    else:
        ratio = (likely.deadline if late else likely.budget) or 0.0
        key, missed = ("error.over_deadline", in_days) if late else ("error.over_budget", in_usd)
        message = Message.of(key, **values, **missed, likely=ratio, digits=digits_apart(ratio, confidence))
    enough: EnoughBudget | None = None
    later_days, needed_usd = days * ROOM_RATIO if late else None, usd if dear else None
    if likely.deadline is not None and likely.budget is not None:
        hint = _what_holds_both(question, case, targets, draws, later_days, needed_usd, plan.memory_risk)
    elif needed_usd is not None:
        safe = (plan.memory_risk or 0.0) <= case.memory_risk
        enough = EnoughBudget(usd=enough_usd(needed_usd), gpus=plan.gpus, safe=safe)
        hint = at_risk(case, larger_budget(case, needed_usd), plan.memory_risk)
        other = count_in_budget(question, case.elsewhere, targets, draws, plan.gpus)
        hint = hint if other is None else Message.of("hint.gpus_in_budget", gpus=other, hint=hint)
    else:
        hint = _what_is_in_time(question, case, targets, draws, days * ROOM_RATIO, plan.memory_risk)
    raise NoPlanError(message, hint=hint, enough=enough)


def _what_is_in_time(
    question: Question, case: Case, targets: Targets, draws: Draws, later_days: float, risk: float | None
) -> Message:
    """Suggest more GPUs, or a later deadline for the given GPUs; `risk` is the memory risk of the plan on these."""
    try:
        enough = fewest(case.elsewhere, question.fixed, draws, targets)
    except NoPlanError:
        key = "hint.later_deadline" if targets.cap_w is None else "hint.later_deadline_capped"
        return at_risk(case, Message.of(key, deadline_days=later_days), risk)
    more = with_risk(case, Message.of("flag.gpus", gpus=enough.gpus), _risk(case, enough))
    later = with_risk(case, Message.of("flag.deadline_days", deadline_days=later_days), risk)
    return Message.of("hint.more_gpus", more=more, later=later)


def _what_holds_both(
    question: Question,
    case: Case,
    targets: Targets,
    draws: Draws,
    later_days: float | None,
    needed_usd: float | None,
    risk: float | None,
) -> Message:
    """Suggest ways to meet both deadline and budget.

    Where no other number of GPUs does, also suggest the deadline that the budget allows and the budget that the
    deadline needs.

    Args:
        question: the question, with a number of GPUs.
        case: the requested precision on one kind of GPU.
        targets: deadline and budget.
        draws: the common draws.
        later_days: the deadline that the given GPUs would meet; None where they meet the requested one.
        needed_usd: what the given GPUs cost; None where they stay within the budget.
        risk: probability of running out of memory on the given GPUs.
    """
    key, flags = "hint.holds_both", []
    if later_days is not None:
        flags.append(Message.of("flag.deadline_days", deadline_days=later_days))
    if needed_usd is not None:
        flags.append(Message.of("flag.budget_usd", budget_usd=enough_usd(needed_usd)))
    ways = [with_risk(case, Message.of("hint.on_these_gpus", flags=tuple(flags)), risk)]
    try:
        enough = fewest(case.elsewhere, question.fixed, draws, targets)
        ways.insert(0, with_risk(case, Message.of("flag.gpus", gpus=enough.gpus), _risk(case, enough)))
    except NoPlanError as error:
        key = "hint.none_holds_both"
        within = within_budget(question, case.elsewhere, targets, draws)
        if within is not None:
            days, gpus = within
            ways.insert(0, Message.of("hint.within_budget", gpus=gpus, deadline_days=days * ROOM_RATIO))
        if error.enough is not None:
            ways.insert(0, Message.of("hint.within_deadline", gpus=error.enough.gpus, budget_usd=error.enough.usd))
    return Message.of(key, ways=tuple(ways))
