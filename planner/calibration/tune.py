"""The spreads that predict left-out lineages best, and the last widening until the ranges hold.

Empirical Bayes by cross-validation: the spread between lineages is the one under which lineages that were left out
whole are most probable, with nothing learned and with three or ten of their own rows.
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
"""Share of left-out rows that the ranges are to hold at least and at most, one vote a lineage.

Above 90 %: the equations were built by people who knew most of these lineages, which no left-out fit shows. Of the
three that came last (vTrain, MLPerf's steps, FlagPerf; 1,582 speeds) the ranges of the fit before, made to hold 90 % of
sources left out, held 72, 31 and 65 %.
"""
LEARNED_COVERAGE = 0.88
"""Share that the ranges are to hold at least after `LEARNED` of a lineage's own rows.

What runs of one team have in common is known then, and what is left out of a single run is nearly all of the range.
With nothing learned it hardly shows, and could be taken for nothing.
"""
LEARNED = 3
STEPS = (0.6, 1.5, 0.8, 1.25)
"""Factors by which a spread is tried."""
LEAST_SPREAD = 0.005
"""No spread is narrower, in the logarithm."""
LEAST_GAIN = 1e-3
"""Mean logarithm of the predictive density by which a wider spread must be better to be taken."""
CLEAR_GAIN = 1e-2
"""The same of a narrower one: a range that is too wide costs less than one that does not hold."""
ROUNDS = 2
"""Passes over all spreads of a figure."""
CONFORMAL_ROWS = 40
"""Rows of each lineage and figure that it looks at."""
CONFORMAL_STEP = 0.02
"""By which the conformal step widens the spread between teams, in the logarithm."""
CONFORMAL_RATIO = 0.93
"""By which it narrows that of single rows, or widens it by the inverse."""
LEAST_LINEAGES = 20
"""With fewer a share between the ends of `COVERAGE` is luck: the ranges are not narrowed."""
LARGEST_STANDSTILL = 0.3
"""Widest spread between lineages of the time that runs stand still, set by hand: seven lineages cannot tell it.

Without this bound the search takes 0.5, at which the upper end of a run is 2.5 times its steps.
"""
LEAST_RUN_ERROR = 0.22
"""Narrowest error of a single whole run, set by hand: of seven lineages only one has several runs, all alike.

Without this bound the search takes 0.1, at which 32 of 39 well-known runs lie in their range (docs/checked.md), not 36.
"""
LARGEST = 1.0
"""No spread is wider, in the logarithm."""

Log = Callable[[str], object]
"""Takes one line of progress."""


def tuned(hierarchy: Hierarchy, log: Log) -> Parameters:
    """The parameters with the spreads that predict left-out lineages best, figure by figure.

    A coordinate search; what the other lineages tell about the parameters is kept as it is.
    """
    parameters, given = hierarchy.parameters, leave_out(hierarchy)
    for figure in Figure:
        mine = [left_out for left_out in given if left_out.figure is figure]
        if mine:
            parameters = _tuned_figure(hierarchy.under(parameters), figure, mine, log)
    return parameters


def _tuned_figure(hierarchy: Hierarchy, figure: Figure, given: Sequence[LeftOut], log: Log) -> Parameters:
    parameters = hierarchy.parameters
    names = spreads_of(parameters, figure)
    largest = largest_spreads(hierarchy.priors, names)
    best = mean_score(hierarchy, given)
    for _ in range(ROUNDS):
        before = best
        for name in names:
            for step in STEPS:
                least = LEAST_RUN_ERROR if RESIDUALS.get(name) is Figure.RUN else LEAST_SPREAD
                tried = min(max(spread(parameters, name) * step, least), largest[name])
                trial = with_spreads(parameters, {name: tried})
                score = mean_score(hierarchy.under(trial), given)
                if score > best + (LEAST_GAIN if step > 1.0 else CLEAR_GAIN):
                    best, parameters = score, trial
                    break
        if best - before < 10 * LEAST_GAIN:
            break
    log(f"{figure}: score {best:.3f}, " + ", ".join(f"{name} {spread(parameters, name):.3f}" for name in names))
    return parameters


def largest_spreads(priors: Parameters, names: Sequence[str]) -> dict[str, float]:
    """The most that each spread may become, by name.

    No lineage differs by more than was thought possible before any fit; what is left out may be of any size.
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


def mean_score(hierarchy: Hierarchy, given: Sequence[LeftOut]) -> float:
    """Predictive density with nothing, with three and with ten rows learned, one vote a lineage."""
    votes: dict[int, list[float]] = defaultdict(list)
    for entry in learning_curve(hierarchy, given, (0, 3, 10)):
        votes[entry.count].append(entry.score)
    return float(sum(np.mean(scores) for scores in votes.values()))


def conformal(hierarchy: Hierarchy, log: Log) -> Parameters:
    """The parameters with the spreads at which the ranges hold `COVERAGE` of left-out rows, every draw computed.

    Too few: what one team has against the others grows. Too many: what the equations leave out of a single run shrinks,
    as long as the ranges after learning hold `LEARNED_COVERAGE`; it grows until they do.
    """
    parameters, given = hierarchy.parameters, leave_out(hierarchy)
    for figure, team in TEAM.items():
        mine = [left_out for left_out in given if left_out.figure is figure]
        if not mine:
            continue
        single = next(name for name, of in RESIDUALS.items() if of is figure)
        held, learned = (partial(of, hierarchy.under(parameters), mine) for of in (_held, _held_after_learning))
        spreads = {name: spread(parameters, name) for name in (team, single)}
        share = held(spreads)
        while share < COVERAGE[0] and spreads[team] < LARGEST:
            spreads[team] += CONFORMAL_STEP
            share = held(spreads)
        while learned(spreads) < LEARNED_COVERAGE and spreads[single] < LARGEST:
            spreads[single] /= CONFORMAL_RATIO
            share = held(spreads)
        enough = len({left_out.lineage for left_out in mine}) >= LEAST_LINEAGES
        while enough and share > COVERAGE[1] and spreads[single] > LEAST_SPREAD:
            narrower = spreads | {single: spreads[single] * CONFORMAL_RATIO}
            tried = held(narrower)
            if tried < COVERAGE[0] or learned(narrower) < LEARNED_COVERAGE:
                break
            spreads, share = narrower, tried
        log(f"{figure}: ranges hold {share:.1%} of left-out rows with {spreads}")
        parameters = with_spreads(parameters, spreads)
    return parameters


def _held(hierarchy: Hierarchy, given: Sequence[LeftOut], spreads: Mapping[str, float]) -> float:
    """Share of left-out rows inside their ranges with other spreads, one vote a lineage."""
    trial = hierarchy.under(with_spreads(hierarchy.parameters, spreads))
    return float(np.mean([entry.coverage for entry in drawn_left_out(trial, given, most=CONFORMAL_ROWS)]))


def _held_after_learning(hierarchy: Hierarchy, given: Sequence[LeftOut], spreads: Mapping[str, float]) -> float:
    """The same after `LEARNED` of each lineage's own rows, linearised; 1 where no lineage has enough of them."""
    trial = hierarchy.under(with_spreads(hierarchy.parameters, spreads))
    entries = learning_curve(trial, given, (LEARNED,))
    return float(np.mean([entry.coverage for entry in entries])) if entries else 1.0
