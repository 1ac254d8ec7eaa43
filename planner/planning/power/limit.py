"""Find the power limits at which the requested plan costs least and uses least energy: `--power-limit auto`."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from planner.costs.facility_power import LimitPoint, LimitSearch
from planner.errors import NoPlanError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import enumerate_layouts
from planner.planning.case import Case, RatesAndPrices
from planner.planning.choice import Choice, best_given, choose_each
from planner.planning.counting.open_count import counted
from planner.planning.ranges import DRAWS
from planner.planning.requested import UnpricedError, asked_plan
from planner.planning.targets import at_confidence, targets_of
from planner.question.question import Question
from planner.rates.terms import Draws, Value

STEP_W = 25.0
"""Watts between two limits that are compared."""
STEP_RATIO = 0.05
"""The step as a share of the limit as sold, for GPUs below `COARSE_FROM_W`."""
COARSE_FROM_W = 250.0
"""Limit as sold from which `STEP_W` is a tenth of it or less."""
MORE = 1.5
"""Factor over the plan's GPUs up to which more GPUs are considered for a lower limit."""
MOST_COUNTS = 8
"""Number of GPU counts above the plan's that are considered."""


def settle_limits(question: Question, rates_and_prices: RatesAndPrices) -> tuple[Question, tuple[LimitSearch, ...]]:
    """Return the question with each GPU at its cheapest power limit, and the searches; unchanged if none was requested.

    Where no price is known, the limit of least energy is taken. A GPU that lacks the requested precision, or one of
    several that has no plan, keeps its limit as sold.

    Raises:
        NoPlanError: the only GPU has no plan at its limit as sold.
        UnpricedError: the only GPU lacks the price that a budget needs.
    """
    if not question.searches_power_limit:
        return question, ()
    clusters, searches = [], []
    for cluster in question.clusters:
        search = None
        try:
            if question.why_unable(question.policy, cluster.gpu) is None:
                search = _search(question, cluster, rates_and_prices)
        except (NoPlanError, UnpricedError):
            if len(question.clusters) == 1:
                raise
        if search is not None:
            searches.append(search)
            cluster = replace(cluster, power_limit_w=(search.cheapest or search.greenest).limit_w)
        clusters.append(cluster)
    return replace(question, clusters=tuple(clusters)), tuple(searches)


def limits_of(cluster: Cluster) -> list[float]:
    """Return the limits to compare in watts, from the limit as sold down to the least that the driver accepts."""
    sold_w, least_w = cluster.gpu.tdp_w, cluster.gpu.power_limit_min_w
    assert least_w is not None
    step_w = STEP_W if sold_w >= COARSE_FROM_W else STEP_RATIO * sold_w
    steps = math.ceil((sold_w - least_w) / step_w - 1e-9)
    return [max(sold_w - number * step_w, least_w) for number in range(steps + 1)]


def _search(question: Question, cluster: Cluster, rates_and_prices: RatesAndPrices) -> LimitSearch:
    """Compare the limits on the layouts that are fastest as sold, then plan anew at the limits that win."""
    candidates = _candidates(question, rates_and_prices.case(question, cluster))
    limits_w = limits_of(cluster)
    cases = (rates_and_prices.case(question, replace(cluster, power_limit_w=limit_w)) for limit_w in limits_w)
    figures = np.array([candidates.least(question, case) for case in cases])
    winners_w = {limits_w[int(np.argmin(column))] for column in figures.T} - {limits_w[0]}
    points = [_point(question, cluster, rates_and_prices, limits_w[0])]
    for limit_w in sorted(winners_w, reverse=True):
        with suppress(NoPlanError):  # the draws may miss a target that the mid meets
            points.append(_point(question, cluster, rates_and_prices, limit_w))
    priced = [point for point in points if point.cost_usd is not None]
    return LimitSearch(
        gpu=cluster.gpu.id, precision=question.policy.precision, least_w=limits_w[-1], limits=len(limits_w),
        sold=points[0], greenest=min(points, key=lambda point: point.energy_mwh),
        cheapest=min(priced, key=lambda point: point.cost_usd or 0.0) if priced else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Layouts that are compared at every limit, and the ratios of figures under draws to those at mid."""

    layouts: Layouts
    wall_ratio: float
    """Duration at the confidence over that at mid, of the winner as sold; it decides whether a deadline is met."""
    usd_ratio: float
    """Cost at the confidence over that at mid, of the winner as sold."""

    def least(self, question: Question, case: Case) -> tuple[float, float]:
        """Return USD and joules at mid on the GPUs that a plan would take; infinite if no layout meets the targets."""
        scores = case.score(self.layouts, energy=True)
        assert scores.energy_j is not None
        met = np.ones(len(self.layouts), dtype=bool)
        if question.deadline_s is not None:
            met &= scores.wall_s * self.wall_ratio <= question.deadline_s
        if question.budget_usd is not None:
            met &= scores.cost_usd * self.usd_ratio <= question.budget_usd
        if not met.any():
            return math.inf, math.inf
        objective = self.layouts.gpus if question.budget_usd is None or question.deadline_s else scores.wall_s
        at = int(np.flatnonzero(met)[np.argmin(objective[met])])
        return float(scores.cost_usd[at]), float(scores.energy_j[at])


def _candidates(question: Question, case: Case) -> _Candidates:
    """Return the best safe layout on each number of GPUs that may be needed: lower limits keep its shape."""
    draws, targets = Draws(count=DRAWS, seed=question.seed), targets_of(question)
    chosen = None if question.gpus is not None else counted(question, case, targets, draws)
    if chosen is None:
        choice = best_given(case, question.fixed, question.gpus or 1)
        layouts = choice.layouts if choice.best is None else choice.winner
        return _Candidates(layouts=layouts, wall_ratio=1.0, usd_ratio=1.0)
    winner = chosen.choice.winner
    mid, drawn = case.evaluate(winner), case.evaluate(winner, draws)
    more = _on_more(question, case, chosen.choice.gpus, targets.most_gpus)
    return _Candidates(
        layouts=Layouts.of(winner.at(0), *(choice.winner.at(0) for choice in more)),
        wall_ratio=_over(drawn.wall_s, mid.wall_s, question.confidence_ratio),
        usd_ratio=_over(drawn.cost_usd, mid.cost_usd, question.confidence_ratio),
    )


def _over(drawn: Value, mid: Value, confidence_ratio: float) -> float:
    """Return the draws at the confidence over the value at mid; 1 where the value is 0."""
    at_mid = float(np.ravel(mid)[0])
    return at_confidence(drawn, confidence_ratio) / at_mid if at_mid else 1.0


def _on_more(question: Question, case: Case, gpus: int, most_gpus: int) -> list[Choice]:
    """Return the safe choices on somewhat more GPUs, which a lower limit may need to finish in time."""
    most = min(most_gpus, max(MORE * gpus, gpus + case.cluster.gpus_per_node))
    layouts = enumerate_layouts(case.recipe, case.cluster, question.fixed, gpus_between=(gpus + 1, most))
    if not len(layouts):
        return []
    scores = case.score(layouts)
    fits = case.fits(scores)
    counts = np.unique(layouts.gpus[fits])
    groups = [np.flatnonzero(fits & (layouts.gpus == count)) for count in counts[:MOST_COUNTS]]
    choices = choose_each(case, layouts, scores, groups, len(layouts))
    return [choice for choice in choices if choice.best is not None and choice.safe]


def _point(question: Question, cluster: Cluster, rates_and_prices: RatesAndPrices, limit_w: float) -> LimitPoint:
    """Return the plan at one limit, from a new search."""
    case = rates_and_prices.case(question, replace(cluster, power_limit_w=limit_w))
    plan = asked_plan(question, case, Draws(count=DRAWS, seed=question.seed)).plan
    assert plan.duration_days is not None
    assert plan.energy_mwh is not None
    return LimitPoint(
        limit_w=limit_w, gpus=plan.gpus, duration_days=plan.duration_days.mid, energy_mwh=plan.energy_mwh.mid,
        cost_usd=None if plan.cost_usd is None or case.price.usd_per_gpu_h is None else plan.cost_usd.mid,
    )  # fmt: skip
