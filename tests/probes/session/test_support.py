"""Whether a recipe runs, as a line."""

from __future__ import annotations

import pytest

from probes.precisions import recipe_by_id
from probes.session.support import support_figures, support_point
from tests.probes.build import CPU


def test_a_recipe_that_runs_has_the_error_of_its_product_and_no_time() -> None:
    pytest.importorskip("torch")
    recipe = recipe_by_id("fp32")

    point, figures = support_point(recipe), support_figures(recipe, CPU)

    assert (point.probe_id, point.kind) == ("support/fp32", "support")
    assert (figures.status, figures.time.median_s) == ("ok", None)
    assert figures.numerics.product_error_ratio is not None
    assert figures.numerics.product_error_ratio < 1e-5


def test_a_recipe_that_does_not_run_says_why() -> None:
    pytest.importorskip("torch")
    figures = support_figures(recipe_by_id("fp8"), CPU)

    assert figures.status == "unsupported"
    assert figures.reason is not None
    assert "no FP8" in figures.reason
