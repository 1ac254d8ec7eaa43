"""The state of one search over numbers of GPUs: the layouts seen, and which of them can or do meet the targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts, round_counts
from planner.performance.evaluation import Score
from planner.planning.case import Case
from planner.planning.choice import AT_ONCE, Choice, choose_each
from planner.planning.fitting.shortage import NearMisses
from planner.planning.targets import Targets, at_confidence
from planner.rates.terms import Draws

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

SLACK = 1.12
"""Factor over a target up to which an estimated figure at the confidence keeps its number of GPUs in the search. The
estimate applies the ratio of one layout to another, whose communication is as uncertain as it is large."""
OUT_OF_REACH = 1.03
"""Factor over a target from which the least known figure counts as out of reach, so that nothing is examined closer."""
LEAST_RATIO = 0.1
"""Lower bound on the ratio of any figure at a confidence to that at mid."""


@dataclass(slots=True, kw_only=True)
class CountSearch:
    """One search over numbers of GPUs: the layouts examined so far, and estimates of the figures at the confidence."""

    case: Case
    fixed: FixedLayout
    draws: Draws
    targets: Targets
    near_misses: NearMisses = field(default_factory=NearMisses)
    wall_ratio: float = 0.0
    """Duration at the confidence over that at mid, of the layout evaluated last."""
    usd_ratio: float = 0.0
    """Cost at the confidence over that at mid, of the layout evaluated last."""
    least_wall_ratio: float = math.inf
    """Least `wall_ratio` so far; infinite where nothing was evaluated. `least_usd_ratio` is the least `usd_ratio`."""
    least_usd_ratio: float = math.inf
    wall_s_by_gpus: dict[int, float] = field(default_factory=dict)
    """Duration at the confidence by number of GPUs, where one was evaluated."""

    def __post_init__(self) -> None:
        """Start without any evaluation."""
        self.forget()

    def forget(self) -> None:
        """Reset the ratios to a lower bound: above the median, a figure at the confidence is not below that at mid."""
        self.wall_ratio = self.usd_ratio = 1.0 if self.targets.confidence_ratio >= 0.5 else LEAST_RATIO

    def score(self, layouts: Layouts) -> tuple[Score, Bools]:
        """Return the scores of some layouts, and which of them fit."""
        scores = self.case.score(layouts)
        return scores, self._record(layouts, scores)

    def score_on(self, counts: Ints) -> tuple[Layouts, Score, Bools]:
        """Return every layout on some numbers of GPUs, their scores, and which of them fit."""
        layouts, scores = self.case.score_on(self.fixed, counts.tolist())
        return layouts, scores, self._record(layouts, scores)

    def score_between(self, window: tuple[float, float]) -> tuple[Layouts, Score, Bools]:
        """As `score_on`, for the numbers of GPUs in a range: round ones, or those over which a given batch divides."""
        recipe, cluster = self.case.recipe, self.case.cluster
        if recipe.batch_band is not None:
            return self.score_on(round_counts(cluster, *window))
        layouts = enumerate_layouts(recipe, cluster, self.fixed, gpus_between=window)
        return layouts, *self.score(layouts)

    def _record(self, layouts: Layouts, scores: Score) -> Bools:
        """Record the figures of some layouts that a refusal would report, and return which of the layouts fit."""
        if len(layouts):
            self.near_misses.record(self.case, layouts, scores, self.targets.deadline_s)
        return self.case.fits(scores)

    def within(self, scores: Score, slack: float = SLACK) -> Bools:
        """Return which layouts could meet the targets, as far as mid values show."""
        able = np.ones(len(scores.wall_s), dtype=np.bool_)
        if self.targets.deadline_s is not None:
            able &= scores.wall_s * self.wall_ratio <= self.targets.deadline_s * slack
        if self.targets.budget_usd is not None:
            able &= scores.cost_usd * self.usd_ratio <= self.targets.budget_usd * slack
        return able

    def could_meet(self, choice: Choice) -> bool:
        """Return whether a choice could meet the targets, as far as mid values show."""
        return bool(self.within(choice.scores)[choice.best])

    def meets(self, choice: Choice) -> bool:
        """Return whether a choice meets the targets at the confidence, and update the ratios."""
        drawn, confidence = self.case.evaluate(choice.winner, self.draws), self.targets.confidence_ratio
        wall_s = at_confidence(drawn.wall_s, confidence)
        self.wall_s_by_gpus[choice.gpus] = wall_s
        self.wall_ratio = wall_s / float(choice.scores.wall_s[choice.best])
        mid_usd = float(choice.scores.cost_usd[choice.best])
        self.usd_ratio = at_confidence(drawn.cost_usd, confidence) / mid_usd if mid_usd else 0.0
        self.least_wall_ratio = min(self.least_wall_ratio, self.wall_ratio)
        self.least_usd_ratio = min(self.least_usd_ratio, self.usd_ratio)
        return self.targets.met_by(drawn)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether nothing that fits comes near the targets, by figures at mid and the least ratio of draws so far."""
        return any(
            limit is not None and min(figures.values(), default=math.inf) * ratio > limit * OUT_OF_REACH
            for figures, ratio, limit in (
                (self.near_misses.wall_s, self.least_wall_ratio, self.targets.deadline_s),
                (self.near_misses.cost_usd, self.least_usd_ratio, self.targets.budget_usd),
            )
        )

    def choices(self, layouts: Layouts, scores: Score, fits: Bools, counts: Iterable[int]) -> Iterator[Choice]:
        """Yield the best layout on each number of GPUs, in their order, where one is more likely to fit than not."""
        waiting = list(counts)
        while waiting:
            now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            groups = [np.flatnonzero(fits & (layouts.gpus == count)) for count in now]
            chosen = choose_each(self.case, layouts, scores, groups, self.near_misses.evaluated)
            yield from (choice for choice in chosen if choice.best is not None)

    def evaluated_ahead(self, choices: Iterable[Choice]) -> list[Choice]:
        """Return the choices, after evaluating those that could meet the targets under the draws in one pass."""
        evaluated = list(choices)
        winners = [choice.winner for choice in evaluated if self.could_meet(choice)]
        self.case.evaluate_ahead(Layouts.joined(winners), self.draws)
        return evaluated

    def first_met(
        self, layouts: Layouts, scores: Score, fits: Bools, slack: float = SLACK
    ) -> tuple[Choice | None, Choice | None]:
        """Return the choice on the fewest GPUs that meets the targets safely, and the one that does so at a risk."""
        risky: Choice | None = None
        tried: set[int] = set()
        while True:
            able = fits & self.within(scores, slack)
            counts = [count for count in sorted(set(layouts.gpus[able].tolist())) if count not in tried][:AT_ONCE]
            if not counts:
                return None, risky
            tried.update(counts)
            for choice in self.evaluated_ahead(self.choices(layouts, scores, fits, counts)):
                if (choice.safe or risky is None) and self.could_meet(choice) and self.meets(choice):
                    if choice.safe:
                        return choice, risky
                    risky = choice
