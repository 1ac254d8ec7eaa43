"""Carbon: location-based, market-based beside it, and the SCI score, on published figures."""

from __future__ import annotations

import numpy as np
import pytest

from planner.costs.carbon import embodied_kg, operation_kg, sci_kg_per_1e21_flop, sci_kg_per_run
from planner.costs.quantity import Energy, Power
from tests.planner.costs.amounts import kilowatt_hours


def test_location_and_market_based_are_two_numbers():
    energy = Energy.from_mwh(10.0)

    assert operation_kg(energy, 0.3835) == pytest.approx(3835.0)
    assert operation_kg(energy, 0.0) == 0.0


def test_operation_outweighs_manufacture_on_the_us_grid_but_not_on_a_clean_one():
    energy = Power.from_kw(0.97).over_hours(1.0).times(1.25)

    assert operation_kg(energy, 0.384) == pytest.approx(0.465, abs=0.001)
    assert operation_kg(energy, 0.030) == pytest.approx(0.036, abs=0.001)


def test_the_sci_score_is_energy_times_intensity_plus_embodied_per_run():
    # BLOOM (arXiv 2211.02001): 689,842 kWh at 57 g/kWh and 11.2 t embodied are 50.5 t
    operation = operation_kg(kilowatt_hours(689_842.0), 0.057)

    assert sci_kg_per_run(operation, 11_200.0) == pytest.approx(50_500, rel=1e-3)


def test_the_sci_score_per_1e21_flop():
    # GPT-3 (arXiv 2104.10350): 1287 MWh, 0.429 kg/kWh, 3.14e23 FLOP
    operation = operation_kg(Energy.from_mwh(1287.0), 0.429)

    assert sci_kg_per_1e21_flop(sci_kg_per_run(operation, 0.0), 3.14e23) == pytest.approx(552_000 / 314, rel=2e-3)


def test_every_function_takes_draws():
    embodied = embodied_kg(np.array([1000.0, 2000.0]), np.array([0.01, 0.02]))

    assert embodied.tolist() == [10.0, 40.0]
    assert sci_kg_per_run(operation_kg(kilowatt_hours(100.0), 0.1), embodied).tolist() == [20.0, 50.0]
