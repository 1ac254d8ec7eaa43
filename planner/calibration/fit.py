"""Published rows as least squares: what is fitted, how rows weigh, and what is left when a source is left out.

Maximum a posteriori in the logarithm of each parameter: the priors stand in `catalog/parameters.csv`, the data are the
shipped published runs. Every row weighs by its series, and a source weighs less than in proportion to its rows, so
that no vendor's table decides alone. Huber loss.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rows import CATALOG, read_rows
from planner.validation.predict import predict_prepared
from planner.validation.runs import PublishedResult, parse_result, parse_run
from planner.validation.setup import Prepared, prepare

CORPUS = CATALOG / "published_runs.csv"

Floats = npt.NDArray[np.float64]
Row = tuple[Prepared, PublishedResult, float]
"""A run, what was published of it, and the number."""

Quantity = Callable[[Prepared, Parameters], float]
"""The logarithm of what is fitted, of one run under some parameters."""

NOISE = {"time": 0.25, "memory": 0.20, "power": 0.10}
"""Standard deviation of what a row shares with no other source: its release, its machine, its way of reading.

Far above the 3 to 5 % of a reading, since the rows of one source err together. Of 0.10, 0.15, 0.25 and 0.35 for time
the left-out median is 8.4, 8.2, 8.0 and 8.1 %; of 0.10, 0.20, 0.30 and 0.50 for memory 14.5, 12.9, 13.0 and 13.2 %.
"""
HUBER = 0.15
STEP = 0.03
"""Finite difference in the logarithm of a parameter."""
ITERATIONS = 3
SOURCE_POWER = 0.6
"""A source with n series weighs n to this power."""
TIER_WEIGHT = {"A": 1.0, "B": 0.7, "C": 0.3}
PAIR_WEIGHT = 0.7
"""Weight of the difference of two rows of a pair, beside the rows themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One published row, ready to predict."""

    prepared: Prepared
    result: PublishedResult
    value: float
    weight: float
    base: float
    """Logarithm of prediction over publication at the prior, minus that of the fitted quantity."""
    sign: int

    @property
    def source(self) -> str:
        """Prefix of the id: one source."""
        return self.prepared.run.id.rsplit("-", 1)[0]


def read_corpus(parameters: Parameters) -> list[Row]:
    """Rows that can be predicted and may teach: no flag, a number as value, no power limit left unsaid.

    Args:
        parameters: where a row leaves its layout open, the fastest under these is taken.
    """
    lines = read_rows(CORPUS)
    runs = prepare((parse_run(line.cells, line.line) for line in lines), parameters)
    corpus: list[Row] = []
    for line, prepared in zip(lines, runs, strict=True):
        result = parse_result(line.cells, line.line)
        if not isinstance(prepared, Prepared) or not isinstance(result, PublishedResult) or result.value is None:
            continue  # an out-of-memory statement is an inequality, not a number
        unknown_limit = "power-limited" in prepared.run.gpu and prepared.run.power_limit_w is None
        if not prepared.run.flag and not unknown_limit:
            corpus.append((prepared, result, result.value))
    return corpus


def weights(rows: Sequence[Row]) -> Floats:
    """One over the size of the series, times the source's share, times the tier; mean 1."""
    series = [prepared.run.series or prepared.run.id for prepared, _, _ in rows]
    sizes = Counter(series)
    weight = np.array([1.0 / sizes[name] for name in series])
    source = [prepared.run.id.rsplit("-", 1)[0] for prepared, _, _ in rows]
    totals: dict[str, float] = defaultdict(float)
    for name, w in zip(source, weight, strict=True):
        totals[name] += w
    weight *= [totals[name] ** (SOURCE_POWER - 1.0) for name in source]
    weight *= [TIER_WEIGHT.get(prepared.run.tier or "B", 0.7) for prepared, _, _ in rows]
    return np.asarray(weight / weight.mean(), dtype=np.float64)


def log_prediction(prepared: Prepared, parameters: Parameters) -> float:
    """Logarithm of the mid of a run's own metric."""
    rates = resolve_rates(prepared.cluster, prepared.recipe, None, parameters)
    return float(np.log(predict_prepared(prepared, rates=rates).mid))


def items_of(
    rows: Sequence[Row],
    keep: Callable[[Prepared], int | None],
    quantity: Quantity,
    parameters: Parameters,
) -> list[Item]:
    """Rows of one fit; `keep` gives the sign with which the fitted quantity enters the residual, or None."""
    chosen = [(row, sign) for row in rows if (sign := keep(row[0])) is not None]
    weight = weights([row for row, _ in chosen])
    return [
        Item(
            prepared=prepared,
            result=result,
            value=value,
            weight=float(w),
            sign=sign,
            base=log_prediction(prepared, parameters) - math.log(value) - sign * quantity(prepared, parameters),
        )
        for ((prepared, result, value), sign), w in zip(chosen, weight, strict=True)
    ]


class Fit:
    """A set of rows, the parameters they can tell about, and the least squares between them."""

    def __init__(
        self,
        items: list[Item],
        names: list[str],
        priors: Parameters,
        quantity: Quantity,
        noise: float,
    ) -> None:
        self.items, self.names, self.priors, self.quantity, self.noise = items, names, priors, quantity, noise
        self.spread = np.array([priors.rows[name].log_sd for name in names])
        self.pairs = _pairs(items)

    def is_share(self, name: str) -> bool:
        """Whether a parameter is a share of something, so that it stays below 1."""
        return self.priors.families[self.priors.rows[name].family].bound == "share"

    def parameters_at(self, theta: Floats) -> Parameters:
        """The parameters moved from their priors by `theta`, `[parameter]`, in their logarithms."""
        rows = (self.priors.rows[name] for name in self.names)
        return self.priors.replaced(
            replace(row, value=moved(row.value, float(shift), share=self.is_share(row.id)))
            for row, shift in zip(rows, theta, strict=True)
        )

    def residuals(self, theta: Floats) -> Floats:
        """Logarithm of prediction over publication, `[row]`."""
        parameters = self.parameters_at(theta)
        return np.array([item.base + item.sign * self.quantity(item.prepared, parameters) for item in self.items])

    def jacobian(self, theta: Floats) -> Floats:
        """`[row, parameter]`, by finite differences, on two processes."""
        base = self.residuals(theta)
        moved = [theta + STEP * (np.arange(len(theta)) == j) for j in range(len(theta))]
        with ProcessPoolExecutor(2, get_context("fork"), initializer=_inherit, initargs=(self,)) as pool:
            columns = list(pool.map(_residuals_in_worker, moved, chunksize=4))
        return np.stack([(column - base) / STEP for column in columns], axis=1)

    def normal(self, theta: Floats, residual: Floats, jacobian: Floats, mask: Floats) -> tuple[Floats, Floats]:
        """Step towards the maximum a posteriori, and the posterior covariance."""
        robust = np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-9))
        w = np.array([item.weight for item in self.items]) * mask * robust / self.noise**2
        hessian = jacobian.T @ (jacobian * w[:, None]) + np.diag(1.0 / self.spread**2)
        gradient = jacobian.T @ (w * residual) + theta / self.spread**2
        for i, j, pair_weight in self.pairs:
            if mask[i] and mask[j]:
                difference, row = residual[i] - residual[j], jacobian[i] - jacobian[j]
                wp = pair_weight * min(1.0, HUBER / max(abs(difference), 1e-9)) / self.noise**2
                hessian += wp * np.outer(row, row)
                gradient += wp * difference * row
        step: Floats = np.clip(-np.linalg.solve(hessian, gradient), -0.5, 0.5)
        covariance: Floats = np.asarray(np.linalg.inv(hessian), dtype=np.float64)
        return step, covariance

    def solve(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Parameters, their covariance, residuals and the last Jacobian."""
        theta, everything = np.zeros(len(self.names)), np.ones(len(self.items))
        jacobian = covariance = np.zeros((0, 0))
        for _ in range(ITERATIONS):
            residual = self.residuals(theta)
            jacobian = self.jacobian(theta)
            step, covariance = self.normal(theta, residual, jacobian, everything)
            theta = theta + step
        return theta, covariance, self.residuals(theta), jacobian

    def leave_out(self, theta: Floats, jacobian: Floats, label: Callable[[Item], str]) -> Floats:
        """Residual of every row under parameters fitted without its group, `[row]`."""
        residual = np.zeros(len(self.items))
        labels = np.array([label(item) for item in self.items])
        for name in sorted(set(labels)):
            mask = (labels != name).astype(np.float64)
            without = theta.copy()
            for _ in range(2):
                step, _ = self.normal(without, self.residuals(without), jacobian, mask)
                without = without + step
            residual[labels == name] = self.residuals(without)[labels == name]
        return residual


_inherited: list[Fit] = []
"""In a worker process only: the fit that it works for, handed down by fork."""


def _inherit(fit: Fit) -> None:
    _inherited[:] = [fit]


def _residuals_in_worker(theta: Floats) -> Floats:
    return _inherited[0].residuals(theta)


def moved(value: float, shift: float, *, share: bool) -> float:
    """A value moved by `shift` in its logarithm; a share bends so that it stays below 1 and keeps a slope."""
    if not share or value >= 0.99:
        return value * math.exp(shift)
    odds = math.log(value / (1.0 - value)) + shift / (1.0 - value)
    return 1.0 / (1.0 + math.exp(-odds))


def _pairs(items: list[Item]) -> list[tuple[int, int, float]]:
    by_pair: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        if item.prepared.run.pair:
            by_pair[item.prepared.run.pair].append(index)
    return [
        (group[0], other, PAIR_WEIGHT * items[other].weight)
        for group in by_pair.values()
        for other in group[1:]
        if items[group[0]].prepared.run.precision != items[other].prepared.run.precision
    ]


def describe(residual: Floats, weight: Floats) -> dict[str, float]:
    """Median and 90th percentile of the absolute error and the bias, as ratios, by weight."""
    error = np.abs(np.expm1(residual))
    order = np.argsort(error)
    share = np.cumsum(weight[order]) / weight.sum()
    signed = np.argsort(residual)
    middle = residual[signed][np.searchsorted(np.cumsum(weight[signed]) / weight.sum(), 0.5)]
    pick = [float(error[order][min(int(np.searchsorted(share, q)), len(error) - 1)]) for q in (0.5, 0.9)]
    return {"n": len(error), "median_abs_error": pick[0], "p90_abs_error": pick[1], "bias": float(np.expm1(middle))}
