"""The layouts of a model that a fit never saw: what is left out, where the fit begins, and what was written down."""

from __future__ import annotations

import csv

import pytest

from benchmarks.sweep.questions import read_crossfit, read_sweep, summary_rows
from benchmarks.sweep_crossfit import RESULT, before_any_fit, left_out
from planner.rates.parameters import shipped_parameters
from planner.rows import CATALOG


@pytest.fixture(scope="module")
def sweep_rows() -> list[dict[str, str]]:
    with (CATALOG / "sweep_runs.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_only_the_layouts_of_the_model_are_left_out(sweep_rows):
    corpus = read_sweep(sweep_rows)
    teaching = left_out(corpus, sweep_rows, "Llama-8.86B")

    assert {observation.run.model for observation in teaching} == {"Llama-1.34B"}
    assert len(teaching) == sum(observation.run.model == "Llama-1.34B" for observation in corpus)


def test_the_fit_begins_where_nothing_was_learned_yet():
    start = before_any_fit(shipped_parameters())

    assert start.joint is None
    assert start.rows["collective_launch_s.eager"].value == 3e-4  # prior of parameters.csv, fitted to 2.957e-4
    assert not any(row.fitted_rows for row in start.rows.values())


def test_a_fit_without_a_model_stands_beside_the_shipped_one(sweep_rows):
    with RESULT.open(encoding="utf-8", newline="") as lines:
        crossfit = read_crossfit(csv.DictReader(lines))
    few = [row for row in sweep_rows if row["n_gpus"] == "8"]
    rows = summary_rows(read_sweep(few), shipped_parameters(), crossfit)

    beside = [row for row in rows if row[1] == "fitted without this model's layouts"]
    assert [row[0] for row in beside] == ["Llama-1.34B", "Llama-8.86B"]
    first = crossfit["Llama-1.34B"]
    shares = (first.loss_median, first.loss_mean, first.error, first.error_of_faster)
    median, mean, error, faster = (f"{100 * share:.0f}%" for share in shares)
    assert beside[0][2:] == (median, mean, f"{first.rank_correlation:.2f}", error, faster)
