"""A plan under a cap on the facility's power: as requested where that fits, else the fastest that does, or why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.answer.plan import Plan
from planner.costs.facility_power import ROUNDING, CapEffect
from planner.errors import Message, NoPlanError
from planner.evidence import middle
from planner.parallelism.search import enumerate_layouts
from planner.planning.case import Case
from planner.planning.choice import Choice, choose
from planner.planning.counting.counts import fewest
from planner.planning.counting.open_count import counted
from planner.planning.footprint import gpus_allowed, limit_under_cap, peak_of, wider_cap
from planner.planning.targets import ROOM_RATIO, at_confidence, targets_of
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S, mw_from_w


def under_cap(question: Question, case: Case, draws: Draws) -> tuple[Question, CapEffect | None]:
    """Return the question as it can be asked under the cap for this GPU, and the effect of the cap on it.

    A plan below the cap stays as it is. Where the default deadline takes more, the fastest plan under the cap is taken.

    Args:
        question: as asked.
        case: the requested precision on this GPU.
        draws: the common draws.

    Raises:
        NoPlanError: the given GPUs, or the fewest that meet the user's deadline or budget, take more than the cap; or
            nothing fits under it.
    """
    cap_w = question.money.power_cap_w
    if cap_w is None:
        return question, None
    if question.gpus is not None:
        given = _given_under_cap(case, question.gpus, cap_w, draws)
        return within_cap(question, given.gpus_allowed), given
    most = gpus_allowed(case, cap_w, draws)
    free = CapEffect(gpu=case.cluster.gpu.id, cap_mw=mw_from_w(cap_w), gpus_allowed=most, binding=False)
    targets = targets_of(question)
    if targets.budget_alone:  # the cap is a further limit on the number of GPUs
        return within_cap(question, most), free
    try:
        uncapped = counted(question, case, targets, draws)
    except NoPlanError:  # the refusal under the cap proposes only what stays below it
        return within_cap(question, most), free
    if uncapped is None or uncapped.choice.gpus <= most:
        return question, free
    try:  # the plan may take more GPUs than needed because that is cheaper
        fewest(case, question.fixed, draws, replace(targets, most_gpus=min(most, targets.most_gpus)))
    except NoPlanError:
        return _capped(question, case, draws, uncapped.choice, free)
    return within_cap(question, most), free


def within_cap(question: Question, most: int) -> Question:
    """Return the question with at most the number of GPUs that the cap on power leaves."""
    if most >= targets_of(question).most_gpus:
        return question
    return replace(question, max_gpus=most, under_cap=True)


def _given_under_cap(case: Case, gpus: int, cap_w: float, draws: Draws) -> CapEffect:
    """Check that the given GPUs stay under the cap.

    Raises:
        NoPlanError: they do not; the hint names how many would, a sufficient cap, and a sufficient power limit, if any.
    """
    over = over_cap(case, gpus, cap_w, draws)
    try:
        most = gpus_allowed(case, cap_w, draws)
    except NoPlanError:  # not even one server
        most = 0
    if over is None:
        return CapEffect(gpu=case.cluster.gpu.id, cap_mw=mw_from_w(cap_w), gpus_allowed=max(gpus, most), binding=False)
    wider, limit_w = wider_cap(case, gpus, draws), limit_under_cap(case, cap_w, gpus, draws)
    if most and limit_w is not None:
        hint = Message.of("hint.fewer_gpus_or_limit", gpus=most, wider=wider, limit_w=limit_w)
    elif most:
        hint = Message.of("hint.fewer_gpus", gpus=most, wider=wider)
    elif limit_w is not None:
        hint = Message.of("hint.allow_or_limit", wider=wider, limit_w=limit_w)
    else:
        hint = Message.of("hint.allow", wider=wider)
    raise NoPlanError(over, hint=hint)


def _capped(
    question: Question, case: Case, draws: Draws, uncapped: Choice, free: CapEffect
) -> tuple[Question, CapEffect]:
    """Take the fastest plan under the cap in place of the default deadline; a target set by the user is not dropped.

    Raises:
        NoPlanError: nothing fits under the cap, or a target that the user set takes more.
    """
    gpus, cap_w = int(uncapped.winner.gpus[0]), question.money.power_cap_w
    capped = _fastest(question, case, free.gpus_allowed)
    wall_s = middle(case.evaluate(uncapped.winner, draws).wall_s)
    assert cap_w is not None
    if capped is None:
        raise NoPlanError(
            Message.of(
                "error.fits_not_under_cap",
                precision=case.policy.precision,
                gpus=free.gpus_allowed,
                gpu=case.cluster.gpu.id,
                cap_mw=mw_from_w(cap_w),
            ),
            hint=Message.of("hint.allow", wider=wider_cap(case, gpus, draws)),
        )
    capped_s = at_confidence(case.evaluate(capped.winner, draws).wall_s, question.confidence_ratio)
    if not question.deadline_assumed:
        over = over_cap(case, gpus, cap_w, draws)
        assert over is not None
        raise NoPlanError(
            Message.of("error.more_power", precision=case.policy.precision, over=over),
            hint=Message.of(
                "hint.later_under_cap",
                deadline_days=capped_s * ROOM_RATIO / DAY_S,
                gpus=int(capped.winner.gpus[0]),
                wider=wider_cap(case, gpus, draws),
            ),
        )
    effect = replace(free, binding=True, gpus_wanted=gpus, days_wanted=wall_s / DAY_S)
    return replace(question, gpus=int(capped.winner.gpus[0]), deadline_s=None), effect


def without_default_deadline(question: Question) -> Question:
    """Return the question to show where the cap, not the default deadline, decided the number of GPUs."""
    return replace(question, inputs={name: given for name, given in question.inputs.items() if name != "deadline"})


def cap_warning(cap: CapEffect, plans: Iterable[Plan], precision: str) -> Message:
    """Return the warning about the effect of a binding cap on the plan of the requested precision."""
    plan = next(plan for plan in plans if (plan.gpu, plan.precision) == (cap.gpu, precision))
    assert plan.duration_days is not None
    assert cap.gpus_wanted is not None
    assert cap.days_wanted is not None
    return Message.of(
        "warning.cap",
        cap_mw=cap.cap_mw,
        gpus_allowed=cap.gpus_allowed,
        gpu=cap.gpu,
        gpus=plan.gpus,
        days=plan.duration_days.mid,
        gpus_wanted=cap.gpus_wanted,
        days_wanted=cap.days_wanted,
    )


def over_cap(case: Case, gpus: int, cap_w: float | None, draws: Draws) -> Message | None:
    """Return a message that says by how much the peak of a number of GPUs exceeds the cap; None where it does not."""
    peak_w = float(peak_of(case, gpus, draws).w)
    if cap_w is None or peak_w <= cap_w * (1.0 + ROUNDING):
        return None
    return Message.of(
        "why.over_cap",
        gpus=gpus,
        gpu=case.cluster.gpu.id,
        peak_mw=mw_from_w(peak_w),
        over_mw=mw_from_w(peak_w - cap_w),
        cap_mw=mw_from_w(cap_w),
    )


def _fastest(question: Question, case: Case, most: int) -> Choice | None:
    """Return the fastest layout that fits on up to `most` GPUs, in whole servers; a safe one where there is one."""
    for least in (max(1, most // 2), 1):
        layouts = enumerate_layouts(case.recipe, case.cluster, question.fixed, gpus_between=(least, most))
        scores = case.score(layouts)
        choice = choose(case, layouts, scores, case.fits(scores), len(layouts))
        if choice.safe:
            return choice
    return None if choice.best is None else choice
