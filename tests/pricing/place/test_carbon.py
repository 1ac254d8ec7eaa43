"""Embodied carbon: a range from published figures, and its share of an hour."""

from __future__ import annotations

import pytest

from planner.hardware.catalogue import load_gpus
from pricing.place.carbon import embodied_of


def test_embodied_carbon_is_a_range_from_nvidias_to_boavizta_s_figure():
    embodied = embodied_of("h100-sxm5-80gb")

    assert embodied.kg_co2e_per_gpu.high == 575  # Boavizta 2.5.0
    assert embodied.kg_co2e_per_gpu.low == pytest.approx(164)  # NVIDIA's 1312 kg for 8
    assert "manufacture only" in embodied.evidence.what


def test_embodied_rows_are_of_catalogue_gpus_and_an_unknown_gpu_has_none():
    assert all(embodied_of(gpu) is None or gpu in load_gpus() for gpu in ("t4", "b300-sxm-288gb"))
    assert embodied_of("rtx-3090") is None


def test_575_kg_over_five_years_are_13_grams_an_hour():
    made = embodied_of("h100-sxm5-80gb")

    assert made.per_gpu_h().kg_co2e_per_gpu_h.high == pytest.approx(0.0131, abs=0.0001)
    assert made.per_gpu_h(2.5).kg_co2e_per_gpu_h.high == 2 * made.per_gpu_h().kg_co2e_per_gpu_h.high


def test_the_mid_is_the_middle_of_both_figures_and_is_spread_over_43800_hours():
    made = embodied_of("h100-sxm5-80gb")
    hour = made.per_gpu_h().kg_co2e_per_gpu_h

    assert made.kg_co2e_per_gpu.mid == pytest.approx((164 + 575) / 2)  # 369.5 kg
    # 5 years of 8 760 hours: 164, 369.5 and 575 kg over 43 800 h are 3.74, 8.44 and 13.13 g an hour
    assert (hour.low, hour.mid, hour.high) == pytest.approx((0.0037443, 0.0084361, 0.0131279), rel=1e-4)


@pytest.mark.parametrize(("gpu", "kg"), [("a100-sxm4-80gb", 568), ("b200-sxm-180gb", 1415)])  # Boavizta 2.5.0
def test_another_gpu_has_the_same_span_around_its_own_figure(gpu, kg):
    each = embodied_of(gpu).kg_co2e_per_gpu

    # NVIDIA's figure of the H100 over Boavizta's is 164 / 575 = 0.28522; the middle is 0.64261 of the high end
    assert (each.low, each.mid, each.high) == pytest.approx((0.28522 * kg, 0.64261 * kg, kg), rel=1e-4)


def test_an_hour_says_where_its_carbon_is_from():
    made = embodied_of("h100-sxm5-80gb").per_gpu_h()

    assert made.evidence.used_in == ("embodied_tco2e", "sci_kg_per_run")
    assert "over 5 years" in made.evidence.what
    assert "over 4 years" in embodied_of("h100-sxm5-80gb").per_gpu_h(4).evidence.what
