"""Figures that do not fit each other are seen: each planted slip of a unit is caught."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from pricing.exports.audit import audit, require_sound


def scaled(estimate, factor):
    return {key: value * factor if key != "at_least" else value for key, value in estimate.items()}


def test_a_sound_document_has_no_faults(document):
    assert audit(document) == ()
    require_sound(document)


@pytest.mark.parametrize(
    ("metric", "factor", "problem"),
    [
        ("energy_mwh", 1e3, "energy over GPU-hours"),  # kWh written as MWh
        ("energy_mwh", 1e-3, "energy over GPU-hours"),  # GWh written as MWh
        ("energy_mwh", 1e6, "energy over GPU-hours"),  # Wh written as MWh
        ("carbon_tco2e", 1e3, "carbon over energy"),  # kg written as tonnes
        ("carbon_tco2e", 1e-3, "carbon over energy"),
        ("duration_days", 24.0, "GPU-hours over GPUs times days"),  # hours written as days
        ("gpu_hours", 1 / 64, "GPU-hours over GPUs times days"),  # wall hours written as GPU-hours
        ("gpu_hours", 60.0, "GPU-hours over GPUs times days"),  # minutes
        ("mean_power_mw", 1e3, "mean power times days over energy"),  # kW written as MW
        ("embodied_tco2e", 1e3, "embodied carbon over GPU-hours"),  # kg written as tonnes
        ("sci_kg_per_run", 1e-3, "SCI score over carbon"),  # tonnes written as kg
    ],
)
def test_a_planted_slip_of_a_unit_is_caught(document, metric, factor, problem):
    plan = document["plans"][0]
    plan[metric] = scaled(plan[metric], factor)

    assert any(problem in fault.what and fault.where == "plans.fp8" for fault in audit(document))


@pytest.mark.parametrize("factor", [1e3, 1e-3])  # kW or GW written as MW
def test_a_planted_slip_of_the_peak_power_is_caught(document, factor):
    document["plans"][0]["peak_power_mw"] *= factor

    assert any("peak power over mean power" in fault.what for fault in audit(document))


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_a_planted_slip_of_the_price_is_caught(document, factor):
    plan = document["plans"][0]
    plan["cost_usd"] = scaled(plan["cost_usd"], factor)
    for line in plan["cost_lines"]:
        line["usd"] = scaled(line["usd"], factor)
        for child in line["children"]:
            child["usd"] = scaled(child["usd"], factor)

    assert any("cost over GPU-hours" in fault.what for fault in audit(document))


@pytest.mark.parametrize(("price", "sound"), [(2.49, True), (249.0, False), (0.00249, False)])
def test_an_hour_is_held_against_the_price_that_the_answer_states(document, price, sound):
    plan = document["plans"][0]
    stated = plan["cost_usd"]["mid"] / plan["gpu_hours"]["mid"]
    usd = dict.fromkeys(("low", "mid", "high"), stated * price / 2.49)
    document["money"] = {"prices": [{"gpu": plan["gpu"], "usd_per_gpu_h": usd | {"at_least": False}}]}

    assert (audit(document) == ()) is sound


def test_a_fee_of_many_times_the_hours_is_no_slip(document):
    plan = document["plans"][0]
    fee = 1000.0 * plan["cost_usd"]["mid"]
    once = {"low": fee, "mid": fee, "high": fee, "at_least": False}
    plan["cost_usd"] = {end: plan["cost_usd"][end] + fee for end in ("low", "mid", "high")} | {"at_least": False}
    line = {"id": "minimum_term", "label": "Minimum", "quantity": None, "unit": None, "unit_price_usd": None}
    plan["cost_lines"].append(line | {"usd": once, "children": []})

    assert audit(document) == ()


def test_cents_in_one_line_are_caught_by_the_sum(document):
    document["plans"][0]["cost_lines"][0]["usd"]["mid"] *= 100

    assert any("the lines' mid sums to" in fault.what for fault in audit(document))


def test_a_faulty_document_is_refused_with_its_first_fault(document):
    document["plans"][0]["energy_mwh"] = scaled(document["plans"][0]["energy_mwh"], 1e3)

    with pytest.raises(
        InputFileError, match=r"plans\.fp8: energy over GPU-hours is .*: is a unit wrong\? \(and 3 more\)"
    ):
        require_sound(document)


def test_a_lower_bound_is_not_held_against_its_ratio(document):
    for view in ("plans", "same_deadline"):
        for plan in document[view]:
            if plan["fits"]:
                plan["cost_usd"] = {"low": 0.0, "mid": 0.0, "high": 0.0, "at_least": True}
                plan["cost_lines"] = []

    assert audit(document) == ()
