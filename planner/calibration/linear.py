"""Linearise rows of published or own runs: the error of the prediction and its slope in each parameter.

One evaluation with an array of moved parameters gives a row's whole gradient by central differences. The equations take
arrays, so a row costs about as much as a prediction with a hundred draws. Repeats of a row cost almost nothing, since
rows that differ only in labels and value are evaluated once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import field
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

from planner.lazy import dataclass
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Figure, Parameters
from planner.rates.terms import Floats, Term
from planner.validation.predict import metric_values, predict_prepared, run_rates
from planner.validation.runs import PublishedResult, PublishedRun, unlabelled
from planner.validation.setup import Prepared
from planner.validation.text_patterns import limit_unsaid
from planner.validation.validate import DRAWS

Item = TypeVar("Item")
Result = TypeVar("Result")

STEP = 0.03
"""Finite difference in the logarithm of a parameter."""
FEW = 64
"""Number of rows below which a second process does not pay off."""


_FIGURES = {
    "peak_mem_gib": Figure.MEMORY, "avg_gpu_power_w": Figure.POWER, "avg_node_power_w": Figure.POWER,
    "gpu_hours": Figure.RUN, "time_to_train_min": Figure.RUN, "energy_mwh": Figure.RUN,
}  # fmt: skip


def figure_of(metric: str) -> Figure:
    """Return the figure of a metric; throughputs, step times and utilisations are all time.

    Each figure has its own residual.
    """
    return _FIGURES.get(metric, Figure.TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A measured run: its configuration, prepared for prediction, and the measured value."""

    prepared: Prepared
    value: float
    """In the unit of the run's metric; above 0."""
    lineage: str
    """Team and software, whose runs share errors."""
    measured: Mapping[str, Term] = field(default_factory=dict, compare=False)
    """Terms from measurement records of its GPU; what they measured is not learned again."""

    @property
    def run(self) -> PublishedRun:
        """Configuration of the run."""
        return self.prepared.run

    @property
    def figure(self) -> Figure:
        """Figure of its metric."""
        return figure_of(self.run.metric)

    @property
    def series(self) -> str:
        """Key that repeats share: the series of the row, else its own id."""
        return self.run.series or self.run.id


def observe(prepared: object, result: object, lineage: str) -> Observation | None:
    """Return a row that can be learned from, or None.

    The row needs a prediction and a measured number, and may have neither a flag nor an unstated power limit. An
    out-of-memory statement is an inequality, not a number.
    """
    if not isinstance(prepared, Prepared) or not isinstance(result, PublishedResult) or result.value is None:
        return None
    if prepared.run.flag or limit_unsaid(prepared.run.gpu, prepared.run.power_limit_w):
        return None
    return Observation(prepared=prepared, value=result.value, lineage=lineage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Rows linearised at given parameters."""

    residual: Floats
    """Logarithm of prediction over measurement, `[row]`."""
    slopes: Floats
    """Derivative of that logarithm by the logarithm of each parameter, `[row, parameter]`."""


def linearize(observations: Sequence[Observation], parameters: Parameters, ids: Sequence[str]) -> Linear:
    """Return residuals and slopes of rows.

    Args:
        observations: the rows.
        parameters: values at which to linearise.
        ids: parameters whose slopes are wanted, in order.
    """
    place = {name: number for number, name in enumerate(ids)}
    rows = _of_each(_Row(parameters=parameters, place=place), observations)
    residual = np.array([row[0] for row in rows]) - _log_values(observations)
    return Linear(residual=residual, slopes=np.array([row[1] for row in rows]))


def residuals(observations: Sequence[Observation], parameters: Parameters) -> Floats:
    """Return the logarithm of prediction over measurement, `[row]`."""
    return np.array(_of_each(_Residual(parameters=parameters), observations)) - _log_values(observations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Rows with the ranges that a validation predicts for them."""

    residual: Floats
    """Logarithm of the middle of the predicted range over measurement, `[row]`: the error of a validation.

    It differs from `residuals`, since the middle of all draws is not the prediction at the middle of each input."""
    width_ratio: Floats
    """Width of the predicted range over its middle, `[row]`."""


def drawn(observations: Sequence[Observation], parameters: Parameters) -> Drawn:
    """Predict rows with draws, as a validation does."""
    rows = np.array(_of_each(_Drawn(parameters=parameters), observations))
    return Drawn(residual=rows[:, 0] - _log_values(observations), width_ratio=rows[:, 1])


def _log_values(observations: Sequence[Observation]) -> Floats:
    return np.log([observation.value for observation in observations])


def _of_each(work: Callable[[Observation], Result], observations: Sequence[Observation]) -> list[Result]:
    """Apply `work` to every row, but once for rows with the same prediction (only labels and value differ)."""
    places: dict[tuple[object, ...], int] = {}
    distinct: list[Observation] = []
    at = []
    for observation in observations:
        key = (unlabelled(observation.run), id(observation.measured) if observation.measured else None)
        if key not in places:
            places[key] = len(distinct)
            distinct.append(observation)
        at.append(places[key])
    done = mapped(work, distinct)
    return [done[number] for number in at]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    parameters: Parameters

    def __call__(self, observation: Observation) -> tuple[float, float]:
        rates = run_rates(observation.prepared, self.parameters, observation.measured)
        predicted = predict_prepared(observation.prepared, DRAWS, rates=rates)
        return float(np.log(predicted.mid)), predicted.width_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class _Residual:
    parameters: Parameters

    def __call__(self, observation: Observation) -> float:
        prepared = observation.prepared
        rates = resolve_rates(prepared.cluster, prepared.recipe, observation.measured, self.parameters).sample()
        return float(np.log(metric_values(prepared, rates)[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    parameters: Parameters
    place: dict[str, int]

    def __call__(self, observation: Observation) -> tuple[float, Floats]:
        prepared = observation.prepared
        rates = resolve_rates(prepared.cluster, prepared.recipe, observation.measured, self.parameters)
        touched = sorted({on.row.id for term in rates.terms.values() for on in term.rests_on} & set(self.place))
        moves = np.zeros((len(touched), 2 * len(touched) + 1))
        for number in range(len(touched)):
            moves[number, 1 + 2 * number], moves[number, 2 + 2 * number] = STEP, -STEP
        values = metric_values(prepared, rates.moved(dict(zip(touched, moves, strict=True))))
        log = np.broadcast_to(np.log(values), (2 * len(touched) + 1,))
        slopes = np.zeros(len(self.place))
        slopes[[self.place[name] for name in touched]] = (log[1::2] - log[2::2]) / (2.0 * STEP)
        return float(log[0]), slopes


def mapped(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `work` to every item, in order; many items are shared among the cores where processes can fork (Linux)."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if len(items) < FEW or cores == 1:
        return [work(item) for item in items]
    context = get_context("fork")
    with ProcessPoolExecutor(cores, context, initializer=_inherit, initargs=(work, items)) as pool:
        return list(pool.map(_in_worker, range(len(items)), chunksize=16))  # type: ignore[arg-type]


_inherited: list[object] = []
"""Set only in a worker process: its function and the items, inherited through fork."""


def _inherit(work: object, items: object) -> None:
    _inherited[:] = [work, items]


def _in_worker(number: int) -> object:
    work, items = _inherited
    return work(items[number])  # type: ignore[operator, index]
