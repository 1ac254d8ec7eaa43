"""The part of the page on good and bad layouts: the sweep of `catalog/sweep_runs.csv`, measured and predicted.

A question is a model on a number of GPUs with one batch. The *loss* of a choice is the speed that the layout predicted
to be fastest loses against the fastest measured layout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from benchmarks.pages.markdown import percent
from planner.calibration.learn import learn
from planner.calibration.linear import Observation, observe
from planner.rates.parameters import Parameters
from planner.validation.predict import predict_prepared, run_rates
from planner.validation.runs import parse_result, parse_run
from planner.validation.setup import prepare

Numbers = npt.NDArray[np.float64]

Question = tuple[str, int]
"""Model and number of GPUs."""
FEWEST = 5
"""Number of measured layouts below which the ranks of a question mean little."""
MAP = ("Llama-8.86B", 64)
"""Question whose layouts the map shows: the largest model, and enough nodes for bad layouts to lose speed."""
HEADERS = ("model", "GPUs", "layouts", "lost by the choice", "rank correlation", "error", "of the faster half")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Measured layouts of one question and their predictions, in tokens/s per GPU, `[layout]` each."""

    question: Question
    observations: tuple[Observation, ...]
    predicted: Numbers

    @property
    def measured(self) -> Numbers:
        """Published speeds, `[layout]`."""
        return np.array([observation.value for observation in self.observations])

    @property
    def loss(self) -> float:
        """Share of the fastest measured speed that the layout predicted to be fastest loses."""
        return float(1.0 - self.measured[self.predicted.argmax()] / self.measured.max())

    @property
    def rank_correlation(self) -> float:
        """Spearman's correlation of predicted with measured speeds."""
        return rank_correlation(self.predicted, self.measured)

    @property
    def errors(self) -> Numbers:
        """Absolute relative errors of the speeds, `[layout]`."""
        return np.asarray(np.abs(self.predicted / self.measured - 1.0))

    @property
    def faster(self) -> npt.NDArray[np.bool_]:
        """Whether each layout is in the faster half as measured, `[layout]`."""
        return np.asarray(self.measured >= np.median(self.measured))


def rank_correlation(first: Numbers, second: Numbers) -> float:
    """Return Spearman's correlation of two figures of the same layouts."""
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Numbers) -> npt.NDArray[np.intp]:
    return values.argsort().argsort()


def read_sweep(rows: Iterable[Mapping[str, str]]) -> list[Observation]:
    """Return the layouts that finished, at the most frequent batch of the sweep's rows."""
    cells = list(rows)
    runs = prepare(parse_run(row) for row in cells)
    observations = (observe(run, parse_result(row), row["lineage"]) for run, row in zip(runs, cells, strict=True))
    finished = [observation for observation in observations if observation is not None]
    batches = [observation.run.global_batch_seqs for observation in finished]
    usual = max(set(batches), key=batches.count)
    return [observation for observation, batch in zip(finished, batches, strict=True) if batch == usual]


def predict_sweep(observations: Sequence[Observation], parameters: Parameters) -> list[Sweep]:
    """Return the speeds of every question under given parameters, at mid."""
    groups: dict[Question, list[Observation]] = defaultdict(list)
    for observation in observations:
        groups[observation.run.model, observation.run.n_gpus or 0].append(observation)
    return [
        Sweep(question=question, observations=tuple(members), predicted=_speeds(members, parameters))
        for question, members in sorted(groups.items())
        if len(members) >= FEWEST
    ]


def _speeds(observations: Sequence[Observation], parameters: Parameters) -> Numbers:
    runs = [observation.prepared for observation in observations]
    return np.array([predict_prepared(run, rates=run_rates(run, parameters)).mid for run in runs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Summary scores of a sweep, over its questions and over all of its layouts."""

    loss_median: float
    loss_mean: float
    rank_correlation: float
    error: float
    error_of_faster: float


def scores(sweeps: Sequence[Sweep]) -> Scores:
    """Return medians and means over questions; errors are medians over layouts."""
    losses = [sweep.loss for sweep in sweeps]
    return Scores(
        loss_median=float(np.median(losses)),
        loss_mean=float(np.mean(losses)),
        rank_correlation=float(np.median([sweep.rank_correlation for sweep in sweeps])),
        error=float(np.median(np.concatenate([sweep.errors for sweep in sweeps]))),
        error_of_faster=float(np.median(np.concatenate([sweep.errors[sweep.faster] for sweep in sweeps]))),
    )


def crossed(observations: Sequence[Observation], shipped: Parameters) -> dict[str, Scores]:
    """Return scores of each model after learning from the layouts of the others, as `mpplan calibrate` does."""
    models = sorted({observation.run.model for observation in observations})
    result = {}
    for model in models:
        others = [observation for observation in observations if observation.run.model != model]
        own = [observation for observation in observations if observation.run.model == model]
        result[model] = scores(predict_sweep(own, learn(others, shipped, "the other model").parameters))
    return result


def question_rows(sweeps: Iterable[Sweep]) -> list[tuple[str, ...]]:
    """Return one line per question."""
    return [
        (
            sweep.question[0], str(sweep.question[1]), str(len(sweep.predicted)), percent(sweep.loss, 0),
            f"{sweep.rank_correlation:.2f}", percent(float(np.median(sweep.errors)), 0),
            percent(float(np.median(sweep.errors[sweep.faster])), 0),
        )
        for sweep in sweeps
    ]  # fmt: skip


def read_crossfit(rows: Iterable[Mapping[str, str]]) -> dict[str, Scores]:
    """Return scores of each model under a fit without its layouts, as `benchmarks.sweep_crossfit` wrote them."""
    names = [field.name for field in fields(Scores)]
    return {row["model"]: Scores(**{name: float(row[name]) for name in names}) for row in rows}


def summary_rows(
    observations: Sequence[Observation], shipped: Parameters, left_out: Mapping[str, Scores]
) -> list[tuple[str, ...]]:
    """Return three lines per model: shipped parameters, learned from the other model, and fitted without this model.

    Args:
        observations: observations of the sweep.
        shipped: the current shipped parameters.
        left_out: scores under a fit without the model's own layouts, by model.
    """
    sweeps = predict_sweep(observations, shipped)
    rows = []
    for model, other in crossed(observations, shipped).items():
        own = scores([sweep for sweep in sweeps if sweep.question[0] == model])
        rows.append((model, "shipped parameters", *_cells(own)))
        rows.append((model, "learned from the other model as well", *_cells(other)))
        rows.append((model, "fitted without this model's layouts", *_cells(left_out[model])))
    return rows


SUMMARY_HEADERS = (
    "model", "parameters", "lost by the choice: median", "mean", "rank correlation", "error", "of the faster half"
)  # fmt: skip


def _cells(figures: Scores) -> tuple[str, ...]:
    return (
        percent(figures.loss_median, 0), percent(figures.loss_mean, 0), f"{figures.rank_correlation:.2f}",
        percent(figures.error, 0), percent(figures.error_of_faster, 0),
    )  # fmt: skip


def map_rows(sweep: Sweep) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return a table of the best speeds by tensor (rows) and pipeline parallelism (columns), measured and predicted."""
    best: dict[tuple[int, int], tuple[float, float]] = {}
    for observation, predicted in zip(sweep.observations, sweep.predicted, strict=True):
        layout = observation.prepared.layouts.at(0)
        measured, ours = best.get((layout.tp, layout.pp), (0.0, 0.0))
        best[layout.tp, layout.pp] = max(measured, observation.value), max(ours, float(predicted))
    depths = sorted({pp for _, pp in best})
    rows = []
    for tp in sorted({tp for tp, _ in best}):
        pairs = [best.get((tp, pp)) for pp in depths]
        rows.append((f"tp {tp}", *("–" if pair is None else f"{pair[0]:.0f} / {pair[1]:.0f}" for pair in pairs)))
    return ("", *(f"pp {pp}" for pp in depths)), rows
