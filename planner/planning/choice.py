"""Which layout on a number of GPUs: of the safe ones the simplest that is nearly the fastest.

A layout is looked at where its peak at mid is within what a process gets of the memory, and is *safe* where the risk of
running out, over draws, stays within the question's. Among safe ones the shortest expected time per sequence is the
best, and the simplest of those close to it is taken. Only where no layout is safe is a risky one taken: one that is as
good as the least risky, and only if it is more likely to fit than not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.evaluation import Score, step_of
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.planning.risk import CHOICE_DRAWS, MOST_RISK, Risks, drawn_bytes, risk_of
from planner.training.recipe import Recipe

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

NEAR = 1.15
"""How far above the best at mid a layout's time may be for its draws to be compared."""
MOST_SPLITS = 8
"""Ways to split a model whose layouts are compared, those with the fastest at mid first; and as many of those with the
fastest that fill no more than `LEAN` of the memory, which are likely to be safe."""
LEAN = 0.75
FILLINGS = (1.0, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65)
"""Shares of the memory: of each split the fastest layout that takes no more than each of them at mid is compared, so
that one whose risk is low enough is among them."""
SIMPLE_NEAR = 1.05
"""The same for a layout that is compared because it is simple."""
MOST_SIMPLE = 4
SIMPLER = 1.02
"""How much longer than the best the expected time of a simpler layout may be for it to be taken."""
UNPUBLISHED = 1.1
"""By how much a batch other than a model's published one, or the usual one to fine-tune, must be faster for it to be
taken."""
MOST_LEAN = 10
"""Layouts that need little memory whose risk is drawn where none is safe."""
AT_ONCE = 4
"""Numbers of GPUs whose layouts are chosen in common passes."""
LITTLE_RISKIER = 0.03
"""How much riskier than the least risky a faster layout may be for it to be taken where none is safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner of a search among `layouts`, or why there is none."""

    layouts: Layouts
    scores: Score
    best: int | None
    """Index of the winner; None where nothing fits."""
    evaluated: int
    safe: bool = True
    """Whether the winner's risk of running out of memory is within what the question allows."""
    fastest: int | None = None
    """Index of the layout with the shortest expected time, where the winner is a simpler one; else None."""
    slower_ratio: float = 0.0
    """By how much the winner's expected time is longer than that of `fastest`."""

    @property
    def winner(self) -> Layouts:
        """The winning layout as columns of length 1."""
        assert self.best is not None
        return self.layouts.only(self.best)

    @property
    def gpus(self) -> int:
        """GPUs of the winner."""
        return int(self.winner.gpus[0])


def best_on(case: Case, fixed: FixedLayout, gpus: int) -> Choice:
    """The best layout of those that fit on exactly `gpus` GPUs."""
    (choice,) = _best_on_each(case, fixed, [gpus])
    return choice


def best_given(case: Case, fixed: FixedLayout, gpus: int) -> Choice:
    """The best layout on a number of GPUs that is given, as `best_given_each` has it."""
    (choice,) = best_given_each(case, fixed, [gpus])
    return choice


def best_given_each(case: Case, fixed: FixedLayout, counts: list[int]) -> list[Choice]:
    """The best layout on each of some numbers of GPUs, as if that number were given, with the batch of a search there.

    Such a search sees one batch for each split of the GPUs, the one nearest to the default. Once a batch is chosen, all
    layouts that divide it are compared, as they are for the other precisions.
    """
    given = replace(fixed, on_given_gpus=True)
    choices = _best_on_each(case, given, counts)
    if case.recipe.batch_band is None:
        return choices
    with_batch: dict[int, list[int]] = {}
    for index, choice in enumerate(choices):
        if choice.best is not None:
            with_batch.setdefault(int(choice.winner.global_batch[0]), []).append(index)
    rivals: dict[int, Choice] = {}
    for batch, indices in with_batch.items():
        recipe = replace(case.recipe, global_batch=batch, batch_band=None, keeps_batch=False)
        of_batch = _best_on_each(replace(case, recipe=recipe), given, [counts[index] for index in indices])
        for index, rival in zip(indices, of_batch, strict=True):
            if rival.best is not None and rival.safe >= choices[index].safe:
                rivals[index] = rival
    if rivals:
        compared = [choice.winner.at(0) for index, rival in rivals.items() for choice in (choices[index], rival)]
        paces = expected_paces(case, Layouts.of(*compared)).reshape(-1, 2)
        for (index, rival), (chosen_s, rival_s) in zip(rivals.items(), paces.tolist(), strict=True):
            if rival_s < chosen_s:
                choices[index] = rival
    return choices


def _best_on_each(case: Case, fixed: FixedLayout, counts: list[int]) -> list[Choice]:
    """The best layout of those that fit on each of some numbers of GPUs, compared in common passes."""
    gpus = counts[0] if len(counts) == 1 else np.array(counts, dtype=np.int64)  # one number is held against fixed sizes
    layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus=gpus)
    scores = case.score(layouts)
    fits = case.fits(scores)
    groups = [np.flatnonzero(layouts.gpus == count) for count in counts]
    able = [group[fits[group]] for group in groups]
    choices = choose_each(case, layouts, scores, able, len(layouts))
    return [replace(choice, evaluated=len(group)) for choice, group in zip(choices, groups, strict=True)]


def choose(case: Case, layouts: Layouts, scores: Score, allowed: Bools, evaluated: int) -> Choice:
    """The winner of some layouts that fit, whatever their numbers of GPUs.

    Args:
        case: what is planned.
        layouts: all that were looked at.
        scores: theirs, at mid.
        allowed: which of them may win, `[layout]`.
        evaluated: number of layouts looked at, for the answer.
    """
    (choice,) = choose_each(case, layouts, scores, [np.flatnonzero(allowed)], evaluated)
    return choice


def choose_each(
    case: Case, layouts: Layouts, scores: Score, groups: list[Indices], evaluated: int
) -> tuple[Choice, ...]:
    """The winner of each of some groups of layouts, compared in common passes; arguments as of `choose`.

    What one layout risks, another that needs more memory risks as well: the latter is not drawn.
    """
    pace_s = scores.wall_s * tokens_ratio(layouts, case.recipe)
    complexities = complexity(layouts, case.recipe)
    splits = splits_of(layouts)
    filling = scores.memory_bytes / usable_bytes(case.cluster.gpu)
    risks = Risks(case, layouts)
    winners: dict[int, _Winner | None] = {}
    short_of_memory: set[int] = set()
    undecided = dict(enumerate(groups))
    while undecided:
        listed = {
            name: _shortlist(pace_s, complexities, splits, filling, group).tolist() for name, group in undecided.items()
        }
        risks.draw(i for shortlist in listed.values() for i in shortlist)
        likely = {name: [i for i in shortlist if risks.is_likely_safe(i)] for name, shortlist in listed.items()}
        short_of_memory |= {name for name, shortlist in listed.items() if len(likely[name]) < len(shortlist)}
        expected = _expected(risks, [i for rivals in likely.values() if len(rivals) > 1 for i in rivals])
        first = [_simplest_of_the_best(rivals, complexities, expected) for rivals in likely.values() if rivals]
        risks.ask(i for winner in first for i in winner.compared)
        safe = {name: _safe_winner(rivals, complexities, expected, risks) for name, rivals in likely.items()}
        for name in [name for name, winner in safe.items() if winner is not None or not len(undecided[name])]:
            winners[name] = safe[name]
            del undecided[name]
        for name, group in undecided.items():
            least_risky_bytes = min(scores.memory_bytes[i] for i in listed[name])
            undecided[name] = group[scores.memory_bytes[group] < least_risky_bytes]
    for name in short_of_memory:
        winners[name] = _or_faster(risks, scores, pace_s, groups[name], winners[name])
    for name, group in enumerate(groups):
        for split in sorted({int(splits[i]) for i in risks.unsafe} & set(splits[group].tolist())):
            winners[name] = _or_faster(risks, scores, pace_s, group[splits[group] == split], winners[name])
    unsafe = [name for name, winner in winners.items() if winner is None]
    risky = {name: _least_risky(case, layouts, scores, pace_s, complexities, groups[name]) for name in unsafe}
    return tuple(_choice(layouts, scores, winners[name], risky.get(name), evaluated) for name in range(len(groups)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Winner:
    """The layout that is taken of a group, by index among all layouts, beside the fastest."""

    best: int
    fastest: int
    """The one with the shortest expected time, which may be less simple."""
    slower_ratio: float = 0.0
    """By how much the expected time of `best` is longer than that of `fastest`."""

    @property
    def compared(self) -> tuple[int, int]:
        """Both."""
        return self.best, self.fastest


def _safe_winner(
    likely: list[int], complexities: Floats, expected_s: Mapping[int, float], risks: Risks
) -> _Winner | None:
    """What `_simplest_of_the_best` gives of those that are safe; only layouts that could win are asked about."""
    rivals = list(likely)
    while rivals:
        winner = _simplest_of_the_best(rivals, complexities, expected_s)
        unsafe = {i for i in winner.compared if not risks.is_safe(i)}
        if not unsafe:
            return winner
        rivals = [i for i in rivals if i not in unsafe]
    return None


def _or_faster(risks: Risks, scores: Score, pace_s: Floats, group: Indices, winner: _Winner | None) -> _Winner | None:
    """The winner, or where memory is short a faster layout of a group that is safe and was not compared.

    Only layouts on the Pareto front of time and memory at mid are looked at; the fastest safe one is found by
    bisection, since what needs more memory risks more. With all layouts as the group, this finds splits that were not
    compared; with those of one split, other layouts of a split whose compared ones are not safe.
    """
    if winner is None:
        return None
    faster = group[SIMPLER * pace_s[group] < pace_s[winner.best]]
    if not len(faster):
        return winner
    front = _pareto_front(scores, pace_s, faster)
    in_group = np.zeros(len(pace_s), dtype=np.bool_)
    in_group[group] = True
    too_much_bytes = min((scores.memory_bytes[i] for i in risks.unsafe if in_group[i]), default=np.inf)
    low, high = 0, int(np.searchsorted(scores.memory_bytes[front], too_much_bytes))
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if risks.is_safe(int(front[middle])) else (low, middle)
    other = int(front[low - 1]) if low else winner.best
    if other in risks.needed:  # it was compared
        return winner
    both = risks.layouts.take(np.array([winner.best, other], dtype=np.intp))
    expected_s = expected_paces(risks.case, both) * tokens_ratio(both, risks.case.recipe)
    return _Winner(best=other, fastest=other) if SIMPLER * expected_s[1] < expected_s[0] else winner


def _pareto_front(scores: Score, pace_s: Floats, group: Indices) -> Indices:
    """Layouts of a group that are faster at mid than all that need less memory, in rising order of memory."""
    order = group[np.lexsort((pace_s[group], scores.memory_bytes[group]))]
    return np.asarray(order[pace_s[order] < np.minimum.accumulate(np.append(np.inf, pace_s[order]))[:-1]])


def _least_risky(
    case: Case, layouts: Layouts, scores: Score, pace_s: Floats, complexities: Floats, group: Indices
) -> int | None:
    """Where no layout is safe, the simplest of the fastest that are hardly riskier than the least risky.

    Of what needs more memory than another only what is faster at mid is looked at. None where none fits.
    """
    leanest = _pareto_front(scores, pace_s, group)[:MOST_LEAN]
    risks = {i: risk_of(case, layouts.only(i)) for i in leanest.tolist()}
    most = min(min(risks.values(), default=0.0) + LITTLE_RISKIER, MOST_RISK)
    able = [i for i, risk in risks.items() if risk <= most]
    return _simplest_of_the_best(able, complexities, {i: float(pace_s[i]) for i in able}).best if able else None


def _choice(layouts: Layouts, scores: Score, winner: _Winner | None, risky: int | None, evaluated: int) -> Choice:
    """The winner of a group, or where none is safe the one that risks little, if there is one."""
    if winner is None:
        return Choice(layouts=layouts, scores=scores, best=risky, evaluated=evaluated, safe=False)
    return Choice(
        layouts=layouts, scores=scores, best=winner.best, evaluated=evaluated,
        fastest=None if winner.fastest == winner.best else winner.fastest, slower_ratio=winner.slower_ratio,
    )  # fmt: skip


def complexity(layouts: Layouts, recipe: Recipe) -> Floats:
    """How much there is to set up and to go wrong, `[layout]`: the fewer ways to split a model, the simpler.

    Each kind of parallelism beside data parallel counts, interleaved stages half as much, stages of unequal length as
    much as a further kind; among layouts of the same kinds the less split one is the simpler. A batch other than the
    recipe's counts as two kinds, and the more the further it is from it.
    """
    kinds = (layouts.tp > 1).astype(np.float64) + (layouts.pp > 1) + (layouts.cp > 1)
    kinds += 0.5 * (layouts.vp > 1) + (recipe.model.layers % layouts.pp != 0)
    other = np.abs(np.log(layouts.global_batch / recipe.global_batch))
    return np.asarray(kinds + 0.1 * np.log2(layouts.tp * layouts.pp * layouts.cp) + 2.0 * ((other > 0) + other))


def tokens_ratio(layouts: Layouts, recipe: Recipe) -> Floats:
    """Tokens that a loss takes with a layout's batch over those with the recipe's, `[layout]`; at least 1.

    Proportional to `1 + batch / critical batch` (McCandlish et al. 2018, arXiv 1812.06162, equation 2.11). A larger
    batch thus wins only by more than what it learns less per token; the plan's own tokens are those asked for. A batch
    other than the one that the model's team published, or that is usual to fine-tune, counts as a tenth longer
    (`UNPUBLISHED`).
    """
    ratio = np.ones(len(layouts))
    if recipe.critical_batch is not None:
        batch = np.maximum(layouts.global_batch, recipe.global_batch)
        ratio = (recipe.critical_batch + batch) / (recipe.critical_batch + recipe.global_batch)
    if recipe.keeps_batch:
        ratio = np.where(layouts.global_batch == recipe.global_batch, ratio, UNPUBLISHED * ratio)
    return np.asarray(ratio)


def splits_of(layouts: Layouts) -> Indices:
    """A number for each way to split the model that layouts have, `[layout]`: all but micro-batch and checkpointing."""
    numbers = np.zeros(len(layouts), dtype=np.int64)
    for column in (layouts.tp, layouts.cp, layouts.pp, layouts.ep, layouts.dp, layouts.zero):
        numbers = numbers * (int(column.max(initial=0)) + 1) + column
    return np.asarray(numbers, dtype=np.intp)


def _shortlist(pace_s: Floats, complexities: Floats, splits: Indices, filling: Floats, group: Indices) -> Indices:
    """Layouts of a group to compare under draws, the fastest at mid first.

    What is fast at mid may be slow in the mean: communication that is just hidden at mid is often not under draws.
    Layouts that split the model alike share that, so that each split has its fastest ones compared, not all of the
    fastest; and the simplest of those that are nearly as fast.

    Args:
        pace_s: time per sequence at mid, `[layout]`.
        complexities: of each layout, as of `complexity`, `[layout]`.
        splits: which layouts split the model alike, `[layout]`.
        filling: share of the memory that each takes at mid, `[layout]`.
        group: indices of those to choose from.
    """
    if not len(group):
        return group
    order = group[np.argsort(pace_s[group], kind="stable")]
    lean = order[filling[order] <= LEAN]
    slowest_s = NEAR * pace_s[lean[0] if len(lean) else order[0]]
    near = order[pace_s[order] <= slowest_s]
    fast = np.zeros(len(near), dtype=np.bool_)
    compared = {*_first_splits(splits[near]), *_first_splits(splits[near[filling[near] <= LEAN]])}
    for split in compared:
        members = np.flatnonzero(splits[near] == split)
        for most in FILLINGS:
            fast[members[filling[near[members]] <= most][:1]] = True
    close = np.flatnonzero(pace_s[near] <= SIMPLE_NEAR * pace_s[near[0]])
    fast[close[np.argsort(complexities[near[close]], kind="stable")][:MOST_SIMPLE]] = True
    return np.asarray(near[fast])


def _first_splits(splits: Indices) -> list[int]:
    """The first few of the ways to split a model, in the order of their fastest layouts."""
    return list(dict.fromkeys(splits.tolist()))[:MOST_SPLITS]


def _simplest_of_the_best(safe: list[int], complexities: Floats, expected_s: Mapping[int, float]) -> _Winner:
    """The simplest of the layouts whose expected time is close to the shortest.

    Args:
        safe: the layouts that may win; a single one is not timed.
        complexities: of each layout, as of `complexity`, `[layout]`.
        expected_s: expected time of those that were timed, by index.
    """
    if len(safe) == 1:
        return _Winner(best=safe[0], fastest=safe[0])
    fastest = min(safe, key=lambda i: expected_s[i])
    close = [i for i in safe if expected_s[i] <= SIMPLER * expected_s[fastest]]
    best = min(close, key=lambda i: (complexities[i], expected_s[i]))
    return _Winner(best=best, fastest=fastest, slower_ratio=expected_s[best] / expected_s[fastest] - 1.0)


def _expected(risks: Risks, compared: list[int]) -> dict[int, float]:
    """Expected time per sequence of some layouts, by index, weighed by the tokens that their batch takes."""
    if not compared:
        return {}
    layouts = risks.layouts.take(np.array(compared, dtype=np.intp))
    paces = _paces(risks.case, layouts, np.stack([risks.needed[i] for i in compared]))
    return dict(zip(compared, (paces * tokens_ratio(layouts, risks.case.recipe)).tolist(), strict=True))


def expected_paces(case: Case, layouts: Layouts) -> Floats:
    """Mean seconds per sequence over the draws of the choice, `[layout]`."""
    return _paces(case, layouts, drawn_bytes(case, layouts))


def _paces(case: Case, layouts: Layouts, memory_bytes: Floats) -> Floats:
    """Mean seconds per sequence over draws in one pass, `[layout]`, from `memory_bytes`, `[layout, draw]`."""
    steps_s = step_of(case.recipe, case.cluster, layouts.column, memory_bytes, case.rates.sample(CHOICE_DRAWS)).total
    mean_s = np.broadcast_to(steps_s, memory_bytes.shape).mean(axis=1)
    return np.asarray(mean_s / layouts.global_batch)
