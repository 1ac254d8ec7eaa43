"""Ways to train with less memory that are safe on a plan's GPUs, and sooner or less risky than the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from planner.answer.plan import Plan
from planner.errors import Message, UsageError
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.planning.case import Case
from planner.planning.choice import Choice, best_on
from planner.planning.fitting.one_node import LEAN_LOSS
from planner.planning.fitting.variants import asked_as, changes, variants_of
from planner.planning.fitting.ways import Way, has_large_logits, leaner
from planner.planning.risk import risk_of
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S

LEAN_LOSS_RATIO = 1.15
"""Ratio of a safe plan's time to that with a loss that never holds all logits from which that loss is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A way to train that needs less memory."""

    change: Message
    """The flags to add to the command, or to leave out."""
    question: Question


def quickest_safe_way(
    question: Question,
    case: Case,
    plan: Plan,
    draws: Draws,
    case_of: Callable[[Question], Case | None],
    least_ratio: float = 0.0,
) -> Iterator[Message]:
    """Yield the quickest way to train the same weights safely on a plan's GPUs with less memory, if there is one.

    Args:
        question: the question.
        case: the requested precision on the plan's kind of GPU.
        plan: its plan, which fits.
        draws: the common draws.
        case_of: builds the case of a question on this kind of GPU; None: the GPU cannot run it.
        least_ratio: the ratio of the plan's time to a way's below which the way is not worth mentioning.
    """
    yield from _quickest(_ways(question, case), plan, draws, case_of, least_ratio)


def leaner_loss(
    question: Question, case: Case, plan: Plan, draws: Draws, case_of: Callable[[Question], Case | None]
) -> Iterator[Message]:
    """Yield a loss that never holds all logits, if the memory that it saves makes a fine-tuning clearly faster.

    Without all logits, a layout may fit that gathers or recomputes less, or a larger micro-batch. Where the logits of a
    sequence take little of the memory, this loss is not planned. Arguments as of `quickest_safe_way`.
    """
    if question.fine_tunes and not case.recipe.model.has_network and has_large_logits(case):
        lean = _flagged(question, Way(input="loss", value=LEAN_LOSS))
        yield from _quickest((lean,), plan, draws, case_of, LEAN_LOSS_RATIO)


def _quickest(
    ways: Iterable[_Way],
    plan: Plan,
    draws: Draws,
    case_of: Callable[[Question], Case | None],
    least_ratio: float,
) -> Iterator[Message]:
    """Yield the quickest of some ways that are safe on a plan's GPUs; arguments as of `quickest_safe_way`."""
    tried = (_safely(way, plan.gpus, case_of) for way in ways)
    safe = [candidate for candidate in tried if candidate is not None]
    if not safe:
        return
    way, other, choice = min(safe, key=lambda candidate: float(candidate[2].scores.wall_s[candidate[2].best]))
    assert plan.duration_days is not None
    days = Estimate.of_draws(other.evaluate(choice.winner, draws).wall_s).mid / DAY_S
    if plan.duration_days.mid >= least_ratio * days:
        yield Message.of(
            "warning.safe_way", gpu=plan.gpu, way=way.change, days=days, time_ratio=days / plan.duration_days.mid,
            risk=risk_of(other, choice.winner),
        )  # fmt: skip


def _safely(way: _Way, gpus: int, case_of: Callable[[Question], Case | None]) -> tuple[_Way, Case, Choice] | None:
    """Return a way with its case and the layout on these GPUs; None where that layout is not safe either."""
    case = case_of(way.question)
    if case is None:
        return None
    try:
        choice = best_on(case, way.question.fixed, gpus)
    except UsageError:  # the fixed parts of the layout exclude it
        return None
    return (way, case, choice) if choice.safe else None


def _ways(question: Question, case: Case) -> Iterator[_Way]:
    """Yield the memory-saving ways that a refusal offers where nothing fits, if they train the same weights."""
    for way in leaner(case, question.fixed):
        yield _flagged(question, way)
    if not question.fine_tunes:
        return
    for variant in variants_of(question):
        flags = changes(question, variant)
        if flags and variant.method == question.method:
            yield _Way(change=Message.of("hint.with", flags=flags), question=asked_as(question, variant))


def _flagged(question: Question, way: Way) -> _Way:
    """Return a change of one input as a way, with its flag in words."""
    change = way.flag if way.value is None else Message.of("hint.with", flags=(way.flag,))
    return _Way(change=change, question=way.apply(question))
