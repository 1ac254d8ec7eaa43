"""Choose the spreads that best predict left-out lineages, then widen or narrow them until the ranges have coverage.

Empirical Bayes by cross-validation: the chosen spreads between lineages are those under which entire left-out lineages
are most probable, with nothing learned and with three or ten of their own rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from planner.calibration.crossval import LeftOut, drawn_left_out, learning_curve, leave_out
from planner.calibration.hierarchy import Hierarchy
from planner.calibration.spreads import RESIDUALS, TEAM, deviation_groups, spread, spreads_of, with_spreads
from planner.rates.parameters import Figure, Parameters

COVERAGE = (0.92, 0.95)
"""Lowest and highest share of left-out rows that the ranges should cover, with one vote per lineage.

The target is above 90 % because the authors of the equations knew most of these lineages, which no left-out fit can
show. Of the three lineages that came last (vTrain, MLPerf's steps, FlagPerf; 1,582 throughputs) the ranges of the
previous fit, tuned to cover 90 % of left-out sources, covered 72, 31 and 65 %.
"""
LEARNED_COVERAGE = 0.88
"""Lowest share of rows that the ranges should cover after learning from `LEARNED` of a lineage's own rows.

The deviations that the runs of one team share are known by then, so the error of a single run makes up nearly all of
the range. With nothing learned that error is a small part of the range, and tuning could set it to nothing.
"""
LEARNED = 3
STEPS = (0.6, 1.5, 0.8, 1.25)
"""Factors tried on each spread."""
LEAST_SPREAD = 0.005
"""Lower limit of every spread, in the logarithm."""
LEAST_GAIN = 1e-3
"""Gain in mean log predictive density from which a wider spread is accepted."""
CLEAR_GAIN = 1e-2
"""Gain from which a narrower spread is accepted: a range that is too wide costs less than one that fails to cover."""
ROUNDS = 2
"""Passes over all spreads of a figure."""
CONFORMAL_ROWS = 40
"""Rows of each lineage and figure that the conformal step uses."""
CONFORMAL_STEP = 0.02
"""Amount by which the conformal step widens the spread between teams, in the logarithm."""
CONFORMAL_RATIO = 0.93
"""Factor by which the conformal step narrows the spread of single rows; it widens the spread by the inverse."""
LEAST_LINEAGES = 20
"""With fewer lineages a coverage between the ends of `COVERAGE` is luck, so the ranges are not narrowed."""
LARGEST_STANDSTILL = 0.3
"""Upper limit of the spread between lineages in the downtime of runs, set by hand: seven lineages cannot determine it.

Without this limit the search chooses 0.5, at which the upper end of a run's time is 2.5 times that of its steps.
"""
LEAST_RUN_ERROR = 0.22
"""Lower limit of the error of a single whole run, set by hand: of seven lineages only one has several runs, all alike.

Without this limit the search chooses 0.1, at which 32 instead of 36 of 39 well-known runs are inside their range
(docs/checked.md).
"""
LARGEST = 1.0
"""Upper limit of every spread, in the logarithm."""

Log = Callable[[str], object]
"""Callback that takes one line of progress."""


def tuned(hierarchy: Hierarchy, log: Log) -> Parameters:
    """Return the parameters with the spreads that best predict left-out lineages, figure by figure.

    This is a coordinate search. The populations fitted without each lineage are kept fixed.
    """
    parameters, held_out = hierarchy.parameters, leave_out(hierarchy)
    for figure in Figure:
        mine = [left_out for left_out in held_out if left_out.figure is figure]
        if mine:
            parameters = _tuned_figure(hierarchy.under(parameters), figure, mine, log)
    return parameters


def _tuned_figure(hierarchy: Hierarchy, figure: Figure, held_out: Sequence[LeftOut], log: Log) -> Parameters:
    parameters = hierarchy.parameters
    names = spreads_of(parameters, figure)
    largest = largest_spreads(hierarchy.priors, names)
    best = mean_score(hierarchy, held_out)
    for _ in range(ROUNDS):
        before = best
        for name in names:
            for step in STEPS:
                least = LEAST_RUN_ERROR if RESIDUALS.get(name) is Figure.RUN else LEAST_SPREAD
                tried = min(max(spread(parameters, name) * step, least), largest[name])
                trial = with_spreads(parameters, {name: tried})
                score = mean_score(hierarchy.under(trial), held_out)
                if score > best + (LEAST_GAIN if step > 1.0 else CLEAR_GAIN):
                    best, parameters = score, trial
                    break
        if best - before < 10 * LEAST_GAIN:
            break
    log(f"{figure}: score {best:.3f}, " + ", ".join(f"{name} {spread(parameters, name):.3f}" for name in names))
    return parameters


def largest_spreads(priors: Parameters, names: Sequence[str]) -> dict[str, float]:
    """Return the upper limit of each spread, by name.

    A deviation between lineages may not exceed the largest spread of its rows before any fit; a model error may be as
    large as `LARGEST`.
    """
    groups = deviation_groups(priors)
    return {name: _largest_spread(priors, name, groups.get(name, ())) for name in names}


def _largest_spread(priors: Parameters, name: str, moved_together: Sequence[str]) -> float:
    family = priors.families[priors.rows[name].family]
    if not moved_together or family.deviates == "apart":
        return LARGEST
    if family.fitted_to == Figure.RUN:
        return LARGEST_STANDSTILL
    return max(priors.rows[row].log_sd for row in moved_together)


def mean_score(hierarchy: Hierarchy, held_out: Sequence[LeftOut]) -> float:
    """Return the log predictive density with 0, 3 and 10 rows learned: lineage means, summed over the three."""
    votes: dict[int, list[float]] = defaultdict(list)
    for entry in learning_curve(hierarchy, held_out, (0, 3, 10)):
        votes[entry.count].append(entry.score)
    return float(sum(np.mean(scores) for scores in votes.values()))


def conformal(hierarchy: Hierarchy, log: Log) -> Parameters:
    """Return parameters whose ranges, with every draw computed, cover `COVERAGE` of left-out rows.

    If coverage is too low, the spread between teams is widened. The error of a single run is widened until the ranges
    after learning cover `LEARNED_COVERAGE`. If coverage is too high, that error is narrowed as far as neither coverage
    falls below its lower limit; with fewer than `LEAST_LINEAGES` lineages it is not narrowed.
    """
    parameters, held_out = hierarchy.parameters, leave_out(hierarchy)
    for figure, team in TEAM.items():
        mine = [left_out for left_out in held_out if left_out.figure is figure]
        if not mine:
            continue
        single = next(name for name, of in RESIDUALS.items() if of is figure)
        coverage, learned_coverage = (
            partial(of, hierarchy.under(parameters), mine) for of in (_coverage, _coverage_after_learning)
        )
        spreads = {name: spread(parameters, name) for name in (team, single)}
        share = coverage(spreads)
        while share < COVERAGE[0] and spreads[team] < LARGEST:
            spreads[team] += CONFORMAL_STEP
            share = coverage(spreads)
        while learned_coverage(spreads) < LEARNED_COVERAGE and spreads[single] < LARGEST:
            spreads[single] /= CONFORMAL_RATIO
            share = coverage(spreads)
        enough = len({left_out.lineage for left_out in mine}) >= LEAST_LINEAGES
        while enough and share > COVERAGE[1] and spreads[single] > LEAST_SPREAD:
            narrower = spreads | {single: spreads[single] * CONFORMAL_RATIO}
            tried = coverage(narrower)
            if tried < COVERAGE[0] or learned_coverage(narrower) < LEARNED_COVERAGE:
                break
            spreads, share = narrower, tried
        log(f"{figure}: ranges hold {share:.1%} of left-out rows with {spreads}")
        parameters = with_spreads(parameters, spreads)
    return parameters


def _coverage(hierarchy: Hierarchy, held_out: Sequence[LeftOut], spreads: Mapping[str, float]) -> float:
    """Return the share of left-out rows inside their ranges under other spreads, with one vote per lineage."""
    trial = hierarchy.under(with_spreads(hierarchy.parameters, spreads))
    return float(np.mean([entry.coverage for entry in drawn_left_out(trial, held_out, most=CONFORMAL_ROWS)]))


def _coverage_after_learning(hierarchy: Hierarchy, held_out: Sequence[LeftOut], spreads: Mapping[str, float]) -> float:
    """Return the share inside the ranges, linearised, after learning `LEARNED` rows; 1 without enough rows."""
    trial = hierarchy.under(with_spreads(hierarchy.parameters, spreads))
    entries = learning_curve(trial, held_out, (LEARNED,))
    return float(np.mean([entry.coverage for entry in entries])) if entries else 1.0
