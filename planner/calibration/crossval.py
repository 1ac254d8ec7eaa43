"""Lineages left out whole: how far off they are, and whether the ranges hold, with some of their own rows learned.

Every lineage has one vote: the rows of a lineage are averaged first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.hierarchy import FREEDOM, Hierarchy, Numbers, Population
from planner.calibration.linear import Figure, Observation, mapped
from planner.calibration.shifts import at_shift, cholesky
from planner.rates.parameters import Z90, Joint, Parameters
from planner.rates.terms import Draws, Floats
from planner.validation.predict import predict_prepared, run_rates

DRAWS = Draws(count=401, seed=1)
"""Common random numbers of the ranges of left-out rows."""
COUNTS = (0, 1, 3, 10)
"""Own rows that are learned from, along the learning curve."""
REPEATS = 8
"""Random choices of these rows."""
SCALE_FREEDOM = 6.0
"""Degrees of freedom of the prior of how much a team's single rows scatter."""
LARGEST_STANDARDISED = 4.0
"""No single row speaks for more than this many spreads."""
MOST_ROWS = 240
"""Rows of one lineage and figure that a learning curve looks at: a random part of the largest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Rows of one figure of a lineage, and what the other lineages tell about the parameters."""

    lineage: str
    figure: Figure
    rows: Numbers
    others: Population


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A left-out lineage's rows of one figure after learning from some of its own: the mean of the repeats."""

    lineage: str
    figure: Figure
    count: int
    """Rows that were learned from."""
    rows: int
    """Rows of the lineage in all."""
    error: float
    """Median absolute error, as a ratio."""
    coverage: float
    """Share inside the 90 % range."""
    width: float
    """Median of the range over its middle."""
    score: float
    """Mean logarithm of the predictive density."""


def leave_out(hierarchy: Hierarchy) -> list[LeftOut]:
    """Every lineage and figure, with the population of the other lineages."""
    figures = np.array([o.figure for o in hierarchy.observations])
    result = []
    for name, rows in hierarchy.lineages.items():
        others = hierarchy.population(without=name)
        for figure in Figure:
            members = rows[figures[rows] == figure]
            if len(members):
                result.append(LeftOut(lineage=name, figure=figure, rows=members, others=others))
    return result


def own_scale(standardised: Floats, weight: Floats) -> float:
    """By what a team's single rows scatter more or less than those of most teams.

    A team's own variance has a scaled inverse chi-squared prior of `SCALE_FREEDOM` degrees around that of most teams
    (Gelman et al. 2013, Bayesian Data Analysis, section 3.2): rows that agree make it smaller, others larger.

    Args:
        standardised: error of each row predicted from the others, over the spread stated, `[row]`.
        weight: how much each row counts, `[row]`.
    """
    seen = float((weight * np.minimum(np.abs(standardised), LARGEST_STANDARDISED) ** 2).sum())
    return math.sqrt((SCALE_FREEDOM + seen) / (SCALE_FREEDOM + float(weight.sum())))


def condition(mean: Floats, shared: Floats, own_sd: Floats, known: Numbers) -> tuple[Floats, Floats]:
    """What is left of residuals once some of them are seen, and its spread, `[row]` each.

    Args:
        mean: the residuals, `[row]`.
        shared: covariance of what rows share, `[row, row]`.
        own_sd: spread of each row's own, `[row]`.
        known: rows that are learned from.
    """
    variance = np.diag(shared)
    if not len(known):
        return mean, np.sqrt(variance + own_sd**2)
    seen = shared[np.ix_(known, known)] + np.diag(own_sd[known] ** 2)
    inverse = np.linalg.inv(seen)
    gain = shared[:, known] @ inverse
    after = np.maximum(variance - np.einsum("ij,ji->i", gain, shared[known]), 0.0)
    scale = own_scale((inverse @ mean[known]) / np.sqrt(np.diag(inverse)), np.ones(len(known)))
    return mean - gain @ mean[known], np.sqrt(after + (scale * own_sd) ** 2)


def log_density(error: Floats, sd: Floats) -> Floats:
    """Of Student's t with the variance of a normal distribution, `[row]`."""
    scale = sd * math.sqrt((FREEDOM - 2.0) / FREEDOM)
    constant = math.lgamma((FREEDOM + 1) / 2) - math.lgamma(FREEDOM / 2) - 0.5 * math.log(FREEDOM * math.pi)
    density: Floats = constant - np.log(scale) - (FREEDOM + 1) / 2 * np.log1p((error / scale) ** 2 / FREEDOM)
    return density


def learn(hierarchy: Hierarchy, left_out: LeftOut, count: int) -> Learned | None:
    """Predict a left-out lineage after learning from some of its rows; None where fewer than two would be left."""
    rows = _sample(left_out.rows, MOST_ROWS)
    if count and len(rows) < count + 2:
        return None
    mean, shared = hierarchy.expected(rows, left_out.others)
    own_sd = hierarchy.own_sd[rows]
    figures = []
    for repeat in range(REPEATS if count else 1):
        known = np.random.default_rng(repeat).choice(len(rows), count, replace=False)
        rest = np.setdiff1d(np.arange(len(rows)), known)
        error, sd = (values[rest] for values in condition(mean, shared, own_sd, known))
        figures.append([
            np.median(np.abs(np.expm1(error))), np.mean(np.abs(error) <= Z90 * sd),
            np.median(2.0 * np.sinh(Z90 * sd)), np.mean(log_density(error, sd)),
        ])  # fmt: skip
    error_ratio, coverage, width, score = (float(value) for value in np.mean(figures, axis=0))
    return Learned(
        lineage=left_out.lineage, figure=left_out.figure, count=count, rows=len(left_out.rows), error=error_ratio,
        coverage=coverage, width=width, score=score,
    )  # fmt: skip


def learning_curve(hierarchy: Hierarchy, given: Iterable[LeftOut], counts: Sequence[int] = COUNTS) -> list[Learned]:
    """Every left-out lineage after learning from each count of its rows, where it has enough."""
    entries = (learn(hierarchy, left_out, count) for left_out in given for count in counts)
    return [entry for entry in entries if entry is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Draws a row's range under the parameters that the other lineages give."""

    parameters: dict[str, Parameters]
    """By the lineage that is left out."""

    def __call__(self, observation: Observation) -> tuple[float, float, float]:
        rates = run_rates(observation.prepared, self.parameters[observation.lineage])
        predicted = predict_prepared(observation.prepared, DRAWS, rates=rates)
        return predicted.low, predicted.mid, predicted.high


def drawn_left_out(hierarchy: Hierarchy, given: Iterable[LeftOut], most: int) -> list[Learned]:
    """Left-out lineages as `mpplan validate` would predict them, with every draw through the equations.

    Args:
        hierarchy: the model.
        given: what is left out.
        most: rows of one lineage and figure that are looked at, a random part of the others.
    """
    looked_at = list(given)
    parameters = {left_out.lineage: new_lineage(hierarchy, left_out.others) for left_out in looked_at}
    chosen = [_sample(left_out.rows, most) for left_out in looked_at]
    rows = [hierarchy.observations[row] for members in chosen for row in members]
    ranges = iter(mapped(_Drawn(parameters=parameters), rows))
    return [
        _drawn_entry(left_out, hierarchy, members, ranges) for left_out, members in zip(looked_at, chosen, strict=True)
    ]


def _drawn_entry(
    left_out: LeftOut, hierarchy: Hierarchy, members: Numbers, ranges: Iterator[tuple[float, float, float]]
) -> Learned:
    values = np.array([hierarchy.observations[row].value for row in members])
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
    """The parameters of a lineage that nobody measured, by what other lineages tell."""
    covariance = hierarchy.of_new_lineage(others)
    moved = at_shift(hierarchy.parameters, hierarchy.joint, others.shift)
    return replace(moved, joint=Joint(ids=tuple(hierarchy.joint), factor=cholesky(covariance)))


def left_out_residuals(hierarchy: Hierarchy, given: Iterable[LeftOut]) -> dict[str, tuple[float, float]]:
    """Logarithm of prediction over measurement of every row without its lineage, and the spread stated, by row id."""
    result: dict[str, tuple[float, float]] = {}
    for left_out in given:
        mean, shared = hierarchy.expected(left_out.rows, left_out.others)
        sd = np.sqrt(np.diag(shared) + hierarchy.own_sd[left_out.rows] ** 2)
        for row, error, spread in zip(left_out.rows, mean, sd, strict=True):
            result[hierarchy.observations[row].run.id] = (float(error), float(spread))
    return result
