"""Cross-validation by leaving out entire lineages: their error and coverage after learning from some of their own rows.

Every lineage has one vote: the rows of a lineage are averaged first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from planner.calibration.design import Numbers, own_repeats
from planner.calibration.hierarchy import (
    FREEDOM,
    REWEIGHTINGS,
    Hierarchy,
    Population,
    apart_from_team,
    robust_weight,
)
from planner.calibration.linear import Observation, mapped
from planner.calibration.shifts import at_shift, cholesky
from planner.evidence import Z90
from planner.lazy import dataclass
from planner.rates.parameters import Figure, Joint, Parameters
from planner.rates.terms import Draws, Floats
from planner.validation.predict import predict_prepared, run_rates

DRAWS = Draws(count=401, seed=1)
"""Common random numbers for the ranges of left-out rows."""
COUNTS = (0, 1, 3, 10)
"""Numbers of own rows to learn from, along the learning curve."""
REPEATS = 8
"""Random choices of the rows to learn from, over which results are averaged while spreads are tuned."""
JUDGED_REPEATS = 64
"""Random choices for published results: at this number the choice moves their means by about 0.1 %."""
SCALE_FREEDOM = 6.0
"""Degrees of freedom of the prior on the scatter of a team's single rows."""
LARGEST_STANDARDISED = 4.0
"""Cap on the standardised error of a single row."""
MOST_ROWS = 240
"""Maximum configurations of one lineage and figure that a learning curve uses; a random sample where there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Rows of one figure of a lineage, and the population fitted to the other lineages."""

    lineage: str
    figure: Figure
    rows: Numbers
    others: Population


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Result for a left-out lineage's rows of one figure after learning from some, averaged over the repeats."""

    lineage: str
    figure: Figure
    count: int
    """Rows that were learned from, of different configurations."""
    rows: int
    """Number of all rows of the lineage and figure."""
    error: float
    """Median absolute error, as a ratio."""
    coverage: float
    """Share of rows inside the 90 % range."""
    width: float
    """Median of the width of the range over its middle."""
    score: float
    """Mean log predictive density."""


def leave_out(hierarchy: Hierarchy) -> list[LeftOut]:
    """Return every lineage and figure, with the population of the other lineages."""
    design, result = hierarchy.design, []
    for name, rows in design.lineages.items():
        others = hierarchy.population(without=name)
        for figure in Figure:
            members = rows[design.figures[rows] == figure]
            if len(members):
                result.append(LeftOut(lineage=name, figure=figure, rows=members, others=others))
    return result


def own_scale(standardised: Floats, weight: Floats) -> Floats:
    """Return the scatter of a team's single rows over that of most teams' rows, `[...]`.

    A team's own variance has a scaled inverse chi-squared prior with `SCALE_FREEDOM` degrees of freedom around the
    variance of most teams (Gelman et al. 2013, Bayesian Data Analysis, section 3.2): rows that agree shrink it, others
    enlarge it.

    Args:
        standardised: error of each row predicted from the others, over the stated spread, `[..., row]`.
        weight: weight of each row, `[row]`.
    """
    seen = (weight * np.minimum(np.abs(standardised), LARGEST_STANDARDISED) ** 2).sum(axis=-1)
    scale: Floats = np.sqrt((SCALE_FREEDOM + seen) / (SCALE_FREEDOM + weight.sum()))
    return scale


def condition(mean: Floats, shared: Floats, own_sd: Floats, known: Numbers) -> tuple[Floats, Floats]:
    """Return the remaining residuals once some of them are observed, and their spread, `[..., row]` each.

    Rows that stay outliers are downweighted, as in `planner.calibration.learn` (Student's t with a few reweightings).
    Without that, a single run ten times slower than its neighbours would teach that all of them are slow. The scatter
    of the team's own rows (`own_scale`) decides how much each of them teaches, and how far the others may be off.

    Args:
        mean: the residuals, `[row]`.
        shared: covariance shared by the rows, `[row, row]`.
        own_sd: spread of each row's own error, `[row]`.
        known: rows to learn from, for any number of choices of them, `[..., known]`.
    """
    count = known.shape[-1]
    among = shared[known[..., :, None], known[..., None, :]]
    across, robust, scale = shared[known], np.ones(known.shape), np.ones(known.shape[:-1])
    for turn in range(REWEIGHTINGS):
        own_variance = (scale[..., None] * own_sd[known]) ** 2 / robust
        inverse = np.linalg.inv(among + np.eye(count) * own_variance[..., None])
        weighed = np.einsum("...ij,...j->...i", inverse, mean[known])
        left_out = scale[..., None] * weighed / np.sqrt(np.einsum("...ii->...i", inverse))
        if turn + 1 < REWEIGHTINGS:
            scale = own_scale(apart_from_team(left_out, np.ones(left_out.shape)), np.ones(count))
            apart = mean[known] - np.einsum("...ij,...j->...i", among, weighed)
            robust = robust_weight(apart_from_team(apart, own_sd[known]), own_sd[known])
    gain = inverse @ across
    after = np.maximum(np.diag(shared) - (across * gain).sum(axis=-2), 0.0)
    scale = own_scale(left_out, np.ones(count))
    left = mean - np.einsum("...i,...ij->...j", weighed, across)
    return left, np.sqrt(after + (scale[..., None] * own_sd) ** 2)


def log_density(error: Floats, sd: Floats) -> Floats:
    """Return the log density of Student's t, scaled to the given standard deviation, `[row]`."""
    scale = sd * math.sqrt((FREEDOM - 2.0) / FREEDOM)
    constant = math.lgamma((FREEDOM + 1) / 2) - math.lgamma(FREEDOM / 2) - 0.5 * math.log(FREEDOM * math.pi)
    density: Floats = constant - np.log(scale) - (FREEDOM + 1) / 2 * np.log1p((error / scale) ** 2 / FREEDOM)
    return density


def predict_left_out(
    hierarchy: Hierarchy, left_out: LeftOut, counts: Sequence[int] = COUNTS, repeats: int = REPEATS
) -> list[Learned]:
    """Predict a left-out lineage after learning from each count of its configurations that leaves at least two others.

    Repeats of one configuration count as one row, as in `planner.calibration.learn`: each random choice takes one of
    them at random.
    """
    alike = own_repeats([hierarchy.design.observations[row] for row in left_out.rows])
    groups = [left_out.rows[alike[number]] for number in _sample(np.arange(len(alike)), MOST_ROWS)]
    rows, sizes = np.concatenate(groups), tuple(len(group) for group in groups)
    mean, shared = hierarchy.expected(rows, left_out.others)
    own_sd = hierarchy.own_sd[rows]
    enough = [count for count in counts if not count or len(groups) >= count + 2]
    return [_learned(left_out, count, _choices(sizes, count, repeats), mean, shared, own_sd) for count in enough]


def _learned(left_out: LeftOut, count: int, chosen: Numbers, mean: Floats, shared: Floats, own_sd: Floats) -> Learned:
    known, others = chosen[:, :count], chosen[:, count:]
    error, sd = (np.take_along_axis(values, others, axis=1) for values in condition(mean, shared, own_sd, known))
    return Learned(
        lineage=left_out.lineage, figure=left_out.figure, count=count, rows=len(left_out.rows),
        error=float(np.median(np.abs(np.expm1(error)), axis=1).mean()),
        coverage=float((np.abs(error) <= Z90 * sd).mean()),
        width=float(np.median(2.0 * np.sinh(Z90 * sd), axis=1).mean()),
        score=float(log_density(error, sd).mean()),
    )  # fmt: skip


@cache
def _choices(sizes: tuple[int, ...], count: int, repeats: int) -> Numbers:
    """Return one random row of each configuration, `[repeat, configuration]`, of which the first `count` are learned.

    Args:
        sizes: number of rows of each configuration; its rows follow one another.
        count: configurations to learn from.
        repeats: random choices; one where all would be the same.
    """
    first = np.cumsum(sizes) - sizes
    choices = []
    for seed in range(repeats if count or max(sizes) > 1 else 1):
        random = np.random.default_rng(seed)
        learned = random.choice(len(sizes), count, replace=False)
        order = np.concatenate([learned, np.setdiff1d(np.arange(len(sizes)), learned)]).astype(np.intp)
        choices.append((first + random.integers(sizes))[order])
    return np.array(choices)


def learning_curve(
    hierarchy: Hierarchy, held_out: Iterable[LeftOut], counts: Sequence[int] = COUNTS, repeats: int = REPEATS
) -> list[Learned]:
    """Predict every left-out lineage after learning from each count of its configurations, where it has enough."""
    return [entry for left_out in held_out for entry in predict_left_out(hierarchy, left_out, counts, repeats)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Draws a row's range under the parameters fitted to the other lineages."""

    parameters: dict[str, Parameters]
    """Parameters by the lineage that is left out."""

    def __call__(self, observation: Observation) -> tuple[float, float, float]:
        rates = run_rates(observation.prepared, self.parameters[observation.lineage])
        predicted = predict_prepared(observation.prepared, DRAWS, rates=rates)
        return predicted.low, predicted.mid, predicted.high


def drawn_left_out(hierarchy: Hierarchy, held_out: Iterable[LeftOut], most: int) -> list[Learned]:
    """Predict left-out lineages as `mpplan validate` would, with every draw put through the equations.

    Args:
        hierarchy: the model.
        held_out: the left-out lineages and figures.
        most: maximum rows of one lineage and figure to predict; a random sample where there are more.
    """
    entries = list(held_out)
    parameters = {left_out.lineage: new_lineage(hierarchy, left_out.others) for left_out in entries}
    chosen = [_sample(left_out.rows, most) for left_out in entries]
    rows = [hierarchy.design.observations[row] for members in chosen for row in members]
    ranges = iter(mapped(_Drawn(parameters=parameters), rows))
    return [
        _drawn_entry(left_out, hierarchy, members, ranges) for left_out, members in zip(entries, chosen, strict=True)
    ]


def _drawn_entry(
    left_out: LeftOut, hierarchy: Hierarchy, members: Numbers, ranges: Iterator[tuple[float, float, float]]
) -> Learned:
    values = np.array([hierarchy.design.observations[row].value for row in members])
    low, mid, high = np.array([next(ranges) for _ in members]).T
    return Learned(
        lineage=left_out.lineage, figure=left_out.figure, count=0, rows=len(left_out.rows),
        error=float(np.median(np.abs(mid / values - 1.0))), coverage=float(np.mean((low <= values) & (values <= high))),
        width=float(np.median((high - low) / mid)), score=float("nan"),
    )  # fmt: skip


def _sample(rows: Numbers, most: int) -> Numbers:
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def new_lineage(hierarchy: Hierarchy, others: Population) -> Parameters:
    """Return the parameters of a lineage without measurements, given the population of the other lineages."""
    ids, covariance = hierarchy.design.joint, hierarchy.of_new_lineage(others)
    moved = at_shift(hierarchy.parameters, ids, others.shift)
    return replace(moved, joint=Joint(ids=tuple(ids), factor=cholesky(covariance)))


def left_out_residuals(hierarchy: Hierarchy, held_out: Iterable[LeftOut]) -> dict[str, tuple[float, float]]:
    """Return each row's log error without its lineage, with the stated spread, by row id.

    The error is the logarithm of prediction over measurement.
    """
    result: dict[str, tuple[float, float]] = {}
    for left_out in held_out:
        mean, shared = hierarchy.expected(left_out.rows, left_out.others)
        sd = np.sqrt(np.diag(shared) + hierarchy.own_sd[left_out.rows] ** 2)
        for row, error, spread in zip(left_out.rows, mean, sd, strict=True):
            result[hierarchy.design.observations[row].run.id] = (float(error), float(spread))
    return result
