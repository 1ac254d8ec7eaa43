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
    rates = resolve_rates(cluster(), trained)

    assert has_effect(rates.terms[term], trained, rates.sample()) is effective


@pytest.mark.parametrize(
    ("gpu", "attention", "term", "effective"),
    [
        ("h100-sxm5-80gb", "flash", "matmul_overlap_ratio", False),  # products take their time from a surface
        ("h100-sxm5-80gb", "flash", "operand_bytes_per_s", False),
        ("h100-sxm5-80gb", "naive", "operand_bytes_per_s", True),  # which the scores do not
        ("v100-sxm2-32gb", "naive", "matmul_overlap_ratio", True),
        ("v100-sxm2-32gb", "naive", "operand_bytes_per_s", True),
    ],
)
def test_the_law_of_products_counts_where_no_surface_was_measured(gpu, attention, term, effective):
    trained = recipe(attention=attention, policy="fp16")
    rates = resolve_rates(cluster(gpu), trained)

    assert has_effect(rates.terms[term], trained, rates.sample()) is effective
