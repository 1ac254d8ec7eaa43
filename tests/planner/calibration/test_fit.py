"""The population fit on a few invented teams: values move, ranges are a new team's, and the posterior is joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.fit import ITERATIONS, Fit, fit, population_fit, read_corpus
from planner.rates.parameters import Figure, shipped_parameters
from tests.planner.calibration.test_hierarchy import of


@pytest.fixture(scope="module")
def fitted() -> Fit:
    factors = {"a": 0.7, "b": 0.75, "c": 0.72, "d": 0.78}
    rows = [row for name, factor in factors.items() for row in of(name, factor, count=5)]
    return fit(rows, replace(shipped_parameters(), joint=None), lambda line: None)


def test_teams_that_are_all_slower_slow_the_parameters_that_they_share(fitted):
    residuals = np.array([residual for residual, _ in fitted.left_out.values()])

    # all four lie 22 to 30 % below the shipped values, 0.31 in the logarithm at the median; left out, each is predicted
    # from the other three (the priors are those before any fit: measured kernels leave little room for slower ones)
    assert abs(np.median(residuals)) < 0.8 * 0.31


def test_the_posterior_is_that_of_a_new_lineage_and_its_margins_are_the_ranges(fitted):
    joint = fitted.parameters.joint
    assert joint is not None
    sd = dict(zip(joint.ids, np.sqrt(np.diag(joint.covariance)), strict=True))
    row = fitted.parameters.rows["fusion_ratio.eager"]

    assert row.log_sd == pytest.approx(sd["fusion_ratio.eager"], rel=1e-3)
    assert sd["fusion_ratio.eager"] >= shipped_parameters().rows["fusion_ratio.tuned"].lineage_sd * 0.5


def test_a_row_that_no_run_tells_of_keeps_its_prior(fitted):
    before = shipped_parameters().rows["matmul_efficiency.Volta"].before_fit
    after = fitted.parameters.rows["matmul_efficiency.Volta"]

    assert after.value == pytest.approx(before.value)
    assert after.fitted_rows is None


def test_a_fitted_row_says_from_how_many_runs_and_keeps_its_prior(fitted):
    row = fitted.parameters.rows["framework_ratio.eager"]

    assert row.fitted_rows == 20
    assert row.prior is not None
    assert row.prior == shipped_parameters().rows["framework_ratio.eager"].prior


def test_every_lineage_has_a_learning_curve_and_drawn_ranges(fitted):
    assert {(entry.lineage, entry.count) for entry in fitted.curve} == {
        (name, count) for name in "abcd" for count in (0, 1, 3)
    }
    assert {entry.lineage for entry in fitted.drawn} == set("abcd")
    assert {entry.figure for entry in fitted.drawn} == {Figure.TIME}


@pytest.mark.long
def test_the_shipped_corpus_teaches_with_its_lineages():
    observations = read_corpus(shipped_parameters())

    assert len(observations) > 3900
    assert len({observation.lineage for observation in observations}) > 25
    assert not any(observation.run.flag for observation in observations)


def test_the_fit_has_come_to_rest_and_steps_that_turn_back_are_halved():
    lines: list[str] = []
    rows = [row for name, factor in {"a": 0.7, "b": 0.8}.items() for row in of(name, factor, count=3)]

    population_fit(rows, replace(shipped_parameters(), joint=None), lines.append)

    steps = [float(line.split("largest step ")[1].split()[0]) for line in lines if line.startswith("iteration")]
    assert len(steps) == ITERATIONS
    assert abs(steps[-1]) < 0.02 < abs(steps[0])
