"""Carbon: location-based, market-based beside it, embodied as a range, and the SCI score."""

from __future__ import annotations

import pytest

from planner.evidence import Estimate
from planner.gpus import load_gpus
from planner.quantity import Energy, Power
from pricing.carbon import embodied_kg, embodied_of, location_kg, market_kg, sci_score

NOTHING = Estimate.exactly(0.0)


def test_location_and_market_based_are_two_numbers():
    energy = Energy.from_mwh(10.0)

    assert location_kg(energy, 0.3835) == pytest.approx(3835.0)
    assert market_kg(energy, 0.0) == 0.0


def test_embodied_carbon_is_a_range_from_nvidias_to_boavizta_s_figure():
    found = embodied_of("h100-sxm5-80gb")

    assert found.kg_co2e_per_gpu.high == 575  # Boavizta 2.5.0
    assert found.kg_co2e_per_gpu.low == pytest.approx(164)  # NVIDIA's 1312 kg for 8
    assert "manufacture only" in found.evidence.what


def test_embodied_rows_are_of_catalogue_gpus_and_an_unknown_gpu_has_none():
    assert all(embodied_of(gpu) is None or gpu in load_gpus() for gpu in ("t4", "b300-sxm-288gb"))
    assert embodied_of("rtx-3090") is None


def test_575_kg_over_five_years_are_13_grams_an_hour():
    share = embodied_kg(embodied_of("h100-sxm5-80gb"), 1.0)

    assert share.high == pytest.approx(0.0131, abs=0.0001)
    assert embodied_kg(embodied_of("h100-sxm5-80gb"), 1.0, utilisation=0.5).high == pytest.approx(2 * share.high)


def test_operation_outweighs_manufacture_on_the_us_grid_but_not_on_a_clean_one():
    energy = Power.from_kw(0.97).over_hours(1.0).times(1.25)

    assert location_kg(energy, 0.384) == pytest.approx(0.465, abs=0.001)
    assert location_kg(energy, 0.030) == pytest.approx(0.036, abs=0.001)


def test_the_sci_score_is_energy_times_intensity_plus_embodied_per_run():
    # BLOOM (arXiv 2211.02001): 689,842 kWh at 57 g/kWh and 11.2 t embodied are 50.5 t
    score = sci_score(Energy.from_kwh(689_842.0), 0.057, Estimate.exactly(11_200.0))

    assert score.kg_co2e_per_run.mid == pytest.approx(50_500, rel=1e-3)
    assert score.kg_co2e_per_1e21_flop is None


def test_the_sci_score_per_1e21_flop():
    # GPT-3 (arXiv 2104.10350): 1287 MWh, 0.429 kg/kWh, 3.14e23 FLOP
    score = sci_score(Energy.from_mwh(1287.0), 0.429, NOTHING, model_flop=3.14e23)

    assert score.kg_co2e_per_1e21_flop.mid == pytest.approx(552_000 / 314, rel=2e-3)


def test_the_embodied_range_becomes_the_scores_range():
    score = sci_score(Energy.from_kwh(100.0), 0.1, Estimate(low=1.0, mid=2.0, high=5.0))

    assert score.kg_co2e_per_run == Estimate(low=11.0, mid=12.0, high=15.0)
