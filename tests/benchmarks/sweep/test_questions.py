"""Bad layouts look bad: the sweep of nanotron's layouts, predicted without looking at it."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sweep.questions import Sweep, map_rows, predict_sweep, read_sweep, scores
from planner.calibration.linear import Observation
from planner.rates.parameters import shipped_parameters
from planner.rows import CATALOG


@pytest.fixture(scope="module")
def observations() -> list[Observation]:
    with (CATALOG / "sweep_runs.csv").open(encoding="utf-8", newline="") as lines:
        return read_sweep(csv.DictReader(lines))


@pytest.fixture(scope="module")
def sweeps(observations) -> list[Sweep]:
    return predict_sweep(observations, shipped_parameters())


def test_every_question_of_the_sweep_is_asked(sweeps):
    gpus = [8, 16, 32, 64, 128, 256, 512]

    assert [sweep.question for sweep in sweeps] == [(m, n) for m in ("Llama-1.34B", "Llama-8.86B") for n in gpus]
    assert sum(len(sweep.predicted) for sweep in sweeps) > 950


@pytest.mark.parametrize("model", ["Llama-1.34B", "Llama-8.86B"])
def test_layouts_are_ranked_and_slow_ones_are_predicted_slow(sweeps, model):
    # before collectives knew nodes, hosts and stalls: rank correlation 0.77 and 0.68, error 112 and 179%
    figures = scores([sweep for sweep in sweeps if sweep.question[0] == model])

    assert figures.rank_correlation > 0.78
    assert figures.error < 0.30
    assert figures.error_of_faster < 0.25
    assert figures.loss_median < 0.13


def test_what_sixty_four_nodes_do_to_a_layout_is_seen(sweeps):
    # once 15 times too fast at the median
    largest = [sweep for sweep in sweeps if sweep.question[1] == 512]

    assert all(np.median(sweep.errors) < 0.4 for sweep in largest)


def test_the_loss_of_a_choice_is_what_the_fastest_measured_has_beyond_it(observations):
    three = [
        replace(observation, value=value)
        for observation, value in zip(observations[:3], (80.0, 100.0, 50.0), strict=True)
    ]
    sweep = Sweep(question=("m", 8), observations=tuple(three), predicted=np.array([9.0, 8.0, 1.0]))

    assert sweep.loss == pytest.approx(0.2)
    assert sweep.rank_correlation == pytest.approx(0.5)
    assert list(sweep.faster) == [True, True, False]


def test_the_map_shows_the_best_of_each_split(sweeps):
    sweep = next(sweep for sweep in sweeps if sweep.question == ("Llama-1.34B", 8))
    headers, rows = map_rows(sweep)

    assert headers[:3] == ("", "pp 1", "pp 2")
    assert rows[0][0] == "tp 1"
    assert rows[0][1].startswith("39273 / ")  # tp 1, pp 1: the fastest row of the sweep at a batch of 256
