"""Units enter and leave by name, and cannot be swapped on the way."""

from __future__ import annotations

import numpy as np
import pytest

from planner.costs.lines import egress_usd, electricity_usd, storage_usd
from planner.costs.quantity import DataSize, Energy, Power
from tests.planner.costs.amounts import kilowatt_hours


def test_one_mwh_is_a_thousand_kwh_and_3_6_gj():
    assert Energy.from_mwh(1.0).kwh == pytest.approx(1000.0)
    assert Energy.from_mwh(1.0).j == pytest.approx(3.6e9)
    assert Energy(j=9e9).mwh == pytest.approx(2.5)


def test_power_over_hours_is_energy_on_arrays_too():
    energy = Power.from_kw(10.2).over_hours(np.array([1.0, 24.0]))

    assert np.allclose(energy.kwh, [10.2, 244.8])


def test_power_is_read_in_kw_and_mw():
    assert Power.from_mw(7.2).kw == pytest.approx(7200.0)
    assert Power(w=700.0).mw == pytest.approx(0.0007)


def test_a_gib_is_7_percent_more_than_a_gb():
    assert DataSize(size_bytes=2.0**30).gb == pytest.approx(1.073741824)
    assert DataSize(size_bytes=1e9).gb == 1.0


def test_energies_add_and_scale():
    assert (kilowatt_hours(1.0) + kilowatt_hours(2.0)).times(1.25).kwh == pytest.approx(3.75)
    assert Power(w=100.0).times(2.0).w == 200.0


@pytest.mark.parametrize("bare", [1287.0, np.array([1287.0])])
def test_a_bare_number_is_not_taken_for_an_energy(bare):
    with pytest.raises(AttributeError):
        electricity_usd(bare, 0.08)


def test_a_bare_number_is_not_taken_for_data():
    with pytest.raises(AttributeError):
        storage_usd(80.0, 1.0, 0.02)
    with pytest.raises(AttributeError):
        egress_usd(80.0, 0.09)


def test_power_is_not_taken_for_energy():
    with pytest.raises(AttributeError):
        electricity_usd(Power.from_mw(1.0), 0.08)


def test_energy_and_power_do_not_add():
    with pytest.raises(AttributeError):
        kilowatt_hours(1.0) + Power.from_kw(1.0)
