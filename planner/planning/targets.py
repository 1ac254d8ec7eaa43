"""What a plan must meet, and how likely a layout does: deadline, budget, and the confidence at which both count."""

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
"""What a hint adds to a deadline or a budget that is just met, so that the same search with it finds a plan."""

SOONER_RATIO = 0.98
"""A run that ends sooner by less is as soon, by what the rates may be."""

ROUNDING = 1e-9
"""What a figure may lose by a change of units and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Deadline and budget, each None where nobody asked for it, to be met with a probability."""

    deadline_s: float | None = None
    budget_usd: float | None = None
    confidence_ratio: float = 0.8
    """Least probability of meeting each of them."""
    most_gpus: int = MAX_GPUS
    """No plan takes more."""
    advised: bool = True
    """Whether a refusal works out what would be enough, which takes longer than to find that nothing is."""

    @property
    def budget_alone(self) -> bool:
        """Whether a budget is to be spent on the soonest end."""
        return self.budget_usd is not None and self.deadline_s is None

    def met_by(self, drawn: Evaluation) -> bool:
        """Whether a layout, evaluated under draws, meets both."""
        return all(
            limit is None or probability(values, limit) >= self.confidence_ratio
            for values, limit in ((drawn.wall_s, self.deadline_s), (drawn.cost_usd, self.budget_usd))
        )


NO_TARGETS = Targets()
"""Neither deadline nor budget."""


def targets_of(question: Question) -> Targets:
    """What a question asks to be met."""
    return Targets(
        deadline_s=question.deadline_s, budget_usd=question.budget_usd, confidence_ratio=question.confidence_ratio,
        most_gpus=question.most_gpus or MAX_GPUS,
    )  # fmt: skip


def probability(values: Value, limit: float) -> float:
    """Share of draws within a limit, 0..1; a limit that went through another unit and back still holds."""
    return float(np.mean(np.ravel(values) <= limit * (1.0 + ROUNDING)))


def at_confidence(values: Value, confidence_ratio: float) -> float:
    """The smallest of some draws that at least this share of them does not exceed.

    A share of 0.5 gives the median of an odd number of draws.
    """
    ordered = np.sort(np.ravel(values))
    return float(ordered[min(max(math.ceil(confidence_ratio * len(ordered)) - 1, 0), len(ordered) - 1)])


BUDGET_DIGITS = 3
"""Digits of a budget that a hint names."""


def enough_usd(usd: float) -> int:
    """An amount as a hint names it: a little above what is needed (`ROOM_RATIO`), in round dollars."""
    return rounded_up_usd(usd * ROOM_RATIO)


def rounded_up_usd(usd: float) -> int:
    """An amount in round dollars that is not below it."""
    needed = math.ceil(usd)
    step = 10 ** max(len(str(needed)) - BUDGET_DIGITS, 0)
    return int(-(-needed // step) * step)


MOST_DIGITS = 3
"""Decimals of a percentage that a sentence has at most."""


def digits_apart(ratio: float, other_ratio: float) -> int:
    """The fewest decimals with which two probabilities that differ read differently as percentages."""
    return next((n for n in range(MOST_DIGITS) if f"{ratio:.{n}%}" != f"{other_ratio:.{n}%}"), MOST_DIGITS)
