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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A way that is safe, with its case and its layout."""

    change: Message
    case: Case
    choice: Choice


class SaferWays:
    """Ways to train the same weights safely on a plan's GPUs with less memory; each is planned at most once.

    Args:
        question: the question.
        case: the requested precision on the plan's kind of GPU.
        plan: its plan, which fits.
        draws: the common draws.
        case_of: builds the case of a question on this kind of GPU; None: the GPU cannot run it.
    """

    def __init__(
        self, question: Question, case: Case, plan: Plan, draws: Draws, case_of: Callable[[Question], Case | None]
    ) -> None:
        self.question, self.case, self.plan, self.draws, self.case_of = question, case, plan, draws, case_of
        self._planned: dict[Message, _Planned | None] = {}

    def leaner_loss(self) -> Iterator[Message]:
        """Yield a loss that never holds all logits, if the memory that it saves makes a fine-tuning clearly faster.

        Without all logits, a layout may fit that gathers or recomputes less, or a larger micro-batch. Where the logits
        of a sequence take little of the memory, this loss is not planned; nor where Liger's kernels do not belong to
        the stack, as with Megatron and its relatives.
        """
        recipe = self.case.recipe
        may_help = not recipe.fused and not recipe.model.has_network and has_large_logits(self.case)
        if self.question.fine_tunes and may_help:
            lean = _flagged(self.question, self.case, Way(input="loss", value=LEAN_LOSS))
            yield from self._quickest((lean,), LEAN_LOSS_RATIO)

    def quickest(self, least_ratio: float = 0.0) -> Iterator[Message]:
        """Yield the quickest safe way, if there is one.

        Args:
            least_ratio: the ratio of the plan's time to a way's below which the way is not worth mentioning.
        """
        yield from self._quickest(_ways(self.question, self.case), least_ratio)

    def _quickest(self, ways: Iterable[_Way], least_ratio: float) -> Iterator[Message]:
        """Yield the quickest of some ways that are safe."""
        safe = [planned for planned in map(self._safely, ways) if planned is not None]
        if not safe:
            return
        best = min(safe, key=lambda planned: float(planned.choice.scores.wall_s[planned.choice.best]))
        assert self.plan.duration_days is not None
        days = Estimate.of_draws(best.case.evaluate(best.choice.winner, self.draws).wall_s).mid / DAY_S
        planned_days = self.plan.duration_days.mid
        if planned_days >= least_ratio * days:
            yield Message.of(
                "warning.safe_way", gpu=self.plan.gpu, way=best.change, days=days, time_ratio=days / planned_days,
                risk=risk_of(best.case, best.choice.winner),
            )  # fmt: skip

    def _safely(self, way: _Way) -> _Planned | None:
        """Return a way as planned on these GPUs; None where that is not safe either."""
        if way.change not in self._planned:
            self._planned[way.change] = self._plan(way)
        return self._planned[way.change]

    def _plan(self, way: _Way) -> _Planned | None:
        case = self.case_of(way.question)
        if case is None:
            return None
        try:
            choice = best_on(case, way.question.fixed, self.plan.gpus)
        except UsageError:  # the fixed parts of the layout exclude it
            return None
        return _Planned(change=way.change, case=case, choice=choice) if choice.safe else None


def _ways(question: Question, case: Case) -> Iterator[_Way]:
    """Yield the memory-saving ways that a refusal offers where nothing fits, if they train the same weights."""
    for way in leaner(case, question.fixed):
        yield _flagged(question, case, way)
    if not question.fine_tunes:
        return
    for variant in variants_of(question):
        flags = changes(question, variant)
        if flags and variant.method == question.method:
            yield _Way(change=Message.of("hint.with", flags=flags), question=asked_as(question, variant))


def _flagged(question: Question, case: Case, way: Way) -> _Way:
    """Return a change of one input as a way, with its flag in words, and whose kernels compute a leaner loss."""
    if way.input == "loss" and not case.recipe.fused:
        change = Message.of("hint.with_lean_loss", flags=(way.flag,))
    else:
        change = way.flag if way.value is None else Message.of("hint.with", flags=(way.flag,))
    return _Way(change=change, question=way.apply(question))
