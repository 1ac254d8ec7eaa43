"""Pairs of the sweep's layouts that differ in the ZeRO stage alone."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sweep.questions import Sweep, read_sweep
from benchmarks.sweep.twins import Twins, lost, sentences, times_apart, twin_rows, twins, without_slow
from planner.rows import CATALOG


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    """A question as it was measured, every layout of which is predicted to run at 6,000 tokens/s per GPU."""
    with (CATALOG / "sweep_runs.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["model"] == "Llama-8.86B" and row["n_gpus"] == "16"]
    observations = tuple(read_sweep(rows))
    return Sweep(question=("Llama-8.86B", 16), observations=observations, predicted=np.full(len(observations), 6000.0))


def test_a_pair_is_one_split_at_two_stages(sweep):
    pairs = twins(sweep)

    assert pairs.measured.shape == pairs.predicted.shape == (10, 2)
    (slow,) = (observation.value for observation in sweep.observations if observation.run.id == "sweep-0815")
    assert slow in pairs.measured[:, 0]  # tp 2, pp 2, stage 0: four times slower than stage 1
    assert times_apart(pairs.measured).max() > 4.0


def test_ranks_and_losses_are_those_of_the_pairs():
    measured = np.array(
        [[4.0, 1.0], [3.0, 2.0], [2.0, 3.0], [1.0, 4.0], [0.8, 5.0], [0.6, 6.0], [0.4, 7.0], [0.2, 8.0]]
    )
    pairs = Twins(question=("m", 16), measured=measured, predicted=measured.copy())

    (row,) = twin_rows([pairs, replace(pairs, measured=measured[:7], predicted=measured[:7])])

    assert row == ("m", "16", "8", "-1.00", "1.00 / 1.00", "95% / 88%", "0% / 0%")
    assert lost(measured[:, 1], measured[:, 0]) == pytest.approx(0.95)


def test_slow_layouts_are_left_out_by_what_was_predicted(sweep):
    exact = replace(sweep, predicted=sweep.measured)
    wrong = exact.predicted.copy()
    wrong[sweep.measured.argmin()] = 2 * sweep.measured.max()  # predicted to be the fastest, and the slowest

    assert replace(sweep, predicted=wrong).loss > 0.8
    assert without_slow(replace(sweep, predicted=wrong)) == (pytest.approx(1.0), 0.0)
    assert "Without the 1 of " in sentences([replace(sweep, predicted=wrong)], [twins(exact)])
