"""Carbon by the grid, by contract and of making the GPUs, and the SCI score, as sums and products that come out."""

from typing import Any

import pytest

from reports.explain.carbon import carbon_node, embodied_node, market_node, score_node
from reports.explain.derivation import Node, made_of

ENERGY, HOURS = Node(label="Energy", value=4.0, unit="MWh"), Node(label="GPU-hours", value=5_000.0)


def plan(**changes: Any) -> dict[str, Any]:
    """A plan of 4 MWh at 250 g per kWh, whose GPUs cost 0.01 kg an hour to make."""
    figures: dict[str, Any] = {
        "carbon_tco2e": {"low": 0.5, "mid": 1.0, "high": 2.0},
        "carbon_market_tco2e": 0.2,
        "embodied_tco2e": {"low": 0.02, "mid": 0.05, "high": 0.1},
        "sci_kg_per_run": {"low": 520.0, "mid": 1050.0, "high": 2100.0, "at_least": False},
    }
    return figures | changes


def test_carbon_is_energy_times_the_factor_of_the_grid():
    node = carbon_node(plan(), ENERGY, 0.25, "given", ("grid:given",))

    assert (node.low, node.value, node.high) == (0.5, 1.0, 2.0)
    assert [child.value for child in node.children] == [4.0, 0.25]
    assert carbon_node(plan(), ENERGY, "DEU", "", ()).children[1].value == 0.25  # a zone: the factor of the plan


def test_market_based_carbon_is_energy_times_the_factor_of_the_contracts():
    node = market_node(plan(), ENERGY, ("grid:market",))

    assert (node.value, node.low) == (0.2, None)
    assert [child.value for child in node.children] == [4.0, pytest.approx(0.05)]
    assert market_node(plan(carbon_market_tco2e=0.0), ENERGY, ()).value == 0.0
    assert "--market-grid" in market_node(plan(carbon_market_tco2e=None), ENERGY, ()).note


def test_the_embodied_share_is_gpu_hours_times_that_of_an_hour_whether_or_not_it_was_asked_for():
    asked = embodied_node(plan(), HOURS, ("embodied:m008",))
    unasked = embodied_node(plan(embodied_tco2e=None), HOURS, ())

    assert (asked.low, asked.value, asked.high) == pytest.approx((20.0, 50.0, 100.0))  # kg
    assert (unasked.low, unasked.value) == (None, pytest.approx(50.0))
    for node in (asked, unasked):
        assert node.children[1].value == pytest.approx(0.01)
        assert made_of(node.children, node.how) == pytest.approx(node.value)


def test_the_score_is_the_sum_of_both():
    carbon = carbon_node(plan(), ENERGY, 0.25, "", ())
    node = score_node(plan(), carbon, embodied_node(plan(), HOURS, ()))

    assert (node.low, node.value, node.high) == (520.0, 1050.0, 2100.0)
    assert [child.value for child in node.children] == pytest.approx([1000.0, 50.0])


def test_a_score_without_the_making_of_its_gpus_is_a_lower_bound_that_says_so():
    bound = plan(embodied_tco2e=None, sci_kg_per_run={"low": 500.0, "mid": 1000.0, "high": 2000.0, "at_least": True})
    node = score_node(bound, carbon_node(bound, ENERGY, 0.25, "", ()), embodied_node(bound, HOURS, ()))

    assert (node.at_least, node.value, len(node.children)) == (True, 1000.0, 1)
    assert node.note == "no figure is known for making this GPU"
