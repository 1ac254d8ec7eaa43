"""Population fit: parameter values common to many lineages, how lineages differ, and the uncertainty of both.

Nothing is written here: `tools/calibrate.py` does that for the shipped parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from planner.calibration.crossval import (
    JUDGED_REPEATS,
    MOST_ROWS,
    Learned,
    drawn_left_out,
    learning_curve,
    leave_out,
    left_out_residuals,
)
from planner.calibration.design import Design, model_ids
from planner.calibration.hierarchy import Hierarchy, Population
from planner.calibration.linear import Observation, linearize, observe
from planner.calibration.shifts import at_shift, cholesky, is_share, with_range
from planner.calibration.spreads import fitted_ids
from planner.calibration.tune import conformal, tuned
from planner.lazy import dataclass
from planner.rates.parameters import Joint, Parameters
from planner.rows import CATALOG, read_rows
from planner.units import today
from planner.validation.runs import parse_result, parse_run
from planner.validation.setup import prepare

CORPUS = (CATALOG / "published_runs.csv", CATALOG / "sweep_runs.csv")
"""Runs of many teams, nearly all with good layouts, and one team's sweep over good and bad layouts."""
ITERATIONS = 6
TUNED_AFTER = (1, ITERATIONS - 1)
"""Iterations at which the spreads are tuned."""
LONGEST_STEP = 0.6
"""Largest step of one iteration, in the logarithm of a parameter."""

Log = Callable[[str], object]
"""Callback that takes one line of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A population fit, and its accuracy on lineages left out entirely."""

    parameters: Parameters
    """Fitted values, ranges for a lineage without measurements, and the joint posterior."""
    curve: tuple[Learned, ...]
    """The learning curve of every left-out lineage."""
    drawn: tuple[Learned, ...]
    """Results of the left-out lineages with nothing learned and every draw put through the equations."""
    left_out: dict[str, tuple[float, float]]
    """Logarithm of prediction over measurement without the row's lineage, and the stated spread, by row id."""


def read_corpus(parameters: Parameters) -> list[Observation]:
    """Read the shipped rows that can be learned from, in the order of the files.

    Args:
        parameters: parameters under which the fastest layout is chosen where a row leaves its layout open.
    """
    lines = [line for path in CORPUS for line in read_rows(path)]
    runs = prepare((parse_run(line.cells, line.line) for line in lines), parameters)
    rows = (
        observe(prepared, parse_result(line.cells, line.line), line.cells.get("lineage", ""))
        for line, prepared in zip(lines, runs, strict=True)
    )
    return [row for row in rows if row is not None]


def fit(observations: Sequence[Observation], start: Parameters, log: Log) -> Fit:
    """Fit parameters and spreads to runs of many lineages, and judge the fit on lineages left out entirely.

    Args:
        observations: rows of many lineages.
        start: initial values and spreads; the priors are the values before any fit.
        log: takes lines of progress.
    """
    hierarchy = population_fit(observations, start, log)
    hierarchy = hierarchy.under(conformal(hierarchy, log))
    return _judged(hierarchy, with_posterior(hierarchy, hierarchy.population()))


def judge(observations: Sequence[Observation], fitted: Parameters) -> Fit:
    """Judge a fit on lineages left out entirely, with its values and spreads unchanged.

    Args:
        observations: the rows that were fitted.
        fitted: the parameters of the fit.
    """
    priors = fitted.replaced(row.before_fit for row in fitted.rows.values())
    return _judged(_at(observations, replace(fitted, joint=None), priors), fitted)


def _judged(hierarchy: Hierarchy, parameters: Parameters) -> Fit:
    held_out = leave_out(hierarchy)
    return Fit(
        parameters=parameters,
        curve=tuple(learning_curve(hierarchy, held_out, repeats=JUDGED_REPEATS)),
        drawn=tuple(drawn_left_out(hierarchy, held_out, most=MOST_ROWS)),
        left_out=left_out_residuals(hierarchy, held_out),
    )


def population_fit(observations: Sequence[Observation], start: Parameters, log: Log) -> Hierarchy:
    """Fit values and spreads only, without judging left-out lineages; the arguments are as in `fit`."""
    priors = start.replaced(row.before_fit for row in start.rows.values())
    parameters, fitted = replace(start, joint=None), fitted_ids(start)
    last = np.zeros(len(fitted))
    for turn in range(ITERATIONS):
        hierarchy = _at(observations, parameters, priors)
        if turn in TUNED_AFTER:
            hierarchy = hierarchy.under(tuned(hierarchy, log))
        shift = np.clip(hierarchy.population().shift[: len(fitted)], -LONGEST_STEP, LONGEST_STEP)
        largest = int(np.abs(shift).argmax())
        log(f"iteration {turn + 1}: largest step {shift[largest]:+.3f} of {fitted[largest]}")
        last = np.where(shift * last < 0, shift / 2.0, shift)  # the step back would overshoot like the step before it
        parameters = at_shift(hierarchy.parameters, fitted, last)
    return _at(observations, parameters, priors)


def _at(observations: Sequence[Observation], parameters: Parameters, priors: Parameters) -> Hierarchy:
    linear = linearize(observations, parameters, model_ids(parameters))
    return Hierarchy(Design(observations, linear, parameters), parameters, priors)


def with_posterior(hierarchy: Hierarchy, population: Population) -> Parameters:
    """Return the rows with their ranges for a lineage without measurements, and the joint posterior behind them."""
    parameters, ids = hierarchy.parameters, hierarchy.design.joint
    covariance = hierarchy.of_new_lineage(population)
    has_evidence = np.abs(hierarchy.design.slopes).sum(axis=0) > 0
    rows = []
    for name, sd, informed in zip(ids, np.sqrt(np.diag(covariance)), has_evidence, strict=True):
        row, prior = parameters.rows[name], hierarchy.priors.rows[name]
        share = is_share(parameters, name)
        row = replace(with_range(row, row.value, float(sd), share=share), prior=None, fitted_rows=None)
        if informed and parameters.families[row.family].fitted_to:
            before = (prior.value, prior.low, prior.high)
            rows_fitted = len(hierarchy.design.observations)
            row = replace(row, prior=before, fitted_rows=rows_fitted, date=today().isoformat())
        elif parameters.families[row.family].fitted_to:
            row = replace(row, value=prior.value, low=prior.low, high=prior.high)
        rows.append(row)
    return replace(parameters.replaced(rows), joint=Joint(ids=tuple(ids), factor=cholesky(covariance)))
