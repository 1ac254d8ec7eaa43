"""When a term has any effect on a recipe."""

from __future__ import annotations

import pytest

from planner.rates.conditions import has_effect
from planner.rates.ladder import resolve_rates
from tests.planner.build import cluster, recipe


@pytest.mark.parametrize(
    ("term", "changes", "effective"),
    [
        ("send_stall_s", {"stack": "eager"}, True),
        ("send_stall_s", {"stack": "typical"}, False),  # sends run on a stream of their own
        ("cast_fusion_ratio", {"policy": "fp8"}, True),
        ("cast_fusion_ratio", {"policy": "bf16"}, False),
        ("norm_passes", {}, True),
    ],
)
def test_a_term_counts_where_its_condition_holds(term, changes, effective):
    trained = recipe(**changes)

    assert has_effect(resolve_rates(cluster(), trained).terms[term], trained) is effective
