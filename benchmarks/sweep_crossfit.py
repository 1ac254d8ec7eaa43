"""The choice among layouts that the fit never saw: `python -m benchmarks.sweep_crossfit` (about ten minutes).

For each model of the sweep, the parameters are fitted from their priors to every shipped run except the sweep's rows of
that model, and those rows are then predicted. It writes `benchmarks/sweep_crossfit.csv`, which `make accuracy` reads;
the shipped parameters stay as they are.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from benchmarks.sweep.questions import Scores, predict_sweep, read_sweep, scores
from planner.calibration.fit import Log, population_fit, read_corpus, with_posterior
from planner.calibration.linear import Observation
from planner.rates.parameters import Parameters, shipped_parameters
from planner.rows import CATALOG
from planner.units import today

SWEEP = CATALOG / "sweep_runs.csv"
RESULT = Path(__file__).resolve().parent / "sweep_crossfit.csv"
DIGITS = 4


def before_any_fit(parameters: Parameters) -> Parameters:
    """Return every parameter row at its prior, so that the start of a fit contains nothing of a left-out row."""
    return replace(parameters.replaced(row.before_fit for row in parameters.rows.values()), joint=None)


def left_out(corpus: Sequence[Observation], sweep_rows: Sequence[Mapping[str, str]], model: str) -> list[Observation]:
    """Return the corpus without the sweep's rows of a model."""
    dropped = {row["id"] for row in sweep_rows if row["model"] == model}
    return [observation for observation in corpus if observation.run.id not in dropped]


def crossfit(sweep_rows: Sequence[Mapping[str, str]], start: Parameters, log: Log) -> dict[str, Scores]:
    """Return scores of each model of the sweep under a fit without it."""
    corpus, layouts = read_corpus(start), read_sweep(sweep_rows)
    result = {}
    for model in sorted({observation.run.model for observation in layouts}):
        teaching = left_out(corpus, sweep_rows, model)
        log(f"{model} left out: {len(teaching):,} of {len(corpus):,} rows")
        hierarchy = population_fit(teaching, start, log)
        parameters = with_posterior(hierarchy, hierarchy.population())
        own = [observation for observation in layouts if observation.run.model == model]
        result[model] = scores(predict_sweep(own, parameters))
    return result


def main() -> None:
    """Fit once for each left-out model, score, and write."""
    with SWEEP.open(encoding="utf-8", newline="") as lines:
        sweep_rows = list(csv.DictReader(lines))
    result = crossfit(sweep_rows, before_any_fit(shipped_parameters()), lambda line: sys.stdout.write(line + "\n"))
    with RESULT.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["model", *(field.name for field in fields(Scores)), "date"])
        for model, figures in result.items():
            rounded = [round(value, DIGITS) for value in asdict(figures).values()]
            writer.writerow([model, *rounded, today().isoformat()])


if __name__ == "__main__":
    main()
