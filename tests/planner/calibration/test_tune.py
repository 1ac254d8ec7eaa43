"""Tuning: spreads grow with how far teams are apart, stay below what was thought possible, and ranges come to hold."""

from __future__ import annotations

import numpy as np
import pytest

from planner.calibration.crossval import leave_out
from planner.calibration.spreads import spread, spreads_of
from planner.calibration.tune import COVERAGE, conformal, largest_spreads, mean_score, tuned
from planner.rates.parameters import Figure, shipped_parameters
from tests.planner.calibration.test_hierarchy import before_any_fit, hierarchy, of

APART = {"a": 0.55, "b": 0.75, "c": 1.0, "d": 1.3, "e": 1.8}
ALIKE = {"a": 0.99, "b": 1.0, "c": 1.01, "d": 1.0, "e": 0.99}


def teams(factors: dict[str, float]):
    return hierarchy([row for name, factor in factors.items() for row in of(name, factor, count=4)])


def spread_of_speed(model, parameters) -> float:
    """Of the rows of a team that nobody measured, by what one team has against others and by what is left out."""
    under = model.under(parameters)
    latent, variance = under.latent(under.design.lineages["a"])
    return float(np.sqrt((latent**2 @ variance + under.own_sd[under.design.lineages["a"]] ** 2).mean()))


@pytest.fixture(scope="module")
def models():
    return {"apart": teams(APART), "alike": teams(ALIKE)}


@pytest.fixture(scope="module")
def tuned_spreads(models):
    return {name: tuned(model, lambda line: None) for name, model in models.items()}


def test_teams_that_are_apart_ask_for_a_wider_spread_than_teams_that_are_alike(models, tuned_spreads):
    apart, alike = (spread_of_speed(models[name], tuned_spreads[name]) for name in ("apart", "alike"))

    assert apart > 3.0 * alike


def test_tuning_never_makes_left_out_teams_less_probable(models, tuned_spreads):
    before = models["apart"]

    given = leave_out(before)
    assert mean_score(before.under(tuned_spreads["apart"]), given) >= mean_score(before, given)


def test_no_lineage_differs_by_more_than_was_thought_possible_before_any_fit(tuned_spreads):
    largest = largest_spreads(before_any_fit(), ("fusion_ratio.tuned", "overlap_dp_ratio.tuned", "step_overhead_s"))

    for name, most in largest.items():
        assert spread(tuned_spreads["apart"], name) <= most * (1 + 1e-3)  # the file holds three digits


def test_the_ranges_are_widened_until_they_hold_teams_that_are_far_apart(models):
    lines: list[str] = []
    before = models["apart"]

    after = conformal(before, lines.append)

    assert spread(after, "stack_error_ratio") > spread(before.parameters, "stack_error_ratio")
    held = float(lines[0].split("ranges hold ")[1].split("%")[0]) / 100
    assert held >= COVERAGE[0]


def test_the_spreads_of_a_figure_are_its_own():
    time, memory = (spreads_of(shipped_parameters(), figure) for figure in (Figure.TIME, Figure.MEMORY))

    assert "default_error_ratio" in time
    assert "memory_default_error_ratio" in memory
    assert not set(time) & set(memory)
