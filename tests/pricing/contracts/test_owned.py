"""The cost of an owned GPU-hour, from published inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.costs.quantity import Power
from pricing.contracts.owned import (
    ITEMS,
    Owned,
    break_even_ratio,
    cluster_usd_per_gpu,
    depreciation_usd_per_h,
    economic_rate_per_year,
    financing_usd_per_h,
    housing_usd_per_h,
    items_usd_per_gpu_h,
    usd_per_gpu_h,
    value_usd,
)

DGX_H100 = Owned(
    server_usd_per_gpu=36_000.0,
    network_ratio=0.19,
    storage_ratio=0.0,
    life_years=5.0,
    age_years=0.0,
    depreciation="straight-line",
    residual_ratio=0.0,
    financing_ratio=0.0,
    utilisation_ratio=1.0,
    server_power=Power.from_kw(10.2 / 8),
    mean_load_ratio=0.76,
    idle_load_ratio=0.15,
    housing="colocation",
    colocation_usd_per_kw_month=184.06,
    facility_usd_per_kw=0.0,
    facility_life_years=15.0,
    staff_ratio=0.0,
)
"""36k USD per GPU, 5 years, 19 % network, 10.2 kW per 8 GPUs at 76 %, colocation at 184.06 USD per kW-month (CBRE)."""


def test_an_h100_at_36_thousand_dollars_costs_1_11_and_1_44_with_colocation():
    items = items_usd_per_gpu_h(DGX_H100, pue=1.25, usd_per_kwh=0.0826)

    # 36 000 / (5 x 8 760) = 0.82; x 0.19 / 0.81 = 0.19; 1.275 kW x 0.76 x 1.25 x 0.0826 = 0.10; 1.275 x 184.06 / 730
    assert items["server"] == pytest.approx(0.822, abs=0.001)
    assert items["network"] == pytest.approx(0.193, abs=0.001)
    assert items["electricity"] == pytest.approx(0.100, abs=0.001)
    assert items["housing"] == pytest.approx(0.321, abs=0.001)
    assert sum(items.values()) - items["housing"] == pytest.approx(1.11, abs=0.01)
    assert sum(items.values()) == pytest.approx(1.44, abs=0.01)


def test_epochs_depreciation_charges_0_322_of_the_value_a_year_and_leaves_27_6_percent_less():
    # 0.14 orders of magnitude a year (epoch-research/training-cost-trends@263c40a1)
    assert economic_rate_per_year() == pytest.approx(0.322, abs=0.001)
    assert 1 - value_usd(1.0, 1.0) == pytest.approx(0.276, abs=0.001)


def test_epochs_method_on_llama_65b():
    # 1,022,362 A100-hours (arXiv 2302.13971, Table 15), servers at 17,900 USD per GPU, one year old, 19 % network:
    # 17 900 / 0.81 x 10^-0.14 x 0.3224 / 8 760 = 0.5892 USD per hour
    owned = replace(DGX_H100, server_usd_per_gpu=17_900.0, depreciation="economic", age_years=1.0)

    per_h = depreciation_usd_per_h(owned, cluster_usd_per_gpu(owned))

    assert per_h == pytest.approx(0.5892, abs=0.0005)
    assert per_h * 1_022_362 == pytest.approx(602_000, rel=0.002)


def test_the_network_is_a_share_of_the_whole_cluster():
    assert cluster_usd_per_gpu(DGX_H100) == pytest.approx(36_000 / 0.81)
    assert cluster_usd_per_gpu(replace(DGX_H100, storage_ratio=0.05)) == pytest.approx(36_000 / 0.76)


def test_a_residual_value_lowers_depreciation_and_raises_financing():
    kept = replace(DGX_H100, residual_ratio=0.2, financing_ratio=0.08)

    assert depreciation_usd_per_h(kept, 36_000.0) == pytest.approx(0.8 * 36_000 / 43_800)
    assert financing_usd_per_h(kept, 36_000.0) == pytest.approx(0.6 * 36_000 * 0.08 / 8760)


def test_financing_of_economic_value_falls_with_age():
    old = replace(DGX_H100, depreciation="economic", financing_ratio=0.08, age_years=2.0)

    assert financing_usd_per_h(old, 36_000.0) == pytest.approx(36_000 * 10**-0.28 * 0.08 / 8760)


def test_an_own_building_is_spread_over_its_own_life():
    own = replace(DGX_H100, housing="own", facility_usd_per_kw=10_000.0)

    assert housing_usd_per_h(own) == pytest.approx(1.275 * 10_000 / (15 * 8760))


def test_staff_is_a_share_of_everything_else():
    items = items_usd_per_gpu_h(replace(DGX_H100, staff_ratio=0.1), 1.25, 0.0826)

    assert tuple(items) == ITEMS
    assert items["staff"] == pytest.approx(0.1 * (sum(items.values()) - items["staff"]))


def test_unused_hours_are_borne_by_used_ones():
    full, half = (usd_per_gpu_h(replace(DGX_H100, utilisation_ratio=ratio), 1.25, 0.0826) for ratio in (1.0, 0.5))

    idle = 1.275 * 0.15 * 1.25 * 0.0826
    assert half == pytest.approx(2 * (full - 0.1) + 0.1 + idle, abs=1e-3)


def test_at_the_break_even_utilisation_owning_costs_as_much_as_renting():
    owned = replace(DGX_H100, staff_ratio=0.1)

    ratio = break_even_ratio(owned, 1.25, 0.0826, 3.49)

    assert ratio == pytest.approx(0.44, abs=0.01)
    assert usd_per_gpu_h(replace(owned, utilisation_ratio=ratio), 1.25, 0.0826) == pytest.approx(3.49)


def test_renting_below_the_cost_at_full_use_is_never_beaten():
    assert break_even_ratio(DGX_H100, 1.25, 0.0826, 1.20) is None
    assert break_even_ratio(DGX_H100, 1.25, 0.0826, 0.05) is None


@given(
    st.floats(0.05, 0.95),
    st.floats(0.0, 0.5),
    st.sampled_from(["straight-line", "economic"]),
    st.floats(5_000, 80_000),
    st.floats(1.0, 2.0),
)
def test_owning_never_gets_dearer_with_use_nor_cheaper_with_price_or_pue(used, staff, depreciation, price, pue):
    owned = replace(
        DGX_H100, utilisation_ratio=used, staff_ratio=staff, depreciation=depreciation, server_usd_per_gpu=price
    )
    cost = usd_per_gpu_h(owned, pue, 0.08)

    assert cost > usd_per_gpu_h(replace(owned, utilisation_ratio=used * 1.05), pue, 0.08)
    assert cost < usd_per_gpu_h(replace(owned, server_usd_per_gpu=price * 1.1), pue, 0.08)
    assert cost <= usd_per_gpu_h(owned, pue + 0.1, 0.08)
