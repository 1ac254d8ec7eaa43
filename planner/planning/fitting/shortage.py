"""Explain why no number of GPUs meets the targets: the shortage, its size, and a sufficient alternative."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from planner.errors import EnoughBudget, Message, NoPlanError
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts, of_samples
from planner.performance.evaluation import Evaluation, Score
from planner.performance.memory import shortfall_gib, usable_bytes
from planner.planning.case import Case
from planner.planning.choice import Choice, best_given_each
from planner.planning.fitting.lean import helpful
from planner.planning.fitting.neighbours import Held, fewest_safe, next_above
from planner.planning.fitting.ways import given
from planner.planning.footprint import wider_cap
from planner.planning.risk import risk_of
from planner.planning.targets import (
    MAX_GPUS,
    ROOM_RATIO,
    Targets,
    at_confidence,
    digits_apart,
    enough_usd,
    probability,
)
from planner.rates.terms import Draws
from planner.units import DAY_S, GIB, mw_from_w

CENTS_BELOW_USD = 100.0
"""A smaller budget is stated with its cents, where it has some: 0.50 is not a budget of $0."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(slots=True, kw_only=True)
class NearMisses:
    """The plans that came closest to the targets, for the message when nothing meets them."""

    evaluated: int = 0
    smallest_bytes: float = math.inf
    wall_s: dict[int, float] = field(default_factory=dict)
    """Wall-clock seconds of the fastest layout that fits, by number of GPUs, at mid."""
    cost_usd: dict[int, float] = field(default_factory=dict)
    """USD of the cheapest layout that fits and is in time, by number of GPUs, at mid."""
    met: Choice | None = None
    """A plan that meets the targets after all: the search took it for too slow or too dear by another plan's ratio."""

    def record(self, case: Case, layouts: Layouts, scores: Score, deadline_s: float | None) -> None:
        """Take some layouts into account."""
        fits = case.fits(scores)
        in_time = fits if deadline_s is None else fits & (scores.wall_s <= deadline_s)
        self.evaluated += len(layouts)
        self.smallest_bytes = min(self.smallest_bytes, float(scores.memory_bytes.min()))
        _keep_least(self.wall_s, layouts.gpus[fits], scores.wall_s[fits])
        _keep_least(self.cost_usd, layouts.gpus[in_time], scores.cost_usd[in_time])


def _keep_least(least: dict[int, float], gpus: Ints, values: Floats) -> None:
    """Keep the least of the values for each number of GPUs."""
    counts, groups = np.unique(gpus, return_inverse=True)
    lowest = np.full(len(counts), np.inf)
    np.minimum.at(lowest, groups, values)
    for count, value in zip(counts.tolist(), lowest.tolist(), strict=True):
        least[count] = min(value, least.get(count, math.inf))


def refusal(case: Case, fixed: FixedLayout, near_misses: NearMisses, draws: Draws, targets: Targets) -> NoPlanError:
    """Return the error for targets that no number of GPUs meets (memory, time or money), with a sufficient change."""
    if not near_misses.wall_s:
        return _too_big(case, fixed, near_misses, draws, targets)
    evaluator = _PlanEvaluator(case=case, fixed=fixed, draws=draws, near_misses=near_misses, targets=targets)
    fastest = evaluator.least(near_misses.wall_s, lambda drawn: at_confidence(drawn.wall_s, targets.confidence_ratio))
    fastest_s = fastest.figure
    if not math.isfinite(fastest_s):  # layouts that fit at mid do not under most draws
        return _too_big(case, fixed, near_misses, draws, targets)
    late = targets.deadline_s is not None and fastest_s > targets.deadline_s
    if late or targets.budget_usd is None or not near_misses.cost_usd:
        return _too_slow(evaluator, fastest)

    def usd_in_time(drawn: Evaluation) -> float:
        in_time = replace(targets, budget_usd=None).met_by(drawn)
        return at_confidence(drawn.cost_usd, targets.confidence_ratio) if in_time else math.inf

    return _too_dear(case, evaluator.least(near_misses.cost_usd, usd_in_time), targets, draws)


MOST_TRIED = 16
"""Number of GPU counts whose plans are evaluated for a refusal, those with the least figure at mid first. More are
evaluated only where none of these counts."""
TRIED_AT_ONCE = 4
"""Number of GPU counts that are planned before checking whether more are worth it."""
RATIO_SLACK = 1.06
"""How far the ratio of a plan's figure under draws to that at mid may fall below the least ratio so far, as a
factor."""


@dataclass(slots=True, kw_only=True)
class _LeastFigure:
    """The least figure of a plan under draws, with its number of GPUs and its choice."""

    gpus: int
    figure: float = math.inf
    choice: Choice | None = None
    safe_figure: float = math.inf
    """The least figure of the safe plans."""

    def record(self, choice: Choice, figure: float) -> None:
        """Take a plan into account."""
        if figure < self.figure:
            self.figure, self.gpus, self.choice = figure, choice.gpus, choice
        if choice.safe:
            self.safe_figure = min(self.safe_figure, figure)

    def risk(self, case: Case) -> float | None:
        """Return the plan's memory risk; None where it is safe, or a safe plan is within the margin of a hint."""
        if self.choice is None or self.safe_figure <= self.figure * ROOM_RATIO:
            return None
        return risk_of(case, self.choice.winner)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanEvaluator:
    """Evaluates the plans on the most promising numbers of GPUs under draws."""

    case: Case
    fixed: FixedLayout
    draws: Draws
    near_misses: NearMisses
    targets: Targets

    def least(self, at_mid: dict[int, float], figure: Callable[[Evaluation], float]) -> _LeastFigure:
        """Return the least figure of a plan under draws.

        Args:
            at_mid: the least value of the figure at mid over layouts, by number of GPUs.
            figure: takes an evaluation under draws; infinite where that does not count.
        """
        order = sorted(at_mid, key=lambda gpus: (at_mid[gpus], gpus))
        best, least_ratio = _LeastFigure(gpus=order[0]), math.inf
        for start in range(0, len(order), TRIED_AT_ONCE):
            now = order[start : start + TRIED_AT_ONCE]
            enough = start >= MOST_TRIED or at_mid[now[0]] * least_ratio > best.figure * RATIO_SLACK
            if best.figure < math.inf and enough:
                break
            for choice in self._choices(now):
                drawn = self.case.evaluate(choice.winner, self.draws)
                value = figure(drawn)
                if choice.safe and self.near_misses.met is None and self.targets.met_by(drawn):
                    self.near_misses.met = choice
                least_ratio = min(least_ratio, value / at_mid[choice.gpus])
                best.record(choice, value)
        return best

    def _choices(self, counts: list[int]) -> Iterator[Choice]:
        """Yield the choice on each of some numbers of GPUs, as if it were given, where a layout fits."""
        choices = best_given_each(self.case, self.fixed, counts)
        return (choice for choice in choices if choice.best is not None)


def _too_slow(evaluator: _PlanEvaluator, fastest: _LeastFigure) -> NoPlanError:
    case, targets = evaluator.case, evaluator.targets
    gpus, fastest_s = fastest.gpus, fastest.figure
    later_days = fastest_s * ROOM_RATIO / DAY_S
    key = "hint.later_deadline_or_gpus" if targets.cap_w is None else "hint.later_deadline_or_power"
    hint = Message.of(key, deadline_days=later_days)
    if not _at_most_allowed(case, gpus, targets):
        batch = _batch_in_time(evaluator)
        key = "hint.later_deadline" if batch is None else "hint.later_deadline_or_batch"
        hint = Message.of(key, deadline_days=later_days, global_batch=batch or 0)
    values: dict[str, str | int | float] = {
        "gpu": case.cluster.gpu.id,
        "precision": case.policy.precision,
        "deadline_days": (targets.deadline_s or 0.0) / DAY_S,
        "confidence": targets.confidence_ratio,
        "fastest_days": fastest_s / DAY_S,
        "gpus": gpus,
    }
    if targets.most_gpus == MAX_GPUS:
        message = Message.of("error.too_slow", **values)
    else:
        message = Message.of("error.too_slow_within", **values, most=targets.most_gpus)
    return NoPlanError(message, hint=at_risk(case, _and_budget(evaluator, fastest, hint), fastest.risk(case)))


def _and_budget(evaluator: _PlanEvaluator, fastest: _LeastFigure, hint: Message) -> Message:
    """Return a hint about the deadline, with the money that it takes where that is above the budget."""
    targets, choice = evaluator.targets, fastest.choice
    if targets.budget_usd is None or choice is None:
        return hint
    usd = at_confidence(evaluator.case.evaluate(choice.winner, evaluator.draws).cost_usd, targets.confidence_ratio)
    return hint if usd <= targets.budget_usd else Message.of("hint.and_budget", hint=hint, budget_usd=enough_usd(usd))


def _batch_in_time(evaluator: _PlanEvaluator) -> int | None:
    """Return the smallest of `_larger_batches` with which more GPUs meet the targets safely, or None."""
    targets = evaluator.targets
    for batch in _larger_batches(evaluator.case, evaluator.fixed):
        case, near_misses = _with_batch(evaluator.case, batch), NearMisses()
        layouts = enumerate_layouts(case.recipe, case.cluster, evaluator.fixed, gpus_between=(1, targets.most_gpus))
        if not len(layouts):
            continue
        near_misses.record(case, layouts, case.score(layouts), targets.deadline_s)
        if near_misses.wall_s and min(near_misses.wall_s.values()) <= (targets.deadline_s or math.inf):
            batch_evaluator = replace(evaluator, case=case, near_misses=near_misses)
            batch_evaluator.least(
                near_misses.wall_s, lambda drawn: at_confidence(drawn.wall_s, targets.confidence_ratio)
            )
        if near_misses.met is not None:
            return batch
    return None


def _at_most_allowed(case: Case, gpus: int, targets: Targets) -> bool:
    """Return whether the limit on GPUs, not the batch, ends the search: the next even split is beyond the limit."""
    return gpus * NEXT_COUNT_RATIO + case.cluster.gpus_per_node > targets.most_gpus


NEXT_COUNT_RATIO = 1.25
"""The next number of GPUs with an even split is seldom more than this factor away."""


def at_risk(case: Case, hint: Message, risk: float | None) -> Message:
    """Return a hint that leads to one plan, with the plan's memory risk where that is above the limit.

    Args:
        case: the question on one kind of GPU.
        hint: what to do.
        risk: memory risk of the plan; None where it is safe.
    """
    allowed = case.memory_risk
    if risk is None or risk <= allowed:
        return hint
    return Message.of("hint.at_risk", hint=hint, risk=risk, allowed=allowed, digits=digits_apart(risk, allowed))


def fits_on(case: Case, keys: tuple[str, str], gpus: int, risk: float | None, ways: tuple[Message, ...]) -> Message:
    """Return a hint with another number of GPUs, with its plan's risk where that is above the limit, before other ways.

    Args:
        case: the question on one kind of GPU.
        keys: keys of the hint, without a risk and with one.
        gpus: the number of GPUs that holds a plan.
        risk: memory risk on these; None where the plan is safe.
        ways: each with its own risk.
    """
    if risk is None or risk <= case.memory_risk:
        return Message.of(keys[0], gpus=gpus, ways=ways)
    return Message.of(keys[1], gpus=gpus, risk=risk, ways=ways)


def _too_dear(case: Case, cheapest: _LeastFigure, targets: Targets, draws: Draws) -> NoPlanError:
    in_time = "" if targets.deadline_s is None else Message.of("error.within_days", days=targets.deadline_s / DAY_S)
    budget_usd = targets.budget_usd or 0.0
    return NoPlanError(
        Message.of(
            "error.too_dear",
            gpu=case.cluster.gpu.id,
            precision=case.policy.precision,
            budget_usd=budget_usd,
            in_time=in_time,
            confidence=targets.confidence_ratio,
            cheapest_usd=cheapest.figure,
            cents=_cents(budget_usd, cheapest.figure),
            gpus=cheapest.gpus,
        ),
        hint=at_risk(case, _surer_or_dearer(case, cheapest, targets, draws), cheapest.risk(case)),
        enough=EnoughBudget(
            usd=enough_usd(cheapest.figure), gpus=cheapest.gpus, safe=(cheapest.risk(case) or 0.0) <= case.memory_risk
        ),
    )


def _cents(budget_usd: float, cheapest_usd: float) -> int:
    """Return the decimals that show a small budget as given, and tell a budget from the cheapest option's cost."""
    as_shown = f"{budget_usd:.0f}"
    small = budget_usd < CENTS_BELOW_USD and float(as_shown) != budget_usd
    return 2 if small or as_shown == f"{cheapest_usd:.0f}" else 0


def _surer_or_dearer(case: Case, cheapest: _LeastFigure, targets: Targets, draws: Draws) -> Message:
    """Suggest a budget that is enough, or the confidence at which this one is, if that is more likely than not."""
    hint = larger_budget(case, cheapest.figure)
    if cheapest.choice is None or targets.budget_usd is None:
        return hint
    likely = probability(case.evaluate(cheapest.choice.winner, draws).cost_usd, targets.budget_usd)
    percent = math.floor(likely * 100)
    return Message.of("hint.or_confidence", hint=hint, confidence=percent / 100) if percent >= 50 else hint


def _too_big(case: Case, fixed: FixedLayout, near_misses: NearMisses, draws: Draws, targets: Targets) -> NoPlanError:
    gpu, node = case.cluster.gpu, case.cluster.gpus_per_node
    if targets.most_gpus < node:
        why = Message.of("error.less_than_a_node", most=targets.most_gpus, node=node, gpu=gpu.id)
        return NoPlanError(why, hint=Message.of("hint.part_of_a_node", most=targets.most_gpus, node=node))
    if not near_misses.evaluated:
        recipe = case.recipe
        key = of_samples(recipe, "error.no_even_split", "error.no_even_split_images")
        why = Message.of(key, global_batch=recipe.global_batch)
        return NoPlanError(why, hint=_more_divisors(case, fixed))
    need, room = near_misses.smallest_bytes / GIB, usable_bytes(gpu) / GIB
    next_fit = None if targets.most_gpus == MAX_GPUS else next_above(case, fixed, targets.most_gpus, MAX_GPUS)
    ways = helpful(case, fixed, (1, targets.most_gpus))
    hint = Message.of("hint.try_ways", ways=ways)
    if next_fit is not None and targets.cap_w is not None:
        return _too_big_under_cap(case, next_fit, draws, targets, ways)
    if next_fit is not None:
        hint = fits_on(case, ("hint.fits_above", "hint.fits_above_at_risk"), next_fit.gpus, next_fit.risk, ways)
    elif (batch_and_gpus := _batch_that_fits(case, fixed)) is not None:
        hint = Message.of("hint.larger_batch", global_batch=batch_and_gpus[0], gpus=batch_and_gpus[1], ways=ways)
    values: dict[str, str | int | float] = {"precision": case.policy.precision, "gpu": gpu.id}
    if next_fit is not None:
        values["most"] = targets.most_gpus
    if need <= room:
        key = "error.likely_fits_nowhere" if next_fit is None else "error.likely_fits_not_within"
    else:
        key = "error.fits_nowhere" if next_fit is None else "error.fits_not_within"
        values |= {"needed_gib": need, "short_gib": shortfall_gib(need, room), "capacity_gib": room}
    return NoPlanError(Message.of(key, **values), hint=hint)


def _too_big_under_cap(
    case: Case, next_fit: Held, draws: Draws, targets: Targets, ways: tuple[Message, ...]
) -> NoPlanError:
    """Return the error for a run that needs more GPUs than the cap leaves, with the cap that is enough for them."""
    assert targets.cap_w is not None
    values: dict[str, str | int | float] = {
        "precision": case.policy.precision, "gpu": case.cluster.gpu.id, "gpus": targets.most_gpus,
        "cap_mw": mw_from_w(targets.cap_w),
    }  # fmt: skip
    cap_kw = dict(wider_cap(case, next_fit.gpus, draws).values)["cap_kw"]
    wider = at_risk(case, Message.of("hint.fits_wider", gpus=next_fit.gpus, cap_kw=cap_kw), next_fit.risk)
    hint = Message.of("hint.or_ways", hint=wider, ways=ways)
    return NoPlanError(Message.of("error.fits_not_under_cap", **values), hint=hint)


def _batch_that_fits(case: Case, fixed: FixedLayout) -> tuple[int, int] | None:
    """Return the smallest of `_larger_batches` that some number of GPUs holds safely, and that number; None if none."""
    for batch in _larger_batches(case, fixed):
        gpus = fewest_safe(_with_batch(case, batch), fixed)
        if gpus is not None:
            return batch, gpus
    return None


def _larger_batches(case: Case, fixed: FixedLayout) -> tuple[int, ...]:
    """Return powers of two above a question's batch that are worth a try, or those multiples of a fixed micro-batch."""
    step = fixed.micro_batch or 1
    first = (case.recipe.global_batch // step).bit_length()
    return tuple(step * 2**power for power in range(first, first + LARGER_BATCHES))


LARGER_BATCHES = 6
"""Number of times that a refusal doubles a batch."""


def _with_batch(case: Case, batch: int) -> Case:
    """Return the case with a batch as if the user had given it."""
    recipe = replace(case.recipe, global_batch=batch, batch_band=None, critical_batch=None, keeps_batch=False)
    return replace(case, recipe=recipe)


def _more_divisors(case: Case, fixed: FixedLayout) -> Message:
    """Suggest fewer fixed sizes or another batch, so that the GPUs, the model and the batch divide evenly."""
    set_by_hand = given(case, fixed, "tp", "pp", "vp", "cp", "ep", "micro_batch")
    flags = tuple(Message.of("flag.alone", input=name) for name in set_by_hand)
    return Message.of("hint.left_or_divisors", flags=flags) if flags else Message.of("hint.more_divisors")


def larger_budget(case: Case, needed_usd: float) -> Message:
    """Suggest a budget that is enough for an amount, and other changes that would cost less."""
    tokens = "hint.larger_budget_examples" if case.by_examples else "hint.larger_budget"
    key = of_samples(case.recipe, tokens, "hint.larger_budget_images")
    return Message.of(key, budget_usd=enough_usd(needed_usd))
