"""Choose the number of GPUs where the question leaves it open, with a layout and the reason for the number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.errors import Message, NoPlanError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.planning.case import Case
from planner.planning.choice import Choice, best_given, best_on
from planner.planning.counting.counts import fewest, first_cheap, soonest
from planner.planning.targets import ROOM_RATIO, Targets, at_confidence
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S

SOON_ENOUGH_S = 3600.0
"""A fine-tuning that ends within an hour takes no more GPUs for the same budget: obtaining them, starting up and
loading the model takes minutes that no plan includes."""
MORE_WITHIN = 2
"""Factor over the given GPUs up to which more are considered where these and fewer exceed the budget."""
LATER_MOST_GPUS = 4096
"""Most GPUs of the plan that shows which deadline a budget allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A layout on a number of GPUs that the question left open."""

    choice: Choice
    why: str
    """Key of the note that says what decided the number."""
    more: tuple[Message, ...] = ()
    """Advice on how much sooner the run would finish for slightly more money than the budget."""


def counted(question: Question, case: Case, targets: Targets, draws: Draws) -> Counted | None:
    """Return the fewest GPUs that hold the run and meet the targets, or with a budget alone those that finish soonest.

    Args:
        question: the question, without a number of GPUs.
        case: the requested precision on one kind of GPU.
        targets: deadline and budget.
        draws: the common draws.

    Returns:
        None where one GPU is all there is, whether or not it is enough.

    Raises:
        NoPlanError: no number of GPUs meets the targets.
    """
    alone = _is_sold_alone(question, case)
    if alone and best_on(case, question.fixed, 1).best is not None:
        return None  # more may hold the run more safely, but cards without a fast link are slow
    within = _within_a_node(question, case, targets, draws)
    if within is None and alone:
        return None
    chosen = within or _whole_nodes(question, case, targets, draws)
    return replace(chosen, choice=_as_given(question, case, chosen.choice, targets, draws))


def _as_given(question: Question, case: Case, chosen: Choice, targets: Targets, draws: Draws) -> Choice:
    """Return the best layout on the chosen number of GPUs as if that had been given: more layouts are tried then."""
    as_given = best_given(case, question.fixed, chosen.gpus)
    sure = as_given.best is not None and as_given.safe >= chosen.safe
    return as_given if sure and targets.met_by(case.evaluate(as_given.winner, draws)) else chosen


def _is_sold_alone(question: Question, case: Case) -> bool:
    """Return whether one GPU may be all there is: for fine-tuning without a target on GPUs that are sold one by one."""
    return question.fine_tunes and case.cluster.gpu.gpus_per_node == 1 and question.deadline_assumed


def parts_of_a_node(cluster: Cluster) -> tuple[int, ...]:
    """Return the numbers of GPUs below a whole node that a plan may have: powers of two, which divide a node's GPUs."""
    node = cluster.gpus_per_node
    return tuple(2**power for power in range(node.bit_length()) if 2**power < node)


def _within_a_node(question: Question, case: Case, targets: Targets, draws: Draws) -> Counted | None:
    """Return the best layout on the fewest GPUs, within a node or a machine of cards, that hold the run safely in time.

    None for pre-training, which takes whole nodes, for GPUs of which one node is not enough, and where nothing is in
    time.
    """
    if not question.fine_tunes or case.cluster.gpu.id in question.over_nodes:
        return None
    within_the_hour = targets.budget_alone  # takes no whole node where part of one is enough
    why = "note.within_the_hour" if within_the_hour else "note.fewest_gpus"
    targets = _soon_enough(targets)
    full_machine = (case.cluster.gpus_per_node,) if _is_sold_alone(question, case) else ()
    counts = [gpus for gpus in parts_of_a_node(case.cluster) + full_machine if gpus <= targets.most_gpus]
    node = case.cluster.gpus_per_node
    whole_node = [node] if counts and counts[-1] < node <= targets.most_gpus and not within_the_hour else []
    for number, gpus in enumerate(counts):
        choice = best_on(case, question.fixed, gpus)
        enough = choice.safe or (gpus == 1 and case.cluster.gpu.gpus_per_node == 1)  # a single card may be risky
        if choice.best is not None and enough and targets.met_by(case.evaluate(choice.winner, draws)):
            more = counts[number + 1 :] + whole_node
            return Counted(choice=_cheapest_in_node(question, case, choice, more, draws), why=why)
    return None


def _cheapest_in_node(question: Question, case: Case, fewest_gpus: Choice, more: Sequence[int], draws: Draws) -> Choice:
    """Return the choice on the fewest GPUs of a node that is close to the cheapest.

    A run that is short of memory may finish sooner, and for less money, on more GPUs. Larger numbers are considered
    where a layout is so much faster at mid that it takes fewer GPU-hours.

    Args:
        question: the question.
        case: the requested precision on one kind of GPU.
        fewest_gpus: the choice on the fewest GPUs that meet the targets.
        more: larger numbers of GPUs, in rising order.
        draws: the common draws.
    """
    able = [fewest_gpus]
    for gpus in more:
        choice = best_on(case, question.fixed, gpus)
        if choice.best is not None and choice.safe and _gpu_s(choice) < min(_gpu_s(other) for other in able):
            able.append(choice)
    return fewest_gpus if len(able) == 1 else first_cheap(case, able, draws)


def _gpu_s(choice: Choice) -> float:
    """Return the GPU-seconds of the whole run at mid."""
    return choice.gpus * float(choice.scores.wall_s[choice.best])


def _whole_nodes(question: Question, case: Case, targets: Targets, draws: Draws) -> Counted:
    """Return the fewest whole nodes that meet the targets, or with a budget alone the number that finishes soonest.

    For fine-tuning, a budget alone takes the fewest GPUs that finish within `SOON_ENOUGH_S`, else the soonest end, with
    parts of a node allowed.

    Raises:
        NoPlanError: no number of GPUs meets the targets; with both of them, the hint names the deadline that the budget
            allows.
    """
    at_least = case.cluster.gpus_per_node + 1 if case.cluster.gpu.id in question.over_nodes else 1
    advice: list[Message] | None = [] if targets.advised else None
    if targets.budget_alone and question.fine_tunes:
        parts = parts_of_a_node(case.cluster) if at_least == 1 else ()
        try:
            choice = fewest(case, question.fixed, draws, _soon_enough(targets), at_least=at_least)
            return Counted(choice=choice, why="note.within_the_hour")
        except NoPlanError:
            choice = soonest(
                case, question.fixed, draws, targets, parts_of_a_node=parts, at_least=at_least, advice=advice
            )
            return Counted(choice=choice, why="note.soonest_in_budget", more=tuple(advice or ()))
    if targets.budget_alone:
        choice = soonest(case, question.fixed, draws, targets, advice=advice)
        return Counted(choice=choice, why="note.soonest_in_budget", more=tuple(advice or ()))
    try:
        choice = fewest(case, question.fixed, draws, targets, at_least=at_least)
        return Counted(choice=choice, why="note.fewest_nodes")
    except NoPlanError as error:
        within = within_budget(question, case, targets, draws)
        if within is None:
            raise
        later_days = within[0] * ROOM_RATIO
        hint = Message.of(
            "hint.deadline_in_budget", deadline_days=later_days
        )  # the original hint only asks for more money
        if error.enough is not None:
            hint = Message.of("hint.budget_or_deadline", hint=error.original_hint, deadline_days=later_days)
        raise NoPlanError(error.original_message, hint=hint, enough=error.enough) from error


def _soon_enough(targets: Targets) -> Targets:
    """Return the targets; a budget alone, which asks for the soonest end, gets the deadline `SOON_ENOUGH_S`."""
    return replace(targets, deadline_s=SOON_ENOUGH_S) if targets.budget_alone else targets


def within_budget(question: Question, case: Case, targets: Targets, draws: Draws) -> tuple[float, int] | None:
    """Return the soonest end within the budget, in days at the confidence, and its number of GPUs; None without one."""
    if targets.budget_usd is None or targets.deadline_s is None:
        return None
    try:
        most, parts = min(LATER_MOST_GPUS, targets.most_gpus), parts_of_a_node(case.cluster)
        later = replace(targets, deadline_s=None, most_gpus=most)
        choice = soonest(case, question.fixed, draws, later, parts_of_a_node=parts if question.fine_tunes else ())
    except NoPlanError:
        return None
    days = at_confidence(case.evaluate(choice.winner, draws).wall_s, targets.confidence_ratio) / DAY_S
    return days, choice.gpus


def count_in_budget(question: Question, case: Case, targets: Targets, draws: Draws, gpus: int) -> int | None:
    """Return the number of GPUs that finishes soonest within the budget, safely: fewer than those given, else more."""
    parts = parts_of_a_node(case.cluster) if question.fine_tunes else ()
    for least, most in ((1, gpus - 1), (gpus + 1, min(MORE_WITHIN * gpus, targets.most_gpus))):
        within = replace(targets, deadline_s=None, most_gpus=most, advised=False)
        try:
            choice = soonest(
                case, question.fixed, draws, within, parts_of_a_node=parts if least == 1 else (), at_least=least
            )
        except NoPlanError:
            continue
        if choice.safe:
            return choice.gpus
    return None
