"""How many GPUs: the fewest that meet a deadline at the confidence, or the number that ends soonest within a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from planner.errors import Message, NoPlanError
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, counts_between, enumerate_layouts
from planner.performance.evaluation import Score, flop_of
from planner.planning.case import Case
from planner.planning.choice import Choice, choose_each
from planner.planning.fitting.shortage import Nearest, nothing
from planner.planning.targets import NO_TARGETS, Targets, at_confidence
from planner.rates.terms import Draws

Bools = npt.NDArray[np.bool_]

CHEAPER_WITHIN = 1.5
"""How many more GPUs than the fewest are looked at for a plan that ends sooner and is cheaper as well."""
TUNING_CHEAPER_WITHIN = 2.0
"""The same to fine-tune, where the fewest GPUs that hold the run are full to the brim."""
MORE_NODES = 2
"""So many more nodes are looked at in any case."""
MOST_CHEAPER = 4
"""Of these numbers of GPUs so many are looked at closely: those that are the cheapest at mid."""
CLOSE_TO_CHEAPEST = 1.01
"""How many GPU-hours more than the cheapest of them the fewest of these may take."""
AT_ONCE = 4
"""Numbers of GPUs whose layouts are chosen in common passes."""
SLACK = 1.12
"""How far an estimate of a figure at the confidence may miss a target before its number of GPUs is left out: what one
layout's ratio says of another's, whose communication is as uncertain as it is large."""
OUT_OF_REACH = 1.03
"""So many times a target the least figure must be, as far as is known, for nobody to look closer."""
LEAST_RATIO = 0.1
"""No figure at a confidence is a smaller share of that at mid."""


@dataclass(slots=True, kw_only=True)
class _Search:
    """One search over numbers of GPUs: what was looked at, and what is known of the figures at the confidence."""

    case: Case
    fixed: FixedLayout
    draws: Draws
    targets: Targets
    near: Nearest = field(default_factory=Nearest)
    wall_ratio: float = 0.0
    """Duration at the confidence over that at mid, as the last layout evaluated had it."""
    usd_ratio: float = 0.0
    """The same of the cost."""
    least_wall_ratio: float = math.inf
    """The least of these ratios so far; infinite where nothing was evaluated."""
    least_usd_ratio: float = math.inf

    def __post_init__(self) -> None:
        """Nothing is evaluated yet."""
        self.forget()

    def forget(self) -> None:
        """Before an evaluation: above the median, a figure at the confidence is not below that at mid."""
        self.wall_ratio = self.usd_ratio = 1.0 if self.targets.confidence_ratio >= 0.5 else LEAST_RATIO

    def look(self, layouts: Layouts) -> tuple[Score, Bools]:
        """Scores of some layouts, and which of them fit."""
        scores = self.case.score(layouts)
        self.near.look(self.case, layouts, scores, self.targets.deadline_s)
        return scores, self.case.fits(scores)

    def within(self, scores: Score) -> Bools:
        """Which layouts could meet the targets, as far as mid values tell."""
        able = np.ones(len(scores.wall_s), dtype=np.bool_)
        if self.targets.deadline_s is not None:
            able &= scores.wall_s * self.wall_ratio <= self.targets.deadline_s * SLACK
        if self.targets.budget_usd is not None:
            able &= scores.cost_usd * self.usd_ratio <= self.targets.budget_usd * SLACK
        return able

    def could_meet(self, choice: Choice) -> bool:
        """Whether a choice could meet the targets, as far as mid values tell."""
        return bool(self.within(choice.scores)[choice.best])

    def meets(self, choice: Choice) -> bool:
        """Whether a choice meets the targets at the confidence."""
        drawn, confidence = self.case.evaluate(choice.winner, self.draws), self.targets.confidence_ratio
        self.wall_ratio = at_confidence(drawn.wall_s, confidence) / float(choice.scores.wall_s[choice.best])
        mid_usd = float(choice.scores.cost_usd[choice.best])
        self.usd_ratio = at_confidence(drawn.cost_usd, confidence) / mid_usd if mid_usd else 0.0
        self.least_wall_ratio = min(self.least_wall_ratio, self.wall_ratio)
        self.least_usd_ratio = min(self.least_usd_ratio, self.usd_ratio)
        return self.targets.met_by(drawn)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether nothing that fits comes near the targets, by its figures at mid and the least ratio of any draws."""
        return any(
            limit is not None and min(figures.values(), default=math.inf) * ratio > limit * OUT_OF_REACH
            for figures, ratio, limit in (
                (self.near.wall_s, self.least_wall_ratio, self.targets.deadline_s),
                (self.near.cost_usd, self.least_usd_ratio, self.targets.budget_usd),
            )
        )

    def choices(self, layouts: Layouts, scores: Score, fits: Bools, counts: Iterable[int]) -> Iterator[Choice]:
        """The best layout on each of some numbers of GPUs, in their order, where one is more likely to fit than not."""
        waiting = list(counts)
        while waiting:
            now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            groups = [np.flatnonzero(fits & (layouts.gpus == count)) for count in now]
            found = choose_each(self.case, layouts, scores, groups, self.near.evaluated)
            yield from (choice for choice in found if choice.best is not None)


def fewest(case: Case, fixed: FixedLayout, draws: Draws, targets: Targets = NO_TARGETS, *, at_least: int = 1) -> Choice:
    """The best layout on the fewest whole nodes that meet the targets, safely; `at_least` are known to be needed.

    Where somewhat more GPUs (`_cheaper`) end sooner and cost less, the fewest of these close to the cheapest are taken.
    Where no number of GPUs has a safe layout that meets the targets, the fewest on which a layout does that is more
    likely to fit than not.

    Raises:
        NoPlanError: no number of GPUs meets the targets; says by how much, and what would.
    """
    search = _Search(case=case, fixed=fixed, draws=draws, targets=targets)
    risky: Choice | None = None
    too_few, empty = at_least - 1, 0
    for window in _windows(case, search.targets, at_least):
        layouts = _layouts(search, window)
        empty = 0 if len(layouts) else empty + 1
        if search.near.evaluated and empty == MOST_EMPTY:
            break
        if not len(layouts):
            continue
        scores, fits = search.look(layouts)
        found, risky_here = _first(search, layouts, scores, fits)
        risky = risky or risky_here
        if found is not None:
            too_few = int(layouts.gpus[layouts.gpus < found.gpus].max(initial=too_few))
            return _cheaper(search, _finer(search, too_few, found))
        too_few = int(layouts.gpus.max())
        if search.near.wall_s and search.targets.deadline_s is None and window[0] > MOST_WITHOUT_DEADLINE:
            break  # more GPUs only add cost
    if risky is not None:
        return risky
    if targets.advised:
        _look_below(search)
        _look_in_time(search)
    return _met_or_refused(search)


MOST_EMPTY = 3
"""Ranges without a layout after which no larger number of GPUs has one."""
MOST_WITHOUT_DEADLINE = 4096
"""Where only memory and budget count, the search ends here once a layout fits."""


def _layouts(search: _Search, window: tuple[float, float]) -> Layouts:
    return enumerate_layouts(search.case.recipe, search.case.cluster, search.fixed, gpus_between=window)


def _windows(case: Case, targets: Targets, at_least: int = 1) -> Iterator[tuple[float, float]]:
    """Ranges of GPU counts to look at, in rising order; with a deadline from the fewest that could meet it at all."""
    low, wider = at_least, WINDOW
    if targets.deadline_s is not None:
        flop = case.tokens * flop_of(case.recipe)
        peak = case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute]
        low, wider = max(at_least, math.floor(flop / targets.deadline_s / (BEST_MFU * peak))), DEADLINE_WINDOW
    while low <= targets.most_gpus:
        high = min(max(math.floor(low * wider), 8 * case.cluster.gpus_per_node), targets.most_gpus)
        yield low, high
        low = high + 1


WINDOW = 3.0
"""Most GPUs of a range over its fewest."""
DEADLINE_WINDOW = 1.5
"""The same with a deadline, where the search starts close to what it needs."""
BEST_MFU = 0.85
"""Share of the dense peak that no plan exceeds."""


def _first(search: _Search, layouts: Layouts, scores: Score, fits: Bools) -> tuple[Choice | None, Choice | None]:
    """The choice on the fewest GPUs that meets the targets safely, and on the fewest that does so at a risk."""
    risky: Choice | None = None
    looked_at: set[int] = set()
    while True:
        able = fits & search.within(scores)
        counts = [count for count in sorted(set(layouts.gpus[able].tolist())) if count not in looked_at][:AT_ONCE]
        if not counts:
            return None, risky
        looked_at.update(counts)
        for choice in search.choices(layouts, scores, fits, counts):
            if (choice.safe or risky is None) and search.could_meet(choice) and search.meets(choice):
                if choice.safe:
                    return choice, risky
                risky = choice


def _finer(search: _Search, too_few: int, found: Choice) -> Choice:
    """Fewer GPUs that still meet the targets, between a number that does not and one that does."""
    if search.case.recipe.batch_band is None:
        return found
    counts = counts_between(search.case.cluster, too_few, found.gpus)
    if not len(counts):
        return found
    layouts = enumerate_layouts(search.case.recipe, search.case.cluster, search.fixed, gpus=counts)
    if not len(layouts):  # none of these counts splits the model
        return found
    scores, fits = search.look(layouts)
    return _first(search, layouts, scores, fits)[0] or found


def _cheaper(search: _Search, found: Choice) -> Choice:
    """Somewhat more GPUs where these end sooner and are cheaper: the fewest that are close to the cheapest.

    Looked at are half as many again, twice as many to fine-tune, and `MORE_NODES` more nodes in any case: of these the
    `MOST_CHEAPER` cheapest at mid, by what they cost in the middle of the draws.
    """
    if search.targets.deadline_s is None:
        return found
    case = search.case
    within = CHEAPER_WITHIN if case.recipe.method == "pretrain" else TUNING_CHEAPER_WITHIN
    most = max(within * found.gpus, found.gpus + MORE_NODES * case.cluster.gpus_per_node)
    most = min(most, search.targets.most_gpus)
    layouts = _layouts(search, (found.gpus + 1, most))
    if not len(layouts):
        return found
    scores, fits = search.look(layouts)
    counts, inverse = np.unique(layouts.gpus[fits], return_inverse=True)
    least_gpu_s = np.full(len(counts), math.inf)
    np.minimum.at(least_gpu_s, inverse, (layouts.gpus * scores.wall_s)[fits])
    cheapest = least_gpu_s.argsort()[:MOST_CHEAPER]
    promising = counts[cheapest[least_gpu_s[cheapest] < found.gpus * _wall_s(found)]]
    more = (choice for choice in search.choices(layouts, scores, fits, sorted(promising.tolist())) if choice.safe)
    able = [found, *(choice for choice in more if search.meets(choice))]
    gpu_s = [choice.gpus * float(np.median(case.evaluate(choice.winner, search.draws).wall_s)) for choice in able]
    return next(choice for choice, s in zip(able, gpu_s, strict=True) if s <= CLOSE_TO_CHEAPEST * min(gpu_s))


def soonest(
    case: Case,
    fixed: FixedLayout,
    draws: Draws,
    targets: Targets,
    *,
    parts_of_a_node: tuple[int, ...] = (),
    at_least: int = 1,
) -> Choice:
    """The choice with the soonest end whose cost stays within the budget at the confidence, safely.

    The numbers of GPUs are round ones (`search.round_counts`) from the least to the most allowed, and some below a node
    if given.

    Raises:
        NoPlanError: no number of GPUs meets the budget; says by how much, and what would.
    """
    search = _Search(case=case, fixed=fixed, draws=draws, targets=targets)
    best: Choice | None = None
    risky: Choice | None = None
    for layouts in _falling(search, at_least, parts_of_a_node):
        if not len(layouts):
            continue
        scores, fits = search.look(layouts)
        sooner = fits if best is None else fits & (scores.wall_s < _wall_s(best))
        if best is not None and not sooner.any():
            break
        search.forget()  # fewer GPUs are surer of their cost
        found, risky_here = _soonest_of(search, layouts, scores, sooner)
        best, risky = found or best, risky or risky_here
    return best or risky or _met_or_refused(search)


def _falling(search: _Search, at_least: int, parts_of_a_node: tuple[int, ...]) -> Iterator[Layouts]:
    """Layouts of ranges of GPU counts from the most to the fewest allowed, then of those below a node."""
    case, high = search.case, search.targets.most_gpus
    while high >= at_least:
        low = max(at_least, high // 2 + 1 if high > 8 * case.cluster.gpus_per_node else 1)
        yield _layouts(search, (low, high))
        high = low - 1
    parts = np.array([gpus for gpus in parts_of_a_node if gpus <= search.targets.most_gpus], dtype=np.int64)
    yield enumerate_layouts(case.recipe, case.cluster, search.fixed, gpus=parts)


def _soonest_of(search: _Search, layouts: Layouts, scores: Score, fits: Bools) -> tuple[Choice | None, Choice | None]:
    """The soonest end within the budget of some layouts that are safe, and of those that are not."""
    safe: Choice | None = None
    risky: Choice | None = None
    looked_at: list[int] = []
    while True:
        open_ = fits & search.within(scores) & ~np.isin(layouts.gpus, looked_at)
        able = np.flatnonzero(open_ if safe is None else open_ & (scores.wall_s < _wall_s(safe)))
        counts = list(dict.fromkeys(int(gpus) for gpus in layouts.gpus[able[np.argsort(scores.wall_s[able])]]))
        if not counts:
            return safe, risky
        looked_at += counts[:AT_ONCE]
        for choice in search.choices(layouts, scores, fits, counts[:AT_ONCE]):
            best = safe if choice.safe else risky
            if (best is None or _wall_s(choice) < _wall_s(best)) and search.meets(choice):
                safe, risky = (choice, risky) if choice.safe else (safe, choice)


def _wall_s(choice: Choice) -> float:
    """Seconds on the clock at mid."""
    return float(choice.scores.wall_s[choice.best])


def _met_or_refused(search: _Search) -> Choice:
    """What meets the targets among the nearest plans, which a refusal evaluates though the search left them out.

    Raises:
        NoPlanError: none does.
    """
    if search.is_out_of_reach and not search.targets.advised:
        # Whoever asked without advice compares GPUs, and looks at no message.
        raise NoPlanError(Message.of("error.no_offer", gpus=1), hint=Message.of("hint.no_offer", flags=()))
    error = nothing(search.case, search.fixed, search.near, search.draws, search.targets)
    if search.near.met is None:
        raise error
    return search.near.met


def _look_in_time(search: _Search) -> None:
    """Where deadline and budget exclude each other: only plans that meet the deadline at the confidence count."""
    if search.targets.deadline_s is None or search.targets.budget_usd is None:
        return
    try:
        choice = fewest(search.case, search.fixed, search.draws, replace(search.targets, budget_usd=None))
    except NoPlanError:
        return
    in_time = {gpus: usd for gpus, usd in search.near.cost_usd.items() if gpus >= choice.gpus}
    search.near.cost_usd = {choice.gpus: float(choice.scores.cost_usd[choice.best])} | in_time


def _look_below(search: _Search) -> None:
    """See what fewer GPUs can do than a deadline needs at peak rate: where the batch cannot feed more, they end sooner.

    The search itself starts at those and more.
    """
    most = search.targets.most_gpus
    first = next((math.floor(low) for low, _ in _windows(search.case, search.targets)), most + 1)
    for window in _windows(search.case, Targets(most_gpus=min(first - 1, most))):
        layouts = _layouts(search, window)
        if len(layouts):
            search.look(layouts)
