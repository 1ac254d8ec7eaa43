"""How many GPUs where the question leaves it open, on which layout, and what decided the number."""

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
"""A fine-tuning that ends within an hour takes no more GPUs for the same budget: to get them, to start and to load the
model takes minutes that no plan holds."""
MORE_WITHIN = 2
"""How many more GPUs than were given are looked at for a budget that these and fewer do not keep."""
LATER_MOST_GPUS = 4096
"""Most GPUs of the plan that says which deadline a budget allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A layout on a number of GPUs that the question left open."""

    choice: Choice
    why: str
    """Key of the note that says what decided the number."""
    more: tuple[Message, ...] = ()
    """What a little more money than a budget would do."""


def counted(question: Question, case: Case, targets: Targets, draws: Draws) -> Counted | None:
    """The fewest GPUs that hold and meet what was asked, or with a budget alone those that end the soonest.

    Args:
        question: what was asked, without a number of GPUs.
        case: the asked precision on one kind of GPU.
        targets: deadline and budget.
        draws: the common draws.

    Returns:
        None where one GPU is all there is, whether or not it is enough.

    Raises:
        NoPlanError: no number of GPUs meets the targets.
    """
    alone = _is_sold_alone(question, case)
    if alone and best_on(case, question.fixed, 1).best is not None:
        return None  # though more may hold the run more safely: cards without a fast link are slow
    within = _within_a_node(question, case, targets, draws)
    if within is None and alone:
        return None
    chosen = within or _whole_nodes(question, case, targets, draws)
    return replace(chosen, choice=_as_given(question, case, chosen.choice, targets, draws))


def _as_given(question: Question, case: Case, chosen: Choice, targets: Targets, draws: Draws) -> Choice:
    """The best layout on the number of GPUs that was chosen, as if it had been given: more layouts are tried then."""
    again = best_given(case, question.fixed, chosen.gpus)
    sure = again.best is not None and again.safe >= chosen.safe
    return again if sure and targets.met_by(case.evaluate(again.winner, draws)) else chosen


def _is_sold_alone(question: Question, case: Case) -> bool:
    """Whether one GPU may be all there is: to fine-tune without a target on GPUs that are sold one by one."""
    return question.fine_tunes and case.cluster.gpu.gpus_per_node == 1 and question.deadline_assumed


def parts_of_a_node(cluster: Cluster) -> tuple[int, ...]:
    """Numbers of GPUs below a whole node that a plan may have: powers of two, which divide what a node has."""
    whole = cluster.gpus_per_node
    return tuple(2**power for power in range(whole.bit_length()) if 2**power < whole)


def _within_a_node(question: Question, case: Case, targets: Targets, draws: Draws) -> Counted | None:
    """The best layout on the fewest GPUs of a part of a node, or of a machine of cards, that hold it safely in time.

    None to pre-train, which takes whole nodes, and on GPUs of which one node is not enough.
    """
    if not question.fine_tunes or case.cluster.gpu.id in question.over_nodes:
        return None
    why = "note.within_the_hour" if targets.budget_alone else "note.fewest_gpus"
    targets = _soon_enough(targets)
    whole = (case.cluster.gpus_per_node,) if _is_sold_alone(question, case) else ()
    counts = [gpus for gpus in parts_of_a_node(case.cluster) + whole if gpus <= targets.most_gpus]
    for number, gpus in enumerate(counts):
        choice = best_on(case, question.fixed, gpus)
        enough = choice.safe or (gpus == 1 and case.cluster.gpu.gpus_per_node == 1)  # as without a target
        if choice.best is not None and enough and targets.met_by(case.evaluate(choice.winner, draws)):
            return Counted(choice=_cheaper(question, case, choice, counts[number + 1 :], draws), why=why)
    return None


def _cheaper(question: Question, case: Case, fewest_gpus: Choice, more: Sequence[int], draws: Draws) -> Choice:
    """The fewest GPUs of a node that are close to the cheapest: what is short of memory may end sooner, and for less.

    Looked at are numbers on which a layout is so much faster at mid that it takes fewer GPU-hours.

    Args:
        question: what was asked.
        case: the asked precision on one kind of GPU.
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
    """GPU-seconds of the whole run at mid."""
    return choice.gpus * float(choice.scores.wall_s[choice.best])


def _whole_nodes(question: Question, case: Case, targets: Targets, draws: Draws) -> Counted:
    """With a budget alone the soonest end within it, else the fewest whole nodes that meet the targets.

    To fine-tune, a budget alone takes the fewest GPUs that end within `SOON_ENOUGH_S`, parts of a node among them.

    Raises:
        NoPlanError: no number of GPUs meets them; with both targets it names the deadline that the budget allows.
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
        )  # what it names alone asks for more money
        if error.enough is not None:
            hint = Message.of("hint.budget_or_deadline", hint=error.advised, deadline_days=later_days)
        raise NoPlanError(error.told, hint=hint, enough=error.enough) from error


def _soon_enough(targets: Targets) -> Targets:
    """The same, where a budget alone asks for the soonest end: such an end is soon enough."""
    return replace(targets, deadline_s=SOON_ENOUGH_S) if targets.budget_alone else targets


def within_budget(question: Question, case: Case, targets: Targets, draws: Draws) -> tuple[float, int] | None:
    """The soonest end within the budget, in days at the confidence, and on how many GPUs; None where there is none."""
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
    """The number of GPUs that ends soonest within the budget, safely: on fewer than those given, else on more."""
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
