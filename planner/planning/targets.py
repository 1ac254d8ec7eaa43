"""The targets of a plan and the probability of meeting them: deadline, budget, and the confidence for both."""

from __future__ import annotations

import math

import numpy as np

from planner.lazy import dataclass
from planner.performance.evaluation import Evaluation
from planner.question.question import Question
from planner.rates.terms import Value

MAX_GPUS = 1 << 20
"""No search goes beyond a million GPUs."""

ROOM_RATIO = 1.05
"""Factor that a hint adds to a deadline or a budget that is just met, so that the same search with it finds a plan."""

SOONER_RATIO = 0.98
"""A run counts as sooner only if its time is below this share of the other's; less is within the error of the rates."""

ROUNDING = 1e-9
"""Relative error that a figure may pick up by conversion to another unit and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Deadline and budget, each None where it was not given, to be met with a probability."""

    deadline_s: float | None = None
    budget_usd: float | None = None
    confidence_ratio: float = 0.8
    """Lowest probability of meeting each of them."""
    most_gpus: int = MAX_GPUS
    """Most GPUs that a plan may take."""
    cap_w: float | None = None
    """The cap on power that `most_gpus` follows from; None where it is the user's limit, or the default."""
    advised: bool = True
    """Whether a refusal works out a sufficient alternative, which takes longer than finding that nothing is enough."""

    @property
    def budget_alone(self) -> bool:
        """Whether a budget is the only target, to be spent on the soonest end."""
        return self.budget_usd is not None and self.deadline_s is None

    def met_by(self, drawn: Evaluation) -> bool:
        """Return whether a layout, evaluated under draws, meets both targets."""
        return all(
            limit is None or probability(values, limit) >= self.confidence_ratio
            for values, limit in ((drawn.wall_s, self.deadline_s), (drawn.cost_usd, self.budget_usd))
        )


NO_TARGETS = Targets()
"""Targets without a deadline or a budget."""


def targets_of(question: Question) -> Targets:
    """Return the targets of a question."""
    return Targets(
        deadline_s=question.deadline_s, budget_usd=question.budget_usd, confidence_ratio=question.confidence_ratio,
        most_gpus=question.most_gpus or MAX_GPUS, cap_w=question.money.power_cap_w if question.under_cap else None,
    )  # fmt: skip


def probability(values: Value, limit: float) -> float:
    """Return the share of draws within a limit, 0..1; a limit converted to another unit and back still holds."""
    return float(np.mean(np.ravel(values) <= limit * (1.0 + ROUNDING)))


def at_confidence(values: Value, confidence_ratio: float) -> float:
    """Return the smallest draw that at least this share of the draws does not exceed.

    A share of 0.5 gives the median of an odd number of draws.
    """
    ordered = np.sort(np.ravel(values))
    return float(ordered[min(max(math.ceil(confidence_ratio * len(ordered)) - 1, 0), len(ordered) - 1)])


BUDGET_DIGITS = 3
"""Significant digits of a budget in a hint."""


def enough_usd(usd: float) -> int:
    """Return an amount for a hint: a little above what is needed (`ROOM_RATIO`), in round dollars."""
    return rounded_up_usd(usd * ROOM_RATIO)


def rounded_up_usd(usd: float) -> int:
    """Round an amount up to round dollars (`BUDGET_DIGITS`)."""
    needed = math.ceil(usd)
    step = 10 ** max(len(str(needed)) - BUDGET_DIGITS, 0)
    return int(-(-needed // step) * step)


MOST_DIGITS = 3
"""Most decimals of a percentage in a sentence."""


def digits_apart(ratio: float, other_ratio: float) -> int:
    """Return the fewest decimals with which two different probabilities read differently as percentages."""
    return next((n for n in range(MOST_DIGITS) if f"{ratio:.{n}%}" != f"{other_ratio:.{n}%}"), MOST_DIGITS)
