"""Run the planner on published runs: read and predict them, and only then read the results and score."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.answer.document import plain
from planner.lazy import dataclass
from planner.rates.parameters import Parameters
from planner.rates.terms import Draws, Term
from planner.validation.predict import Prediction, predict
from planner.validation.runs import PublishedRun, Rejected, parse_result, parse_run, unlabelled
from planner.validation.score import (
    BREAKDOWNS,
    ScoredPair,
    ScoredRun,
    Summary,
    score_pairs,
    score_runs,
    summarize,
    summarize_by,
    votes,
)
from planner.validation.setup import Prepared, prepare_run

SCHEMA = "mpplan.validate/1"
DRAWS = Draws(count=401, seed=1)
"""Common random numbers of all predictions."""

Outcome = tuple[Prepared | Rejected, Prediction | Rejected]
Computed = dict[tuple[tuple[object, ...], Parameters | None, bool], Outcome]
"""Outcomes by the run's fields other than labels, by its parameters, and by whether it belongs to a pair."""
NO_DRAWS: npt.NDArray[np.float64] = np.zeros(0)
"""Replaces the draws of a run that is not compared with another; the draws of many rows would fill the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Predictions for a file of published runs, and their scores."""

    runs: tuple[ScoredRun, ...]
    """Scored runs in the order of the file."""
    pairs: tuple[ScoredPair, ...]
    overall: Summary
    breakdowns: dict[str, dict[str, Summary]]
    """Summaries by property (`score.BREAKDOWNS`), then by value of the property."""

    @property
    def skipped(self) -> int:
        """Number of rows without a prediction or a readable result."""
        return sum(row.reason_skipped is not None for row in self.runs)


ByLineage = Callable[[str], Parameters | None]
"""Returns the parameters of a lineage by its name; None: the shipped ones."""


def shipped(lineage: str) -> Parameters | None:
    """Return the shipped parameters (None), whatever the lineage."""
    return None


MeasuredOf = Callable[[Prepared, Parameters | None], Mapping[str, Term]]
"""Returns the terms from records of a run's GPU, given parameters (None: the shipped ones)."""


def unmeasured(prepared: Prepared, parameters: Parameters | None) -> Mapping[str, Term]:
    """Return no terms: without records, every rate comes from the parameters."""
    return {}


def predict_rows(
    rows: Iterable[Mapping[str, str]],
    draws: Draws | None = DRAWS,
    progress: Callable[[int], None] | None = None,
    parameters_of: ByLineage = shipped,
    measured_of: MeasuredOf = unmeasured,
) -> list[Outcome]:
    """Prepare and predict every row without its result; rows with the same configuration are computed once."""
    computed: Computed = {}
    outcomes = []
    for number, cells in enumerate(rows, start=1):
        run = parse_run(cells, line=number + 1)
        if isinstance(run, Rejected):
            outcomes.append(_rejected(run))
        else:
            outcomes.append(_outcome(run, computed, draws, parameters_of, measured_of))
        if progress is not None:
            progress(number)
    return outcomes


def _rejected(run: Rejected) -> Outcome:
    return run, run


def _outcome(
    run: PublishedRun,
    computed: Computed,
    draws: Draws | None,
    parameters_of: ByLineage,
    measured_of: MeasuredOf,
) -> Outcome:
    parameters = parameters_of(run.lineage)
    same = (unlabelled(run), parameters, bool(run.pair))
    if same not in computed:
        prepared = prepare_run(run)
        measured = None if isinstance(prepared, Rejected) else measured_of(prepared, parameters)
        prediction = predict(prepared, draws, parameters, measured)
        if not run.pair and not isinstance(prediction, Rejected):
            prediction = replace(prediction, values=NO_DRAWS)
        computed[same] = (prepared, prediction)
    prepared, prediction = computed[same]
    named = replace(prepared, id=run.id) if isinstance(prepared, Rejected) else replace(prepared, run=run)
    return named, replace(prediction, id=run.id)


def validate(
    rows: Iterable[Mapping[str, str]],
    draws: Draws | None = DRAWS,
    progress: Callable[[int], None] | None = None,
    parameters_of: ByLineage = shipped,
    learned_from: Collection[int] = (),
    measured_of: MeasuredOf = unmeasured,
) -> Validation:
    """Predict every row, then read the results and score.

    Args:
        rows: text by column name (`runs.COLUMNS`).
        draws: common random numbers; None: mid values only, and ranges of width 0.
        progress: called with the number of rows predicted so far.
        parameters_of: returns the parameters of a lineage; None for the shipped ones.
        learned_from: places in `rows` (0: the first) of the rows from which these parameters were learned, and of their
            repeats; they enter no score.
        measured_of: returns the terms from records of a run's GPU, which take precedence.
    """
    given = list(rows)
    outcomes = predict_rows(given, draws, progress, parameters_of, measured_of)
    results = [parse_result(cells, line=number + 2) for number, cells in enumerate(given)]
    scored = score_runs(
        [prepared for prepared, _ in outcomes],
        [prediction for _, prediction in outcomes],
        results,
        learned_from,
    )
    return Validation(
        runs=tuple(scored),
        pairs=tuple(score_pairs(scored)),
        overall=summarize(scored),
        breakdowns={name: summarize_by(scored, key) for name, key in BREAKDOWNS.items()},
    )


def to_validation_document(validation: Validation) -> dict[str, Any]:
    """Return the document `mpplan.validate/1` as plain JSON values."""
    return {
        "schema": SCHEMA,
        "runs": [_run_entry(row) for row in validation.runs],
        "pairs": [_pair_entry(pair) for pair in validation.pairs],
        "summary": {
            "overall": _summary_entry(validation.overall) | _counts(validation),
            **{
                name: {value: _summary_entry(summary) for value, summary in groups.items()}
                for name, groups in validation.breakdowns.items()
            },
            "pairs": _pair_summary(validation.pairs),
            "one_vote_a_lineage": {kind: asdict(vote) for kind, vote in votes(validation.runs).items()},
        },
    }


def _run_entry(row: ScoredRun) -> dict[str, Any]:
    prediction = row.prediction
    return {
        "id": row.id,
        "metric": row.metric,
        "published": row.published,
        "out_of_memory": row.out_of_memory,
        "low": prediction.low if prediction else None,
        "mid": prediction.mid if prediction else None,
        "high": prediction.high if prediction else None,
        "error_ratio": row.error_ratio,
        "inside": row.inside,
        "filled": list(prediction.filled) if prediction else [],
        "fits_predicted": prediction.fits if prediction else None,
        "fits_probability": prediction.fits_probability if prediction else None,
        "reason_skipped": plain(row.reason_skipped),
        "flag": row.run.flag or None if row.run else None,
        "learned_from": row.learned_from,
    }


def _pair_entry(pair: ScoredPair) -> dict[str, Any]:
    return {
        "pair": pair.pair,
        "metric": pair.metric,
        "from": pair.frm,
        "to": pair.to,
        "ids": list(pair.ids),
        "published_ratio": pair.published_ratio,
        "low": pair.low,
        "mid": pair.mid,
        "high": pair.high,
        "error_ratio": pair.error_ratio,
    }


def _summary_entry(summary: Summary) -> dict[str, Any]:
    return {
        "n": summary.n,
        "median_abs_error": summary.median_abs_error,
        "p90_abs_error": summary.p90_abs_error,
        "bias": summary.bias,
        "coverage": summary.coverage,
        "median_width": summary.median_width,
    }


def _counts(validation: Validation) -> dict[str, int]:
    return {
        "rows": len(validation.runs),
        "skipped": validation.skipped,
        "flagged": sum(bool(row.run and row.run.flag) for row in validation.runs),
        "misjudged_fits": sum(row.misjudged_fit for row in validation.runs),
    }


def _pair_summary(pairs: Iterable[ScoredPair]) -> dict[str, Any]:
    errors = sorted(abs(pair.error_ratio) for pair in pairs if pair.error_ratio is not None)
    middle = errors[len(errors) // 2] if errors else None
    return {"n": len(errors), "median_abs_error": middle}
