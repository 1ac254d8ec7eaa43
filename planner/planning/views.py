"""The two views of a precision: on the GPUs of the requested one, and on the fewest that meet a common deadline."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from planner.errors import Message, NoPlanError, UsageError
from planner.planning.case import Case
from planner.planning.choice import Choice, best_given
from planner.planning.counting.counts import fewest, fewest_between
from planner.planning.counting.open_count import parts_of_a_node
from planner.planning.power.cap import over_cap
from planner.planning.ranges import Ranged, infeasible, ranged_plan, why_not
from planner.planning.targets import MAX_GPUS, Targets, at_confidence, probability, targets_of
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S

IN_PROPORTION = 1.25
"""Factor over proportional scaling up to which a plan may take more GPUs so that its batch is kept."""
BETTER_THAN_PROPORTION = 0.3
"""Lower bound on the ratio of GPU-hours on fewer GPUs to those on more."""


def on_same_gpus(case: Case, question: Question, gpus: int, draws: Draws) -> Ranged:
    """Return the best plan on a number of GPUs, or a plan that says why there is none."""
    choice = best_given(case, question.fixed, gpus)
    if choice.best is None:
        return infeasible(case, gpus, why_not(case, choice), choice)
    return ranged_plan(case, choice, draws, targets_of(question))


def in_time(
    case: Case,
    question: Question,
    deadline_s: float,
    draws: Draws,
    on_same: Ranged | None = None,
    band: tuple[int, int] | None = None,
    *,
    shown_s: float | None = None,
) -> Ranged:
    """Return the plan on the fewest whole nodes that finishes in time, or a plan that says why there is none.

    The plan on the same GPUs, if there is one, narrows the search. It is returned itself where it finishes in time and
    the search finds nothing on fewer GPUs. Where the shared batch divides over no number of GPUs close to proportional
    scaling, another batch is taken.

    Args:
        case: one precision, with the batch of the requested precision's plan.
        question: the question.
        deadline_s: the deadline of the view.
        draws: the common draws.
        on_same: the plan of this precision on the same GPUs.
        band: least and most sequences per step that may replace that batch; None: no others.
        shown_s: the deadline that the view's title shows; None: `deadline_s`.
    """
    case = case.elsewhere
    part = _part_of_a_node(case, question, deadline_s, draws)
    if part is not None:
        return part
    targets = _deadline_targets(question, deadline_s)
    at_least = _surely_needed(on_same, targets)
    choice: Choice | None = None
    refused: Message | None = None
    try:
        choice = fewest(case, question.fixed, draws, targets, at_least=at_least)
    except NoPlanError as error:
        refused = _with_deadline(error.original_message, shown_s)
    if band is not None and on_same is not None and on_same.plan.fits:
        near = replace(case, recipe=replace(case.recipe, batch_band=band))
        other = _near_proportion(near, question, draws, targets, on_same, choice)
        case, choice = (case, choice) if other is None else (near, other)
    if on_same is not None and (choice is None or on_same.plan.gpus <= choice.gpus) and _is_in_time(on_same, targets):
        return on_same
    if choice is None:
        assert refused is not None
        return infeasible(case, 0, refused)
    over = over_cap(case, choice.gpus, question.money.power_cap_w, draws)
    if over is not None:
        return infeasible(case, choice.gpus, over, choice)
    return ranged_plan(case, choice, draws, targets_of(question))


def _with_deadline(refused: Message, shown_s: float | None) -> Message:
    """Return a refusal with the deadline that a reader sees; the one that was applied may be a little looser."""
    values = dict(refused.values)
    if shown_s is None or "deadline_days" not in values:
        return refused
    return Message.of(refused.key, **(values | {"deadline_days": shown_s / DAY_S}))


def _near_proportion(
    case: Case, question: Question, draws: Draws, targets: Targets, on_same: Ranged, choice: Choice | None
) -> Choice | None:
    """Return the best layout on the fewest round number of GPUs near proportional scaling; None where there is none.

    None as well where the plan with the shared batch takes about that number already.

    Args:
        case: the precision, with the batches that may be taken.
        question: the question.
        draws: the common draws.
        targets: the deadline of the view.
        on_same: the plan on the same GPUs.
        choice: the choice with the shared batch, if there is one.
    """
    node = case.cluster.gpus_per_node
    needed = _in_proportion(on_same, targets)
    most = max(IN_PROPORTION * needed, needed + node)
    if choice is not None and choice.gpus <= most:
        return None
    most = min(2.0 * most if choice is None else choice.gpus - 1, targets.most_gpus)
    return fewest_between(case, question.fixed, draws, targets, (needed / IN_PROPORTION, most))


def _in_proportion(on_same: Ranged, targets: Targets) -> float:
    """Return the GPUs on which a plan would meet the deadline if its time were inversely proportional to them."""
    assert targets.deadline_s is not None
    taken_s = at_confidence(on_same.draws["duration_days"], targets.confidence_ratio) * DAY_S
    return on_same.plan.gpus * taken_s / targets.deadline_s


def _part_of_a_node(case: Case, question: Question, deadline_s: float, draws: Draws) -> Ranged | None:
    """Return the plan on the fewest GPUs of one node that is in time, if the question is about part of a node."""
    node = case.cluster.gpus_per_node
    if (question.gpus or node) >= node and not (question.fine_tunes and question.gpus is None):
        return None
    targets = _deadline_targets(question, deadline_s)
    for gpus in sorted({*parts_of_a_node(case.cluster), question.gpus or 1}):
        try:
            ranged = on_same_gpus(case.on(gpus), question, gpus, draws)
        except UsageError:  # the shared batch does not divide over so many
            continue
        if _is_in_time(ranged, targets):
            return ranged
    return None


def _surely_needed(on_same: Ranged | None, targets: Targets) -> int:
    """Return a GPU count below which a plan could meet the deadline only by far better than proportional scaling."""
    if on_same is None or not on_same.plan.fits:
        return 1
    return max(1, int(BETTER_THAN_PROPORTION * _in_proportion(on_same, targets)))


def _deadline_targets(question: Question, deadline_s: float) -> Targets:
    """Return the targets of the second view: its deadline at any cost, on no more GPUs than the user allows."""
    most = question.max_gpus or MAX_GPUS
    return Targets(deadline_s=deadline_s, confidence_ratio=question.confidence_ratio, most_gpus=most)


def _is_in_time(ranged: Ranged | None, targets: Targets) -> TypeGuard[Ranged]:
    """Return whether there is a plan that meets the deadline at the confidence."""
    if ranged is None or not ranged.plan.fits or targets.deadline_s is None:
        return False
    return probability(ranged.draws["duration_days"] * DAY_S, targets.deadline_s) >= targets.confidence_ratio
