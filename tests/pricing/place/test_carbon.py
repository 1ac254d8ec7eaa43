"""Embodied carbon: a range from published figures, and its share of an hour."""

from __future__ import annotations

import pytest

from planner.hardware.catalogue import load_gpus
from pricing.place.carbon import embodied_of


def test_embodied_carbon_is_a_range_from_nvidias_to_boavizta_s_figure():
    found = embodied_of("h100-sxm5-80gb")

    assert found.kg_co2e_per_gpu.high == 575  # Boavizta 2.5.0
    assert found.kg_co2e_per_gpu.low == pytest.approx(164)  # NVIDIA's 1312 kg for 8
    assert "manufacture only" in found.evidence.what


def test_embodied_rows_are_of_catalogue_gpus_and_an_unknown_gpu_has_none():
    assert all(embodied_of(gpu) is None or gpu in load_gpus() for gpu in ("t4", "b300-sxm-288gb"))
    assert embodied_of("rtx-3090") is None


def test_575_kg_over_five_years_are_13_grams_an_hour():
    made = embodied_of("h100-sxm5-80gb")

    assert made.per_gpu_h().kg_co2e_per_gpu_h.high == pytest.approx(0.0131, abs=0.0001)
    assert made.per_gpu_h(utilisation=0.5).kg_co2e_per_gpu_h.high == pytest.approx(
        2 * made.per_gpu_h().kg_co2e_per_gpu_h.high
    )


def test_an_hour_says_where_its_carbon_is_from():
    made = embodied_of("h100-sxm5-80gb").per_gpu_h()

    assert made.evidence.used_in == ("embodied_tco2e", "sci_kg_per_run")
    assert "over 5 years" in made.evidence.what
