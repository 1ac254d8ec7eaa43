"""Choose the number of GPUs: the fewest that meet a deadline, or the one that finishes soonest within a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.errors import Message, NoPlanError
from planner.evidence import median
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, counts_between, round_counts
from planner.performance.evaluation import Score
from planner.planning.case import Case
from planner.planning.choice import AT_ONCE, Choice
from planner.planning.counting.fewer import fewer
from planner.planning.counting.more_money import much_sooner
from planner.planning.counting.search import Bools, CountSearch
from planner.planning.counting.start import DEADLINE_WINDOW, start_of
from planner.planning.fitting.shortage import refusal
from planner.planning.targets import NO_TARGETS, Targets
from planner.rates.terms import Draws

Floats = npt.NDArray[np.float64]

CHEAPER_WITHIN = 1.5
"""Factor over the fewest GPUs up to which more are considered for a plan that finishes sooner and is cheaper as
well."""
TUNING_CHEAPER_WITHIN = 2.0
"""The same factor for fine-tuning, where the fewest GPUs that hold the run have almost no memory to spare."""
MORE_NODES = 2
"""Number of further nodes that are considered in any case."""
MOST_CHEAPER = 4
"""Number of these GPU counts that are planned under draws: the cheapest ones at mid."""
CLOSE_TO_CHEAPEST = 1.05
"""The fewest of these GPUs whose GPU-hours are within this factor of the cheapest are taken: a smaller difference is
within what the layouts that a search over GPU counts leaves out may change."""


def fewest(case: Case, fixed: FixedLayout, draws: Draws, targets: Targets = NO_TARGETS, *, at_least: int = 1) -> Choice:
    """Return the best layout on the fewest whole nodes that meet the targets safely.

    At least `at_least` GPUs are known to be needed. Where somewhat more GPUs finish sooner and cost less
    (`_cheaper_on_more`), the fewest of these close to the cheapest are taken. Where no number of GPUs has a safe layout
    that meets the targets, the result is the fewest on which a layout meets them that is more likely to fit than not.

    Raises:
        NoPlanError: no number of GPUs meets the targets; the error says by how much, and what would.
    """
    search = CountSearch(case=case, fixed=fixed, draws=draws, targets=targets)
    start = start_of(search)
    first, likely = max(at_least, start.least), max(at_least, start.likely)
    risky: Choice | None = None
    for low, high in ((likely, targets.most_gpus), (first, min(likely - 1, targets.most_gpus))):
        met = _first_met(search, low, high)
        if met.choice is not None:
            choice = _fewest_of(search, met, met.choice)
            below = _first_met(search, first, choice.gpus - 1) if choice.gpus < low else met  # `low` was too high
            choice = choice if below is met or below.choice is None else _fewest_of(search, below, below.choice)
            return _cheaper_on_more(search, choice)
        risky = met.risky or risky
    if risky is not None:
        return risky
    if targets.advised:
        _score_below(search, start.least)
        _keep_costs_in_time(search)
    return _met_or_refused(search)


def _fewest_of(search: CountSearch, met: _Met, choice: Choice) -> Choice:
    """Return the choice on the fewest GPUs around the one that was met among round numbers."""
    return fewer(search, _finer(search, met.too_few, choice), met.layouts, met.wall_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """What a search through ranges of rising numbers of GPUs found."""

    choice: Choice | None
    """The choice on the fewest GPUs that meets the targets safely, if any does."""
    risky: Choice | None
    """The choice on the fewest GPUs that meets them at a risk, if that comes first."""
    too_few: int
    """The largest number of GPUs below the choice that was tried, or is known to be too small."""
    layouts: Layouts
    """The layouts of the choice's range that fit; `wall_s` is the duration of each at mid, `[layout]`."""
    wall_s: Floats


def _first_met(search: CountSearch, first: int, most_gpus: int) -> _Met:
    """Search ranges of numbers of GPUs in rising order until a choice meets the targets safely."""
    risky: Choice | None = None
    too_few, empty = first - 1, 0
    for window in _windows(search, first, most_gpus):
        layouts, scores, fits = search.score_between(window)
        empty = 0 if len(layouts) else empty + 1
        if search.near_misses.evaluated and empty == MOST_EMPTY:
            break
        if not len(layouts):
            continue
        choice, risky_here = search.first_met(layouts, scores, fits)
        risky = risky or risky_here
        if choice is not None:
            too_few = int(layouts.gpus[layouts.gpus < choice.gpus].max(initial=too_few))
            able = layouts.take(fits)
            return _Met(choice=choice, risky=risky, too_few=too_few, layouts=able, wall_s=scores.wall_s[fits])
        too_few = int(layouts.gpus.max())
        if search.near_misses.wall_s and search.targets.deadline_s is None and window[0] > MOST_WITHOUT_DEADLINE:
            break  # more GPUs only add cost
    return _Met(choice=None, risky=risky, too_few=too_few, layouts=Layouts.joined([]), wall_s=np.zeros(0))


def fewest_between(
    case: Case, fixed: FixedLayout, draws: Draws, targets: Targets, between: tuple[float, float]
) -> Choice | None:
    """Return the best layout on the fewest round number of GPUs in a range that meets the targets safely, or None."""
    search = CountSearch(case=case, fixed=fixed, draws=draws, targets=targets)
    layouts, scores, fits = search.score_between(between)
    return search.first_met(layouts, scores, fits)[0] if len(layouts) else None


MOST_EMPTY = 3
"""Number of ranges in a row without a layout after which the search ends: no larger number of GPUs has one."""
MOST_WITHOUT_DEADLINE = 4096
"""Where only memory and budget count, the search ends beyond this number of GPUs once a layout fits."""


def _windows(search: CountSearch, first: int, most_gpus: int) -> Iterator[tuple[float, float]]:
    """Yield ranges of GPU counts in rising order; with a deadline they are narrow: the first is near the answer."""
    low, wider = first, WINDOW if search.targets.deadline_s is None else DEADLINE_WINDOW
    while low <= most_gpus:
        high = min(max(math.floor(low * wider), 8 * search.case.cluster.gpus_per_node), most_gpus)
        yield low, high
        low = high + 1


WINDOW = 3.0
"""Ratio of the most to the fewest GPUs of a range."""


def _finer(search: CountSearch, too_few: int, enough: Choice) -> Choice:
    """Return the best layout on fewer GPUs that meets the targets, above `too_few`; `enough` where there is none."""
    if search.case.recipe.batch_band is None:
        return enough
    counts = counts_between(search.case.cluster, too_few, enough.gpus)
    if not len(counts):
        return enough
    layouts, scores, fits = search.score_on(counts)
    if not len(layouts):  # none of these counts splits the model
        return enough
    return search.first_met(layouts, scores, fits)[0] or enough


def _cheaper_on_more(search: CountSearch, enough: Choice) -> Choice:
    """Return the choice on somewhat more GPUs where these finish sooner and are cheaper: the fewest near the cheapest.

    Half as many GPUs again are considered, twice as many for fine-tuning, and `MORE_NODES` more nodes in any case. The
    `MOST_CHEAPER` of them that are cheapest at mid are compared by the median of their GPU-hours over the draws. Where
    one of these round numbers is taken, numbers between it and the fewest are compared with it, too.
    """
    if search.targets.deadline_s is None:
        return enough
    case = search.case
    within = CHEAPER_WITHIN if case.recipe.method == "pretrain" else TUNING_CHEAPER_WITHIN
    most = max(within * enough.gpus, enough.gpus + MORE_NODES * case.cluster.gpus_per_node)
    most = min(most, search.targets.most_gpus)
    more = _cheapest(search, *search.score_between((enough.gpus + 1, most)), enough.gpus * _wall_s(enough))
    chosen = first_cheap(case, [enough, *more], search.draws)
    if chosen.gpus == enough.gpus or case.recipe.batch_band is None:
        return chosen
    between = counts_between(case.cluster, enough.gpus, chosen.gpus)
    between = between[~np.isin(between, [choice.gpus for choice in more])]
    if not len(between):
        return chosen
    nearly_s = CLOSE_TO_CHEAPEST * chosen.gpus * _wall_s(chosen)
    return first_cheap(case, [*_cheapest(search, *search.score_on(between), nearly_s), chosen], search.draws)


def _cheapest(search: CountSearch, layouts: Layouts, scores: Score, fits: Bools, below_gpu_s: float) -> list[Choice]:
    """Return the choices that meet the targets on the `MOST_CHEAPER` counts that take the fewest GPU-seconds at mid.

    Args:
        search: the search.
        layouts: layouts on several numbers of GPUs.
        scores: their scores.
        fits: which of them fit, `[layout]`.
        below_gpu_s: GPU-seconds at mid, below which those of a choice must be.
    """
    counts, inverse = np.unique(layouts.gpus[fits], return_inverse=True)
    least_gpu_s = np.full(len(counts), math.inf)
    np.minimum.at(least_gpu_s, inverse, (layouts.gpus * scores.wall_s)[fits])
    cheapest = least_gpu_s.argsort()[:MOST_CHEAPER]
    promising = counts[cheapest[least_gpu_s[cheapest] < below_gpu_s]]
    safe = [choice for choice in search.choices(layouts, scores, fits, sorted(promising.tolist())) if choice.safe]
    return [choice for choice in search.evaluated_ahead(safe) if search.meets(choice)]


def first_cheap(case: Case, able: Sequence[Choice], draws: Draws) -> Choice:
    """Return the first choice whose median GPU-hours over the draws are close to the cheapest (`CLOSE_TO_CHEAPEST`)."""
    gpu_s = [choice.gpus * median(np.asarray(case.evaluate(choice.winner, draws).wall_s)) for choice in able]
    return next(choice for choice, s in zip(able, gpu_s, strict=True) if s <= CLOSE_TO_CHEAPEST * min(gpu_s))


def soonest(
    case: Case,
    fixed: FixedLayout,
    draws: Draws,
    targets: Targets,
    *,
    parts_of_a_node: tuple[int, ...] = (),
    at_least: int = 1,
    advice: list[Message] | None = None,
) -> Choice:
    """Return the choice that finishes soonest with its cost within the budget at the confidence, safely.

    The numbers of GPUs are round ones (`search.round_counts`) from the least to the most allowed, some below a node if
    given, and numbers between the chosen round one and the next. A message about what slightly more money would buy is
    added to `advice`, where that is given.

    Raises:
        NoPlanError: no number of GPUs meets the budget; the error says by how much, and what would.
    """
    search = CountSearch(case=case, fixed=fixed, draws=draws, targets=targets)
    best: Choice | None = None
    risky: Choice | None = None
    for layouts, scores, fits in _falling(search, at_least, parts_of_a_node):
        if not len(layouts):
            continue
        sooner = fits if best is None else fits & (scores.wall_s < _wall_s(best))
        if best is not None and not sooner.any():
            break
        search.forget()  # with fewer GPUs the cost is less uncertain
        safe, risky_here = _soonest_of(search, layouts, scores, sooner)
        best, risky = safe or best, risky or risky_here
    best = None if best is None else _sooner_between(search, best)
    more = None if best is None or advice is None else much_sooner(search, best)
    if advice is not None and more is not None:
        advice.append(more)
    return best or risky or _met_or_refused(search)


def _sooner_between(search: CountSearch, best: Choice) -> Choice:
    """Return the choice that finishes soonest on numbers up to the next round one; `best`, on a round one, if none."""
    cluster, most = search.case.cluster, search.targets.most_gpus
    if search.case.recipe.batch_band is None or best.gpus < cluster.gpus_per_node:
        return best
    rounder = round_counts(cluster, best.gpus + 1, 2 * best.gpus)
    counts = counts_between(cluster, best.gpus, min(int(rounder.min(initial=most + 1)), most + 1))
    if not len(counts):
        return best
    layouts, scores, fits = search.score_on(counts)
    if not len(layouts):  # none of these counts splits the model
        return best
    return _soonest_of(search, layouts, scores, fits & (scores.wall_s < _wall_s(best)))[0] or best


def _falling(
    search: CountSearch, at_least: int, parts_of_a_node: tuple[int, ...]
) -> Iterator[tuple[Layouts, Score, Bools]]:
    """Yield the layouts of ranges of GPU counts, from the most to the fewest allowed, then of counts below a node."""
    high = search.targets.most_gpus
    while high >= at_least:
        low = max(at_least, high // 2 + 1 if high > 8 * search.case.cluster.gpus_per_node else 1)
        yield search.score_between((low, high))
        high = low - 1
    yield search.score_on(np.array([gpus for gpus in parts_of_a_node if gpus <= search.targets.most_gpus], np.int64))


def _soonest_of(
    search: CountSearch, layouts: Layouts, scores: Score, fits: Bools
) -> tuple[Choice | None, Choice | None]:
    """Return the choices that finish soonest within the budget: the safe one, and the risky one."""
    safe: Choice | None = None
    risky: Choice | None = None
    tried: list[int] = []
    while True:
        open_ = fits & search.within(scores) & ~np.isin(layouts.gpus, tried)
        able = np.flatnonzero(open_ if safe is None else open_ & (scores.wall_s < _wall_s(safe)))
        counts = list(dict.fromkeys(int(gpus) for gpus in layouts.gpus[able[np.argsort(scores.wall_s[able])]]))
        if not counts:
            return safe, risky
        tried += counts[:AT_ONCE]
        for choice in search.choices(layouts, scores, fits, counts[:AT_ONCE]):
            best = safe if choice.safe else risky
            if (best is None or _wall_s(choice) < _wall_s(best)) and search.meets(choice):
                safe, risky = (choice, risky) if choice.safe else (safe, choice)


def _wall_s(choice: Choice) -> float:
    """Return the wall-clock seconds of a run at mid."""
    return float(choice.scores.wall_s[choice.best])


def _met_or_refused(search: CountSearch) -> Choice:
    """Return a plan that meets the targets, found among the nearest ones that the refusal evaluates after the search.

    Raises:
        NoPlanError: none of them does.
    """
    if search.is_out_of_reach and not search.targets.advised:
        # A caller without advice compares GPUs and does not read the message.
        raise NoPlanError(Message.of("error.no_offer", gpus=1), hint=Message.of("hint.no_offer", flags=()))
    error = refusal(search.case, search.fixed, search.near_misses, search.draws, search.targets)
    if search.near_misses.met is None:
        raise error
    return search.near_misses.met


def _keep_costs_in_time(search: CountSearch) -> None:
    """Keep only the costs of plans that meet the deadline at the confidence, where both targets exclude each other."""
    if search.targets.deadline_s is None or search.targets.budget_usd is None:
        return
    try:
        choice = fewest(search.case, search.fixed, search.draws, replace(search.targets, budget_usd=None))
    except NoPlanError:
        return
    in_time = {gpus: usd for gpus, usd in search.near_misses.cost_usd.items() if gpus >= choice.gpus}
    search.near_misses.cost_usd = {choice.gpus: float(choice.scores.cost_usd[choice.best])} | in_time


def _score_below(search: CountSearch, least: int) -> None:
    """Score fewer GPUs than a deadline needs at best: where the batch cannot feed more, fewer may finish sooner.

    The search itself starts at the least number that the deadline needs.
    """
    most_gpus = min(least - 1, search.targets.most_gpus)
    for window in _windows(search, 1, most_gpus):
        search.score_between(window)
