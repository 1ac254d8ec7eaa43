"""Choose a layout on a number of GPUs: among the safe ones, the simplest that is nearly the fastest.

A layout is considered where its peak memory at mid is within what a process can use. It is *safe* where its risk of
running out of memory, over draws, is within the question's limit. Among safe layouts, the one with the shortest
expected time per sequence is the best, and the simplest of those close to it is chosen. A risky layout is chosen only
where none is safe: one whose risk is close to the lowest, and only if it is more likely to fit than not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.parallelism.chunks import needed_depth
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
"""A layout is compared under draws only if its time at mid is within this factor of the fastest lean one (`LEAN`)."""
MOST_SPLITS = 8
"""Number of splits of the model whose layouts are compared: those with the fastest layout at mid, and as many with the
fastest layout that fills at most `LEAN` of the memory, which is likely to be safe."""
LEAN = 0.75
FILLINGS = np.array([[1.0], [0.9], [0.85], [0.8], [0.75], [0.7], [0.65]])
"""Shares of the memory, a column. For each split and each share, the fastest layout at mid that takes no more than
that share is compared, so that one with a sufficiently low risk is among them."""
SIMPLE_NEAR = 1.05
"""A layout is compared because it is simple only if its time at mid is within this factor of the fastest."""
MOST_SIMPLE = 4
SIMPLER = 1.02
"""A simpler layout is chosen if its expected time is within this factor of the best."""
UNPUBLISHED = 1.1
"""A batch other than the model's published one, or the usual one of a fine-tuning, is chosen only if it is faster by
this factor."""
MOST_LEAN = 10
"""Number of layouts with little memory whose risk is drawn where none is safe."""
AT_ONCE = 4
"""Number of GPU counts whose layouts are chosen in common passes."""
LITTLE_RISKIER = 0.03
"""How far the risk of a faster layout may exceed the lowest risk where no layout is safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner of a search among `layouts`, if there is one."""

    layouts: Layouts
    scores: Score
    best: int | None
    """Index of the winner; None where no layout is more likely to fit than not."""
    evaluated: int
    safe: bool = True
    """Whether the winner's risk of running out of memory is within the question's limit."""
    fastest: int | None = None
    """Index of the layout with the shortest expected time, where a simpler layout won; otherwise None."""
    slower_ratio: float = 0.0
    """By what fraction the winner's expected time is longer than that of `fastest`."""

    @property
    def winner(self) -> Layouts:
        """The winning layout as columns of length 1."""
        assert self.best is not None
        return self.layouts.only(self.best)

    @property
    def gpus(self) -> int:
        """Number of GPUs of the winner."""
        return int(self.winner.gpus[0])


def best_on(case: Case, fixed: FixedLayout, gpus: int) -> Choice:
    """Return the best layout that fits on exactly `gpus` GPUs."""
    (choice,) = _best_on_each(case, fixed, [gpus])
    return choice


def best_given(case: Case, fixed: FixedLayout, gpus: int) -> Choice:
    """Return the best layout on a given number of GPUs; see `best_given_each`."""
    (choice,) = best_given_each(case, fixed, [gpus])
    return choice


def best_given_each(case: Case, fixed: FixedLayout, counts: list[int]) -> list[Choice]:
    """Return the best layout for each of several GPU counts, as if the user had given that count.

    A search over counts sees one batch for each split of the GPUs, the one nearest to the default. Once it has chosen a
    batch, all layouts that divide that batch are compared, as they are for the other precisions.
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
        compared_s = expected_s_per_sequence(case, Layouts.of(*compared)).reshape(-1, 2)
        for (index, rival), (chosen_s, rival_s) in zip(rivals.items(), compared_s.tolist(), strict=True):
            if rival_s < chosen_s:
                choices[index] = rival
    return choices


def _best_on_each(case: Case, fixed: FixedLayout, counts: list[int]) -> list[Choice]:
    """Return the best layout that fits for each of several GPU counts, compared in common passes."""
    gpus = counts[0] if len(counts) == 1 else np.array(counts, dtype=np.int64)  # see `enumerate_layouts`
    layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus=gpus)
    scores = case.score(layouts)
    fits = case.fits(scores)
    groups = [np.flatnonzero(layouts.gpus == count) for count in counts]
    able = [group[fits[group]] for group in groups]
    choices = choose_each(case, layouts, scores, able, len(layouts))
    return [replace(choice, evaluated=len(group)) for choice, group in zip(choices, groups, strict=True)]


def choose(case: Case, layouts: Layouts, scores: Score, allowed: Bools, evaluated: int) -> Choice:
    """Return the winner among layouts that fit, whatever their numbers of GPUs.

    Args:
        case: the case to plan.
        layouts: all layouts that were considered.
        scores: their scores at mid.
        allowed: which layouts may win, `[layout]`.
        evaluated: number of layouts considered, for the answer.
    """
    (choice,) = choose_each(case, layouts, scores, [np.flatnonzero(allowed)], evaluated)
    return choice


def choose_each(
    case: Case, layouts: Layouts, scores: Score, groups: list[Indices], evaluated: int
) -> tuple[Choice, ...]:
    """Return the winner of each of several groups, compared in common passes; arguments as of `choose`.

    A layout that needs more memory than a risky one is at least as risky, so it is not drawn.
    """
    weighted_s = scores.wall_s * tokens_ratio(layouts, case.recipe)
    complexities = complexity(layouts, case.recipe)
    splits = splits_of(layouts)
    filling = scores.memory_bytes / usable_bytes(case.cluster.gpu)
    risks = Risks(case, layouts)
    winners: dict[int, _Winner | None] = {}
    short_of_memory: set[int] = set()
    undecided = dict(enumerate(groups))
    while undecided:
        shortlists = {
            name: _shortlist(weighted_s, complexities, splits, filling, group).tolist()
            for name, group in undecided.items()
        }
        risks.draw(i for shortlist in shortlists.values() for i in shortlist)
        likely = {name: [i for i in shortlist if risks.is_likely_safe(i)] for name, shortlist in shortlists.items()}
        short_of_memory |= {name for name, shortlist in shortlists.items() if len(likely[name]) < len(shortlist)}
        expected = _expected(risks, [i for rivals in likely.values() if len(rivals) > 1 for i in rivals])
        first = [_simplest_of_the_best(rivals, complexities, expected) for rivals in likely.values() if rivals]
        risks.draw_ahead(i for winner in first for i in winner.compared)
        safe = {name: _safe_winner(rivals, complexities, expected, risks) for name, rivals in likely.items()}
        for name in [name for name, winner in safe.items() if winner is not None or not len(undecided[name])]:
            winners[name] = safe[name]
            del undecided[name]
        for name, group in undecided.items():
            least_risky_bytes = min(scores.memory_bytes[i] for i in shortlists[name])
            undecided[name] = group[scores.memory_bytes[group] < least_risky_bytes]
    for name in short_of_memory:
        winners[name] = _or_faster(risks, scores, weighted_s, groups[name], winners[name])
    for name, group in enumerate(groups):
        for split in sorted({int(splits[i]) for i in risks.unsafe} & set(splits[group].tolist())):
            winners[name] = _or_faster(risks, scores, weighted_s, group[splits[group] == split], winners[name])
    unsafe = [name for name, winner in winners.items() if winner is None]
    risky = {name: _least_risky(case, layouts, scores, weighted_s, complexities, groups[name]) for name in unsafe}
    return tuple(_choice(layouts, scores, winners[name], risky.get(name), evaluated) for name in range(len(groups)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Winner:
    """The layout chosen from a group and the fastest one, by index among all layouts."""

    best: int
    fastest: int
    """The layout with the shortest expected time, which may be less simple."""
    slower_ratio: float = 0.0
    """By what fraction the expected time of `best` is longer than that of `fastest`."""

    @property
    def compared(self) -> tuple[int, int]:
        """Both indices."""
        return self.best, self.fastest


def _safe_winner(
    likely: list[int], complexities: Floats, expected_s: Mapping[int, float], risks: Risks
) -> _Winner | None:
    """Return `_simplest_of_the_best` among the safe layouts; the risk is drawn only for layouts that could win."""
    rivals = list(likely)
    while rivals:
        winner = _simplest_of_the_best(rivals, complexities, expected_s)
        unsafe = {i for i in winner.compared if not risks.is_safe(i)}
        if not unsafe:
            return winner
        rivals = [i for i in rivals if i not in unsafe]
    return None


def _or_faster(
    risks: Risks, scores: Score, weighted_s: Floats, group: Indices, winner: _Winner | None
) -> _Winner | None:
    """Return the winner, or a faster safe layout of the group that was not compared because memory is short.

    Only layouts on the Pareto front of time and memory at mid are considered. The fastest safe one is found by
    bisection, since more memory means more risk. With all layouts as the group, this finds splits that were not
    compared; with the layouts of one split, it finds others where the compared layouts of that split are not safe.
    """
    if winner is None:
        return None
    faster = group[SIMPLER * weighted_s[group] < weighted_s[winner.best]]
    if not len(faster):
        return winner
    front = _pareto_front(scores, weighted_s, faster)
    in_group = np.zeros(len(weighted_s), dtype=np.bool_)
    in_group[group] = True
    too_much_bytes = min((scores.memory_bytes[i] for i in risks.unsafe if in_group[i]), default=np.inf)
    low, high = 0, int(np.searchsorted(scores.memory_bytes[front], too_much_bytes))
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if risks.is_safe(int(front[middle])) else (low, middle)
    other = int(front[low - 1]) if low else winner.best
    if other in risks.peak_bytes:  # it was already compared
        return winner
    pair = risks.layouts.take(np.array([winner.best, other], dtype=np.intp))
    expected_s = expected_s_per_sequence(risks.case, pair) * tokens_ratio(pair, risks.case.recipe)
    return _Winner(best=other, fastest=other) if SIMPLER * expected_s[1] < expected_s[0] else winner


def _pareto_front(scores: Score, weighted_s: Floats, group: Indices) -> Indices:
    """Return the layouts of a group that are faster at mid than all that need less memory, by rising memory."""
    order = group[np.lexsort((weighted_s[group], scores.memory_bytes[group]))]
    return np.asarray(order[weighted_s[order] < np.minimum.accumulate(np.append(np.inf, weighted_s[order]))[:-1]])


def _least_risky(
    case: Case, layouts: Layouts, scores: Score, weighted_s: Floats, complexities: Floats, group: Indices
) -> int | None:
    """Return, where no layout is safe, the simplest of the fastest layouts whose risk is close to the lowest.

    Only layouts on the Pareto front of time and memory at mid are considered. None where no layout fits.
    """
    leanest = _pareto_front(scores, weighted_s, group)[:MOST_LEAN]
    risks = {i: risk_of(case, layouts.only(i)) for i in leanest.tolist()}
    most = min(min(risks.values(), default=0.0) + LITTLE_RISKIER, MOST_RISK)
    able = [i for i, risk in risks.items() if risk <= most]
    return _simplest_of_the_best(able, complexities, {i: float(weighted_s[i]) for i in able}).best if able else None


def _choice(layouts: Layouts, scores: Score, winner: _Winner | None, risky: int | None, evaluated: int) -> Choice:
    """Return the winner of a group or, where no layout is safe, the index `risky`, if there is one."""
    if winner is None:
        return Choice(layouts=layouts, scores=scores, best=risky, evaluated=evaluated, safe=False)
    return Choice(
        layouts=layouts, scores=scores, best=winner.best, evaluated=evaluated,
        fastest=None if winner.fastest == winner.best else winner.fastest, slower_ratio=winner.slower_ratio,
    )  # fmt: skip


def complexity(layouts: Layouts, recipe: Recipe) -> Floats:
    """Return how much there is to set up and to go wrong, `[layout]`; fewer ways to split a model are simpler.

    Each kind of parallelism beside data parallelism counts as one, interleaved stages as half, and stages of unequal
    length as one more; among layouts with the same kinds, the one that is split less is simpler. A batch other than the
    recipe's counts as two kinds, plus an amount that grows with its distance from the recipe's.
    """
    kinds = (layouts.tp > 1).astype(np.float64) + (layouts.pp > 1) + (layouts.cp > 1)
    kinds += 0.5 * (layouts.vp > 1) + (recipe.model.layers % layouts.pp != 0)
    other = np.abs(np.log(layouts.global_batch / recipe.global_batch))
    return np.asarray(kinds + 0.1 * np.log2(layouts.tp * layouts.pp * layouts.cp) + 2.0 * ((other > 0) + other))


def tokens_ratio(layouts: Layouts, recipe: Recipe) -> Floats:
    """Return the tokens that a loss takes with a layout's batch over those with the recipe's, `[layout]`; at least 1.

    The ratio is proportional to `1 + batch / critical batch` (McCandlish et al. 2018, arXiv 1812.06162, equation 2.11).
    A larger batch therefore wins only if it gains more speed than it loses in learning per token; the plan's own tokens
    stay those of the question. A batch other than the one that the model's team published, or that is usual for
    fine-tuning, counts as a tenth longer (`UNPUBLISHED`). So does that batch itself with a pipeline that has stages to
    spare (`needed_depth`): no team would pay for those only to keep a batch that its GPUs do not divide.
    """
    ratio = np.ones(len(layouts))
    if recipe.critical_batch is not None:
        batch = np.maximum(layouts.global_batch, recipe.global_batch)
        ratio = (recipe.critical_batch + batch) / (recipe.critical_batch + recipe.global_batch)
    if recipe.keeps_batch:
        most_pp = needed_depth(recipe.model.layers, layouts.pp) + (recipe.model.mtp_unrolled > 0)
        kept = (layouts.global_batch == recipe.global_batch) & (layouts.pp <= most_pp)
        ratio = np.where(kept, ratio, UNPUBLISHED * ratio)
    return np.asarray(ratio)


def splits_of(layouts: Layouts) -> Indices:
    """Return a number for each layout's split, `[layout]`: its TP, CP, PP, EP and DP degrees and its ZeRO stage."""
    numbers = np.zeros(len(layouts), dtype=np.int64)
    for column in (layouts.tp, layouts.cp, layouts.pp, layouts.ep, layouts.dp, layouts.zero):
        numbers = numbers * (int(column.max(initial=0)) + 1) + column
    return np.asarray(numbers, dtype=np.intp)


def _shortlist(weighted_s: Floats, complexities: Floats, splits: Indices, filling: Floats, group: Indices) -> Indices:
    """Return the layouts of a group to compare under draws, the fastest at mid first.

    A layout that is fast at mid may be slow on average: communication that is just hidden at mid is often exposed under
    draws. Layouts with the same split share this, so the fastest of each split are compared, not the fastest of all;
    the simplest of those that are nearly as fast are compared as well.

    Args:
        weighted_s: seconds of the run at mid, weighted by `tokens_ratio`, `[layout]`.
        complexities: result of `complexity`, `[layout]`.
        splits: result of `splits_of`, `[layout]`.
        filling: share of the memory that each layout takes at mid, `[layout]`.
        group: indices of the layouts to choose from.
    """
    if not len(group):
        return group
    order = group[np.argsort(weighted_s[group], kind="stable")]
    lean = order[filling[order] <= LEAN]
    slowest_s = NEAR * weighted_s[lean[0] if len(lean) else order[0]]
    near = order[weighted_s[order] <= slowest_s]
    fast = np.zeros(len(near), dtype=np.bool_)
    near_splits, near_filling = splits[near], filling[near]
    for split in {*_first_splits(near_splits), *_first_splits(near_splits[near_filling <= LEAN])}:
        members = np.flatnonzero(near_splits == split)
        within = near_filling[members] <= FILLINGS  # `[filling, member]`; the first of each row is the fastest
        fast[members[within.argmax(axis=1)[within.any(axis=1)]]] = True
    close = np.flatnonzero(weighted_s[near] <= SIMPLE_NEAR * weighted_s[near[0]])
    fast[close[np.argsort(complexities[near[close]], kind="stable")][:MOST_SIMPLE]] = True
    return np.asarray(near[fast])


def _first_splits(splits: Indices) -> list[int]:
    """Return the first `MOST_SPLITS` splits, in the order of their fastest layouts."""
    return list(dict.fromkeys(splits.tolist()))[:MOST_SPLITS]


def _simplest_of_the_best(safe: list[int], complexities: Floats, expected_s: Mapping[int, float]) -> _Winner:
    """Return the simplest of the layouts whose expected time is close to the shortest.

    Args:
        safe: the layouts that may win; a single one needs no expected time.
        complexities: result of `complexity`, `[layout]`.
        expected_s: expected time by index, of the layouts that were timed.
    """
    if len(safe) == 1:
        return _Winner(best=safe[0], fastest=safe[0])
    fastest = min(safe, key=lambda i: expected_s[i])
    close = [i for i in safe if expected_s[i] <= SIMPLER * expected_s[fastest]]
    best = min(close, key=lambda i: (complexities[i], expected_s[i]))
    return _Winner(best=best, fastest=fastest, slower_ratio=expected_s[best] / expected_s[fastest] - 1.0)


def _expected(risks: Risks, compared: list[int]) -> dict[int, float]:
    """Return the expected time per sequence of some layouts by index, weighted by `tokens_ratio`."""
    if not compared:
        return {}
    layouts = risks.layouts.take(np.array(compared, dtype=np.intp))
    s_per_sequence = _mean_s_per_sequence(risks.case, layouts, np.stack([risks.peak_bytes[i] for i in compared]))
    return dict(zip(compared, (s_per_sequence * tokens_ratio(layouts, risks.case.recipe)).tolist(), strict=True))


def expected_s_per_sequence(case: Case, layouts: Layouts) -> Floats:
    """Return the mean seconds per sequence over the draws of the choice, `[layout]`."""
    return _mean_s_per_sequence(case, layouts, drawn_bytes(case, layouts))


def _mean_s_per_sequence(case: Case, layouts: Layouts, memory_bytes: Floats) -> Floats:
    """Return mean seconds per sequence over draws, `[layout]`, with peak memory `memory_bytes`, `[layout, draw]`."""
    steps_s = step_of(case.recipe, case.cluster, layouts.column, memory_bytes, case.rates.sample(CHOICE_DRAWS)).total
    mean_s = np.broadcast_to(steps_s, memory_bytes.shape).mean(axis=1)
    return np.asarray(mean_s / layouts.global_batch)
