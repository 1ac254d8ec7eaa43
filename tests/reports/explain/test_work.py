"""What a token costs per matrix parameter, by training method."""

from __future__ import annotations

import pytest

from planner.performance.operations import matrix_flop_per_token
from planner.training.method import load_methods
from reports.explain.work import flop_per_param
from tests.planner.build import recipe


@pytest.mark.parametrize("method", [id_ for id_ in load_methods() if id_ != "freeze"])
def test_the_walk_says_what_the_planner_counts(method):
    training = recipe("llama-3.1-8b", method=method)

    assert flop_per_param(method) == pytest.approx(
        matrix_flop_per_token(training) / training.model.matrix_params_active
    )


def test_layers_that_are_run_forward_only_have_no_figure_for_each_parameter():
    assert flop_per_param("freeze") is None
    assert flop_per_param(None) == 6
