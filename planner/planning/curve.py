"""Cost, time and energy of the requested precision over numbers of GPUs around the plan's, with the knee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.answer.plan import CurvePoint, Plan
from planner.evidence import Estimate
from planner.hardware.cluster import CARDS_PER_MACHINE
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import STEPS_PER_OCTAVE, FixedLayout
from planner.performance.evaluation import Evaluation, Score
from planner.planning.case import Case
from planner.planning.choice import Choice, choose_each
from planner.planning.footprint import cost_of, metered_mid
from planner.planning.targets import Targets, probability
from planner.rates.terms import Draws
from planner.units import DAY_S, MWH_J

AROUND = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Numbers of GPUs of the curve, as multiples of the plan's."""
NEAR = 1.12
"""Largest factor by which a point's number of GPUs may differ from its share of the plan's."""
CHEAP = 1.06
"""The nearest round number is used if its GPU-hours are within this factor of the fewest near that share."""
KNEE = 0.25
"""Extra GPU-hours over time saved, both as logarithms, above which a larger number is beyond the knee: half the time
for 19 % more GPU-hours. Assumed."""


def curve_around(case: Case, fixed: FixedLayout, plan: Plan, targets: Targets, draws: Draws) -> tuple[CurvePoint, ...]:
    """Return the points of a curve in rising order, the plan included; counts without a safe layout are left out.

    Args:
        case: the requested precision, with the batches that a search may take.
        fixed: the parts of the layout that the user fixed.
        plan: the plan, which fits.
        targets: deadline, budget and the confidence.
        draws: the common draws.
    """
    in_parts = case.cluster.sized_by_number or plan.gpus < case.cluster.gpus_per_node
    others = _in_parts_of_a_node if in_parts else _on_whole_nodes
    points = [*others(case, fixed, plan, targets, draws), _of_plan(plan, targets)]
    points.sort(key=lambda point: point.gpus)
    is_risky = plan.memory_risk is not None and plan.memory_risk > case.memory_risk
    return tuple(points if is_risky else _with_knee(points))  # a risky plan does not belong on one curve with safe ones


def _on_whole_nodes(case: Case, fixed: FixedLayout, plan: Plan, targets: Targets, draws: Draws) -> Iterator[CurvePoint]:
    """Yield points on whole nodes: near each share, the first count that costs little more than the cheapest."""
    node = case.cluster.gpus_per_node
    near = [[nodes * node for nodes in near_nodes(share * plan.gpus / node)] for share in AROUND]
    paid = _paid_for(case, plan.gpus)
    search = _search_on(case, fixed, sorted({count for counts in near for count in counts} | paid))
    cheap = {count for counts in near for count in _first_cheap(search, counts)}
    counts = sorted((cheap | paid) - {plan.gpus})
    if all(case.with_usual_batch(count) is case for count in counts):
        return _points(case, search, counts, targets, draws)
    return points_on(case, fixed, counts, targets, draws)


def _in_parts_of_a_node(
    case: Case, fixed: FixedLayout, plan: Plan, targets: Targets, draws: Draws
) -> Iterator[CurvePoint]:
    """Yield points within a node (any number of cards, powers of two of other GPUs) and on whole nodes beyond one."""
    cards = case.cluster.sized_by_number
    node = CARDS_PER_MACHINE if cards else case.cluster.gpus_per_node
    counts = {_round_number(share * plan.gpus, node) for share in AROUND} | _paid_for(case, plan.gpus)
    able = (count for count in counts if cards or count >= node or count & (count - 1) == 0)
    return points_on(case, fixed, sorted(set(able) - {plan.gpus}), targets, draws)


def _round_number(gpus: float, node: int) -> int:
    """Return the nearest number of GPUs that fits in one node or fills several."""
    return max(1, round(gpus)) if gpus <= node else near_nodes(gpus / node)[0] * node


def _paid_for(case: Case, gpus: int) -> set[int]:
    """Return the GPUs of an offer's minimum, in whole nodes, where a plan has fewer: they cost the same."""
    quote, node = case.ledger.quote, case.cluster.gpus_per_node
    least = 0 if quote is None else quote.minimum_gpus // node * node
    return {least} if least > gpus else set()


def points_on(
    case: Case, fixed: FixedLayout, counts: Sequence[int], targets: Targets, draws: Draws
) -> Iterator[CurvePoint]:
    """Yield the best safe layout for each GPU count that has one, as if that count were asked for alone.

    Arguments as of `curve_around`.
    """
    by_size: dict[tuple[int, int], list[int]] = {}
    for count in counts:
        size, batch = case.cluster.holding(count).gpus_per_node, case.with_usual_batch(count).recipe.global_batch
        by_size.setdefault((size, batch), []).append(count)
    for alike in by_size.values():
        resized = case.on(alike[0]).with_usual_batch(alike[0])
        yield from _points(resized, _search_on(resized, fixed, alike), alike, targets, draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The layouts on several GPU counts that fit, and their scores at mid."""

    layouts: Layouts
    scores: Score
    gpus: npt.NDArray[np.int64]
    """GPUs of each layout, `[layout]`."""
    evaluated: int
    """Number of layouts scored, whether or not they fit."""


def _search_on(case: Case, fixed: FixedLayout, counts: Sequence[int]) -> _Search:
    layouts, scores = case.score_on(replace(fixed, on_given_gpus=True), counts)
    fitting = np.flatnonzero(case.fits(scores))  # many do not, and the same few are selected again and again
    able = layouts.take(fitting)
    return _Search(layouts=able, scores=scores.take(fitting), gpus=able.gpus, evaluated=len(layouts))


def _points(case: Case, search: _Search, counts: Sequence[int], targets: Targets, draws: Draws) -> Iterator[CurvePoint]:
    groups = [np.flatnonzero(search.gpus == count) for count in counts]
    choices = choose_each(case, search.layouts, search.scores, groups, search.evaluated)
    safe = [choice for choice in choices if choice.best is not None and choice.safe]
    case.evaluate_ahead(Layouts.joined([choice.winner for choice in safe]), draws)
    for choice in safe:
        yield _point(case, choice, targets, draws)


def _first_cheap(search: _Search, counts: Sequence[int]) -> Iterator[int]:
    """Yield the first GPU count whose GPU-hours at mid are within `CHEAP` of the fewest, if any fits."""
    gpu_s = {}
    for count in counts:
        on_count = search.gpus == count
        if on_count.any():
            gpu_s[count] = count * float(search.scores.wall_s[on_count].min())
    yield from [count for count, seconds in gpu_s.items() if seconds <= CHEAP * min(gpu_s.values())][:1]


def near_nodes(nodes: float) -> list[int]:
    """Return round numbers of nodes near a given one, the nearest first; they split in many ways, eight per doubling.

    No batch divides well over some of them: 704 nodes may take longer than 640.
    """
    shift = max(0, math.floor(math.log2(max(nodes, 1.0) / STEPS_PER_OCTAVE)))
    step = 1 << shift
    nearest = max(1, round(nodes / step)) * step
    others = [number for number in (nearest - step, nearest + step) if nodes / NEAR <= number <= nodes * NEAR]
    return [nearest, *sorted(others, key=lambda number: abs(number - nodes))]


def _point(case: Case, choice: Choice, targets: Targets, draws: Draws) -> CurvePoint:
    drawn = case.evaluate(choice.winner, draws)
    cost = cost_of(case, choice.gpus, drawn, draws)
    priced, metered = case.price.usd_per_gpu_h is not None, case.cluster.gpu.tdp_w > 0
    energy_mwh = np.ravel(drawn.energy.total) / MWH_J
    return CurvePoint(
        gpu=case.cluster.gpu.id,
        gpus=choice.gpus,
        global_batch=int(choice.winner.global_batch[0]),
        duration_days=Estimate.of_draws(np.ravel(drawn.wall_s) / DAY_S),
        cost_usd=cost if priced else None,
        energy_mwh=Estimate.of_draws(energy_mwh, mid=float(metered_mid(case, drawn.energy).mwh)) if metered else None,
        chosen=False,
        knee=False,
        in_time=_met(drawn, targets, "deadline"),
        in_budget=_met(drawn, targets, "budget") if priced else None,
    )


def _met(drawn: Evaluation, targets: Targets, target: str) -> bool | None:
    """Return whether one of the targets is met at the confidence; None where that target is not set."""
    values, limit = (drawn.wall_s, targets.deadline_s) if target == "deadline" else (drawn.cost_usd, targets.budget_usd)
    return None if limit is None else probability(values, limit) >= targets.confidence_ratio


def _of_plan(plan: Plan, targets: Targets) -> CurvePoint:
    """Return the plan itself as a point."""
    assert plan.layout is not None
    assert plan.duration_days is not None
    likely = plan.probability
    return CurvePoint(
        gpu=plan.gpu, gpus=plan.gpus, global_batch=plan.layout.global_batch, duration_days=plan.duration_days,
        cost_usd=plan.cost_usd, energy_mwh=plan.energy_mwh, chosen=True, knee=False,
        in_time=None if likely.deadline is None else likely.deadline >= targets.confidence_ratio,
        in_budget=None if likely.budget is None else likely.budget >= targets.confidence_ratio,
    )  # fmt: skip


def _with_knee(points: list[CurvePoint]) -> Iterator[CurvePoint]:
    """Yield the points with the knee marked: the first from which every larger number is dear, if there is one."""
    dear = (n for n, point in enumerate(points[:-1]) if all(_is_dear(point, more) for more in points[n + 1 :]))
    knee = next(dear, None)
    for number, point in enumerate(points):
        yield replace(point, knee=number == knee)


def _is_dear(fewer_gpus: CurvePoint, more_gpus: CurvePoint) -> bool:
    """Return whether more GPUs save time only at a markedly higher cost, or save none at all."""
    saved = math.log(fewer_gpus.duration_days.mid / more_gpus.duration_days.mid)
    added = math.log(more_gpus.gpus / fewer_gpus.gpus) - saved
    return saved <= 0.0 or added / saved > KNEE
